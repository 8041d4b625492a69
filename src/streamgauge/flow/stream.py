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

from streamgauge.errors import InputError, Problem
from streamgauge.events import US, Schema, parse_duration
from streamgauge.flow import schema as schemas
from streamgauge.flow.nodes import (
    Columns,
    Flow,
    Mode,
    Node,
    RunningAggregate,
    Select,
    Sink,
    Source,
    Where,
    Window,
    WindowAggregate,
    WindowJoin,
)

Names = str | tuple[str, ...] | list[str]


def hop(range: str | float, slide: str | float) -> Window:
    """A window of `range` that begins every `slide` (`"8s"`, or seconds), aligned to the epoch.

    Raises InputError where the slide is longer than the range.
    """
    window = Window(round(parse_duration(range, "range") * US), round(parse_duration(slide, "slide") * US))
    schemas.check_window(window)
    return window


def tumble(range: str | float) -> Window:
    """Windows of `range` (`"8s"`, or seconds), one after the other, aligned to the epoch."""
    return hop(range, range)


def source(name: str, schema: Schema) -> Stream:
    """Reads the input stream `name`."""
    return _checked(Source(name, schema))


def flow(*parts: Flow) -> Flow:
    """One flow with the sinks of all `parts`; equal operators of theirs are one operator."""
    sinks: list[Sink] = []
    for sink in (sink for part in parts for sink in part.sinks):
        before = tuple(schemas.walk(*(earlier.input for earlier in sinks)))
        sinks.append(replace(sink, input=_apart(sink.input, before)))
    joined = Flow(tuple(sinks))
    schemas.check(joined)
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

    def window(self, window: Window, *, keys: Names) -> Windowed:
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
        right = _apart(other.node, tuple(schemas.walk(self.node)))
        named = name or _free("join", self._taken() | Stream(right)._taken())
        return _checked(WindowJoin(self.node, right, window, _names(on), named))

    def sink(self, name: str, mode: Mode | None = None) -> Flow:
        """Where results leave; `mode` is `update` after a running aggregate and `append` otherwise."""
        natural: Mode = "update" if isinstance(self.node, RunningAggregate) else "append"
        return flow(Flow((Sink(self.node, name, mode or natural),)))

    def _taken(self) -> set[str]:
        return {node.name for node in schemas.walk(self.node)}

    def _name(self, given: str | None, kind: str) -> str:
        return given or _free(kind, self._taken())


@dataclass(frozen=True)
class Windowed:
    """A stream grouped by keys and window."""

    stream: Stream
    over: Window
    keys: tuple[str, ...]

    def aggregate(
        self, columns: Mapping[str, str] | None = None, /, *, name: str | None = None, **expressions: str
    ) -> Stream:
        """One row per keys and window when the window closes: keys, window_start, window_end, the named aggregates."""
        pairs = _pairs(columns, expressions)
        named = self.stream._name(name, "aggregate")
        return _checked(WindowAggregate(self.stream.node, self.over, self.keys, pairs, named))


def _checked(node: Node) -> Stream:
    schemas.columns(node)
    return Stream(node)


def _free(kind: str, taken: set[str]) -> str:
    """`where`, then `where_2`, `where_3`: operators have names of their own in results."""
    if kind not in taken:
        return kind
    return next(f"{kind}_{n}" for n in range(2, len(taken) + 3) if f"{kind}_{n}" not in taken)


_GIVEN_BY_US = re.compile(r"(where|select|aggregate|running|join)(_[0-9]+)?")


def _apart(node: Node, others: tuple[Node, ...]) -> Node:
    """The node with other numbers where a name that we gave clashes with one of `others` (equal nodes are shared)."""
    if isinstance(node, Source) or node in others:
        return node
    if isinstance(node, WindowJoin):
        node = replace(node, left=_apart(node.left, others), right=_apart(node.right, others))
    else:
        node = replace(node, input=_apart(node.input, others))
    taken = {other.name for other in others}
    kind = _GIVEN_BY_US.fullmatch(node.name)
    if node.name not in taken or kind is None:
        return node
    return replace(node, name=_free(kind.group(1), taken | {each.name for each in schemas.walk(node)}))


def _names(given: Names) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _pairs(columns: Mapping[str, str] | None, expressions: Mapping[str, str]) -> Columns:
    pairs = (*(columns or {}).items(), *expressions.items())
    for name, expression in pairs:
        if not isinstance(expression, str):
            raise InputError(Problem(name, "must be an expression as text", expression, f"{name}={str(expression)!r}"))
    return tuple(pairs)
