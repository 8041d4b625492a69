"""Workloads of a user's own: PySpark jobs, programs over Kafka, data files; and the look-up of any workload."""
