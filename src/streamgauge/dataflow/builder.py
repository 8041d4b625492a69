"""The words a workload is written in: `source(...).where(...).window(...).aggregate(...).sink(...)`.

Each call makes a new frozen value and checks it at once, so an error points at the line that made it.

    purchases = source("purchases", Schema.of(gem_pack_id="int", price="int"))
    flow = purchases.window(hop("8s", "4s"), keys="gem_pack_id").aggregate(revenue="sum(price)").sink("revenue")

Several sinks make one flow: `flow(rows.where("price > 90").sink("dear"), rows.running(...).sink("counts"))`.
Columns are keyword arguments, `name="expression"`; where one would be called `name` or `keys`, give a dict instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from streamgauge.core.clock import US
from streamgauge.core.errors import InputError, Problem
from streamgauge.core.schema import Schema
from streamgauge.core.units import parse_duration
from streamgauge.dataflow import graph, lineage, validate
from streamgauge.dataflow import schema as schemas
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
from streamgauge.dataflow.operators import count_window
from streamgauge.dataflow.operators.api import Processor
from streamgauge.dataflow.static_table import Table, table

__all__ = ["Stream", "Windowed", "count", "hop", "session", "source", "table", "tumble", "union"]

Names = str | tuple[str, ...] | list[str]


def hop(range: str | float, slide: str | float) -> Window:
    """A window of `range` that begins every `slide` (`"8s"`, or seconds), aligned to the epoch.

    Raises InputError where the slide is longer than the range.
    """
    window = Window(_us(range, "range"), _us(slide, "slide"))
    schemas.check_window(window)
    return window


def tumble(range: str | float) -> Window:
    """Windows of `range` (`"8s"`, or seconds), one after the other, aligned to the epoch."""
    return hop(range, range)


def session(gap: str | float) -> Session:
    """A window for each key that ends after a pause of more than `gap` (`"30s"`, or seconds)."""
    found = Session(_us(gap, "gap"))
    if found.gap_us <= 0:
        raise InputError(Problem("gap", "must be at least 1 us", gap, "session('30s')"))
    return found


def count(size: int, slide: int | None = None) -> Count:
    """A window of the last `size` events of a key, at every `slide`-th of them (default: `size`, one after the other).

    The first windows of a key are of the events that it has had, so `slide=1` gives a row for each event. Raises
    InputError where the slide is not from 1 to the size: events between windows would be counted nowhere.
    """
    for setting, given, most in (("size", size, None), ("slide", size if slide is None else slide, size)):
        if not isinstance(given, int) or given < 1 or (most is not None and given > most):
            rule = "must be a whole number from 1" + (f" to the size, {most}" if most is not None else "")
            raise InputError(Problem(f"count window, {setting}", rule, given, "count(1000, slide=1)"))
    return Count(size, size if slide is None else slide)


def source(name: str, schema: Schema) -> Stream:
    """Reads the input stream `name`."""
    return _checked(Source(name, schema))


def union(*streams: Stream, name: str | None = None) -> Stream:
    """All rows of several streams of the same columns: of several sources, or of one source on several ways."""
    apart: tuple[Node, ...] = ()
    for stream in streams:
        apart += (_disjoint(stream.node, tuple(each for node in apart for each in graph.walk(node))),)
    taken = {each.name for node in apart for each in graph.walk(node)}
    return _checked(Union(apart, name or _free("union", taken)))


def flow(*parts: Flow) -> Flow:
    """One flow with the sinks of all `parts`; equal operators of theirs are one operator."""
    sinks: list[Sink] = []
    for sink in (sink for part in parts for sink in part.sinks):
        before = tuple(graph.walk(*(earlier.input for earlier in sinks)))
        sinks.append(replace(sink, input=_disjoint(sink.input, before)))
    joined = Flow(tuple(sinks))
    validate.check(joined)
    return joined


@dataclass(frozen=True)
class Stream:
    """Rows on their way: what the operators so far give."""

    node: Node

    @property
    def columns(self) -> dict[str, str]:
        """Column name to Spark type name."""
        return schemas.columns(self.node)

    def where(self, predicate: str, *, name: str | None = None) -> Stream:
        """Keeps the rows for which `predicate` is true."""
        return _checked(Where(self.node, predicate, self._name(name, "where")))

    def select(
        self, columns: Mapping[str, str] | None = None, /, *, name: str | None = None, **expressions: str
    ) -> Stream:
        """Keeps the named expressions and nothing else."""
        return _checked(Select(self.node, _pairs(columns, expressions), self._name(name, "select")))

    def explode(
        self, columns: Mapping[str, str] | None = None, /, *, name: str | None = None, **expressions: str
    ) -> Stream:
        """One row for each element of an array, `column="expression"`, beside the columns there are.

        An array that is empty or null gives no row. Raises InputError where there is not exactly one.
        """
        pairs = _pairs(columns, expressions)
        if len(pairs) != 1:
            got = ", ".join(column for column, _ in pairs) or "none"
            way_out = "word=\"split(text, ' ')\"; a second explode for a second array"
            raise InputError(Problem("explode", "takes exactly one array", got, way_out))
        ((column, array),) = pairs
        return _checked(Explode(self.node, column, array, self._name(name, "explode")))

    def lookup(
        self, table: Table, *, on: Names, how: Literal["inner", "left"] = "inner", name: str | None = None
    ) -> Stream:
        """The columns of the row of a static table with equal `on`; `left` keeps rows that find none, with nulls."""
        return _checked(Lookup(self.node, table, _names(on), how, self._name(name, "lookup")))

    def union(self, *others: Stream, name: str | None = None) -> Stream:
        """All rows of this stream and of others of the same columns."""
        return union(self, *others, name=name)

    def distinct(self, *, keys: Names, window: Window | None = None, name: str | None = None) -> Stream:
        """The earliest row of each key, of all events so far or of each window."""
        return _checked(Distinct(self.node, _names(keys), window, self._name(name, "distinct")))

    def top(self, n: int, *, by: str, ties: Names = (), keys: Names = (), name: str | None = None) -> Stream:
        """The `n` rows of each window (and keys) with the greatest `by`; equal ones by `ties`, upwards."""
        return _checked(TopN(self.node, n, by, _names(ties), _names(keys), self._name(name, "top")))

    def interval_join(
        self, other: Stream, *, on: Names, earliest: str | float = 0, latest: str | float = 0, name: str | None = None
    ) -> Stream:
        """Pairs of rows with equal `on` where the other's time lies from `earliest` to `latest` after this one's.

        Both ends are included; a time before is written with a minus: `earliest="-5s"`.
        """
        right = _disjoint(other.node, tuple(graph.walk(self.node)))
        named = name or _free("interval_join", self._taken() | Stream(right)._taken())
        bounds = _signed_us(earliest, "earliest"), _signed_us(latest, "latest")
        return _checked(IntervalJoin(self.node, right, *bounds, _names(on), named))

    def window(self, window: Window | Session | Count, *, keys: Names) -> Windowed:
        """Groups by `keys` and window; say what to compute with `aggregate`."""
        return Windowed(self, window, _names(keys))

    def running(
        self, columns: Mapping[str, str] | None = None, /, *, keys: Names, name: str | None = None, **expressions: str
    ) -> Stream:
        """Aggregates over all events so far by `keys`; results are updates."""
        pairs = _pairs(columns, expressions)
        return _checked(RunningAggregate(self.node, _names(keys), pairs, self._name(name, "running")))

    def join(self, other: Stream, *, window: Window, on: Names, name: str | None = None) -> Stream:
        """Pairs of rows of both streams with equal `on` in the same window."""
        right = _disjoint(other.node, tuple(graph.walk(self.node)))
        named = name or _free("join", self._taken() | Stream(right)._taken())
        return _checked(WindowJoin(self.node, right, window, _names(on), named))

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
        """What a class makes of the rows of this stream, and of `others` (`dataflow.operators.api` says what it is
        given).

        `keys`: all rows of a key meet one instance, in event-time order; without keys it keeps no state. `reads`: the
        columns it needs (default: all). `broadcast`: one more stream, the last, all of which every instance meets,
        whatever its keys; no result comes from its rows. `reach`: how long a row can influence results (`"10s"`; None:
        without end; a stateless class has none). `truth`: its semantics as DuckDB SQL
        (`dataflow.operators.reference_sql`).
        """
        nodes = [self.node]
        for other in (*others, *([broadcast] if broadcast else [])):
            nodes.append(_disjoint(other.node, tuple(each for node in nodes for each in graph.walk(node))))
        there = dict.fromkeys(column for node in nodes for column in schemas.columns(node))
        wanted = (*_names(keys), *(there if reads is None else _names(reads)))
        reach_us = None if reach is None else _us(reach, "reach")
        node = Process(
            inputs=tuple(nodes), operator=operator, reads=tuple(dict.fromkeys(wanted)),
            gives=tuple(gives.types().items()), keys=_names(keys), parameters=tuple((parameters or {}).items()),
            several=several, identity=_names(identity), broadcast=broadcast is not None,
            reach_us=reach_us if _names(keys) else 0, truth=truth,
            name=name or _free("process", {name for node in nodes for name in Stream(node)._taken()}),
        )  # fmt: skip
        _check_plain(node)
        made = _checked(node)
        lineage.check_inputs(node)
        return made

    def sink(self, name: str, mode: Mode | None = None) -> Flow:
        """Where results leave; `mode` is `update` after a running aggregate and `append` otherwise."""
        natural: Mode = "update" if isinstance(self.node, RunningAggregate) else "append"
        return flow(Flow((Sink(self.node, name, mode or natural),)))

    def _taken(self) -> set[str]:
        return {node.name for node in graph.walk(self.node)}

    def _name(self, given: str | None, kind: str) -> str:
        return given or _free(kind, self._taken())


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

        Windows by count have no start and end; their aggregates are `count`, `sum`, `avg`, `min`, `max` or `last` (its
        value at the window's last event) of one column.
        """
        pairs = _pairs(columns, expressions)
        if isinstance(self.over, Count):
            return self._by_count(self.over, pairs, self.stream._name(name, "count_window"))
        if isinstance(self.over, Session):
            named = self.stream._name(name, "session")
            return _checked(SessionAggregate(self.stream.node, self.over, self.keys, pairs, named))
        named = self.stream._name(name, "aggregate")
        return _checked(WindowAggregate(self.stream.node, self.over, self.keys, pairs, named))

    def _by_count(self, window: Count, pairs: Columns, name: str) -> Stream:
        """A keyed process: Spark has no such windows on streams."""
        from streamgauge.dataflow.operators.count_window_state import CountWindow

        there = self.stream.columns
        asked = count_window.read(pairs, self.keys, there, f"count window {name!r}")
        return self.stream.process(
            CountWindow,
            keys=self.keys,
            reads=tuple(each.column for each in asked if each.column != "*"),
            gives=count_window.gives(asked, self.keys, there),
            parameters={
                "size": window.size,
                "slide": window.slide,
                "keys": self.keys,
                "aggregates": tuple((each.name, each.function, each.column) for each in asked),
            },
            truth=count_window.truth(window, self.keys, asked),
            name=name,
        )


