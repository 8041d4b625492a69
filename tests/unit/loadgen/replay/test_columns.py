"""Recorded data: rows in order through all partitions, over and over; files of every kind; what cannot be replayed."""

import gzip
import json
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.core.errors import DriverError
from streamgauge.loadgen.datasets.calls import Called, Caller
from streamgauge.loadgen.fields import FieldSpec, Integer, Key, Payload, StreamSpec, Text
from streamgauge.loadgen.fitted import Fitted
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.rate_profile import parse_profile
from streamgauge.loadgen.replay.columns import ReplayedColumn, ReplayRequest, recorded, require_times
from streamgauge.loadgen.replay.files import content
from tests.unit.helpers_refusals import assert_refused, problem_of

PURCHASES = StreamSpec("purchases", (Key("user_id", 100), Integer("price", 1, 100)))
LINES = StreamSpec("lines", (Text("line", 5),))
ROWS = [{"price": n + 1, "user_id": 10 * n, "shop": f"s{n}"} for n in range(7)]
CSV = "price,user_id,shop\n" + "".join(f"{row['price']},{row['user_id']},{row['shop']}\n" for row in ROWS)


def on(stream: StreamSpec, path: Path, **options: Any) -> StreamSpec:
    """One stream with the rows of a file."""
    (replayed,) = recorded(ReplayRequest(stream, path, **options))
    return replayed


def values(stream: StreamSpec, name: str, events: int, partition: int = 0, partitions: int = 1) -> Any:
    """A column of the first events of a partition."""
    return plan_of(stream, partitions).batch(0, partition, 0, events, [name]).column(name).to_pylist()


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
    plan = plan_of(on(PURCHASES, written(tmp_path, name)), partitions)
    events: dict[int, Any] = {}
    for partition in range(partitions):
        batch = plan.batch(0, partition, 0, 20, ["user_id", "price"])
        assert batch.schema.types == [pa.int32(), pa.int32()]
        events |= {n * partitions + partition: row for n, row in enumerate(batch.to_pylist())}
    assert events == {n: {"user_id": 10 * (n % 7), "price": n % 7 + 1} for n in range(20 * partitions)}


@pytest.mark.parametrize("name", ["a.txt", "access.log", "lines", "a.txt.gz"])
def test_lines_of_text_are_a_streams_only_column(tmp_path: Path, name: str) -> None:
    """Empty ones are events too."""
    path = tmp_path / name
    path.write_bytes(_packed(name, "one\n\ntwo ä\r\nthree"))
    stream = on(LINES, path)
    lines = plan_of(stream, 1).batch(0, 0, 0, 5, ["line"]).column("line").to_pylist()
    assert lines == ["one", "", "two ä", "three", "one"]
    assert stream.fields[0].row_bytes > 4


@pytest.mark.parametrize(("name", "content", "rule", "way_out"), [
    ("gone.csv", None, "must be an existing file", "data=FILE"),
    ("a.xlsx", "x", "must be one of parquet, csv", "another file"),
    ("a.csv", "price,user\n1,2\n", "must have a column user_id int", "rename user to user_id"),
    ("a.csv", "price,user_id\n", "must hold some rows", "another file"),
    ("a.csv", "price\n1\n", "must have a column user_id int", "or add user_id with one value, such as 0"),
    ("a.csv", "price,user_id\nmuch,2\nmore,3\n,4\n", "values of the right types: price is int", "correct price"),
    ("a.csv", "price,user_id\n,2\n,3\n", "must have a value in some row of price", "another file"),
    ("a.csv", "price,user_id\n1,\n2,\n", "must have a value in some row of user_id", "another file"),
    ("a.txt", "one\n", "must have the columns user_id int, price int", "CSV"),
    ("", None, "", "name one file of it"),  # a folder
])  # fmt: skip
def test_what_cannot_be_replayed_is_refused(
    tmp_path: Path, name: str, content: str | None, rule: str, way_out: str
) -> None:
    """With what is wrong, and what would not be."""
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    problem = problem_of(on, PURCHASES, path)
    assert problem.setting == "set data"
    assert rule in problem.rule
    assert way_out in problem.way_out


