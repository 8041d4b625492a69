"""The log of one trial: deliveries, commits and progress."""
