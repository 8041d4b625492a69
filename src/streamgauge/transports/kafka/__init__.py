"""The transport over a Kafka broker."""
