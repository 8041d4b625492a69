"""Windows by count: worked by hand, against plain Python, by truth and by class, and wherever batches end."""

import itertools
import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.schema import Schema
from streamgauge.dataflow import graph, schema
from streamgauge.dataflow.builder import count, source, tumble, union
from streamgauge.dataflow.describe import describe
from streamgauge.dataflow.lineage import identity
from streamgauge.dataflow.nodes import Flow
from streamgauge.dataflow.reach import reach_us
from streamgauge.engines.duckdb_oracle.process_operator import is_independent
from tests.unit.helpers_refusals import assert_refused
from tests.unit.workloads.helpers_cuts import BOTH, answered, results_in_batches, table, without_truth

READINGS = source("readings", Schema.from_types(k="int", room="string", x="double", n="int"))
ALL = {
    "rows": "count(*)", "there": "count(x)", "total": "sum(x)", "mean": "avg(x)", "least": "min(x)", "most": "max(x)",
    "n_total": "sum(n)", "n_mean": "AVG( n )", "n_least": "min(n)", "n_most": "max(n)", "last_room": "last(room)",
    "rooms": "count(room)",
}  # fmt: skip
Reading = tuple[int | None, float | None]
"""(key, value); the n-th has event time and event id n."""


def flow_of(size: int, slide: int, keys: Any = "k", **aggregates: str) -> Flow:
    return READINGS.window(count(size, slide), keys=keys).aggregate(**(aggregates or ALL)).sink("out")


def table_of(readings: list[Reading]) -> pa.Table:
    """`x` is the value, `n` its whole part, and `room` names that; null where there is none."""
    rows = []
    for k, x in readings:
        n = None if x is None or not abs(x) < 2**31 else int(x)
        rows.append((k, None if n is None else f"room {n}", x, n))
    return table(rows, k="int32", room="string", x="float64", n="int32")


def answer(flow: Flow, readings: list[Reading]) -> list[dict[str, Any]]:
    """The flow's results with their event ids, by event id."""
    return answered(flow, {"readings": table_of(readings)}).to_pylist()


HAND: list[Reading] = [(1, 2.0), (1, 4.0), (2, 10.0), (1, 9.0), (None, 1.0), (1, None), (2, 20.0), (None, 3.0)]


BY_HAND: list[tuple[Flow, list[tuple[Any, ...]]]] = [
    (
        flow_of(3, 1, rows="count(*)", mean="avg(x)", least="min(x)", n="sum(n)", now="last(n)"),
        [
            (1, 1, 2.0, 2.0, 2, 2, 0, 0), (1, 2, 3.0, 2.0, 6, 4, 1, 1), (2, 1, 10.0, 10.0, 10, 10, 2, 2),
            (1, 3, 5.0, 2.0, 15, 9, 3, 3), (None, 1, 1.0, 1.0, 1, 1, 4, 4), (1, 3, 6.5, 4.0, 13, None, 5, 5),
            (2, 2, 15.0, 10.0, 30, 20, 6, 6), (None, 2, 2.0, 1.0, 4, 3, 7, 7),
        ],
    ),
    (
        flow_of(2, 2, rows="count(*)", total="sum(x)"),
        [(1, 2, 6.0, 1, 1), (1, 2, 9.0, 5, 5), (2, 2, 30.0, 6, 6), (None, 2, 4.0, 7, 7)],
    ),
    (
        flow_of(3, 2, rows="count(*)", total="sum(x)"),
        [(1, 2, 6.0, 1, 1), (1, 3, 13.0, 5, 5), (2, 2, 30.0, 6, 6), (None, 2, 4.0, 7, 7)],
    ),
]  # fmt: skip
"""A row for each event over the last three, for each two events, and at each second event over the last three."""


@BOTH
@pytest.mark.parametrize(("flow", "rows"), BY_HAND, ids=["each", "each two", "each second"])
def test_worked_by_hand(variant: Any, flow: Flow, rows: list[tuple[Any, ...]]) -> None:
    """Fewer while a key has had fewer; null is a key; an event without a value takes a place and gives no value. Each
    window is known by its last event, and one that is not filled gives none.
    """
    assert [tuple(row.values()) for row in answer(variant(flow), HAND)] == rows


@BOTH
def test_keys_of_several_columns(variant: Any) -> None:
    """All of them together, whatever their types."""
    readings: list[Reading] = [(1, 2.0), (1, 3.0), (2, 2.0), (1, 2.0), (2, None), (2, None)]
    actual = answer(variant(flow_of(2, 1, keys=("k", "room"), rows="count(*)")), readings)
    assert [(row["k"], row["room"], row["rows"]) for row in actual] == [
        (1, "room 2", 1), (1, "room 3", 1), (2, "room 2", 1), (1, "room 2", 2), (2, None, 1), (2, None, 2),
    ]  # fmt: skip


@BOTH
def test_a_value_is_forgotten_when_it_leaves_the_window(variant: Any) -> None:
    """One of another size, or no number, changes nothing after it, and nothing of another key."""
    readings: list[Reading] = [(1, 1e17), (2, 0.1), (1, math.nan), (1, math.inf), (1, 0.3), (1, 0.25), (2, 0.2)]
    actual = answer(variant(flow_of(2, 1, total="sum(x)", most="max(x)")), readings)
    assert [row["total"] for row in actual[-2:]] == [0.3 + 0.25, 0.1 + 0.2]
    assert [row["most"] for row in actual[-2:]] == [0.3, 0.2]


VALUES = st.one_of(st.none(), st.just(math.nan), st.integers(-40, 40).map(lambda n: n / 4))
KEYS = st.one_of(st.none(), st.integers(1, 3))


