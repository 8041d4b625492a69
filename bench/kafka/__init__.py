"""Rates to and from a real Kafka broker, everything on this machine."""