def test_a_file_that_was_changed_is_read_anew(tmp_path: Path) -> None:
    """Its digest is part of what a stream is."""
    path = tmp_path / "a.csv"
    for price in (5, 6):
        path.write_text(f"price,user_id\n{price},1\n")
        assert values(on(PURCHASES, path), "price", 1) == [price]


def test_what_cannot_be_read_is_null(tmp_path: Path) -> None:
    """As is what is not there: half of the prices are texts, which are numbered in keys alone. A stream says of each of
    its columns whether it holds nulls, and no other does.
    """
    path = tmp_path / "a.csv"
    path.write_text("price,user_id\n5,1\n,2\nmuch,3\nmore,4\n")
    stream = on(PURCHASES, path)
    assert values(stream, "price", 5) == [5, None, None, None, 5]
    assert values(stream, "user_id", 4) == [1, 2, 3, 4]
    assert {field.name: field.nullable for field in stream.schema.fields} == {"user_id": False, "price": True}


def test_a_field_that_may_be_null_may_be_so_in_every_row(tmp_path: Path) -> None:
    """Unlike values that are there and cannot be read."""
    path = tmp_path / "a.csv"
    path.write_text("price,user_id\n,1\n")
    stream = StreamSpec("purchases", (Fitted("price", "int", (1, None), (1.0, 1.0)), Key("user_id", 100)))
    assert values(on(stream, path), "price", 2) == [None, None]
    path.write_text("price,user_id\nmuch,1\n")
    assert_refused("none of its values is one", on, stream, path)


def test_what_the_flow_does_not_read_may_be_missing(tmp_path: Path) -> None:
    """Or be anything: it is null in every event. A payload is carried as ever."""
    fields: tuple[FieldSpec, ...] = (*PURCHASES.fields, Integer("shop", 0, 1), Payload("payload", 8))
    stream = on(StreamSpec("purchases", fields), written(tmp_path, "a.csv"), needed=("price",))
    assert values(stream, "price", 3) == [1, 2, 3]
    assert values(stream, "shop", 3) == values(stream, "user_id", 3) == [None] * 3
    assert all(len(payload) == 8 for payload in values(stream, "payload", 3))
    assert [type(field) is ReplayedColumn for field in stream.fields] == [False, True, False, False]


@pytest.mark.parametrize(("cells", "numbers"), [
    (["AAPL", "IBM", "AAPL", "7", "", "IBM"], [0, 1, 0, 2, None, 1]),
    (["15551234567", "7", "15551234567", "8", "9"], [0, 1, 0, 2, 3]),
    (["7", "oops", "3", "3"], [7, None, 3, 3]),
    (["7", "3", "2147483647"], [7, 3, 2**31 - 1]),
    (["7", "3.5", "x", "2"], [0, 1, 2, 3]),
    (["1,5", "7"], [0, 1]),
])  # fmt: skip
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_keys_that_are_no_numbers_are_numbered(
    tmp_path: Path, cells: list[str], numbers: list[int | None], kind: str
) -> None:
    """By their first appearance, where half of them or more are none, or one is too large; a few others are null."""
    path = tmp_path / f"a.{kind}"
    table = pa.table({"user_id": [cell or None for cell in cells], "price": [5] * len(cells)})
    if kind == "parquet":
        pq.write_table(table, path)
    elif kind == "csv":
        path.write_text("user_id,price\n" + "".join(f'"{cell}",5\n' if cell else ",5\n" for cell in cells))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    assert values(on(PURCHASES, path), "user_id", len(cells)) == numbers
    assert plan_of(on(PURCHASES, path), 1).batch(0, 0, 0, 1, ["user_id"]).schema.types == [pa.int32()]


def test_equal_keys_have_equal_numbers_in_all_columns_that_hold_them(tmp_path: Path) -> None:
    """Of one stream and of several, each with a file of its own; a column of other keys counts for itself."""
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text("calling,called,pack\nann,bob,x\nbob,cid,7\n")
    second.write_text("calling,called,pack\ndan,ann,1\nbob,bob,2\n")
    caller = Caller("calling", 10, 1, 0.0)
    fields = (caller, Called("called", caller, 0, 3, 0.0), Key("pack", 5))
    streams = recorded(
        ReplayRequest(StreamSpec("day", fields), first), ReplayRequest(StreamSpec("night", fields), second)
    )
    assert [[values(stream, name, 2) for name in ("calling", "called", "pack")] for stream in streams] == [
        [[0, 1], [1, 2], [0, 1]], [[3, 1], [0, 1], [2, 3]]
    ]  # fmt: skip


