"""The oracle's answers against outputs worked out by hand, and against a plain Python statement of the semantics."""

from collections import Counter
from collections.abc import Callable
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import hop, source, tumble, union
from streamgauge.dataflow.lineage import with_lineage
from streamgauge.dataflow.nodes import Flow, Window
from streamgauge.engines.duckdb_oracle import lowering
from streamgauge.engines.duckdb_oracle.lowering import Relations
from tests.unit.engines.duckdb_oracle.helpers_oracle import (
    KEYS,
    OPEN,
    TIMES,
    VALUES,
    WINDOWS,
    Row,
    ask,
    database,
    holds,
    register,
    starts,
)

__all__ = ["database"]
LEFT = Schema.from_types(k="int", v="int")
RIGHT = Schema.from_types(k="int")
A, B = source("a", LEFT), source("b", RIGHT)
S = 1_000_000


def _answer(
    flow: Flow,
    a: list[Row],
    b: list[Row] | None = None,
    text: Callable[[Flow, Relations], str] = lowering.sql,
) -> list[Row]:
    """The flow's rows, sorted."""
    register("a_rows", LEFT, a)
    register("b_rows", RIGHT, b or [])
    rows = ask(text(flow, {"a": "a_rows", "b": "b_rows"}))
    return sorted(rows, key=lambda row: tuple((value is None, value) for value in row))


def _sums(window: Window, **aggregates: str) -> Flow:
    return with_lineage(A.window(window, keys="k").aggregate(aggregates or {"total": "sum(v)"}).sink("out"))


def test_behind_rows_that_are_kept_nothing_is_read() -> None:
    """However often they are read: their source need not be there at all."""
    known = A.where("v > 1", name="known")
    flow = with_lineage(union(known.select(k="k"), known.where("v > 2").select(k="k")).sink("out"))
    register("kept_rows", LEFT, [(1, 2, 0), (2, 3, 1)])
    kept = "(SELECT *, event_time AS __time FROM kept_rows)"
    assert sorted(row[0] for row in ask(lowering.sql(flow, {"@known": kept}))) == [1, 2, 2]


def test_where_keeps_only_true() -> None:
    """A predicate that is null keeps nothing."""
    flow = with_lineage(A.where("v > 1").sink("out"))
    assert _answer(flow, [(1, 1, 0), (1, 2, 1), (1, None, 2)]) == [(1, 2, 1, 8, 1)]


def test_nothing_in_nothing_out() -> None:
    """No events give no results, from any node: an empty window is no row."""
    joined = A.join(B, window=hop(8, 4), on="k")
    for flow in (A.sink("out"), A.running(keys="k", n="count(*)").sink("out"), joined.sink("out")):
        assert _answer(with_lineage(flow), []) == []
    assert _answer(_sums(hop(8, 4)), []) == []


def test_null_keys_are_a_group_and_null_values_are_left_out() -> None:
    """Like SQL: nulls group together, sums leave them out, a sum of nothing is null."""
    rows = [(None, 1, 0), (None, 2, 1), (1, None, 0)]
    flow = _sums(tumble(1), total="sum(v)", n="count(*)", some="count(v)")
    assert [(row[0], *row[3:6]) for row in _answer(flow, rows)] == [(1, None, 1, 0), (None, 3, 2, 2)]


def test_every_aggregate_in_panes_and_expanded() -> None:
    """Aggregates that divide give by panes what they give beside one that does not divide."""
    rows = [(k, v, t * S) for k, v, t in [(1, 5, 0), (1, -3, 3), (1, 9, 6), (2, 7, 6), (1, 1, 11)]]
    parts = {"total": "sum(v)", "n": "count(*)", "low": "min(v)", "high": "max(v)"}
    by_panes = _answer(_sums(hop(9, 6), **parts), rows)
    expanded = _answer(_sums(hop(9, 6), **parts, mean="avg(v)"), rows)
    assert by_panes == [row[:7] + row[8:] for row in expanded]
    assert by_panes[1][3:7] == (11, 3, -3, 9)


