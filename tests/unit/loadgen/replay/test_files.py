"""A file's rows: each value as it stands there, in the column's type; anything else is null and counted, with its
place; what is no file of rows is refused.
"""

import gzip
import os
from dataclasses import astuple
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.core.errors import DriverError
from streamgauge.loadgen.replay import files
from streamgauge.loadgen.replay.files import File, Unreadable, content, digest
from streamgauge.loadgen.replay.text import LeftOut
from tests.unit.helpers_refusals import assert_refused, problem_of

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def read(path: Path, **columns: str) -> dict[str, list[Any]]:
    """Every column as plain values."""
    return {name: column.to_pylist() for name, column in content(_file(path, **columns)).columns.items()}


def _file(path: Path, **columns: str) -> File:
    return File(str(path), digest(path), tuple(columns.items()))


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def unreadable(path: Path, name: str, kind: str) -> Unreadable:
    """Of the only column that is read: what none of its values is; as many of them are null."""
    result = content(_file(path, **{name: kind}))
    assert result.columns[name].null_count == result.unreadable[name].count
    return result.unreadable[name]


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_a_text_of_json_is_the_text_alone(tmp_path: Path, name: str) -> None:
    """Whatever else the column holds: a number among texts is a text too, and puts no quotes around the others."""
    objects = ['{"text": "a b"}', '{"text": 5}', '{"text": "say \\"no\\""}', '{"text": ""}', '{"text": null}']
    content = "\n".join(objects) if name.endswith("l") else f"[{', '.join(objects)}]"
    assert read(written(tmp_path, name, content), text="string") == {"text": ["a b", "5", 'say "no"', "", None]}


@pytest.mark.parametrize(("name", "content"), [
    ("a.csv", "n,price\n1,4\n2,3.7\n3,0.5\n"),
    ("a.tsv", "n\tprice\n1\t4\n2\t3.7\n3\t0.5\n"),
    ("a.jsonl", '{"n": 1, "price": 4}\n{"n": 2, "price": 3.7}\n{"n": 3, "price": 0.5}\n'),
])  # fmt: skip
@pytest.mark.parametrize("kind", ["int", "bigint"])
def test_no_fraction_is_rounded(tmp_path: Path, name: str, content: str, kind: str) -> None:
    """It is null, and counted, with the first one and its row; the others stay."""
    path = written(tmp_path, name, content)
    assert unreadable(path, "price", kind) == Unreadable(2, "3.7", 1, 0)
    assert read(path, price=kind) == {"price": [4, None, None]}


@pytest.mark.parametrize(("values", "kind", "got"), [
    (pa.array([4.0, 3.7]), "int", "3.7"),
    (pa.array([4, 2**31]), "int", "2147483648"),
    (pa.array([4, 2**53 + 1]), "double", "9007199254740993"),
    (pa.array([Decimal("4.00"), Decimal("3.70")]), "bigint", "3.70"),
    (pa.array([0, 2]), "boolean", "2"),
    (pa.array(["4", "much"]), "int", "much"),
    (pa.array([0, 1_001], pa.timestamp("ns")), "timestamp", "1970-01-01 00:00:00.000001001"),
])  # fmt: skip
def test_no_value_of_a_typed_column_is_changed(tmp_path: Path, values: pa.Array, kind: str, got: str) -> None:
    """Parquet: what the cast back does not give again is null, and so is nothing else."""
    pq.write_table(pa.table({"x": values}), tmp_path / "a.parquet")
    assert astuple(unreadable(tmp_path / "a.parquet", "x", kind))[:3] == (1, got, 1)


@pytest.mark.parametrize(("text", "kind"), [
    ("much", "int"), ("3000000000", "int"), ("0x10", "int"), ("true", "int"), ("9e99", "bigint"), ("1,5", "double"),
    ("2", "boolean"), ("31/12/2026", "timestamp"), ("2026-01-31 12:00:00.0000001", "timestamp"),
])  # fmt: skip
def test_a_text_that_is_no_value_of_the_type_is_null(tmp_path: Path, text: str, kind: str) -> None:
    """Nor may a part of it be dropped."""
    assert astuple(unreadable(written(tmp_path, "a.csv", f'n;x\n1;"{text}"\n'), "x", kind))[:3] == (1, text, 0)


@pytest.mark.parametrize(("text", "kind", "large"), [
    ("3000000000", "int", 1), ("-3000000000", "int", 1), ("9" * 40, "bigint", 1), ("3000000000", "double", None),
    ("x3000000000", "int", 0), ("3000000000.5", "int", 0),
])  # fmt: skip
def test_whole_numbers_that_are_too_large_differ_from_texts(
    tmp_path: Path, text: str, kind: str, large: int | None
) -> None:
    """What is a key all the same, if its column has keys; a double takes them."""
    path = written(tmp_path, "a.csv", f"n,x\n1,{text}\n2,7\n")
    if large is None:
        assert not content(_file(path, x=kind)).unreadable
    else:
        assert unreadable(path, "x", kind).large == large


