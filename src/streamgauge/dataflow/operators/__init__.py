"""Operators in Python (`process`) and the helpers that they are written with."""
