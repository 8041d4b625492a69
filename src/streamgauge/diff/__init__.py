"""Two tables of results compared in DuckDB, nested values included."""
