"""The oracle as an engine: it takes Arrow data."""

from typing import Any

import duckdb
import pyarrow as pa
import pytest

from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import source, tumble
from streamgauge.dataflow.lineage import with_lineage
from streamgauge.engines.duckdb_oracle.engine import Oracle

FLOW = with_lineage(source("a", Schema.from_types(v="int")).where("v > 1").sink("out"))
ROWS = pa.table({"v": pa.array([1, 2], pa.int32()), "event_time": [5, 6], "ingest_time": [7, 8], "event_id": [0, 1]})


@pytest.mark.parametrize("given", [ROWS, ROWS.to_reader(1)], ids=["table", "reader"])
def test_answers_tables_and_readers(given: Any) -> None:
    """Inputs are Arrow tables, or readers (read once)."""
    with duckdb.connect() as con:
        assert Oracle().answer(FLOW, {"a": given}, con).fetchall() == [(2, 6, 8, 1)]


def test_columns_that_nothing_reads_may_be_missing() -> None:
    """The input needs only the fields that the flow reads."""
    flow = source("a", Schema.from_types(v="int", unread="string")).select(v="v").sink("out")
    with duckdb.connect() as con:
        assert Oracle().answer(flow, {"a": ROWS}, con).fetchall() == [(1,), (2,)]


def test_answer_has_the_columns_of_the_flow() -> None:
    """Names and order are the flow's own; windows are timestamps."""
    flow = source("a", Schema.from_types(v="int")).window(tumble(1), keys="v").aggregate(n="count(*)").sink("out")
    with duckdb.connect() as con:
        found = Oracle().answer(flow, {"a": ROWS}, con).to_arrow_table().schema
    assert found.names == ["v", "window_start", "window_end", "n"]
    assert found.field("window_start").type == pa.timestamp("us")
