"""Intervals and percentile rules: thin over kept libraries, and blind to where the numbers come from."""
