"""Results that the verification compares per second on one core, against one DuckDB join of the same two relations.

Both sides are rows of the identity workload with lineage, ready in memory. The received rows are in another order and
all right, as nearly all results of a sustained trial are. `bench.loadgen.generation` measures the regeneration of the
input; `bench.studies.whole_run` measures a whole verification against its run. Baseline: a hash join by event id that
counts equal rows, but finds no duplicates, extra rows or late rows. Run alone:
`python -m bench.studies.verification`.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import duckdb
import numpy as np
import pyarrow as pa

from bench.support.row import Row, row
from streamgauge.core.lineage_columns import EMISSION_TIME, EVENT_ID, EVENT_TIME, INGEST_TIME
from streamgauge.core.units import FAR_FUTURE_US
from streamgauge.diff.compare import compare

REPEATS = 5
ROWS = 4_000_000
FIELDS = ("user_id", "gem_pack_id", "price")
COLUMNS = (*FIELDS, EVENT_TIME, INGEST_TIME, EVENT_ID)
SAME = " AND ".join(f"e.{name} IS NOT DISTINCT FROM r.{name}" for name in COLUMNS if name != EVENT_ID)


def sides(rows: int) -> tuple[pa.Table, pa.Table]:
    """(expected, received): the same rows, received in shuffled blocks a second after their events."""
    random = np.random.default_rng(1)
    times = np.arange(rows, dtype=np.int64)
    fields = {name: random.integers(0, 1000, rows, dtype=np.int32) for name in FIELDS}
    expected = pa.table(fields | {EVENT_TIME: times, INGEST_TIME: times + 100_000, EVENT_ID: times})
    received = pa.concat_tables([expected.slice(rows // 3), expected.slice(0, rows // 3)])
    return expected, received.append_column(EMISSION_TIME, pa.array(received[EVENT_TIME].to_numpy() + 1_000_000))


def compared(connection: duckdb.DuckDBPyConnection, rows: int) -> None:
    found = compare(connection, "expected", "received", (EVENT_ID,), COLUMNS, deadline_us=FAR_FUTURE_US)
    assert found.matched == rows


def joined(connection: duckdb.DuckDBPyConnection, rows: int) -> None:
    query = f"SELECT count(*) FROM expected AS e JOIN received AS r USING ({EVENT_ID}) WHERE {SAME}"
    assert connection.execute(query).fetchall() == [(rows,)]


def rate_per_s(work: Callable[[duckdb.DuckDBPyConnection, int], None], connection: duckdb.DuckDBPyConnection) -> float:
    begin = time.perf_counter()
    work(connection, ROWS)
    return ROWS / (time.perf_counter() - begin)


def main() -> list[Row]:
    """Measures both in turn, after one warm-up repeat."""
    expected, received = sides(ROWS)
    ours, theirs = [], []
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("expected", expected)
        connection.register("received", received)
        for repeat in range(REPEATS + 1):
            pair = rate_per_s(compared, connection), rate_per_s(joined, connection)
            if repeat:
                ours.append(pair[0])
                theirs.append(pair[1])
    return [
        row("verification: compare rows with lineage", ours, "results/s"),
        row("verification: one join in DuckDB (baseline)", theirs, "results/s"),
        row("verification: compare / one join", [a / b for a, b in zip(ours, theirs, strict=True)], "times"),
    ]


if __name__ == "__main__":
    for line in main():
        print(f"{line['what']:52} {line['value']:12.4g} {line['unit']:9} ±{line['spread']:.1%}")
