"""The API for building a workload: `source(...).where(...).window(...).aggregate(...).sink(...)`.

Each call returns a new frozen value and validates it, so an error points at the line that caused it.

    purchases = source("purchases", Schema.from_types(gem_pack_id="int", price="int"))
    flow = purchases.window(hop("8s", "4s"), keys="gem_pack_id").aggregate(revenue="sum(price)").sink("revenue")

One flow with several sinks: `flow(rows.where("price > 90").sink("dear"), rows.running(...).sink("counts"))`.
Columns are keyword arguments, `name="expression"`. Use a dict for a column called `name` or `keys`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from streamgauge.core.clock import US
from streamgauge.core.errors import InputError, Problem, require
from streamgauge.core.schema import Schema
from streamgauge.core.units import parse_duration
from streamgauge.dataflow import count_window, graph, lineage
from streamgauge.dataflow import schema as schemas
from streamgauge.dataflow.expressions.types import element_type
from streamgauge.dataflow.nodes import (
    Columns,
    Count,
    Distinct,
    Explode,
    Flow,
    IntervalJoin,
    Lookup,
    Mode,
    Node,
    Process,
    RunningAggregate,
    Select,
    Session,
    SessionAggregate,
    Sink,
    Source,
    TopN,
    Union,
    Where,
    Window,
    WindowAggregate,
    WindowJoin,
)
from streamgauge.dataflow.operators.api import Processor
from streamgauge.dataflow.static_table import Table, table

__all__ = ["Stream", "Windowed", "count", "hop", "session", "source", "table", "tumble", "union"]

Names = str | tuple[str, ...] | list[str]


def hop(range: str | float, slide: str | float) -> Window:
    """Windows of length `range` that start every `slide` (`"8s"`, or seconds), aligned to the epoch.

    Raises InputError if the slide is longer than the range.
    """
    window = Window(_us(range, "range"), _us(slide, "slide"))
    schemas.check_window(window)
    return window


def tumble(range: str | float) -> Window:
    """Non-overlapping windows of length `range` (`"8s"`, or seconds), aligned to the epoch."""
    return hop(range, range)


def session(gap: str | float) -> Session:
    """A window per key that ends after a pause of more than `gap` (`"30s"`, or seconds)."""
    gap_us = _us(gap, "gap")
    require(gap_us > 0, "gap", "must be at least 1 us", gap, "session('30s')")
    return Session(gap_us)


def count(size: int, slide: int | None = None) -> Count:
    """A window of the last `size` events of a key, evaluated at every `slide`-th event (default: `size`).

    The first windows of a key hold fewer events, so `slide=1` gives a row for each event.
    Raises InputError unless 1 <= slide <= size: a longer slide would skip events.
    """
    slide = size if slide is None else slide
    rule, way_out = "must be a whole number from 1", "count(1000, slide=1)"
    require(isinstance(size, int) and size >= 1, "count window, size", rule, size, way_out)
    is_slide = isinstance(slide, int) and 1 <= slide <= size
    require(is_slide, "count window, slide", f"{rule} to the size, {size}", slide, way_out)
    return Count(size, slide)


def source(name: str, schema: Schema) -> Stream:
    """Reads the input stream `name`."""
    return _checked(Source(name, schema))


def union(*streams: Stream, name: str | None = None) -> Stream:
    """All rows of several streams with the same columns. They may share a source."""
    disjoint = _all_disjoint(stream.node for stream in streams)
    return _checked(Union(disjoint, _name(name, "union", *disjoint)))


def flow(*parts: Flow) -> Flow:
    """One flow with the sinks of all `parts`. Equal operators are merged."""
    sinks = [sink for part in parts for sink in part.sinks]
    ends = _all_disjoint(sink.input for sink in sinks)
    joined = Flow(tuple(replace(sink, input=end) for sink, end in zip(sinks, ends, strict=True)))
    check(joined)
    return joined


@dataclass(frozen=True)
class Stream:
    """The rows that an operator gives, with methods that append the next operator."""

    node: Node

    @property
    def columns(self) -> dict[str, str]:
        """Column name to SQL type name."""
        return schemas.columns(self.node)

    def where(self, predicate: str, *, name: str | None = None) -> Stream:
        """Keeps the rows for which `predicate` is true."""
        return _checked(Where(self.node, predicate, _name(name, "where", self.node)))

    def select(
        self, columns: Mapping[str, str] | None = None, /, *, name: str | None = None, **expressions: str
    ) -> Stream:
        """Gives the named expressions and no other columns."""
        return _checked(Select(self.node, _pairs(columns, expressions), _name(name, "select", self.node)))

    def explode(
        self, columns: Mapping[str, str] | None = None, /, *, name: str | None = None, **expressions: str
    ) -> Stream:
        """One row for each element of an array, given as `column="expression"`; other columns are repeated.

        An empty or null array gives no row. Raises InputError unless exactly one array is given.
        """
        pairs = _pairs(columns, expressions)
        columns_ = ", ".join(column for column, _ in pairs) or "none"
        way_out = "word=\"split(text, ' ')\"; a second explode for a second array"
        require(len(pairs) == 1, "explode", "takes exactly one array", columns_, way_out)
        return _checked(Explode(self.node, *pairs[0], _name(name, "explode", self.node)))

    def lookup(
        self, table: Table, *, on: Names, how: Literal["inner", "left"] = "inner", name: str | None = None
    ) -> Stream:
        """Adds the columns of the static table's row with equal `on`. `left` fills rows without a match with nulls."""
        return _checked(Lookup(self.node, table, _names(on), how, _name(name, "lookup", self.node)))

    def union(self, *others: Stream, name: str | None = None) -> Stream:
        """All rows of this stream and of others with the same columns."""
        return union(self, *others, name=name)

    def distinct(self, *, keys: Names, window: Window | None = None, name: str | None = None) -> Stream:
        """The earliest row of each key, of all events so far or of each window."""
        return _checked(Distinct(self.node, _names(keys), window, _name(name, "distinct", self.node)))

    def top(self, n: int, *, by: str, ties: Names = (), keys: Names = (), name: str | None = None) -> Stream:
        """The `n` rows of each window (and keys) with the greatest `by`; ties by `ties`, ascending."""
        return _checked(TopN(self.node, n, by, _names(ties), _names(keys), _name(name, "top", self.node)))

    def interval_join(
        self, other: Stream, *, on: Names, earliest: str | float = 0, latest: str | float = 0, name: str | None = None
    ) -> Stream:
        """Pairs of rows with equal `on` where the other row is from `earliest` to `latest` later than this one.

        Both ends are included. A minus means earlier: `earliest="-5s"`.
        """
        left, right = _all_disjoint((self.node, other.node))
        bounds = _signed_us(earliest, "earliest"), _signed_us(latest, "latest")
        return _checked(IntervalJoin(left, right, *bounds, _names(on), _name(name, "interval_join", left, right)))

    def window(self, window: Window | Session | Count, *, keys: Names) -> Windowed:
        """Groups by `keys` and window. Call `aggregate` on the result."""
        return Windowed(self, window, _names(keys))

    def running(
        self, columns: Mapping[str, str] | None = None, /, *, keys: Names, name: str | None = None, **expressions: str
    ) -> Stream:
        """Aggregates over all events so far by `keys`; results are updates."""
        return _checked(
            RunningAggregate(self.node, _names(keys), _pairs(columns, expressions), _name(name, "running", self.node))
        )

    def join(self, other: Stream, *, window: Window, on: Names, name: str | None = None) -> Stream:
        """Pairs of rows of both streams with equal `on` in the same window."""
        left, right = _all_disjoint((self.node, other.node))
        return _checked(WindowJoin(left, right, window, _names(on), _name(name, "join", left, right)))

    def process(
        self,
        operator: type[Processor],
        *others: Stream,
        gives: Schema,
        keys: Names = (),
        reads: Names | None = None,
        parameters: Mapping[str, Any] | None = None,
        several: bool = False,
        identity: Names = (),
        broadcast: Stream | None = None,
        reach: str | float | None = None,
        truth: str | None = None,
        name: str | None = None,
    ) -> Stream:
        """Applies a Python class to the rows of this stream and of `others`; see `dataflow.operators.api`.

        - `keys`: all rows of a key go to one instance, in event-time order. Without keys the class is stateless.
        - `reads`: the columns it needs (default: all).
        - `broadcast`: a last input that every instance gets in full. Its rows give no results.
        - `reach`: how long a row can influence results (`"10s"`; None means without end).
        - `truth`: the same semantics as DuckDB SQL (`dataflow.process`).
        """
        streams = (self, *others, broadcast) if broadcast else (self, *others)
        nodes = _all_disjoint(stream.node for stream in streams)
        available = dict.fromkeys(column for node in nodes for column in schemas.columns(node))
        reads_ = (*_names(keys), *(available if reads is None else _names(reads)))
        reach_us = None if reach is None else _us(reach, "reach")
        node = Process(
            inputs=nodes, operator=operator, reads=tuple(dict.fromkeys(reads_)),
            gives=tuple(gives.types().items()), keys=_names(keys), parameters=tuple((parameters or {}).items()),
            several=several, identity=_names(identity), broadcast=broadcast is not None,
            reach_us=reach_us if _names(keys) else 0, truth=truth,
            name=_name(name, "process", *nodes),
        )  # fmt: skip
        _check_plain(node)
        return _checked(node)

    def sink(self, name: str, mode: Mode | None = None) -> Flow:
        """Ends the flow. `mode` defaults to `update` after a running aggregate and to `append` otherwise."""
        return flow(Flow((Sink(self.node, name, mode or _mode_after(self.node)),)))


