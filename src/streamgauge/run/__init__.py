"""ONE TRIAL: check, generate, conduct, verify, judge."""
