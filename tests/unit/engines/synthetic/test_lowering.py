"""The known engine's flows against the reference."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.schema import EVENT_TIME, WINDOW_END, Schema
from streamgauge.dataflow.lineage import with_lineage
from streamgauge.dataflow.nodes import Explode, Flow, Node, Select, Sink, Source, Where, Window, WindowAggregate
from streamgauge.engines.duckdb_oracle.lowering import sql
from streamgauge.engines.synthetic.lowering import build
from tests.unit.helpers_duckdb import duckdb_session

SECOND = 1_000_000
END = 40 * SECOND
SOURCE = Source("purchases", Schema.from_types(pack="int", price="int"))


def _events(count: int, seed: int) -> pa.Table:
    chance = np.random.default_rng(seed)
    times = np.sort(chance.integers(10 * SECOND, 30 * SECOND, count))
    return pa.table({
        "pack": pa.array(chance.integers(0, 4, count), pa.int32()),
        "price": pa.array(chance.integers(1, 100, count), pa.int32()),
        "event_time": pa.array(times, pa.int64()),
        "ingest_time": pa.array(times + chance.integers(0, SECOND, count), pa.int64()),
        "event_id": pa.array(np.arange(count), pa.int64()),
    })  # fmt: skip


def _by_cuts(flow: Flow, events: pa.Table, cuts: list[int]) -> list[pa.Table]:
    """The results after each cut."""
    operator, before = build(flow), 0
    given = []
    for cut_us in [*sorted(cuts), END]:
        times = events.column("event_time").to_numpy()
        given.append(operator.results(events.filter(pa.array((times >= before) & (times < cut_us))), cut_us))
        before = cut_us
    return given


def _rows(table: pa.Table) -> list[tuple[object, ...]]:
    """Rows in order; timestamps as microseconds, because DuckDB's have no zone."""
    whole = pa.schema([(f.name, pa.int64() if pa.types.is_timestamp(f.type) else f.type) for f in table.schema])
    return sorted(tuple(row.values()) for row in table.cast(whole).to_pylist())


def _reference(flow: Flow, events: pa.Table) -> pa.Table:
    with duckdb_session() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("events", events)
        return connection.sql(sql(flow, {"purchases": "events"})).to_arrow_table()


AGGREGATES = (("revenue", "sum(price)"), ("n", "count(*)"), ("dear", "max(price)"), ("cheap", "min(price)"))


@given(
    st.integers(0, 10_000),
    st.integers(1, 300),
    st.lists(st.integers(10 * SECOND, 35 * SECOND), max_size=5),
    st.sampled_from([(2, 1), (3, 3), (5, 2)]),
)
def test_windows_are_the_references_wherever_the_cuts_lie(
    seed: int, count: int, cuts: list[int], window_s: tuple[int, int]
) -> None:
    """Sums, counts, maxima, minima and both lineage times equal DuckDB's, however the input was cut."""
    window = Window(window_s[0] * SECOND, window_s[1] * SECOND)
    filtered = Where(SOURCE, "price > 20 AND NOT price >= 90")
    flow = with_lineage(Flow((Sink(WindowAggregate(filtered, window, ("pack",), AGGREGATES), "out", "append"),)))
    events = _events(count, seed)
    assert _rows(pa.concat_tables(_by_cuts(flow, events, cuts))) == _rows(_reference(flow, events))


def test_a_window_is_emitted_once_its_end_is_passed_and_not_before() -> None:
    """No result of a cut has a window that ends after it, and each comes with the first cut that passed its end."""
    flow = Flow((Sink(WindowAggregate(SOURCE, Window(2 * SECOND, SECOND), ("pack",), AGGREGATES), "out", "append"),))
    cuts = [12 * SECOND, 15 * SECOND, 22 * SECOND]
    before = 0
    for cut_us, table in zip([*cuts, END], _by_cuts(with_lineage(flow), _events(500, 1), cuts), strict=True):
        ends = table.column(WINDOW_END).cast(pa.int64()).to_numpy()
        assert len(ends)
        assert ends.max() <= cut_us
        assert ends.min() > before
        before = cut_us


def test_rows_pass_through_unchanged() -> None:
    """Without a condition every row comes back, with its lineage."""
    flow = with_lineage(Flow((Sink(SOURCE, "out", "append"),)))
    events = _events(100, 2)
    assert _rows(pa.concat_tables(_by_cuts(flow, events, [20 * SECOND]))) == _rows(events)


@pytest.mark.parametrize("predicate", ["price > 90", "price <= 5 OR pack = 2", "NOT (pack != 1)", "price >= pack"])
def test_conditions_are_the_references(predicate: str) -> None:
    """A condition keeps the rows that DuckDB keeps."""
    flow = with_lineage(Flow((Sink(Where(SOURCE, predicate), "out", "append"),)))
    events = _events(400, 3)
    expected = _rows(_reference(flow, events))
    assert 0 < len(expected) < 400
    assert _rows(pa.concat_tables(_by_cuts(flow, events, []))) == expected


LEVELS = WindowAggregate(
    Select(WindowAggregate(SOURCE, Window(SECOND, SECOND), ("pack",), AGGREGATES), (("of", "pack % 2"), ("n", "n"))),
    Window(SECOND, SECOND), ("of",), (("n", "sum(n)"),),
)  # fmt: skip


@pytest.mark.parametrize(
    "node",
    [
        Select(SOURCE, (("pack", "pack"), ("more", "price + 1"))),
        Where(SOURCE, "price + 1 > 40"),
        Explode(SOURCE, "each", "array(1, price)"),
        WindowAggregate(SOURCE, Window(2 * SECOND, SECOND), ("pack",), (("mean", "avg(price)"),)),
        Where(WindowAggregate(SOURCE, Window(SECOND, SECOND), ("pack",), AGGREGATES), "n > 1"),
        LEVELS,
    ],
)
def test_other_flows_are_the_references_wherever_the_cuts_lie(node: Node) -> None:
    """Windows of windows too. No result comes before its time."""
    flow, events = with_lineage(Flow((Sink(node, "out", "append"),))), _events(300, 4)
    cuts = [12 * SECOND, 12 * SECOND + 1, 15 * SECOND + 400_000, 22 * SECOND]
    given = _by_cuts(flow, events, cuts)
    assert _rows(pa.concat_tables(given)) == _rows(_reference(flow, events))
    for cut_us, table in zip(cuts, given, strict=False):
        assert all(time < cut_us for time in table.column(EVENT_TIME).to_pylist())
