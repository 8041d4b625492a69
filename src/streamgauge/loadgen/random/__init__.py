"""Counter-based random numbers and key distributions."""
