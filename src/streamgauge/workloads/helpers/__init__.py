"""Shared parts of workloads: counts, places, decayed sums, Bloom filters."""
