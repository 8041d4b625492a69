"""Updates over several partitions or streams, of an engine that does not say what it had read of each.

No prefix of the input belongs to an update then. Whatever was read first, three things hold: the counts of a key only
rise, no count is above that of the whole input, and the last value of each key is that of the whole input. Duplicates
are found if a flow counts all rows, because then no two updates of a key are equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from streamgauge.core.schema import EVENT_TIME, quote, quoted
from streamgauge.dataflow import schema
from streamgauge.dataflow.nodes import Flow, RunningAggregate
from streamgauge.diff import compare as answers
from streamgauge.engines.duckdb_oracle.lowering import SPAN, by_spans
from streamgauge.verification.sink_comparison import Comparison, DiffSpec
from streamgauge.verification.spool import ReceivedResults

ARRIVAL = "__arrival"
_COUNT, _COUNT_ALL = re.compile(r"count\([^()]*\)"), "count(*)"


def compare_rising(
    flow: Flow, relations: Mapping[str, str], received: ReceivedResults, empty: pa.Table, compared: Comparison,
    complete: bool,
) -> None:  # fmt: skip
    """Compares the updates of a flow with one sink, with lineage.

    `empty`: results without rows. `complete`: whether the engine owes all of the input. If the trial ended early, only
    counts are checked.
    """
    last, connection = flow.sink.input, compared.connection
    assert isinstance(last, RunningAggregate)
    columns, keys = tuple(schema.columns(last)), quoted(last.keys)
    values = by_spans(flow, relations, "0")
    connection.execute(f"CREATE TABLE expected AS SELECT * EXCLUDE ({SPAN}) FROM ({values})")
    schema_ = empty.schema if received.empty else received.schema.remove_metadata()
    arrivals = schema_.append(pa.field(ARRIVAL, pa.int64()))
    connection.register("arrived", pa.RecordBatchReader.from_batches(arrivals, _numbered(received)))
    connection.execute("CREATE TABLE updates AS SELECT * FROM arrived")
    by_key = f"PARTITION BY {keys} ORDER BY {ARRIVAL}"
    if complete:
        connection.execute(
            f"CREATE VIEW last_values AS SELECT * EXCLUDE ({ARRIVAL}) FROM updates"
            f" QUALIFY row_number() OVER ({by_key} DESC) = 1"
        )
        compared.add("expected", "last_values", DiffSpec(last.keys, columns, "true", due=None))
    compared.counts += _misplaced(last, connection, by_key, columns, has_last=not complete)


def _misplaced(
    last: RunningAggregate, connection: Any, by_key: str, columns: Sequence[str], has_last: bool
) -> answers.Counts:
    """The updates with a count that falls or is too great, and those that came twice.

    `has_last`: whether the last update of each key is judged here, and not by its value.
    """
    texts = {name: text.replace(" ", "").lower() for name, text in last.aggregates}
    counts = [quote(name) for name, text in texts.items() if _COUNT.fullmatch(text)]
    before = f"{by_key} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
    falls = [f"coalesce({name} < max({name}) OVER ({before}), false)" for name in (*counts, EVENT_TIME)]
    again = f"row_number() OVER (PARTITION BY {quoted(columns)} ORDER BY {ARRIVAL}) > 1"
    placed = (
        f"SELECT *, {again if _COUNT_ALL in texts.values() else 'false'} AS __again,"
        f" row_number() OVER ({by_key} DESC) = 1 AS __last, {' OR '.join(falls)} AS __falls FROM updates"
    )
    unknown = f"expected.{EVENT_TIME} IS NULL"
    above = [unknown, *(f"coalesce(placed.{name} > expected.{name}, false)" for name in counts)]
    connection.execute(
        f"CREATE VIEW judged AS SELECT placed.*, {' OR '.join(above)} AS __above FROM ({placed}) AS placed"
        f" LEFT JOIN expected ON {_same('placed', 'expected', last.keys)}"
    )
    wrong = f"NOT __again AND (__falls OR __above) AND {'true' if has_last else 'NOT __last'}"
    ((number, duplicates),) = connection.execute(
        f"SELECT count(*) FILTER ({wrong}), count(*) FILTER (__again) FROM judged"
    ).fetchall()
    chosen = f"SELECT {quoted(columns)} FROM judged WHERE {wrong} LIMIT {answers.EXAMPLES_MAX}"
    rows = [dict(zip(columns, map(str, row), strict=True)) for row in connection.execute(chosen).fetchall()]
    examples = tuple({"fault": "wrong", "expected": [], "received": [row]} for row in rows)
    return answers.Counts(wrong=number, duplicate=duplicates, examples=examples)


def _same(one: str, other: str, names: Sequence[str]) -> str:
    return " AND ".join(f"{one}.{quote(name)} IS NOT DISTINCT FROM {other}.{quote(name)}" for name in names)


def _numbered(received: ReceivedResults) -> Iterator[pa.RecordBatch]:
    """All results with their number in the order of arrival."""
    first = 0
    for batch in received.batches():
        numbers = np.arange(first, first + batch.num_rows)
        yield batch.replace_schema_metadata(None).append_column(ARRIVAL, pa.array(numbers))
        first += batch.num_rows
