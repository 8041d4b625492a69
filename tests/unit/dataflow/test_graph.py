"""Windows that give their values so far: what becomes of a flow, and that last values are those of closed windows."""

from typing import Any

import duckdb
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.schema import EVENT_TIME, Schema
from streamgauge.dataflow.builder import hop, source, tumble
from streamgauge.dataflow.describe import describe
from streamgauge.dataflow.graph import with_early_firing
from streamgauge.dataflow.lineage import identity, with_lineage
from streamgauge.dataflow.nodes import Flow, RunningAggregate, Window
from streamgauge.engines.duckdb_oracle.lowering import by_spans, span_number, sql

BOUGHT = source("purchases", Schema.from_types(pack="int", price="int"))
ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9), st.integers(-20, 60)), max_size=40)


def revenue(window: Window) -> Flow:
    return BOUGHT.window(window, keys="pack").aggregate(revenue="sum(price)", n="count(*)").sink("revenue")


def answers(flow: Flow, rows: list[tuple[int, int, int]]) -> list[tuple[Any, ...]]:
    values = ", ".join(str(row) for row in rows) or "(0, 0, 0)"
    purchases = f"(SELECT * FROM (VALUES {values}) AS t(pack, price, {EVENT_TIME}){'' if rows else ' WHERE false'})"
    columns = ", ".join(
        f"epoch_us({n})" if n.startswith("window") else n for n in ("pack", "window_start", "window_end")
    )
    text = sql(with_lineage(flow, ingest_time=False), {"purchases": purchases})
    return duckdb.sql(f"SELECT {columns}, revenue, n, {EVENT_TIME} FROM ({text})").fetchall()


def test_what_becomes_of_a_flow() -> None:
    """A running aggregate by keys and window, whose results are updates; what has no window at its end stays."""
    closed = revenue(hop(8, 4))
    flow = with_early_firing(closed)
    assert closed.sinks[0].mode == "append"  # the flow itself is not changed
    (sink,) = flow.sinks
    assert isinstance(sink.input, RunningAggregate)
    keys = ("pack", "window_start", "window_end")
    assert (sink.mode, sink.input.keys, sink.input.name) == ("update", keys, "aggregate")
    assert identity(flow) == ("pack", "window_start", "window_end", "event_time")
    assert "each window of" in str(describe(flow))
    counts = BOUGHT.running(keys="pack", n="count(*)").sink("n")
    followed = BOUGHT.window(hop(8, 4), keys="pack").aggregate(n="count(*)").where("n > 1").sink("n")
    for unchanged in (counts, followed):
        assert with_early_firing(unchanged) == unchanged


def test_values_so_far_by_hand() -> None:
    """Of windows of 10 us every 5: an event of time 7 is in two, one of time 3 in one from -5 and one from 0."""
    actual = sorted(answers(with_early_firing(revenue(Window(10, 5))), [(1, 2, 3), (1, 5, 7), (2, 1, 7)]))
    assert actual == [
        (1, -5, 5, 2, 1, 3),
        (1, 0, 10, 2, 1, 3), (1, 0, 10, 7, 2, 7),
        (1, 5, 15, 5, 1, 7),
        (2, 0, 10, 1, 1, 7),
        (2, 5, 15, 1, 1, 7),
    ]  # fmt: skip


@given(ROWS, st.sampled_from([(10, 10), (10, 5), (9, 4)]))
def test_the_last_value_of_a_window_is_its_result(rows: list[tuple[int, int, int]], window: tuple[int, int]) -> None:
    """Whatever came when."""
    of = revenue(Window(*window))
    last: dict[tuple[int, ...], tuple[Any, ...]] = {}
    for row in sorted(answers(with_early_firing(of), rows), key=lambda row: row[-1]):
        last[row[:3]] = row
    assert sorted(last.values()) == sorted(answers(of, rows))


def test_values_are_due_after_each_span() -> None:
    """By keys and windows, as for any running aggregate."""
    flow = with_lineage(with_early_firing(revenue(tumble(1))), ingest_time=False)
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE purchases AS SELECT i % 2 AS pack, 1 AS price, i * 250000 AS event_time FROM range(8) t(i)"
    )
    values = by_spans(flow, {"purchases": "purchases"}, span_number([600000, 2000000]))
    due = connection.execute(f"SELECT pack, event_time, __span FROM ({values})").fetchall()
    assert sorted(due) == [(0, 500000, 0), (0, 1500000, 1), (1, 250000, 0), (1, 750000, 1), (1, 1750000, 1)]
