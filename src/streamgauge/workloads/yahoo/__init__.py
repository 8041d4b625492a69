"""The Yahoo streaming benchmark."""
