"""Static tables: from data and files, with the types of a flow, and what is refused."""

import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.core.schema import Schema
from streamgauge.dataflow import static_table
from streamgauge.dataflow.builder import table
from tests.unit.helpers_refusals import assert_refused


def test_a_table_is_data_that_can_be_compared_and_sent() -> None:
    """Equal rows make equal tables, which live through a pickle; other rows make another."""
    one, same, other = (table("t", {"k": [1, value]}) for value in (2, 2, 3))
    assert one == same == pickle.loads(pickle.dumps(one))
    assert hash(one) == hash(same) != hash(other)
    assert one.to_arrow().to_pydict() == {"k": [1, 2]}


def test_types_are_those_of_a_flow() -> None:
    """Narrow whole numbers are int; strings of any layout are string."""
    rows = pa.table({"a": pa.array([1], pa.int8()), "b": pa.array(["x"]).dictionary_encode(), "c": [1.5]})
    assert table("t", rows).schema == Schema.from_types(a="int", b="string", c="double")


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.csv.gz"])
def test_files(tmp_path: Path, name: str) -> None:
    """A Parquet or CSV file, and a schema that picks and narrows."""
    path = tmp_path / name
    if name.endswith(".parquet"):
        pq.write_table(pa.table({"k": [1, 2], "unread": [0, 0], "v": ["a", None]}), path)
    else:
        with pa.output_stream(path, compression="gzip" if name.endswith(".gz") else None) as out:
            out.write(b"k,unread,v\n1,0,a\n2,0,\n")
    actual = table("t", path, Schema.from_types(v="string", k="int"))
    assert actual.schema == Schema.from_types(v="string", k="int")
    assert actual.to_arrow().column("k").to_pylist() == [1, 2]
    assert actual.to_arrow().column("v").to_pylist()[0] == "a"


@pytest.mark.parametrize(
    ("rows", "schema", "rule"),
    [
        ("missing.csv", None, "cannot be read"),
        ("rows.json", None, "must be a .parquet, .csv"),
        ({"k": [1]}, Schema.from_types(j="int"), "has no column j"),
        ({"k": ["x"]}, Schema.from_types(k="int"), "does not fit its schema"),
        ({"k": [2**40]}, Schema.from_types(k="int"), "does not fit its schema"),
        ({"k": [[1]]}, None, "column k has no type of a flow"),
    ],
)
def test_what_is_refused(rows: object, schema: Schema | None, rule: str) -> None:
    """One problem, with the table's name."""
    assert_refused(f"table 't': .*{rule}", table, "t", rows, schema)


def test_a_large_table_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every engine holds it in memory."""
    monkeypatch.setattr(static_table, "ROWS_MAX", 1)
    assert_refused("at most 1 rows", table, "t", {"k": [1, 2]})
