"""Shared parts of workloads: last values, counts, places, decayed sums, Bloom filters."""