def test_every_column_counts_its_own(tmp_path: Path) -> None:
    """A row that is wrong in one column has its values in the others; what is not there is not unreadable."""
    result = content(_file(written(tmp_path, "a.csv", "a,b\n1,x\ny,2\n,3\n"), a="int", b="int"))
    assert {name: column.to_pylist() for name, column in result.columns.items()} == {
        "a": [1, None, None],
        "b": [None, 2, 3],
    }
    assert result.unreadable == {"a": Unreadable(1, "y", 1, 0), "b": Unreadable(1, "x", 0, 0)}
    assert (result.values("a"), result.values("b")) == (2, 3)


@pytest.mark.parametrize("end", ["", ".gz"])
def test_lines_that_are_no_rows_are_left_out(tmp_path: Path, end: str) -> None:
    """Too many columns, too few, or bytes that are no text: counted, in whatever order they come; the others stay."""
    plain = b'a,b\n1,2\n3,4,5\n6\n"x\ny",7\n\xff,8\n9,10\n'
    path = written(tmp_path, f"a.csv{end}", gzip.compress(plain) if end else plain)
    result = content(_file(path, a="string", b="int"))
    assert {name: column.to_pylist() for name, column in result.columns.items()} == {
        "a": ["1", "x\ny", "9"],
        "b": [2, 7, 10],
    }
    assert (result.left_out, result.unreadable) == (LeftOut(3, 1), {})


def test_a_line_that_is_no_json_is_a_row_without_values(tmp_path: Path) -> None:
    """One that was cut off, one of text, one of other JSON: the rows around them stay in their places."""
    path = written(tmp_path, "a.jsonl", '{"a": 1, "b": "x"}\n{"a": 2, "b"\nnone\n[3]\n{"b": "y"}\n{"a": 4')
    assert read(path, a="int", b="string") == {"a": [1, *[None] * 5], "b": ["x", None, None, None, "y", None]}


@pytest.mark.parametrize(("texts", "kind", "values"), [
    (["4", "4.0", "1e3", "-7"], "int", [4, 4, 1000, -7]),
    ([str(2**53 + 1)], "bigint", [2**53 + 1]),
    (["0.1", "3"], "double", [0.1, 3.0]),
    (["true", "false"], "boolean", [True, False]),
    (["a\\x41", "ä"], "binary", [b"a\\x41", "ä".encode()]),
    (["4.0", "#1", "NULL"], "string", ["4.0", "#1", "NULL"]),
    (["2026-01-31 12:00:00", "2026-01-31T14:00:00+02:00", "2026-01-31 13:00:00 Europe/Paris"], "timestamp", [NOON] * 3),
])  # fmt: skip
@pytest.mark.parametrize("quote", ["", '"'])
def test_values_of_a_csv_are_as_they_stand_there(
    tmp_path: Path, texts: list[str], kind: str, values: list[Any], quote: str
) -> None:
    """Quoted or not; a time without a zone is UTC's."""
    content = "n,x\n" + "".join(f"1,{quote}{text}{quote}\n" for text in texts)
    assert read(written(tmp_path, "a.csv", content), x=kind) == {"x": values}


