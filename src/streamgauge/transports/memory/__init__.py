"""The in-memory transport over Arrow Flight."""
