"""The plugin of the oracle, which answers and runs no streams."""

from __future__ import annotations

from streamgauge.engines.duckdb_oracle.lowering import kinds
from streamgauge.engines.spi import Capabilities, EnginePlugin


class OraclePlugin(EnginePlugin):
    """Capabilities only."""

    capabilities = Capabilities(
        name="oracle",
        summary="DuckDB: what the right answer is",
        nodes=tuple(kind.__name__ for kind in kinds()),
        sink_modes=("append", "update"),
        transports=(),
        runs_streams=False,
        computes_truth=True,
        several_sinks=True,
    )
