"""Brokers: own ones as processes, topics, and reading a partition's log."""
