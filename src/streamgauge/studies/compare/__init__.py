"""Two groups of runs side by side, with intervals and gates for CI."""
