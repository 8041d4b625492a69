"""Windows that overlap many times: against plain Python, wherever batches end, and through snapshots."""

import random
from collections import defaultdict
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import hop, source
from streamgauge.dataflow.lineage import with_lineage
from streamgauge.dataflow.nodes import WindowAggregate
from streamgauge.dataflow.operators import sliding_window
from streamgauge.engines.operator_runtime import OperatorRuntime
from streamgauge.engines.spark.lowering.windows import sliding

READINGS = source("readings", Schema.from_types(k="int", room="string", n="int", x="double"))
ALL = {
    "rows": "count(*)",
    "some": "count(n)",
    "total": "sum(n)",
    "least": "min(n)",
    "most": "max(n)",
    "sum_x": "sum(x)",
}
Reading = tuple[int | None, int | None, int]
"""(key, value, time)."""
RESULTS = ("rows", "some", "total", "least", "most", "sum_x", "event_time", "ingest_time")


def node_of(range_us: int, slide_us: int, keys: Any = ("k", "room")) -> WindowAggregate:
    windows = READINGS.window(hop(range_us / 1e6, slide_us / 1e6), keys=keys).aggregate(ALL)
    node = with_lineage(windows.sink("out")).sink.input
    assert isinstance(node, WindowAggregate)
    return node


def table_of(readings: list[Reading]) -> pa.Table:
    keys, values, times = ([row[place] for row in readings] for place in range(3))
    return pa.table({
        "k": pa.array(keys, pa.int32()),
        "room": pa.array([None if key is None else f"r{key % 2}" for key, *_ in readings], pa.string()),
        "n": pa.array(values, pa.int32()), "x": pa.array(values, pa.float64()),
        "event_time": pa.array(times, pa.int64()),
        "ingest_time": pa.array([time + 7 for *_, time in readings], pa.int64()),
        "_time": pa.array(times, pa.int64()),
    })  # fmt: skip


def worked(node: WindowAggregate, readings: list[Reading], cuts: list[int]) -> list[dict[str, Any]]:
    """The results of a process that is restored for each batch, one up to each cut."""
    process = sliding(node)
    assert process is not None
    results, state, low = [], None, -(10**9)
    for cut in cuts:
        instance = OperatorRuntime(process)
        if state is not None:
            instance.restore(state)
        rows = table_of([reading for reading in readings if low <= reading[2] < cut])
        results += pa.concat_tables(list(instance.advance([rows], cut))).to_pylist()
        state, low = instance.snapshot(), cut
    return results


def expected(readings: list[Reading], range_us: int, slide_us: int, until: int) -> dict[Any, tuple[Any, ...]]:
    windows = defaultdict(list)
    for key, value, time in readings:
        start = time // slide_us * slide_us
        while start > time - range_us:
            if start + range_us <= until:
                windows[key, start].append((value, time))
            start -= slide_us
    return {key: _values(rows) for key, rows in windows.items()}


def _values(rows: list[tuple[int | None, int]]) -> tuple[Any, ...]:
    values, latest = [value for value, _ in rows if value is not None], max(time for _, time in rows)
    least, most, total = (function(values) if values else None for function in (min, max, sum))
    return len(rows), len(values), total, least, most, total, latest, latest + 7


def check(range_us: int, slide_us: int, readings: list[Reading], cuts: list[int]) -> None:
    rows = worked(node_of(range_us, slide_us), readings, cuts)
    starts = [round(row["window_start"].timestamp() * 1e6) for row in rows]
    results = {(row["k"], start): tuple(row[name] for name in RESULTS) for row, start in zip(rows, starts, strict=True)}
    assert len(results) == len(rows)
    assert results == expected(readings, range_us, slide_us, cuts[-1])
    assert all(row["_time"] == start + range_us - 1 for row, start in zip(rows, starts, strict=True))


VALUES = st.one_of(st.none(), st.integers(-1000, 1000))
READING = st.tuples(st.one_of(st.none(), st.integers(0, 3)), VALUES, st.integers(0, 400))


@given(
    st.lists(READING, max_size=40),
    st.sampled_from([(60, 1), (60, 7), (40, 40), (100, 30), (7, 3)]),
    st.lists(st.integers(0, 600), max_size=6),
)
def test_every_window_once(readings: list[Reading], window: tuple[int, int], cuts: list[int]) -> None:
    """Whatever the batches; null keys are a key, null values are left out, and open windows wait."""
    check(*window, readings, sorted({*cuts, 450}))


def test_results_in_pieces_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many windows that end at once are computed a few at a time."""
    drawn = random.Random(1)
    readings = [(drawn.randrange(5), drawn.randrange(100), drawn.randrange(3000)) for _ in range(300)]
    monkeypatch.setattr(sliding_window, "RESULTS_MAX", 64)
    check(500, 1, readings, [4000])


def test_nothing_is_kept_of_windows_that_ended() -> None:
    """The state shrinks again."""
    process = sliding(node_of(60, 1))
    assert process is not None
    instance = OperatorRuntime(process)
    list(instance.advance([table_of([(n % 3, n, n) for n in range(200)])], 100))
    full = len(instance.snapshot())
    list(instance.advance([table_of([])], 1000))
    assert len(instance.snapshot()) < full / 2


@pytest.mark.parametrize("aggregate", ["avg(n)", "sum(n * 2)", "sum(n) + 1", "max(room)"])
def test_other_aggregates_are_not_taken(aggregate: str) -> None:
    """They have no partial value, or are not of a single column."""
    node = READINGS.window(hop(60, 1), keys="k").aggregate(found=aggregate).node
    assert isinstance(node, WindowAggregate)
    assert sliding(node) is None
