"""Many trials that answer one question."""
