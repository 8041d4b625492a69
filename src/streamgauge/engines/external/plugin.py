"""The plugin of the engine `external`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import get_args

from streamgauge.core.errors import Problem, Rule, broken, first_broken
from streamgauge.dataflow.describe import KINDS
from streamgauge.dataflow.nodes import Source
from streamgauge.engines.spi import Capabilities, Engine, EnginePlugin, StartRequest
from streamgauge.transports.topic_names import Kind
from streamgauge.user_workloads.program_node import PARALLELISM, launch_of


class ExternalPlugin(EnginePlugin):
    """A program of the user's own. It has no options, because its file has its settings."""

    interface = 3
    capabilities = Capabilities(
        name="external",
        summary="a program of your own that reads and writes Kafka",
        nodes=("Source", "ProgramNode"),
        sink_modes=("append", "update"),
        transports=("kafka",),
        encodings=get_args(Kind),
        delivery=None,
        unsupported_reasons={
            kind.__name__: "it runs a program of your own only" for kind in KINDS if kind is not Source
        },
        fallback_engine="spark",
        has_batch_ids=False,
        several_sinks=True,
        sets_parallelism=True,
    )
    or_another_engine = ""
    conformance = "streamgauge.engines.external.conformance:CONF"

    def request_problems(self, request: StartRequest) -> Iterator[Problem]:
        yield from super().request_problems(request)
        if request.flow is None:
            return
        launch, parallelism = launch_of(request.flow), request.parallelism
        is_built_in = all(isinstance(sink.input, Source) for sink in request.flow.sinks)
        yield from broken(
            Rule(not is_built_in, "engine", "must run a program, and has none of its own for a workload of the list",
                 self.capabilities.name, "--engine spark, or a program.toml")
        )  # fmt: skip
        if launch is not None and parallelism is not None:
            yield from first_broken(
                Rule(not launch.attached, "parallelism", "cannot be set for a program that runs already",
                     parallelism, "leave it out, or have the program started: command = [...]"),
                Rule(launch.uses(PARALLELISM), "parallelism",
                     f"must reach the program, and neither its command nor its environment has {PARALLELISM}",
                     parallelism,
                     f'add it to the file: environment = {{ CORES = "{PARALLELISM}" }}; '
                     "or leave --parallelism out (scale: --resource partitions)"),
            )  # fmt: skip

    def option_problems(self, options: Mapping[str, str]) -> Iterable[Problem]:
        rule = "is not an option of external, which has none"
        way_out = "leave it out; set it in the program, or by environment = { NAME = ... } in its file"
        return broken(*(Rule(False, f"option {name}", rule, value, way_out) for name, value in options.items()))

    def is_own_default(self, name: str, value: str) -> bool:
        """All: its settings in force are its command and its group."""
        return True

    def make(self, cpus: Sequence[int] | None, parallelism: int | None) -> Engine:
        from streamgauge.engines.external.engine import ExternalEngine

        return ExternalEngine(cpus, parallelism)
