"""Rates and latencies of Spark, and what the code of ours around its queries costs."""
