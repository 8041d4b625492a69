"""Documents and progress in the terminal."""
