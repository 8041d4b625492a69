"""The plugin of the synthetic engine. It loads no Arrow Flight before a start."""

from collections.abc import Iterable, Mapping, Sequence

from streamgauge.core.clock import US
from streamgauge.core.errors import InputError, Problem
from streamgauge.engines.spi import (
    BatchInterval,
    Capabilities,
    Engine,
    EnginePlugin,
    NearLimit,
    StartRequest,
    node_names,
)
from streamgauge.engines.synthetic.options import KINDS, SETTINGS, read_options


class SyntheticPlugin(EnginePlugin):
    """A consumer of stated capacity."""

    interface = 3
    capabilities = Capabilities(
        name="known",
        summary="a consumer of known capacity, to try the instrument on",
        nodes=node_names(KINDS),
        sink_modes=("append",),
        transports=("memory",),
        settings=SETTINGS,
        sets_parallelism=True,
        simulated=True,
        near_limit=NearLimit(drain_factor=1.1),  # it drains exactly what it sustains, so a guess just below holds
    )
    conformance = "streamgauge.engines.synthetic.conformance:CONF"

    def option_problems(self, options: Mapping[str, str]) -> Iterable[Problem]:
        try:
            read_options(options)
        except InputError as error:
            return error.problems
        return ()

    def interval(self, request: StartRequest) -> BatchInterval:
        """The batch interval; unknown if the options are invalid."""
        try:
            return BatchInterval(read_options(request.options).batch_us / US, "batch")
        except InputError:
            return BatchInterval()

    def make(self, cpus: Sequence[int] | None, parallelism: int | None) -> Engine:
        from streamgauge.engines.synthetic.engine import SyntheticEngine

        return SyntheticEngine(cpus, parallelism)