@given(st.lists(st.tuples(KEYS, VALUES), max_size=40), st.integers(1, 6), st.data())
def test_class_and_truth_agree(readings: list[Reading], size: int, data: st.DataObject) -> None:
    """On every aggregate."""
    flow = flow_of(size, data.draw(st.integers(1, size)))
    assert repr(answer(without_truth(flow), readings)) == repr(answer(flow, readings))  # NaN equals nothing


@given(
    st.lists(st.tuples(KEYS, VALUES, st.integers(0, 3)), min_size=1, max_size=40),
    st.lists(st.integers(0, 130), max_size=5),
    st.sampled_from([(1, 1), (4, 1), (3, 3), (5, 2)]),
)
def test_the_answer_does_not_depend_on_where_batches_end(
    readings: list[tuple[int | None, float | None, int]], cuts: list[int], window: tuple[int, int]
) -> None:
    """Cut between any two times, with a snapshot into a fresh instance at every cut, as engines do."""
    rows = table_of([(key, value) for key, value, _ in readings])
    results_in_batches(flow_of(*window), rows, list(itertools.accumulate(step for *_, step in readings)), cuts)


@given(st.lists(st.floats(allow_nan=False, width=32), min_size=1, max_size=30), st.lists(st.integers(0, 29)))
def test_nor_does_the_last_bit_of_a_sum(values: list[float], cuts: list[int]) -> None:
    """Values of all sizes are added in the same order wherever batches end."""
    flow = flow_of(7, 1, total="sum(x)", mean="avg(x)")
    results_in_batches(flow, table_of([(1, value) for value in values]), list(range(len(values))), cuts)


def test_columns_identity_and_reach() -> None:
    """Keys, then aggregates; a result is its last event; n events of a key may last for ever."""
    flow = flow_of(10, 1)
    assert schema.columns(flow.sink.input) == {
        "k": "int", "rows": "bigint", "there": "bigint", "total": "double", "mean": "double", "least": "double",
        "most": "double", "n_total": "bigint", "n_mean": "double", "n_least": "int", "n_most": "int",
        "last_room": "string", "rooms": "bigint",
    }  # fmt: skip
    assert identity(flow) == ("event_id",)
    assert reach_us(flow) is None
    assert is_independent(flow)
    assert not is_independent(without_truth(flow))


def test_windows_by_count_have_names_and_a_picture() -> None:
    """The name that was asked for, or a free one, on both sides of a union too; what it does in words."""
    one, two = (READINGS.window(count(5, slide), keys="k").aggregate(mean="avg(x)") for slide in (1, 5))
    both = union(one, two).sink("out")
    assert [node.name for node in graph.walk(both.sink.input)][1:] == ["count_window", "count_window_2", "union"]
    assert [row["label"] for row in describe(both)[1:3]] == [
        "avg(x) as mean over the last 5 events by k", "avg(x) as mean over each 5 events by k",
    ]  # fmt: skip
    stream = READINGS.window(count(5, 2), keys="k").aggregate(mean="avg(x)", name="moving").sink("out")
    assert describe(stream)[1]["label"] == "avg(x) as mean over the last 5 events, at each 2 by k"


def test_what_follows_and_what_comes_before() -> None:
    """Its results are rows, for windows and conditions; and windows' results are events of windows by count."""
    rows = READINGS.window(tumble("1s"), keys="k").aggregate(n="count(*)").window(count(3, 1), keys="k")
    flow = rows.aggregate(mean="avg(n)").where("mean > 1").sink("out")
    assert schema.columns(flow.sink.input) == {"k": "int", "mean": "double"}
    READINGS.window(count(3), keys="k").aggregate(n="sum(n)").window(tumble("1s"), keys="k").aggregate(n="max(n)")


REFUSED: list[tuple[Any, str]] = [
    (lambda: count(0), "count window, size: must be a whole number from 1; got 0"),
    (lambda: count(3, 4), r"count window, slide: must be a whole number from 1 to the size, 3; got 4"),
    (lambda: count(3, 0), "slide: must be a whole number from 1 to the size"),
    (lambda: count("3s"), "size: must be a whole number"),
    (lambda: flow_of(3, 1, x="stddev(x)"), r"takes one of count, sum, avg, min, max, last of one column"),
    (lambda: flow_of(3, 1, y="avg(x * 2)"), r"of one column; got 'avg\(x \* 2\)'\n  try: .*select\(x="),
    (lambda: flow_of(3, 1, y="sum(*)"), r"column '\*' does not exist"),
    (lambda: flow_of(3, 1, y="avg(z)"), "column 'z' does not exist"),
    (lambda: flow_of(3, 1, y="max(room)"), "max takes a number, not string"),
    (
        lambda: READINGS.select(k="k", t="split(room, ' ')").window(count(3), keys="k").aggregate(y="last(t)"),
        "last takes a plain column, not array<string>",
    ),
    (lambda: flow_of(3, 1, k="count(*)"), "gives two columns of one name; got 'k'"),
    (lambda: flow_of(3, 1, keys="kei", n="count(*)"), "key 'kei' must be a column of its input"),
    (lambda: flow_of(3, 1, keys="x", n="count(*)"), "key 'x' must be no double and no array"),
    (lambda: flow_of(3, 1, keys=(), n="count(*)"), "needs at least one key"),
    (lambda: READINGS.window(count(3), keys="k").aggregate(), "must compute at least one aggregate"),
    (
        lambda: READINGS.running(keys="k", n="count(*)").window(count(3), keys="k").aggregate(n="sum(n)"),
        "cannot follow a running aggregate",
    ),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_what_it_is_refused_for(make: Any, message: str) -> None:
    """One clear problem each, when the flow is built."""
    assert_refused(message, make)
