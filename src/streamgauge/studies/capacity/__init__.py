"""The search for the highest sustained rate."""
