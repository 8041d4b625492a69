"""Latency of results: event time, processing time and time until included."""
