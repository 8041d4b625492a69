"""How the latency of Spark's execution modes is broken down into stages."""
