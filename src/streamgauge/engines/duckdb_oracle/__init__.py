"""The reference: DuckDB computes a flow's answer from the planned input, by another statement of the semantics."""

from __future__ import annotations

from streamgauge.engines.duckdb_oracle.engine import Oracle

__all__ = ["Oracle"]
