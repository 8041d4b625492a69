"""The oracle: DuckDB computes a flow's expected results from the planned input, independent of any engine."""
