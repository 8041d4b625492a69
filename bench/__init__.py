"""Performance programs: each measures one part of the instrument against a baseline taken in the same run."""
