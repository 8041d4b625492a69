"""What the plugins of engines on a JVM of their own share. It loads nothing of an engine before a start."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from streamgauge.core.errors import Problem, collected, require
from streamgauge.core.formatting import format_size
from streamgauge.core.machine_check import MachineCheck
from streamgauge.core.plugin_options import IDIOMATIC, TUNED, Fetch, Setting, with_defaults
from streamgauge.core.units import parse_duration, parse_size, parse_whole
from streamgauge.dataflow.nodes import InWindows, Node, OpaqueNode, Process
from streamgauge.engines.spi import Capabilities, EnginePlugin, StartRequest, TuningProfile, node_names
from streamgauge.system.java import jars_check, pyspark_check

if TYPE_CHECKING:
    from streamgauge.engines.jvm.engine import JvmEngine

KINDS = tuple(kind for kind in get_args(Node) if kind not in (Process, InWindows, OpaqueNode))
"""The node kinds that these engines have."""
REFUSED = {"Process": "it runs no operators in Python", "UserJobNode": "a PySpark function runs on Spark"}
"""Why they cannot run others."""
JOB_SETTINGS = (
    Setting(
        "columns", "read",
        "which columns of an event are sent; read: those that the job reads; all: every declared one", ("read", "all"),
    ),
    Setting(
        "kafka_clients", TUNED, "tuned: Kafka's clients get settings that suit the job; kafka: Kafka's own defaults",
        (TUNED, "kafka"),
    ),
)  # fmt: skip
"""The options of all these engines."""
JOBS_OWN = {"columns": "all", "kafka_clients": "kafka"}
"""What these options are where a job sets nothing."""
GREATEST = 1_000_000_000
MS = 1000


def capabilities(
    name: str, summary: str, fetch: Fetch, settings: Sequence[Setting], idiomatic: Mapping[str, str], **more: Any
) -> Capabilities:
    """What these engines have alike. `idiomatic`: the engine's own options of that profile. `more`: fields of
    `Capabilities`.
    """
    return Capabilities(
        name=name,
        summary=summary,
        nodes=node_names(KINDS),
        sink_modes=("append", "update"),
        transports=("kafka",),
        encodings=("compact", "json"),
        delivery="at_least_once",
        fetches=(fetch,),
        several_sinks=True,
        needs_java=True,
        settings=tuple(settings),
        unsupported_reasons=REFUSED,
        fallback_engine="spark",
        has_batch_ids=False,
        sets_parallelism=True,
        profiles={
            TUNED: TuningProfile(),
            IDIOMATIC: TuningProfile({**idiomatic, **JOBS_OWN}, {"kafka": {"encoding": "json"}}),
        },
        **more,
    )


def milliseconds(duration: str) -> int:
    """A duration of an option, for settings in milliseconds: a bare number is seconds here and milliseconds there."""
    return round(MS * parse_duration(duration))


class JvmPlugin(EnginePlugin):
    """A plugin with the option `memory`, the heap of its JVM.

    `engine`: its `JvmEngine`, as `module:name`, which is loaded at a start. `least_s`: its options that are times, with
    the least that each may be, in seconds. `counts`: those that are whole numbers, with the least of each. `commits`:
    the one that says how often its progress is committed. `always_set`: the options, and settings of the engine's own,
    that each profile sets to something else than the engine does by itself.
    """

    interface = 3
    memory_option = "memory"
    engine: ClassVar[str]
    commits: ClassVar[str] = "commit_interval"
    least_s: ClassVar[Mapping[str, float]] = {}
    counts: ClassVar[Mapping[str, int]] = {}
    always_set: ClassVar[Collection[str]]

    def unseen_us(self, request: StartRequest) -> int:
        return MS * milliseconds(with_defaults(request.options, self.capabilities.settings)[self.commits])

    def option_problems(self, options: Mapping[str, str]) -> Iterable[Problem]:
        """Also sizes and times that cannot be read, and times that are too short."""
        problems = list(super().option_problems(options))
        readers: dict[str, Callable[[str, str], float]] = {
            "memory": parse_size,
            **dict.fromkeys(self.least_s, parse_duration),
            **{
                name: partial(parse_whole, least=least, greatest=GREATEST, example="100")
                for name, least in self.counts.items()
            },
        }
        defaults = with_defaults({}, self.capabilities.settings)
        for name in sorted(readers.keys() & options.keys()):
            if options[name] != defaults[name]:  # a default may be a word
                with collected(problems):
                    least = self.least_s.get(name, 0.0)
                    require(
                        readers[name](options[name], f"option {name}") >= least, f"option {name}",
                        f"must be at least {least * MS:g}ms", options[name], f"--option {name}={defaults[name]}",
                    )  # fmt: skip
        return problems

    def sends_all_columns(self, options: Mapping[str, str]) -> bool:
        return options.get("columns") == "all"

    def heap_bytes(self, options: Mapping[str, str]) -> int:
        return parse_size(with_defaults(options, self.capabilities.settings)["memory"])

    def is_own_default(self, name: str, value: str) -> bool:
        """Whether a job that sets nothing has it, as `idiomatic` does, except for its heap and `always_set`."""
        return name not in ("memory", *self.always_set) and self._own_defaults.get(name) == value

    @cached_property
    def _own_defaults(self) -> Mapping[str, str]:
        options = with_defaults(self.capabilities.profiles[IDIOMATIC].options, self.capabilities.settings)
        return options | resolve_name(self.engine)().configuration(options, Path("/"), partitions=1)

    def machine_checks(self) -> Iterable[MachineCheck]:
        (fetch,) = self.capabilities.fetches
        name = f"{self.capabilities.name.replace('-', '_')}_jars"
        jar_sets = resolve_name(self.engine).jar_sets()
        return [pyspark_check(), jars_check(name, [[one] for one in jar_sets], fetch)]

    def require(self, transport: str, options: Mapping[str, str]) -> None:
        (fetch,), (*_, jars) = self.capabilities.fetches, self.machine_checks()
        if jars.problems:
            print(f"fetching {fetch.name}, {format_size(fetch.bytes)}, once", file=sys.stderr, flush=True)
        self.make(None, None).classes()

    def make(self, cpus: Sequence[int] | None, parallelism: int | None) -> JvmEngine:
        return resolve_name(self.engine)(cpus, parallelism)
