"""The experiment model, limits, policy constants, and the command that reproduces a run."""
