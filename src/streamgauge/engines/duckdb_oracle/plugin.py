"""The plugin of the oracle, which answers and runs no streams."""

from streamgauge.engines.duckdb_oracle.lowering import kinds
from streamgauge.engines.spi import Capabilities, EnginePlugin, node_names


class OraclePlugin(EnginePlugin):
    """Capabilities only."""

    interface = 3
    capabilities = Capabilities(
        name="oracle",
        summary="DuckDB: what the right answer is",
        nodes=node_names(kinds()),
        sink_modes=("append", "update"),
        transports=(),
        delivery=None,
        runs_streams=False,
        computes_truth=True,
        several_sinks=True,
    )