@dataclass(frozen=True)
class Windowed:
    """A stream grouped by keys and window."""

    stream: Stream
    over: Window | Session | Count
    keys: tuple[str, ...]

    def aggregate(
        self, columns: Mapping[str, str] | None = None, /, *, name: str | None = None, **expressions: str
    ) -> Stream:
        """One row per keys and window when the window closes: keys, window_start, window_end, the named aggregates.

        Count windows have no start and end. Their aggregates are `count`, `sum`, `avg`, `min`, `max` or `last` (the
        value at the window's last event) of one column.
        """
        pairs, node = _pairs(columns, expressions), self.stream.node
        if isinstance(self.over, Count):
            return self._by_count(self.over, pairs, _name(name, "count_window", node))
        if isinstance(self.over, Session):
            return _checked(SessionAggregate(node, self.over, self.keys, pairs, _name(name, "session", node)))
        return _checked(WindowAggregate(node, self.over, self.keys, pairs, _name(name, "aggregate", node)))

    def _by_count(self, window: Count, pairs: Columns, name: str) -> Stream:
        """Count windows are a keyed process, because engines have none on streams."""
        from streamgauge.dataflow.operators.count_window_state import CountWindow

        available = self.stream.columns
        aggregates = count_window.read(pairs, self.keys, available, f"count window {name!r}")
        return self.stream.process(
            CountWindow,
            keys=self.keys,
            reads=tuple(each.column for each in aggregates if each.column != "*"),
            gives=count_window.gives(aggregates, self.keys, available),
            parameters={
                "size": window.size,
                "slide": window.slide,
                "keys": self.keys,
                "aggregates": tuple((each.name, each.function, each.column) for each in aggregates),
            },
            truth=count_window.truth(window, self.keys, aggregates),
            name=name,
        )


