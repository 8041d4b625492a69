"""The plugin of the synthetic engine. It loads no Arrow Flight before a start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from streamgauge.core.clock import US
from streamgauge.core.errors import InputError, Problem, attempt
from streamgauge.dataflow import graph
from streamgauge.engines.spi import ANOTHER_ENGINE, BatchInterval, Capabilities, Engine, EnginePlugin, StartRequest
from streamgauge.engines.synthetic.answers import build
from streamgauge.engines.synthetic.settings import SETTINGS, read_options


class SyntheticPlugin(EnginePlugin):
    """A consumer of stated capacity."""

    capabilities = Capabilities(
        name="known",
        summary="a consumer of known capacity, to try the instrument on",
        nodes=("Source", "Select", "Where", "Explode", "WindowAggregate"),
        sink_modes=("append",),
        transports=("flight",),
        settings=SETTINGS,
        sets_parallelism=True,
        simulated=True,
    )

    def option_problems(self, options: Mapping[str, str]) -> Iterable[Problem]:
        try:
            read_options(options)
        except InputError as error:
            return error.problems
        return ()

    def check(self, request: StartRequest) -> None:
        problems: list[Problem] = []
        attempt(lambda: super(SyntheticPlugin, self).check(request), problems)
        flow = request.flow
        if flow is not None and all(type(node).__name__ in self.capabilities.nodes for node in graph.operators(flow)):
            of_flow: list[Problem] = []
            attempt(lambda: [build(each) for each in flow.each()], of_flow)
            problems += [replace(each, setting="engine", way_out=ANOTHER_ENGINE) for each in of_flow]
        if problems:
            raise InputError(problems)

    def interval(self, request: StartRequest) -> BatchInterval:
        """The batch interval; unknown if the options are invalid."""
        try:
            return BatchInterval(read_options(request.options).batch_us / US, "batch")
        except InputError:
            return BatchInterval()

    def make(self, cpus: Sequence[int] | None, parallelism: int | None) -> Engine:
        from streamgauge.engines.synthetic.engine import SyntheticEngine

        return SyntheticEngine(cpus, parallelism)
