"""Whole runs and searches, and the verification of their results."""