def _checked(node: Node) -> Stream:
    schemas.columns(node)
    if isinstance(node, Process | Union):
        lineage.check_inputs(node)
    return Stream(node)


def _name(name: str | None, kind: str, *inputs: Node) -> str:
    """The name of an operator that reads `inputs`: the given one, else one that none of theirs has."""
    return name or graph.free_name(kind, {node.name for node in graph.walk(*inputs)})


def _check_plain(node: Process) -> None:
    """Flows are hashable, so their parameters must be hashable."""
    for name, value in node.parameters:
        try:
            hash(value)
        except TypeError:
            rule = f"parameter {name} must be an immutable value"
            raise InputError(Problem(f"process {node.name!r}", rule, value, "a tuple, a number or a text")) from None


_GENERATED = re.compile(
    r"(where|select|explode|lookup|union|distinct|top|aggregate|session|count_window|running|join|interval_join|process)"
    r"(_[0-9]+)?"
)


def _all_disjoint(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """The nodes, with generated names renumbered if they clash with a name before them. Equal nodes are shared."""
    disjoint: tuple[Node, ...] = ()
    for node in nodes:
        rewritten = {other: other for other in graph.walk(*disjoint)}
        taken = {other.name for other in rewritten}
        for each in graph.walk(node):  # inputs first
            if each not in rewritten:
                inputs = tuple(rewritten[input_] for input_ in graph.inputs(each))
                rewritten[each] = _renamed(graph.with_inputs(each, inputs), taken)
                taken.add(rewritten[each].name)
        disjoint += (rewritten[node],)
    return disjoint


def _renamed(node: Node, taken: set[str]) -> Node:
    kind = _GENERATED.fullmatch(node.name)
    if isinstance(node, Source) or node.name not in taken or kind is None:
        return node
    return replace(node, name=graph.free_name(kind.group(1), taken | {node.name}))


def _us(value: str | float, setting: str) -> int:
    """A duration in microseconds; `setting` is the argument's name, for errors."""
    return round(parse_duration(value, setting, way_out=f'{setting}="60s"') * US)


def _signed_us(value: str | float, setting: str) -> int:
    text = str(value).strip()
    sign = -1 if text.startswith("-") else 1
    return sign * _us(text.removeprefix("-"), setting)


def _names(value: Names) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _pairs(columns: Mapping[str, str] | None, expressions: Mapping[str, str]) -> Columns:
    pairs = (*(columns or {}).items(), *expressions.items())
    for name, text in pairs:
        require(isinstance(text, str), name, "must be an expression as text", text, f"{name}={str(text)!r}")
    return tuple(pairs)


def check(flow: Flow) -> None:
    """Raises InputError if a node, an operator name or a sink is invalid."""
    require(flow.sinks, "flow", "must have a sink", "none", '.sink("results")')
    for sink in flow.sinks:
        schemas.columns(sink.input)
    _check_names(flow)
    for sink in flow.sinks:
        _check_sink(sink)
    # Files are named after sinks, and some file systems ignore case.
    twice = schemas.repeated(sink.name for sink in flow.sinks)
    require(not twice, "sink", "two sinks have one name", twice, "another name for one of them")


def _check_sink(sink: Sink) -> None:
    setting = f"sink {sink.name!r}"
    for name, type_ in schemas.columns(sink.input).items():
        rule = f"column {name} is an array, and results cannot hold arrays"
        require(not element_type(type_), setting, rule, type_, f"explode it, or select(...) without {name}")
    needed = _mode_after(sink.input)
    rule = f"takes mode {needed} after {type(sink.input).__name__.lower()}"
    require((sink.mode == "update") == (needed == "update"), setting, rule, sink.mode, f"mode={needed!r}, or none")
    rule = "must be a word of letters, digits, _, - and ., because files are named after it"
    word = re.sub(r"[^\w.-]+", "_", sink.name).strip("_.-") or "results"
    require(re.fullmatch(r"\w[\w.-]*", sink.name), setting, rule, sink.name, word)


def _mode_after(node: Node) -> Mode:
    return "update" if isinstance(node, RunningAggregate) else "append"


def _check_names(flow: Flow) -> None:
    seen: dict[str, Node] = {}
    for node in graph.operators(flow):
        other = seen.setdefault(node.name, node)
        if isinstance(node, Source) and isinstance(other, Source):
            got, way_out = node.schema.names, "one schema for one stream"
            require(other == node, f"source {node.name!r}", "is read with two schemas", got, way_out)
        require(other == node, "name", "two operators have one name", node.name, "name='...' on one of them")