def _checked(node: Node) -> Stream:
    schemas.columns(node)
    return Stream(node)


def _check_plain(node: Process) -> None:
    """A flow is a value that can be compared and kept, so its parameters must be as well."""
    for name, value in node.parameters:
        try:
            hash(value)
        except TypeError:
            rule = f"parameter {name} must be a value that never changes"
            raise InputError(Problem(f"process {node.name!r}", rule, value, "a tuple, a number or a text")) from None


def _free(kind: str, taken: set[str]) -> str:
    """`where`, then `where_2`, `where_3`: operators have names of their own in results."""
    if kind not in taken:
        return kind
    return next(f"{kind}_{n}" for n in range(2, len(taken) + 3) if f"{kind}_{n}" not in taken)


_GENERATED = re.compile(
    r"(where|select|explode|lookup|union|distinct|top|aggregate|session|count_window|running|join|interval_join|process)"
    r"(_[0-9]+)?"
)


def _disjoint(node: Node, others: tuple[Node, ...]) -> Node:
    """The node with other numbers where a name that we gave clashes with one of `others` (equal nodes are shared)."""
    taken = {other.name for other in others}
    made: dict[Node, Node] = {other: other for other in others}
    for each in graph.walk(node):  # inputs first
        if each not in made:
            made[each] = _renamed(graph.with_inputs(each, tuple(made[input_] for input_ in graph.inputs(each))), taken)
            taken.add(made[each].name)
    return made[node]


def _renamed(node: Node, taken: set[str]) -> Node:
    kind = _GENERATED.fullmatch(node.name)
    if isinstance(node, Source) or node.name not in taken or kind is None:
        return node
    return replace(node, name=_free(kind.group(1), taken | {node.name}))


def _us(given: str | float, setting: str) -> int:
    """A time in microseconds; `setting` is the argument that gave it."""
    return round(parse_duration(given, setting, way_out=f'{setting}="60s"') * US)


def _signed_us(given: str | float, setting: str) -> int:
    text = str(given).strip()
    sign = -1 if text.startswith("-") else 1
    return sign * _us(text.removeprefix("-"), setting)


def _names(given: Names) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _pairs(columns: Mapping[str, str] | None, expressions: Mapping[str, str]) -> Columns:
    pairs = (*(columns or {}).items(), *expressions.items())
    for name, expression in pairs:
        if not isinstance(expression, str):
            raise InputError(Problem(name, "must be an expression as text", expression, f"{name}={str(expression)!r}"))
    return tuple(pairs)
