"""Checks before anything starts, and the experiment with every default filled in."""
