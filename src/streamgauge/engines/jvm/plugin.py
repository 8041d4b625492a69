"""What the plugins of engines on a JVM of their own share. It loads nothing of an engine before a start."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pkgutil import resolve_name
from typing import TYPE_CHECKING, ClassVar

from streamgauge.core.errors import InputError, Problem
from streamgauge.core.plugin_options import with_defaults
from streamgauge.core.units import parse_duration, parse_size, parse_whole
from streamgauge.dataflow.nodes import (
    Distinct,
    Explode,
    IntervalJoin,
    Lookup,
    RunningAggregate,
    Select,
    SessionAggregate,
    Source,
    TopN,
    Union,
    Where,
    WindowAggregate,
    WindowJoin,
)
from streamgauge.engines.spi import EnginePlugin

if TYPE_CHECKING:
    from streamgauge.engines.jvm.engine import JvmEngine

KINDS = (
    Source, Select, Where, Explode, Lookup, Union, WindowAggregate, SessionAggregate, RunningAggregate,
    WindowJoin, IntervalJoin, Distinct, TopN,
)  # fmt: skip
"""The node kinds that these engines have."""
GREATEST = 1_000_000_000
REFUSED = {"Process": "it runs no Python yet", "UserJobNode": "a PySpark function runs on Spark"}
"""Why they cannot run the others."""


class JvmPlugin(EnginePlugin):
    """A plugin with the option `memory`, the heap of its JVM.

    `engine`: its `JvmEngine`, as `module:name`, which is loaded at a start. `least_s`: its options that are times, with
    the least that each may be, in seconds. `counts`: those that are whole
    numbers, with the least of each.
    """

    interface = 2
    engine: ClassVar[str]
    least_s: ClassVar[Mapping[str, float]] = {}
    counts: ClassVar[Mapping[str, int]] = {}

    def option_problems(self, options: Mapping[str, str]) -> Iterable[Problem]:
        """Also sizes and times that cannot be read, and times that are too short."""
        yield from super().option_problems(options)
        readers: dict[str, Callable[[str, str], float]] = {"memory": parse_size}
        readers |= dict.fromkeys(self.least_s, parse_duration) | {
            name: partial(_count, least) for name, least in self.counts.items()
        }
        defaults = with_defaults({}, self.capabilities.settings)
        for name in sorted(readers.keys() & options.keys()):
            if options[name] == defaults[name]:  # which may be a word
                continue
            try:
                value = readers[name](options[name], f"option {name}")
            except InputError as error:
                yield from error.problems
                continue
            if value < (least := self.least_s.get(name, 0.0)):
                rule = f"must be at least {least * 1000:g}ms"
                yield Problem(f"option {name}", rule, options[name], f"--option {name}={defaults[name]}")

    def heap_bytes(self, options: Mapping[str, str]) -> int:
        return parse_size(with_defaults(options, self.capabilities.settings)["memory"])

    def require(self, transport: str, options: Mapping[str, str]) -> None:
        self.make(None, None).classes()

    def make(self, cpus: Sequence[int] | None, parallelism: int | None) -> JvmEngine:
        made: JvmEngine = resolve_name(self.engine)(cpus, parallelism)
        return made


def _count(least: int, text: str, setting: str) -> int:
    return parse_whole(text, setting, least, GREATEST, "100")
