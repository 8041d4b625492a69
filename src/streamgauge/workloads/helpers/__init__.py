"""What several workloads share: counts, places, decayed sums, Bloom filters."""
