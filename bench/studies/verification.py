"""Results that the verification compares, and events whose running counts it computes, per second on one core.

Comparison: both sides are rows of the identity workload with lineage, ready in memory. The received rows are in another
order and all right, as nearly all results of a sustained trial are. Baseline: a hash join by event id that counts equal
rows, but finds no duplicates, extra rows or late rows.

Running counts: those of word_count after each second, from lines in memory. Baseline: each word is joined with the next
second at which its count is due, which needs all words in a table.

`bench.loadgen.generation` measures the regeneration of the input; `bench.studies.whole_run` measures a whole
verification against its run. Run alone: `python -m bench.studies.verification`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from bench.support.row import Row, row
from streamgauge.core.clock import US
from streamgauge.core.schema import EMISSION_TIME, EVENT_ID, EVENT_TIME, INGEST_TIME
from streamgauge.core.units import FAR_FUTURE_US
from streamgauge.dataflow.lineage import with_lineage
from streamgauge.dataflow.nodes import Flow, RunningAggregate
from streamgauge.diff.compare import compare
from streamgauge.engines.duckdb_oracle.lowering import (
    SPAN,
    TIME,
    at_points,
    by_spans,
    lower,
    retained_name,
    span_number,
)
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.rate_profile import parse_profile
from streamgauge.workloads.registry import get

REPEATS = 5
ROWS = 4_000_000
FIELDS = ("user_id", "gem_pack_id", "price")
COLUMNS = (*FIELDS, EVENT_TIME, INGEST_TIME, EVENT_ID)
SECONDS, LINES_PER_S = 10, 50_000
CUTS = [second * US for second in range(1, SECONDS + 1)]
Work = Callable[[duckdb.DuckDBPyConnection], Any]
SAME = " AND ".join(f"e.{name} IS NOT DISTINCT FROM r.{name}" for name in COLUMNS if name != EVENT_ID)


def sides(rows: int) -> tuple[pa.Table, pa.Table]:
    """(expected, received): the same rows, received in shuffled blocks a second after their events."""
    random = np.random.default_rng(1)
    times = np.arange(rows, dtype=np.int64)
    fields = {name: random.integers(0, 1000, rows, dtype=np.int32) for name in FIELDS}
    expected = pa.table(fields | {EVENT_TIME: times, INGEST_TIME: times + 100_000, EVENT_ID: times})
    received = pa.concat_tables([expected.slice(rows // 3), expected.slice(0, rows // 3)])
    return expected, received.append_column(EMISSION_TIME, pa.array(received[EVENT_TIME].to_numpy() + 1_000_000))


def compared(connection: duckdb.DuckDBPyConnection) -> None:
    found = compare(connection, "expected", "received", (EVENT_ID,), COLUMNS, deadline_us=FAR_FUTURE_US)
    assert found.matched == ROWS


def joined(connection: duckdb.DuckDBPyConnection) -> None:
    query = f"SELECT count(*) FROM expected AS e JOIN received AS r USING ({EVENT_ID}) WHERE {SAME}"
    assert connection.execute(query).fetchall() == [(ROWS,)]


def lines() -> tuple[Flow, pa.Table]:
    """word_count with lineage, and its input."""
    workload = get("word_count")
    job = workload.build(workload.parameters(), LINES_PER_S)
    plan = Plan(job.streams, parse_profile("constant", LINES_PER_S, SECONDS), 0, SECONDS, 1, 1)
    events = plan.batch(0, 0, 0, SECONDS * LINES_PER_S, ["text", EVENT_TIME])
    return with_lineage(job.flow, ingest_time=False), pa.Table.from_batches([events])


def counted(connection: duckdb.DuckDBPyConnection, flow: Flow) -> set[tuple[Any, ...]]:
    values = by_spans(flow, {"sentences": "lines"}, span_number(CUTS))
    return set(connection.execute(f"SELECT * EXCLUDE ({SPAN}) FROM ({values})").fetchall())


def counted_by_joins(connection: duckdb.DuckDBPyConnection, flow: Flow) -> set[tuple[Any, ...]]:
    last = flow.sink.input
    assert isinstance(last, RunningAggregate)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE words AS {lower(last.input, {'sentences': 'lines'})}")
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE due AS SELECT word, max({TIME}) AS {EVENT_TIME}"
        f" FROM words ASOF JOIN (SELECT unnest({CUTS}) AS cut) ON {TIME} < cut GROUP BY word, cut"
    )
    return set(connection.execute(at_points(flow, {retained_name(last.input): "words"}, "due")).fetchall())


def rate_per_s(work: Work, connection: duckdb.DuckDBPyConnection, of: int) -> float:
    begin = time.perf_counter()
    work(connection)
    return of / (time.perf_counter() - begin)


def pairs(connection: duckdb.DuckDBPyConnection, ours: Work, theirs: Work, of: int) -> list[tuple[float, float]]:
    """Rates of both in turn, after one warm-up repeat."""
    return [(rate_per_s(ours, connection, of), rate_per_s(theirs, connection, of)) for _ in range(REPEATS + 1)][1:]


def main() -> list[Row]:
    """Measures each pair in turn."""
    expected, received = sides(ROWS)
    flow, events = lines()
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("SET asof_loop_join_threshold = 0")
        connection.register("expected", expected)
        connection.register("received", received)
        connection.register("lines", events)
        assert counted(connection, flow) == counted_by_joins(connection, flow)
        compares = pairs(connection, compared, joined, ROWS)
        counts = pairs(connection, partial(counted, flow=flow), partial(counted_by_joins, flow=flow), events.num_rows)
    return [
        row("verification: compare rows with lineage", [ours for ours, _ in compares], "results/s"),
        row("verification: one join in DuckDB (baseline)", [theirs for _, theirs in compares], "results/s"),
        row("verification: compare / one join", [ours / theirs for ours, theirs in compares], "times"),
        row("verification: running counts of word_count", [ours for ours, _ in counts], "events/s"),
        row("verification: running counts by joins (baseline)", [theirs for _, theirs in counts], "events/s"),
        row("verification: running counts / by joins", [ours / theirs for ours, theirs in counts], "times", 2.0, 4.0),
    ]


if __name__ == "__main__":
    for line in main():
        print(f"{line['what']:52} {line['value']:12.4g} {line['unit']:9} ±{line['spread']:.1%}")
