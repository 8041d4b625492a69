"""Applications on trades and transactions."""
