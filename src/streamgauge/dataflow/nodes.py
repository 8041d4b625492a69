"""The nodes of a flow: frozen data that says what is computed, never how.

Every expression is Spark SQL text. A node's `name` is the operator's name in results.
Each node's columns are computed in `dataflow.schema`; each engine lowers each node in a function of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from streamgauge.core.clock import US
from streamgauge.core.lineage_columns import WINDOW_END, WINDOW_START
from streamgauge.core.schema import Schema
from streamgauge.core.value_types import ValueType
from streamgauge.dataflow.operators.api import Processor
from streamgauge.dataflow.static_table import Table

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
    """What a class makes of rows (`dataflow.operators.api`): keyed, or stateless where there are no `keys`.

    Several inputs are a tagged union. The class is made with `parameters` and reads the columns `reads` (keys first);
    `gives` are its results' columns. `several`: a row may give several results. `identity`: the output columns that
    tell one result from another, where the class states times itself; else each result comes from a row.
    `broadcast`: every instance meets all rows of the last input, which give no results themselves.
    `reach_us`: how far in event time a row can influence results; None without end. `truth`: the same semantics as
    DuckDB SQL (`dataflow.operators.reference_sql`); without it the reference runs the class itself, and verification
    is not independent.

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
    broadcast: bool = False
    reach_us: int | None = None
    truth: str | None = None
    lineage: Columns = ()
    order: tuple[str, ...] = ()
    name: str = "process"

    def is_broadcast(self, number: int) -> bool:
        """Whether every instance meets the rows of that input, by its number from 0."""
        return self.broadcast and number == len(self.inputs) - 1


@dataclass(frozen=True)
class NativeJob:
    """A user's PySpark function in the place of operators: `(spark, inputs by name) -> DataFrame`, in the file `path`.

    Its columns are not known before Spark has analysed it; `event_time` is always among them. `times` are the names
    under which each input has its event time as a timestamp. `reach_us` is None where it is unbounded. `reference` are
    the columns of a reference of its own, with their types; None where its truth is the function itself, run in batch.
    """

    inputs: tuple[Source, ...]
    times: tuple[str, ...]
    path: str
    name: str
    keys: tuple[str, ...] = ()
    reach_us: int | None = None
    reference: tuple[tuple[str, ValueType], ...] | None = None


@dataclass(frozen=True)
class Explode:
    """One row for each element of `array`, as `column` beside the input's columns; an empty or null array gives none.

    After the lineage rewrite, `ordinal` names a column with the element's place in its array, from 0 (bigint).
    """

    input: Node
    column: str
    array: str
    name: str = "explode"
    ordinal: str | None = None


@dataclass(frozen=True)
class InWindows:
    """One row for each window that a row's event time lies in, with window_start and window_end."""

    input: Node
    windows: Window
    name: str = "in_windows"


@dataclass(frozen=True)
class Lookup:
    """Row by row: the columns of the row of `table` with the same keys, of which there is at most one.

    `inner` leaves out rows that find none; `left` keeps them, with nulls. A key that is null finds none.
    """

    input: Node
    table: Table
    keys: tuple[str, ...]
    how: Literal["inner", "left"] = "inner"
    name: str = "lookup"


@dataclass(frozen=True)
class Union:
    """All rows of all inputs, which have the same columns (the order of the first's); none is left out."""

    inputs: tuple[Node, ...]
    name: str = "union"


@dataclass(frozen=True)
class Session:
    """A window for each key that ends when the key has had no event for more than `gap_us` microseconds."""

    gap_us: int


@dataclass(frozen=True)
class Count:
    """A window of the last `size` events of a key, at every `slide`-th of them; of fewer where it has had fewer."""

    size: int
    slide: int


@dataclass(frozen=True)
class SessionAggregate:
    """One row per (keys, session) when the session closes: keys, window_start, window_end, aggregates.

    window_start is the time of the first event, window_end that of the last one and the gap.
    """

    input: Node
    session: Session
    keys: tuple[str, ...]
    aggregates: Columns
    name: str = "session"


@dataclass(frozen=True)
class Distinct:
    """The earliest row of each key, of all events so far or of each `window`; then with window_start, window_end.

    Of several at one event time it is the first by `ties`, which the lineage rewrite sets to the ids.
    """

    input: Node
    keys: tuple[str, ...]
    window: Window | None = None
    name: str = "distinct"
    ties: tuple[str, ...] = ()


@dataclass(frozen=True)
class IntervalJoin:
    """Pairs of rows of both inputs with equal keys whose times lie near each other.

    `earliest_us <= right's time - left's time <= latest_us`, both ends included. Columns as of a window join, without
    a window.
    """

    left: Node
    right: Node
    earliest_us: int
    latest_us: int
    keys: tuple[str, ...]
    name: str = "interval_join"


@dataclass(frozen=True)
class TopN:
    """The `n` rows of each window (and keys) with the greatest `by`, with their `rank` from 1.

    Its input has window_start and window_end. Equal ones are ranked by `ties`, upwards, then by all other columns, so
    that there is one right answer; rows whose `by` is null or not a number have no rank. Columns: keys, window_start,
    window_end, rank, then the others. After the lineage rewrite, `latest` lists columns of which each row gets the
    greatest of its window.
    """

    input: Node
    n: int
    by: str
    ties: tuple[str, ...]
    keys: tuple[str, ...] = ()
    name: str = "top"
    latest: tuple[str, ...] = ()

    @property
    def groups(self) -> tuple[str, ...]:
        """The columns by which rows are ranked together."""
        return (*self.keys, WINDOW_START, WINDOW_END)


Node = (
    Source | Select | Where | WindowAggregate | RunningAggregate | WindowJoin | Explode | Lookup | Union
    | SessionAggregate | Distinct | IntervalJoin | TopN | Process | NativeJob | InWindows
)  # fmt: skip
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
