"""What Spark says of itself: event log and row counts. It decides nothing."""