def test_a_time_of_parquet_without_a_zone_is_utcs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the machine's own is; one with a zone is that moment."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    times = {
        "plain": pa.array([NOON.replace(tzinfo=None)]),
        "zoned": pa.array([NOON], pa.timestamp("us", "Asia/Tokyo")),
    }
    pq.write_table(pa.table(times), tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet", plain="timestamp", zoned="timestamp") == {"plain": [NOON], "zoned": [NOON]}


def test_a_quoted_empty_text_is_there(tmp_path: Path) -> None:
    """Only one without quotes is none; of a number both are none."""
    path = written(tmp_path, "a.csv", 'text,n\n"",""\n,1\nx,\n')
    assert read(path, text="string", n="int") == {"text": ["", None, "x"], "n": [None, 1, None]}


def test_rows_keep_the_order_of_the_file(tmp_path: Path) -> None:
    """However many threads read it."""
    numbers = pa.array(range(1_000_000))
    pq.write_table(pa.table({"n": numbers}), tmp_path / "a.parquet", row_group_size=10_000)
    assert content(_file(tmp_path / "a.parquet", n="bigint")).columns["n"].equals(numbers)


@pytest.mark.parametrize("name", ["o'clock.csv", "a[1].csv", "a*.csv", "a?.csv", "a b;.csv"])
def test_a_path_names_one_file(tmp_path: Path, name: str) -> None:
    """Quotes end nothing in it, and it is no pattern of others."""
    for other in ("a1.csv", "a2.csv"):
        written(tmp_path, other, "n\n7\n8\n")
    assert read(written(tmp_path, name, "n\n1\n2\n"), n="int") == {"n": [1, 2]}


def test_lines_end_at_line_feeds_alone(tmp_path: Path) -> None:
    """Other signs that end lines elsewhere are text; an empty line is a row, and nothing comes after the last end."""
    content = "\ufeffone\x0ctwo\u2028three\x85four\r\n\nfive\rsix\n\r\nlast"
    lines = ["one\x0ctwo\u2028three\x85four", "", "five\rsix", "", "last"]
    assert read(written(tmp_path, "a.log", content), line="string") == {"line": lines}
    assert read(written(tmp_path, "b.log", content + "\n"), line="string") == {"line": lines}


@pytest.mark.parametrize("name", ["a.txt", "a"])
def test_lines_that_are_no_text_are_null(tmp_path: Path, name: str) -> None:
    """And only those, wherever they are; an empty line is a text."""
    path = written(tmp_path, name, b"\xef\xbb\xbfone\n\r\ntwo \xff\r\nthr\xc3\xa9e\n")
    assert read(path, line="string") == {"line": ["one", "", None, "thrée"]}
    result = content(_file(path, line="string")).unreadable["line"]
    assert (result.count, result.row) == (1, 2)


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet", "a.txt", "a"])
def test_an_empty_file_is_called_empty(tmp_path: Path, name: str) -> None:
    """And not a file with the wrong columns."""
    problem = problem_of(read, written(tmp_path, name, ""), line="string")
    assert (problem.rule, problem.got) == ("must hold some rows", f"{name}, which is empty")


@pytest.mark.parametrize(("name", "content", "place"), [
    ("a.csv", "a,b\n" + "1\n" * 3, ("a.csv", "3 lines of it can not")),
    ("a.json", '[{"a": 1, "b": 2},\n{"a": 1, "b"\n]', ("a.json", "Malformed JSON")),
    ("a.parquet", "a,b\n1,2\n", ("a.parquet",)),
])  # fmt: skip
def test_a_file_that_cannot_be_read_says_where(tmp_path: Path, name: str, content: str, place: tuple[str, ...]) -> None:
    """In the reader's own words, without its advice on options that are not ours."""
    message = str(problem_of(read, written(tmp_path, name, content), a="int", b="int").got)
    assert all(part in message for part in place)
    assert "ignore_errors" not in message
    assert len(message) <= files.ERROR_TEXT_MAX


def test_all_missing_columns_are_named_at_once(tmp_path: Path) -> None:
    """With their types, and those that may be meant, in whatever case."""
    path = written(tmp_path, "a.csv", "USER_ID,prize,shop\n1,2,3\n")
    problem = problem_of(read, path, user_id="int", price="int", ad="string", shop="int")
    assert problem.rule == "must have the columns user_id int, price int, ad string"
    assert problem.got == "a.csv with USER_ID, prize, shop"
    assert problem.way_out == "rename USER_ID to user_id; rename prize to price; name one of its columns ad"


def test_rows_may_take_so_much_memory_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every generator holds them."""
    file = _file(written(tmp_path, "a.csv", "n\n1\n2\n"), n="int")
    monkeypatch.setattr(files, "BYTES_MAX", content(file).columns["n"].nbytes)
    content.cache_clear()
    monkeypatch.setattr(files, "BYTES_MAX", content(file).columns["n"].nbytes - 1)
    content.cache_clear()
    assert_refused("must fit into", content, file)


@pytest.mark.parametrize("now", ["n\n1\n3\n", "n\n1\nmuch\n", None])
def test_a_file_that_is_not_the_one_that_was_checked_is_our_failure(tmp_path: Path, now: str | None) -> None:
    """Its rows are none of the plan's: nothing that follows says anything of the engine."""
    path = written(tmp_path, "a.csv", "n\n1\n2\n")
    file = _file(path, n="int")
    path.unlink()
    if now is not None:
        os.utime(written(tmp_path, "a.csv", now), ns=(1, 1))
    with pytest.raises(DriverError, match="when it was checked" if now is None else "was changed after it was checked"):
        content(file)


def test_the_line_of_names_separates_columns(tmp_path: Path) -> None:
    """What rows hold does not decide; quotes end at quotes, from whichever row on there are some."""
    late = "".join(f"{n};a\n" for n in range(30_000)) + '30000;"x;""y"""\n'
    assert read(written(tmp_path, "a.csv", "n;text\n" + late), text="string")["text"][-1] == 'x;"y"'
    commas = "n\ttext\n" + "1\ta,b,c\n" * 5
    assert read(written(tmp_path, "a.tsv", commas), n="int", text="string") == {"n": [1] * 5, "text": ["a,b,c"] * 5}
    assert read(written(tmp_path, "b.csv", "text\nhello, world\n"), text="string") == {"text": ["hello, world"]}
