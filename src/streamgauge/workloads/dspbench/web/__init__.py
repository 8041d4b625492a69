"""Applications on web traffic."""
