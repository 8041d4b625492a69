"""A program of the user's own as the only operator of a flow: how it is started, and what it writes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from streamgauge.dataflow.nodes import UserJobNode

Ready = Literal["consumer", "committed", "line", "started"]
PLACEHOLDER = re.compile(r"\{(python|brokers|group|run|scratch|output|input(?:\.\w+)?)\}")
"""A word of a command that is replaced by a value of the run."""


@dataclass(frozen=True)
class Launch:
    """How a program is started, and when it counts as ready.

    - `command`: its words, with placeholders. Empty for a program that runs already.
    - `folder`: its working folder. `environment`: further variables.
    - `group`: its consumer group; empty for one of the run's own.
    - `line`: the pattern of the line in its output that says it is ready.
    - `timeout_s`: how long it may take to get ready, and to write its first result.
    """

    command: tuple[str, ...] = ()
    folder: str = "."
    environment: tuple[tuple[str, str], ...] = ()
    group: str = ""
    ready: Ready = "consumer"
    line: str = ""
    timeout_s: float = 30.0


@dataclass(frozen=True)
class Output:
    """The results of a program: JSON objects on one topic.

    - `types`: field to Spark SQL type.
    - `required`: fields that every result has.
    - `time`, `window_end`: the fields with its event time and the end of its window; empty without one.
    - `unit_us`: microseconds of the unit in which these fields, and all timestamps, are numbers.
    """

    types: tuple[tuple[str, str], ...] = ()
    required: tuple[str, ...] = ()
    time: str = ""
    window_end: str = ""
    unit_us: int = 1000


@dataclass(frozen=True)
class ProgramNode(UserJobNode):
    """A program that reads its inputs from Kafka and writes its results there; `path` is the file that declares it."""

    launch: Launch = field(default_factory=Launch)
    output: Output = field(default_factory=Output)


def unknown_inputs(command: Sequence[str], streams: Iterable[str]) -> list[str]:
    """The placeholders that name no stream, or none of several."""
    names = list(streams)
    used = [found[1] for word in command for found in PLACEHOLDER.finditer(word) if found[1].startswith("input")]
    right = {f"input.{name}" for name in names} | ({"input"} if len(names) == 1 else set())
    return [name for name in dict.fromkeys(used) if name not in right]
