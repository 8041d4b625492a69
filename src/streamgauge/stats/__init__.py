"""Intervals and percentile rules, independent of where the numbers come from."""