def _at(flow: Flow, rows: list[Row], points: list[Row]) -> list[Row]:
    keys, times = pa.array([point[0] for point in points], pa.int32()), pa.array([point[1] for point in points])
    OPEN[0].register("requested", pa.table({"k": keys, "event_time": times.cast(pa.int64())}))
    return _answer(flow, rows, text=lambda flow, relations: lowering.at_points(flow, relations, "requested"))


def test_windows_chain_by_the_end_of_the_first() -> None:
    """A result of a window counts, in the next, at the last microsecond of its own."""
    first = A.window(tumble(4), keys=("k", "v")).aggregate(n="count(*)")
    flow = with_lineage(first.window(tumble(8), keys="k").aggregate(most="max(n)", windows="count(*)").sink("out"))
    assert _answer(flow, [(1, 1, 0), (1, 1, 1), (1, 1, 7 * S), (1, 1, 8 * S)]) == [
        (1, 0, 8 * S, 2, 2, 7 * S, 7 * S + 7),
        (1, 8 * S, 16 * S, 1, 1, 8 * S, 8 * S + 7),
    ]


@pytest.mark.parametrize("slide_us", [1, 4 * S])
def test_pairs_of_hopping_windows_meet_wherever_a_bucket_ends(slide_us: int) -> None:
    """Each pair shares one window, whose first and last microsecond are its times; windows also start before 1970."""
    joined = with_lineage(A.join(B, window=Window(2 * slide_us, slide_us), on="k").sink("out"))
    firsts = [(n, slide_us * n) for n in range(-20, 20)]
    lasts = [(n, slide_us * (n + 2) - 1) for n in range(-20, 20)]
    for left, right in ((firsts, lasts), (lasts, firsts)):
        found = _answer(joined, [(key, 0, time) for key, time in left], right)
        assert [row[:3] for row in found] == [(key, 0, time) for key, time in firsts]


def test_aggregate_of_a_join() -> None:
    """A join's result counts at the end of its window, and its times are carried on."""
    joined = A.join(B, window=tumble(4), on="k").select(k="k", v="v")
    flow = with_lineage(joined.window(tumble(8), keys="k").aggregate(total="sum(v)").sink("out"))
    found = _answer(flow, [(1, 1, 0), (1, 2, 5 * S)], [(1, 1), (1, 6 * S), (1, 7 * S)])
    assert found == [(1, 0, 8 * S, 5, 7 * S, 7 * S + 7)]


def test_names_that_sql_knows_and_helper_names_do_no_harm() -> None:
    """Columns called like SQL words or like the lowering's own variables stay columns."""
    left = A.select({"order": "k", "w": "v", "k": "k", "point": "v"})
    joined = left.join(B.select({"k": "k", "bucket": "k"}), window=hop(8, 4), on="k")
    windowed = (
        joined.select({"order": "`order`", "w": "w"}).window(hop(8, 4), keys="order").aggregate({"group": "sum(w)"})
    )
    found = _answer(with_lineage(windowed.sink("out")), [(1, 5, 0)], [(1, 0)])
    # windows of the join end at 4 s and 8 s; the one that ends at 4 s counts at its last microsecond
    assert [(row[1], row[3]) for row in found] == [(-4 * S, 5), (0, 10), (4 * S, 5)]


def test_a_flow_without_lineage_is_answered_too() -> None:
    """Event time comes with the input whether the flow carries it or not."""
    flow = A.window(tumble(4), keys="k").aggregate(total="sum(v)").sink("out")
    assert _answer(flow, [(1, 5, 0)]) == [(1, 0, 4 * S, 5)]
    assert _answer(A.join(B, window=hop(8, 4), on="k").sink("out"), [(1, 5, 0)], [(1, 1)]) == [
        (1, 5, -4 * S, 4 * S),
        (1, 5, 0, 8 * S),
    ]


