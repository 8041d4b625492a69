"""Recorded data: rows in order through all partitions, over and over; files of every kind; what cannot be replayed."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.errors import DriverError, InputError
from streamgauge.load.fields import Integer, Key, StreamSpec, Text
from streamgauge.load.file_rows import rows
from streamgauge.load.fitted import Fitted
from streamgauge.load.plan import Plan
from streamgauge.load.rates import parse_profile
from streamgauge.load.recorded import recorded

PURCHASES = StreamSpec("purchases", (Key("user_id", 100), Integer("price", 1, 100)))
LINES = StreamSpec("lines", (Text("line", 5),))
ROWS = [{"price": n + 1, "user_id": 10 * n, "shop": f"s{n}"} for n in range(7)]
CSV = "price,user_id,shop\n" + "".join(f"{row['price']},{row['user_id']},{row['shop']}\n" for row in ROWS)


def plan_of(stream: StreamSpec, partitions: int) -> Plan:
    return Plan((stream,), parse_profile("constant", 100.0, 1.0), 0, 1.0, partitions, 1)


def written(folder: Path, name: str) -> Path:
    """The rows above in a file of that kind."""
    path = folder / name
    match name.removesuffix(".gz").rpartition(".")[2]:
        case "parquet":
            pq.write_table(pa.Table.from_pylist(ROWS), path)
        case "jsonl":
            path.write_bytes(_packed(name, "".join(f"{row}\n".replace("'", '"') for row in ROWS)))
        case "tsv":
            path.write_text(CSV.replace(",", "\t"))
        case _:
            path.write_bytes(_packed(name, CSV))
    return path


def _packed(name: str, text: str) -> bytes:
    return gzip.compress(text.encode()) if name.endswith(".gz") else text.encode()


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.tsv", "a.jsonl", "a.jsonl.gz", "a.parquet", "b.1.csv"])
@pytest.mark.parametrize("partitions", [1, 3])
def test_rows_come_in_order_and_again(tmp_path: Path, name: str, partitions: int) -> None:
    """Event n is row n modulo 7, by columns of the stream's names and types; others are left out."""
    plan = plan_of(recorded(PURCHASES, written(tmp_path, name)), partitions)
    events: dict[int, Any] = {}
    for partition in range(partitions):
        batch = plan.batch(0, partition, 0, 20, ["user_id", "price"])
        assert batch.schema.types == [pa.int32(), pa.int32()]
        events |= {n * partitions + partition: row for n, row in enumerate(batch.to_pylist())}
    assert events == {n: {"user_id": 10 * (n % 7), "price": n % 7 + 1} for n in range(20 * partitions)}


@given(st.integers(0, 50), st.integers(0, 50), st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_a_slice_is_that_part_of_the_whole(first: int, length: int, partitions: int) -> None:
    """Whatever is asked for."""
    whole = plan_of(recorded(PURCHASES, FILE), partitions).batch(0, partitions - 1, 0, 100)
    part = plan_of(recorded(PURCHASES, FILE), partitions).batch(0, partitions - 1, first, first + length)
    assert part == whole.slice(first, length)


FILE = Path()


@pytest.fixture(autouse=True, scope="module")
def _file(tmp_path_factory: pytest.TempPathFactory) -> None:
    global FILE
    FILE = written(tmp_path_factory.mktemp("recorded"), "a.csv")


@pytest.mark.parametrize("name", ["a.txt", "access.log", "lines", "a.txt.gz"])
def test_lines_of_text_are_a_streams_only_column(tmp_path: Path, name: str) -> None:
    """Empty ones are events too."""
    path = tmp_path / name
    path.write_bytes(_packed(name, "one\n\ntwo ä\r\nthree"))
    stream = recorded(LINES, path)
    lines = plan_of(stream, 1).batch(0, 0, 0, 5, ["line"]).column("line").to_pylist()
    assert lines == ["one", "", "two ä", "three", "one"]
    assert stream.fields[0].row_bytes > 4


@pytest.mark.parametrize(("name", "content", "rule", "way_out"), [
    ("gone.csv", None, "must be a file that exists", "data=FILE"),
    ("a.xlsx", "x", "must be one of parquet, csv", "another file"),
    ("a.csv", "price,user\n1,2\n", "must have a column user_id int", "rename user to user_id"),
    ("a.csv", "price,user_id\n", "must hold some rows", "another file"),
    ("a.csv", "price,user_id\n1,2\nmuch,3\n", "values of the right types", "mend price"),
    ("a.csv", "price,user_id\n1,2\n,3\n", "must have a value in each row of price", "without such rows"),
    ("a.txt", "one\n", "must have the columns user_id int, price int", "CSV"),
])  # fmt: skip
def test_what_cannot_be_replayed_is_refused(
    tmp_path: Path, name: str, content: str | None, rule: str, way_out: str
) -> None:
    """With what is wrong, and what would not be."""
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    with pytest.raises(InputError) as refused:
        recorded(PURCHASES, path)
    (problem,) = refused.value.problems
    assert problem.setting == "set data"
    assert rule in problem.rule
    assert way_out in problem.way_out


def test_a_file_that_was_changed_is_read_anew(tmp_path: Path) -> None:
    """Its digest is part of what a stream is."""
    path = tmp_path / "a.csv"
    found = []
    for price in (5, 6):
        path.write_text(f"price,user_id\n{price},1\n")
        found.append(plan_of(recorded(PURCHASES, path), 1).batch(0, 0, 0, 1, ["price"]).column("price")[0].as_py())
    assert found == [5, 6]


def test_a_field_that_may_be_null_takes_rows_without_a_value(tmp_path: Path) -> None:
    """As nulls; the row of a field that may not is named."""
    path = tmp_path / "a.csv"
    path.write_text("price,user_id\n5,1\n,2\n")
    fields = (Fitted("price", "int", (1, None), (1.0, 1.0)), Key("user_id", 100))
    stream = recorded(StreamSpec("purchases", fields), path)
    assert plan_of(stream, 1).batch(0, 0, 0, 2, ["price"]).column("price").to_pylist() == [5, None]
    with pytest.raises(InputError) as refused:
        recorded(PURCHASES, path)
    assert refused.value.problems[0].got == "1 without, the first in row 2"


def test_a_file_that_changes_under_way_fails_where_it_is_loaded(tmp_path: Path) -> None:
    """In a generator, which gets the plan alone, before it offers a row of another file."""
    path = tmp_path / "a.csv"
    path.write_text("price,user_id\n5,1\n")
    plan = plan_of(recorded(PURCHASES, path), 1)
    path.write_text("price,user_id\n66,1\n")
    rows.cache_clear()
    with pytest.raises(DriverError, match="was changed after it was checked"):
        plan.batch(0, 0, 0, 1, ["price"])
