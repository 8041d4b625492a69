"""The plugin of Flink. It loads nothing of it before a start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from streamgauge.core.errors import Problem
from streamgauge.core.units import parse_size
from streamgauge.engines.flink.options import CAPABILITIES, option_problems, with_defaults
from streamgauge.engines.spi import Engine, EnginePlugin


class FlinkPlugin(EnginePlugin):
    """Flink's DataStream API."""

    interface = 2
    capabilities = CAPABILITIES
    conformance = "streamgauge.engines.flink.conformance:CONF"

    def option_problems(self, options: Mapping[str, str]) -> Iterable[Problem]:
        return [*super().option_problems(options), *option_problems(options)]

    def heap_bytes(self, options: Mapping[str, str]) -> int:
        return parse_size(with_defaults(options)["memory"])

    def require(self, transport: str, options: Mapping[str, str]) -> None:
        from streamgauge.engines.flink.engine import FlinkEngine

        FlinkEngine().classes()

    def make(self, cpus: Sequence[int] | None, parallelism: int | None) -> Engine:
        from streamgauge.engines.flink.engine import FlinkEngine

        return FlinkEngine(cpus, parallelism)
