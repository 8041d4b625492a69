"""The metrics endpoint: what Prometheus can read of a running trial."""
