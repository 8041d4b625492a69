"""MANY trials, one question."""