# The semantics once more, in plain Python: windows are asked one by one whether they hold an event.

LEFT_ROWS = st.lists(st.tuples(KEYS, VALUES, TIMES), max_size=12)
RIGHT_ROWS = st.lists(st.tuples(KEYS, TIMES), max_size=12)


@given(window=WINDOWS, rows=LEFT_ROWS)
def test_window_aggregate_is_its_plain_statement(window: Window, rows: list[Row]) -> None:
    """For every window and key: the sum, count and least of the events that the window holds."""
    wanted = []
    for start in starts(window):
        for key in {row[0] for row in rows}:
            inside = [row for row in rows if row[0] == key and holds(window, start, row[2])]
            values = [row[1] for row in inside if row[1] is not None]
            last = max((row[2] for row in inside), default=0)
            total, low = (sum(values), min(values)) if values else (None, None)
            if inside:
                wanted.append((key, start, start + window.range_us, total, len(inside), low, last, last + 7))
    flow = _sums(window, total="sum(v)", n="count(*)", low="min(v)")
    assert Counter(_answer(flow, rows)) == Counter(wanted)
    with mock.patch.object(lowering, "PANES_MAX", 0):  # as for windows that overlap many times
        assert Counter(_answer(flow, rows)) == Counter(wanted)


@given(window=WINDOWS, a=LEFT_ROWS, b=RIGHT_ROWS)
def test_window_join_is_its_plain_statement(window: Window, a: list[Row], b: list[Row]) -> None:
    """For every window and pair: one row where keys are equal and the window holds both."""
    wanted = [
        (left[0], left[1], start, start + window.range_us, max(left[2], right[1]), max(left[2], right[1]) + 7, i, j)
        for start in starts(window)
        for i, left in enumerate(a)
        for j, right in enumerate(b)
        if left[0] is not None and left[0] == right[0]
        if holds(window, start, left[2]) and holds(window, start, right[1])
    ]
    assert Counter(_answer(with_lineage(A.join(B, window=window, on="k").sink("out")), a, b)) == Counter(wanted)


@given(rows=LEFT_ROWS)
def test_running_is_its_plain_statement(rows: list[Row]) -> None:
    """At every event time of a key: count and sum of its events so far."""
    flow = with_lineage(A.running(keys="k", n="count(*)", total="sum(v)").sink("out"))
    whole = {}
    for key, time in {(row[0], row[2]) for row in rows}:
        values = [row[1] for row in rows if row[0] == key and row[2] <= time]
        known = [value for value in values if value is not None]
        whole[key, time] = (key, len(values), sum(known) if known else None, time, time + 7)
    assert Counter(_answer(flow, rows)) == Counter(whole.values())


@pytest.mark.parametrize("more", [{}, {"mean": "avg(v)"}], ids=["merged", "by windows"])
@given(
    rows=LEFT_ROWS,
    cuts=st.lists(TIMES, max_size=5),
    requested=st.lists(st.tuples(KEYS, TIMES), max_size=8),
)
def test_running_values_are_those_at_every_event_time(
    more: dict[str, str], rows: list[Row], cuts: list[int], requested: list[Row]
) -> None:
    """The last one of each key and span, and those at asked times."""
    parts = {"n": "count(*)", "total": "sum(v)", "low": "min(v)", **more}
    flow = with_lineage(A.running(keys="k", **parts).sink("out"))
    every = _answer(flow, rows)
    last = {(row[0], sum(cut <= row[-2] for cut in cuts)): row for row in sorted(every, key=lambda row: row[-2])}
    number = lowering.span_number(sorted(cuts))
    by_spans = _answer(flow, rows, text=lambda flow, relations: lowering.by_spans(flow, relations, number))
    assert {(row[0], row[-1]): row[:-1] for row in by_spans} == last
    assert len(by_spans) == len(last)
    assert _at(flow, rows, requested) == [row for row in every if (row[0], row[-2]) in requested]
