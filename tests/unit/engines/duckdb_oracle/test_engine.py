"""The oracle as an engine: it takes Arrow data or names, and says what is missing."""

import duckdb
import pyarrow as pa
import pytest

from streamgauge.core.errors import InputError
from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import source, tumble
from streamgauge.dataflow.lineage import with_lineage
from streamgauge.engines.duckdb_oracle.engine import Oracle
from streamgauge.engines.duckdb_oracle.plugin import OraclePlugin

FLOW = with_lineage(source("a", Schema.from_types(v="int")).where("v > 1").sink("out"))
ROWS = pa.table({"v": pa.array([1, 2], pa.int32()), "event_time": [5, 6], "ingest_time": [7, 8], "event_id": [0, 1]})


@pytest.mark.parametrize("kind", ["table", "reader", "name"])
def test_answers_tables_readers_and_relations(kind: str) -> None:
    """Inputs are Arrow tables, readers (read once), or relations of the connection."""
    with duckdb.connect() as con:
        con.register("stored", ROWS)
        given = {"table": ROWS, "reader": ROWS.to_reader(1), "name": "stored"}[kind]
        assert Oracle().answer(FLOW, {"a": given}, con).fetchall() == [(2, 6, 8, 1)]


def test_columns_that_nothing_reads_may_be_missing() -> None:
    """The input needs only the fields that the flow reads."""
    flow = source("a", Schema.from_types(v="int", unread="string")).select(v="v").sink("out")
    with duckdb.connect() as con:
        assert Oracle().answer(flow, {"a": ROWS}, con).fetchall() == [(1,), (2,)]


def test_missing_stream_is_named() -> None:
    """A stream without data is an input error, with its name."""
    with duckdb.connect() as con, pytest.raises(InputError, match="'a'"):
        Oracle().answer(FLOW, {"b": ROWS}, con)


def test_answer_has_the_columns_of_the_flow() -> None:
    """Names and order are the flow's own; windows are timestamps."""
    flow = source("a", Schema.from_types(v="int")).window(tumble(1), keys="v").aggregate(n="count(*)").sink("out")
    with duckdb.connect() as con:
        found = Oracle().answer(flow, {"a": ROWS}, con).to_arrow_table().schema
    assert found.names == ["v", "window_start", "window_end", "n"]
    assert found.field("window_start").type == pa.timestamp("us")


def test_capabilities_say_that_it_computes_and_does_not_run() -> None:
    """It is the truth, and nothing that could be measured."""
    found = OraclePlugin.capabilities
    assert (found.computes_truth, found.runs_streams) == (True, False)
    assert "WindowJoin" in found.nodes
