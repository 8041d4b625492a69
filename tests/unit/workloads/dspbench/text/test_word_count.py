"""Word Count: worked by hand, edge rows included, and against plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from streamgauge.dataflow.lineage import with_lineage
from streamgauge.engines.duckdb_oracle.engine import Oracle
from streamgauge.workloads import registry
from tests.unit.helpers_duckdb import duckdb_session

WORKLOAD = registry.get("word_count")


def counts(lines: Sequence[str | None]) -> dict[str, int]:
    """The last count of each word, where the n-th line has event time and id n."""
    numbers = pa.array(range(len(lines)), pa.int64())
    events = pa.table({"text": pa.array(lines, pa.string()), "event_time": numbers, "event_id": numbers})
    flow = with_lineage(WORKLOAD.build(WORKLOAD.read({}), 1000.0).flow, ingest_time=False)
    found: Any = Oracle().answer(flow, {"sentences": events}, duckdb_session()).to_arrow_table()
    rows = found.sort_by([("event_time", "ascending"), ("count", "ascending")]).to_pylist()
    return {row["word"]: row["count"] for row in rows}


def test_worked_by_hand() -> None:
    """Case tells no words apart; an underscore is of a word, a hyphen is not; lines without a word give nothing."""
    lines = ["The cow jumped over the moon", "", None, "  ...!  ", "the_end: the-end THE", "Zoë 42 4_2"]
    assert counts(lines) == {
        "the": 4, "cow": 1, "jumped": 1, "over": 1, "moon": 1, "the_end": 1, "end": 1, "zo": 1, "42": 1, "4_2": 1,
    }  # fmt: skip


def test_letters_of_other_alphabets_are_of_no_word() -> None:
    """Not even those whose lower case is one of ours: engines differ in them (`lower('İ')` has two characters on Spark
    and one in DuckDB), and the sign of kelvin is no k.
    """
    assert counts(["İstanbul'da İYİ", "273 \u212aelvin", "STRASSE Straße"]) == {
        "stanbul": 1, "da": 1, "y": 1, "273": 1, "elvin": 1, "strasse": 1, "stra": 1, "e": 1,
    }  # fmt: skip