@pytest.mark.parametrize(("kind", "cells", "goes_on"), [
    ("int", ["100", "110", "130"], [100, 110, 130, 145, 155, 175, 190]),
    ("bigint", ["30", "0", "20"], [30, 0, 20, 75, 45, 65, 120]),
    ("int", ["5", "", "9"], [5, None, 9, 13, None, 17, 21]),
    ("int", ["5"], [5, 6, 7, 8, 9, 10, 11]),
])  # fmt: skip
@pytest.mark.parametrize("partitions", [1, 2])
def test_the_datas_time_goes_on_from_round_to_round(
    tmp_path: Path, kind: str, cells: list[str], goes_on: list[int | None], partitions: int
) -> None:
    """By the span of the file and one mean step, in all partitions; everything else comes again as it was."""
    path = tmp_path / "a.csv"
    path.write_text("at,price\n" + "".join(f"{cell},5\n" for cell in cells))
    stream = on(StreamSpec("s", (Fitted("at", kind, (1,), (1.0,)), Integer("price", 1, 9))), path, time="at")
    events: dict[int, Any] = {}
    for partition in range(partitions):
        times = values(stream, "at", len(goes_on), partition, partitions)
        events |= {n * partitions + partition: value for n, value in enumerate(times)}
    assert [events[n] for n in range(len(goes_on))] == goes_on
    assert values(stream, "price", 7) == [5] * 7


def test_timestamps_go_on_to_the_microsecond(tmp_path: Path) -> None:
    """A log of an hour, an event a second, is followed by the next hour."""
    path = tmp_path / "a.csv"
    path.write_text("at\n" + "".join(f"2026-01-31 12:{n // 60:02}:{n % 60:02}\n" for n in range(3600)))
    stream = on(StreamSpec("s", (Fitted("at", "timestamp", (1,), (1.0,)),)), path, time="at")
    assert {after - before for before, after in pairwise(values(stream, "at", 7200))} == {timedelta(seconds=1)}


@pytest.mark.parametrize(("time", "rule"), [
    ("when", "must be a field of stream s"),
    ("line", "a time inside of a text is not moved"),
    ("user_id", "whole numbers or timestamps that says a time"),
    ("share", "whole numbers or timestamps that says a time"),
    ("price", "must be a column that the workload reads"),
])  # fmt: skip
def test_what_is_no_time_of_the_data_is_refused(tmp_path: Path, time: str, rule: str) -> None:
    """With what would be one, or nothing."""
    path = tmp_path / "a.csv"
    path.write_text("line,user_id,share,price\na,1,0.5,5\n")
    fields = (Text("line", 3), Key("user_id", 5), Fitted("share", "double", (0.5,), (1.0,)), Integer("price", 1, 9))
    problem = problem_of(on, StreamSpec("s", fields), path, needed=("line", "user_id", "share"), time=time)
    assert problem.setting == "set data.time"
    assert rule in problem.rule


def test_a_time_that_would_leave_its_type_is_refused(tmp_path: Path) -> None:
    """Before anything starts, with the last round that fits."""
    path = tmp_path / "a.csv"
    path.write_text(f"at\n0\n{2**30 - 1}\n")
    stream = on(StreamSpec("s", (Integer("at", 0, 9),)), path, time="at")
    (step,) = {field.step for field in stream.fields if isinstance(field, ReplayedColumn)}
    assert step == 2 * (2**30 - 1)
    require_times(stream, 2)
    assert "for 1 rounds" in str(problem_of(require_times, stream, 3).got)


def test_a_file_that_changes_under_way_fails_where_it_is_loaded(tmp_path: Path) -> None:
    """In a generator, which gets the plan alone, before it offers a row of another file."""
    path = tmp_path / "a.csv"
    path.write_text("price,user_id\n5,1\n")
    plan = plan_of(on(PURCHASES, path), 1)
    path.write_text("price,user_id\n66,1\n")
    content.cache_clear()
    with pytest.raises(DriverError, match="was changed after it was checked"):
        plan.batch(0, 0, 0, 1, ["price"])
