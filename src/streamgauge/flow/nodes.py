"""The nodes of a flow: frozen data that says what is computed, never how.

Every expression is Spark SQL text. A node's `name` is the operator's name in results.
Each node's columns are computed in `flow.schema`; each engine lowers each node in a function of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from streamgauge.events import US, Schema

Columns = tuple[tuple[str, str], ...]
"""(output name, expression) pairs, in order."""


@dataclass(frozen=True)
class Window:
    """A window of event time in microseconds, aligned to the epoch; tumbling where `slide_us == range_us`."""

    range_us: int
    slide_us: int

    @property
    def panes(self) -> int:
        """How many windows an event falls into, at most."""
        return -(-self.range_us // self.slide_us)


def tumble(range_s: float) -> Window:
    return Window(round(range_s * US), round(range_s * US))


def hop(range_s: float, slide_s: float) -> Window:
    return Window(round(range_s * US), round(slide_s * US))


@dataclass(frozen=True)
class Source:
    """Reads one input stream. After the lineage rewrite, `lineage` lists the lineage columns it also gives."""

    name: str
    schema: Schema
    lineage: tuple[str, ...] = ()


@dataclass(frozen=True)
class Select:
    """Row by row: the named expressions, and nothing else, are kept."""

    input: Node
    columns: Columns
    name: str = "select"


@dataclass(frozen=True)
class Where:
    """Row by row: keeps the rows for which `predicate` is true."""

    input: Node
    predicate: str
    name: str = "where"


@dataclass(frozen=True)
class WindowAggregate:
    """One row per (keys, window) when the window closes: keys, window_start, window_end, aggregates."""

    input: Node
    window: Window
    keys: tuple[str, ...]
    aggregates: Columns
    name: str = "aggregate"


@dataclass(frozen=True)
class RunningAggregate:
    """Successive values of (keys, aggregates) over all events so far: results are updates."""

    input: Node
    keys: tuple[str, ...]
    aggregates: Columns
    name: str = "running"


@dataclass(frozen=True)
class WindowJoin:
    """Pairs of rows of both inputs with equal keys in the same window.

    Columns: keys, then the left's other columns, then the right's other columns, then window_start, window_end.
    Columns that are neither keys nor unique are refused when the flow is built.
    """

    left: Node
    right: Node
    window: Window
    keys: tuple[str, ...]
    name: str = "join"


Node = Source | Select | Where | WindowAggregate | RunningAggregate | WindowJoin
Mode = Literal["append", "update"]


@dataclass(frozen=True)
class Sink:
    """Where results leave; `append`: final rows; `update`: successive values of a key [method 9]."""

    input: Node
    name: str
    mode: Mode


@dataclass(frozen=True)
class Flow:
    """A whole dataflow: what a workload is, for every engine. Sinks have names of their own."""

    sinks: tuple[Sink, ...]

    @property
    def sink(self) -> Sink:
        """The sink of a flow that has one; ValueError where there are several: take them one by one with `each`."""
        if len(self.sinks) != 1:
            raise ValueError(f"this flow has {len(self.sinks)} sinks: {', '.join(sink.name for sink in self.sinks)}")
        return self.sinks[0]

    def each(self) -> tuple[Flow, ...]:
        """A flow for each sink, which is what that sink alone asks."""
        return tuple(Flow((sink,)) for sink in self.sinks)
