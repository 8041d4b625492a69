"""Expressions of a dataflow: the allowed functions, their rules and their types."""
