"""The life of one trial: conductor, stopping rules, result."""
