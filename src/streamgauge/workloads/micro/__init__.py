"""Small workloads that measure one thing."""
