"""The transport for Spark's socket receivers."""
