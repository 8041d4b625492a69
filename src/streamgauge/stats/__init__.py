"""Intervals and percentile rules: thin wrappers of libraries, blind to where the numbers come from."""
