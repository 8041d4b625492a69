"""Matrices of experiments: checking, running and resuming their cells, and the table of their figures."""
