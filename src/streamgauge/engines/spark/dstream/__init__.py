"""Spark's older DStream API: receivers, state and lowering."""
