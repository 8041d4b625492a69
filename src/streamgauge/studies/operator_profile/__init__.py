"""Cost, selectivity and memory of each operator."""
