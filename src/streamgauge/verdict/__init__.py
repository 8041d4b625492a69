"""Evidence, criteria and the verdict."""
