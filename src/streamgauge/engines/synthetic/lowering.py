"""The flows of the synthetic engine: filtered rows, and windows that close when the cut passes them.

These are computed here, independent of the reference. Any other flow is computed as the reference computes it, so a
trial of it shows the pace, and not whether its answers are right.

`rows` are Arrow tables with the source's columns. Results have the flow's columns, including lineage, in order.
"""

import math
import operator
from collections.abc import Callable
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from sqlglot import exp

from streamgauge.core.errors import InputError
from streamgauge.core.schema import EVENT_TIME, WINDOW_END, WINDOW_START, arrow_type, quoted
from streamgauge.dataflow import count_window, graph, schema
from streamgauge.dataflow.nodes import Flow, Node, Source, Where, WindowAggregate
from streamgauge.dataflow.reach import reach_us
from streamgauge.engines.duckdb_oracle import lowering as oracle
from streamgauge.engines.synthetic.options import KINDS

_MERGE = {"sum": "sum", "count": "sum", "max": "max", "min": "min"}
_BINARY: dict[type, Callable[[Any, Any], pc.Expression]] = {
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.And: operator.and_,
    exp.Or: operator.or_,
}


class Operator(Protocol):
    def results(self, rows: pa.Table, cut_us: int) -> pa.Table:
        """The results that are due after all events before `cut_us`; `rows` are the new events."""


def build(flow: Flow) -> Operator:
    """The operator that computes the flow."""
    result = pa.schema([(name, arrow_type(kind)) for name, kind in schema.columns(flow.sink.input).items()])
    last = flow.sink.input
    assert {type(node) for node in graph.operators(flow)} <= set(KINDS)
    try:
        if isinstance(last, WindowAggregate):
            return Windows(last, _condition(last.input), result)
        return PassThrough(_condition(last), result)
    except (InputError, NotImplementedError):
        return ByReference(flow, result)


def _condition(node: Node) -> pc.Expression:
    """Which rows of the source are the node's. Raises NotImplementedError if it changes rows."""
    match node:
        case Source():
            return pc.scalar(True)
        case Where():
            return _condition(node.input) & _value(sqlglot.parse_one(node.predicate, dialect="spark"), node.predicate)
    raise NotImplementedError(f"a {type(node).__name__} is not computed row by row here")


class PassThrough:
    """Row-by-row flow: every result is due at once."""

    def __init__(self, condition: pc.Expression, result: pa.Schema) -> None:
        self._condition, self._result = condition, result

    def results(self, rows: pa.Table, cut_us: int) -> pa.Table:
        return rows.filter(self._condition).select(self._result.names).cast(self._result)


class Windows:
    """Sums, counts, maxima and minima by keys and window, merged from read to read until the window closes."""

    def __init__(self, node: WindowAggregate, condition: pc.Expression, result: pa.Schema) -> None:
        self._window, self._condition, self._result = node.window, condition, result
        self._by = [*node.keys, WINDOW_START]
        aggregates = count_window.read(node.aggregates, node.keys, schema.columns(node.input), node.name)
        self._aggregates = [(each.name, each.function, each.column) for each in aggregates]
        if any(each.function not in _MERGE for each in aggregates):
            raise NotImplementedError(f"{node.name} has aggregates that are not merged here")
        self._open: pa.Table | None = None

    def results(self, rows: pa.Table, cut_us: int) -> pa.Table:
        kept = rows.filter(self._condition)
        panes = pa.concat_tables([self._pane(kept, pane) for pane in range(self._window.panes)])
        partials = self._group(panes, lambda kind, source, _: (source, kind))
        every = partials if self._open is None else pa.concat_tables([self._open, partials])
        merged = self._group(every, lambda kind, _, name: (name, _MERGE[kind]))
        closed = pc.less_equal(merged.column(WINDOW_START), cut_us - self._window.range_us)
        self._open = merged.filter(pc.invert(closed))
        finished = merged.filter(closed)
        ends = pc.add(finished.column(WINDOW_START), self._window.range_us)
        return finished.append_column(WINDOW_END, ends).select(self._result.names).cast(self._result)

    def _pane(self, rows: pa.Table, pane: int) -> pa.Table:
        """The rows that lie in the `pane`-th last window that can contain them."""
        times = rows.column(EVENT_TIME).to_numpy()
        starts = (times // self._window.slide_us - pane) * self._window.slide_us
        inside = pa.array(times < starts + self._window.range_us)
        return rows.append_column(WINDOW_START, pa.array(starts, pa.int64())).filter(inside)

    def _group(self, rows: pa.Table, call: Callable[[str, str, str], tuple[str, str]]) -> pa.Table:
        calls = [call(kind, source, name) for name, kind, source in self._aggregates]
        aggregations: list[Any] = [([], "count_all") if pair == ("*", "count") else pair for pair in calls]
        grouped = rows.group_by(self._by).aggregate(aggregations)
        result_names = ["count_all" if pair == ("*", "count") else "_".join(pair) for pair in calls]
        names = [*self._by, *(name for name, *_ in self._aggregates)]
        return grouped.select([*self._by, *result_names]).rename_columns(names)


class ByReference:
    """Another flow of one stream: a result is due once the cut passes its time, which is the end of its window."""

    def __init__(self, flow: Flow, result: pa.Schema) -> None:
        import duckdb

        rows = oracle.lower(flow.sink.input, {graph.sources(flow)[0].name: "rows"})
        self._due = f"SELECT {quoted(result.names)} FROM ({rows}) WHERE {oracle.TIME} >= ? AND {oracle.TIME} < ?"
        slides = (node.window.slide_us for node in graph.operators(flow) if isinstance(node, WindowAggregate))
        self._step_us, self._reach_us = math.gcd(*slides) or 1, reach_us(flow) or 0
        self._result, self._done_us = result, 0
        self._open: pa.Table | None = None
        self._connection = duckdb.connect(config={"threads": 1})
        self._connection.execute("SET TimeZone = 'UTC'")

    def results(self, rows: pa.Table, cut_us: int) -> pa.Table:
        self._open = rows if self._open is None else pa.concat_tables([self._open, rows])
        due_us = cut_us - cut_us % self._step_us
        if due_us <= self._done_us:
            return self._result.empty_table()
        self._connection.register("rows", self._open)
        found = self._connection.sql(self._due, params=[self._done_us, due_us]).to_arrow_table()
        self._done_us = due_us
        self._open = self._open.filter(pc.greater_equal(self._open.column(EVENT_TIME), due_us - self._reach_us))
        return found.cast(self._result)


def _value(node: Any, text: str) -> pc.Expression:
    """A part of the predicate `text`: comparisons of columns and numbers with and, or, not.

    It is independent of DuckDB, because otherwise the oracle would be compared with itself. Raises
    NotImplementedError for any other predicate.
    """
    match node:
        case exp.Column():
            return pc.field(node.name)
        case exp.Literal(is_string=False):
            return pc.scalar(float(node.this) if "." in node.this else int(node.this))
        case exp.Paren():
            return _value(node.this, text)
        case exp.Not():
            return ~_value(node.this, text)
        case exp.Binary() if combine := _BINARY.get(type(node)):
            return combine(_value(node.left, text), _value(node.right, text))
    raise NotImplementedError(f"{text} is more than comparisons of columns and numbers")
