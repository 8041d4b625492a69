"""Synthetic data of the applications."""
