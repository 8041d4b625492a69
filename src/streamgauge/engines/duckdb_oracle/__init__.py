"""The oracle: DuckDB computes a flow's expected results from the planned input, independent of any engine."""

from __future__ import annotations

from streamgauge.engines.duckdb_oracle.engine import Oracle

__all__ = ["Oracle"]
