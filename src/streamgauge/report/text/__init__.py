"""Results in sentences and phrases."""
