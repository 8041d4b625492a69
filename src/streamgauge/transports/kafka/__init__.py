"""Kafka: the same plan produced to a real broker, and results consumed from one."""
