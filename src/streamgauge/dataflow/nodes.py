"""The nodes of a flow: frozen data that states what is computed, not how.

Every expression is Spark SQL text. A node's `name` is the operator's name in results.
`dataflow.schema` computes the columns of each node. Each engine lowers each node in a separate function.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from streamgauge.core.schema import WINDOW_END, WINDOW_START, Schema
from streamgauge.core.value_types import ValueType
from streamgauge.dataflow.operators.api import Processor
from streamgauge.dataflow.static_table import Table

Expression = Annotated[str, "Spark SQL"]
"""Spark SQL text over the columns of the node's input. The JSON form derives its rules from these types."""
Columns = tuple[tuple[str, Expression], ...]
"""(output name, expression) pairs, in order."""
OutputTypes = tuple[tuple[str, Annotated[str, "type"]], ...]
"""(output name, SQL type) pairs, in order."""
Copies = tuple[tuple[str, Annotated[str, "column"]], ...]
"""(output name, input column) pairs, in order."""
Keys = Annotated[tuple[str, ...], "at least one"]
Positive = Annotated[int, "at least 1"]
"""These two, and the columns above, say in the JSON Schema what `dataflow.schema` refuses."""


@dataclass(frozen=True)
class Window:
    """A window of event time in microseconds, aligned to the epoch. It tumbles if `slide_us == range_us`."""

    range_us: Positive
    slide_us: Positive

    @property
    def panes(self) -> int:
        """The largest number of windows that one event belongs to."""
        return -(-self.range_us // self.slide_us)


@dataclass(frozen=True)
class Source:
    """Reads one input stream. The lineage rewrite sets `lineage`: the lineage columns that it adds."""

    name: str
    schema: Schema
    lineage: tuple[str, ...] = ()


@dataclass(frozen=True)
class Select:
    """Row by row: gives the named expressions and no other columns."""

    input: Node
    columns: Columns
    name: str = "select"


@dataclass(frozen=True)
class Where:
    """Row by row: keeps the rows for which `predicate` is true."""

    input: Node
    predicate: Expression
    name: str = "where"


@dataclass(frozen=True)
class WindowAggregate:
    """One row per (keys, window) when the window closes: keys, window_start, window_end, aggregates."""

    input: Node
    window: Window
    keys: Keys
    aggregates: Columns
    name: str = "aggregate"


@dataclass(frozen=True)
class RunningAggregate:
    """(keys, aggregates) over all events so far. Results are updates."""

    input: Node
    keys: Keys
    aggregates: Columns
    name: str = "running"


@dataclass(frozen=True)
class WindowJoin:
    """Pairs of rows of both inputs with equal keys in the same window.

    Columns: keys, the other columns of the left input, those of the right input, window_start, window_end.
    The builder refuses a column that both inputs have and that is no key.
    """

    left: Node
    right: Node
    window: Window
    keys: Keys
    name: str = "join"


@dataclass(frozen=True)
class Process:
    """An operator implemented by a Python class (`dataflow.operators.api`). Without `keys` it is stateless.

    - `inputs`: several inputs form a tagged union.
    - `parameters`: the arguments of the class.
    - `reads`: the input columns, keys first. `gives`: the output columns and their types.
    - `several`: one row may give several results.
    - `identity`: the output columns that identify a result, if the class states times itself. Otherwise each result
      comes from one row.
    - `broadcast`: every instance gets all rows of the last input. Those rows give no results.
    - `reach_us`: how far in event time a row can influence results; None means without end.
    - `truth`: the same semantics as DuckDB SQL (`dataflow.process`). Without it the oracle runs the class
      itself, and verification is not independent.

    The lineage rewrite sets `lineage`, (output name, input column) pairs that a result copies from its row. It also
    sets `order`, the input columns that order rows of equal time.
    """

    inputs: tuple[Node, ...]
    operator: type[Processor]
    reads: tuple[str, ...]
    gives: OutputTypes
    keys: tuple[str, ...] = ()
    parameters: tuple[tuple[str, Any], ...] = ()
    several: bool = False
    identity: tuple[str, ...] = ()
    broadcast: bool = False
    reach_us: int | None = None
    truth: str | None = None
    lineage: Copies = ()
    order: tuple[str, ...] = ()
    name: str = "process"

    def is_broadcast(self, number: int) -> bool:
        """Whether every instance gets all rows of input `number`, counted from 0."""
        return self.broadcast and number == len(self.inputs) - 1


@dataclass(frozen=True)
class OpaqueNode:
    """Code of the user's own between streams and one sink. The file `path` declares what a flow must know of it.

    - `times`: for each input, the name of its event time column (a timestamp).
    - `reach_us`: None if unbounded.
    - `reference`: columns and types of a separate reference. None if the truth is the same code run in batch.
    """

    kind: ClassVar[str]
    """Its kind in results."""
    code: ClassVar[str]
    plural: ClassVar[str]
    """What it is, and such nodes, in the words of a refusal."""
    other_engine: ClassVar[str] = ""
    """The way out on an engine that does not support it; empty for that of the engine."""
    reads_lineage: ClassVar[bool] = True
    """Whether its inputs carry the lineage columns; otherwise only the declared fields."""

    inputs: tuple[Source, ...]
    times: tuple[str, ...]
    path: str
    name: str
    keys: tuple[str, ...] = ()
    reach_us: int | None = None
    reference: tuple[tuple[str, ValueType], ...] | None = None

    @property
    def label(self) -> str:
        """A short description for pictures of a flow."""
        return f"{self.name} of {Path(self.path).name}"


@dataclass(frozen=True)
class UserJobNode(OpaqueNode):
    """A user job, a PySpark function in the file `path`: `(spark, inputs by name) -> DataFrame`.

    Spark determines its columns when it analyses the function; `event_time` is always one of them.
    """

    kind = "user_job"
    code = "PySpark code"
    plural = "user jobs"


@dataclass(frozen=True)
class Explode:
    """One row for each element of `array`: the input's columns and `column`. An empty or null array gives no row.

    The lineage rewrite sets `ordinal`, the name of a column with the element's index from 0 (bigint).
    """

    input: Node
    column: str
    array: Expression
    name: str = "explode"
    ordinal: str | None = None


@dataclass(frozen=True)
class InWindows:
    """One row for each window that contains the row's event time, with window_start and window_end."""

    input: Node
    windows: Window
    name: str = "in_windows"


@dataclass(frozen=True)
class Lookup:
    """Row by row: adds the columns of the one row of `table` that has the same keys.

    `inner` drops rows without a match; `left` fills them with nulls. A null key never matches.
    """

    input: Node
    table: Table
    keys: Keys
    how: Literal["inner", "left"] = "inner"
    name: str = "lookup"


@dataclass(frozen=True)
class Union:
    """All rows of all inputs, duplicates included. The inputs have the same columns, in the order of the first."""

    inputs: tuple[Node, ...]
    name: str = "union"


@dataclass(frozen=True)
class Session:
    """A window per key. It ends when the key has no event for more than `gap_us` microseconds."""

    gap_us: int


@dataclass(frozen=True)
class Count:
    """A window of the last `size` events of a key, evaluated at every `slide`-th event. The first ones are shorter."""

    size: int
    slide: int


@dataclass(frozen=True)
class SessionAggregate:
    """One row per (keys, session) when the session closes: keys, window_start, window_end, aggregates.

    window_start is the time of the first event. window_end is the time of the last event plus the gap.
    """

    input: Node
    session: Session
    keys: Keys
    aggregates: Columns
    name: str = "session"


@dataclass(frozen=True)
class Distinct:
    """The earliest row of each key, of all events so far or of each `window` (adds window_start, window_end).

    Rows of equal event time are ordered by `ties`, which the lineage rewrite sets to the ids.
    """

    input: Node
    keys: Keys
    window: Window | None = None
    name: str = "distinct"
    ties: tuple[str, ...] = ()


@dataclass(frozen=True)
class IntervalJoin:
    """Pairs of rows of both inputs with equal keys and `earliest_us <= right time - left time <= latest_us`.

    Columns: those of a window join without window_start and window_end.
    """

    left: Node
    right: Node
    earliest_us: int
    latest_us: int
    keys: Keys
    name: str = "interval_join"


@dataclass(frozen=True)
class TopN:
    """The `n` rows of each window (and keys) with the greatest `by`, with their `rank` from 1.

    The input has window_start and window_end. Ties are ranked by `ties` in ascending order, then by all other columns,
    so that the order is unique. Rows whose `by` is null or NaN are dropped. Columns: keys, window_start, window_end,
    rank, then the rest. The lineage rewrite sets `latest`: each row gets the window's maximum of these columns.
    """

    input: Node
    n: Positive
    by: Expression
    ties: tuple[str, ...]
    keys: tuple[str, ...] = ()
    name: str = "top"
    latest: tuple[str, ...] = ()

    @property
    def groups(self) -> tuple[str, ...]:
        """The columns that define a group of ranked rows."""
        return (*self.keys, WINDOW_START, WINDOW_END)


Node = (
    Source | Select | Where | WindowAggregate | RunningAggregate | WindowJoin | Explode | Lookup | Union
    | SessionAggregate | Distinct | IntervalJoin | TopN | Process | OpaqueNode | InWindows
)  # fmt: skip
Mode = Literal["append", "update"]


@dataclass(frozen=True)
class Sink:
    """Where results leave the flow. `append`: final rows. `update`: successive values of a key."""

    input: Node
    name: str
    mode: Mode


@dataclass(frozen=True)
class Flow:
    """A whole dataflow, independent of the engine. Sink names are unique."""

    sinks: tuple[Sink, ...]

    @property
    def sink(self) -> Sink:
        """The only sink. Raises ValueError if there are several; use `each` then."""
        if len(self.sinks) != 1:
            raise ValueError(f"this flow has {len(self.sinks)} sinks: {', '.join(sink.name for sink in self.sinks)}")
        return self.sinks[0]

    def each(self) -> tuple[Flow, ...]:
        """One flow per sink."""
        return tuple(Flow((sink,)) for sink in self.sinks)
