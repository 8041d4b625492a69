"""The evidence of a trial, the checks on it, and the verdict."""
