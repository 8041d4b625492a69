"""The nodes of a flow: frozen data that says what is computed, never how.

Every expression is Spark SQL text. A node's `name` is the operator's name in results.
Each node's columns are computed in `flow.schema`; each engine lowers each node in a function of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from streamgauge.events import US, Schema
from streamgauge.flow.process import Processor

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


@dataclass(frozen=True)
class Process:
    """What a class makes of rows (`flow.process`): keyed, or stateless where there are no `keys`.

    Several inputs are a tagged union. The class is made with `parameters` and reads the columns `reads` (keys first);
    `gives` are its results' columns. `several`: a row may give several results. `identity`: the output columns that
    tell one result from another, where the class states times itself; else each result comes from a row.
    `reach_us`: how far in event time a row can influence results; None without end. `truth`: the same semantics as
    DuckDB SQL (`flow.truth`); without it the reference runs the class itself, and verification is not independent.

    After the lineage rewrite, `lineage` are (output name, input column) pairs that results take from their row, and
    `order` the input columns that order rows of one time.
    """

    inputs: tuple[Node, ...]
    operator: type[Processor]
    reads: tuple[str, ...]
    gives: Columns
    keys: tuple[str, ...] = ()
    parameters: tuple[tuple[str, Any], ...] = ()
    several: bool = False
    identity: tuple[str, ...] = ()
    reach_us: int | None = None
    truth: str | None = None
    lineage: Columns = ()
    order: tuple[str, ...] = ()
    name: str = "process"


Node = Source | Select | Where | WindowAggregate | RunningAggregate | WindowJoin | Process
Mode = Literal["append", "update"]


@dataclass(frozen=True)
class Sink:
    """Where results leave; `append`: final rows; `update`: successive values of a key [method 9]."""

    input: Node
    name: str
    mode: Mode


@dataclass(frozen=True)
class Flow:
    """A whole dataflow: what a workload is, for every engine."""

    sink: Sink
