"""Applications on text."""
