"""Applications on phone calls."""
