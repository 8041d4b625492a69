"""Performance programs: each measures one room against a baseline taken in the same run."""
