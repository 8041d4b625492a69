"""The compact encoding: what Spark's expressions make of a message is what was sent."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.errors import InputError
from streamgauge.events import arrow_type
from streamgauge.transports.kafka.compact import LENGTH_WIDTH, WIDTHS, Compact

KINDS = {"n": "int", "b": "bigint", "d": "double", "f": "boolean", "t": "timestamp", "s": "string", "x": "binary"}
MOMENT, BEFORE_1970 = datetime(2026, 1, 2, 3, 4, 5, 6, UTC), datetime(1969, 1, 1, tzinfo=UTC)
LARGE = 1.7976931348623157e308
ROWS: list[dict[str, Any]] = [
    dict(zip(KINDS, row, strict=True)) for row in (
        (1, -(2**63), 0.1, True, MOMENT, "añb", b"\x00\xff"),
        (-(2**31), 2**63 - 1, -LARGE, False, BEFORE_1970, "", b""),
        (None, None, None, None, None, None, None),
        (0, 0, math.inf, True, MOMENT, " \n ", b" "),
        (7, 7, 5e-324, True, MOMENT, "x" * 1000, b"y"),
    )
]  # fmt: skip


def batch_of(rows: list[dict[str, Any]], kinds: dict[str, str]) -> pa.RecordBatch:
    columns = [pa.array([row[name] for row in rows], arrow_type(kind)) for name, kind in kinds.items()]
    return pa.RecordBatch.from_arrays(columns, names=list(kinds))


def taken_apart(message: bytes, kinds: dict[str, str]) -> dict[str, Any]:
    """The definition, in Python."""
    found: dict[str, Any] = {}
    place = 0
    lengths: dict[str, int | None] = {}
    for name, kind in kinds.items():
        width = WIDTHS.get(kind, LENGTH_WIDTH)
        text = message[place : place + width].decode().strip()
        place += width
        if kind in ("string", "binary"):
            lengths[name] = int(text) if text else None
        elif kind == "boolean":
            found[name] = {"": None, "true": True, "false": False}[text]
        else:
            found[name] = None if not text else float(text) if kind == "double" else int(text)
    for name, length in lengths.items():
        part = message[place : place + (length or 0)]
        place += length or 0
        found[name] = None if length is None else part.decode() if kinds[name] == "string" else part
    assert place == len(message)
    return found


def micros(row: dict[str, Any]) -> dict[str, Any]:
    return {name: round(v.timestamp() * 1e6) if isinstance(v, datetime) else v for name, v in row.items()}


def test_each_row_is_one_message() -> None:
    """Nulls, empty texts, blanks, and the longest numbers of each type."""
    layout = Compact(tuple(KINDS.items()))
    messages = layout.messages(layout.encode(batch_of(ROWS, KINDS)))
    assert [taken_apart(message, KINDS) for message in messages] == [micros(row) for row in ROWS]


NUMBERS = {"n": "int", "d": "double", "b": "bigint"}


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.integers(-(2**31), 2**31 - 1), st.floats(allow_nan=False), st.integers(-(2**63), 2**63 - 1))),
    st.integers(0, 3),
)
def test_numbers_alone_have_one_width(values: list[tuple[int, float, int]], skipped: int) -> None:
    """They are cut out of one buffer, a slice's too."""
    rows = [dict(zip(NUMBERS, value, strict=True)) for value in values]
    whole = batch_of(rows, NUMBERS)
    layout = Compact(tuple(NUMBERS.items()))
    messages = layout.messages(layout.encode(whole).slice(skipped))
    assert [taken_apart(message, NUMBERS) for message in messages] == rows[skipped:]


def test_what_cannot_be_said_is_refused() -> None:
    """A type that has no place here, and a text that is longer than its length can say."""
    with pytest.raises(InputError, match=r"column words: must be of int, .* in the compact encoding"):
        Compact((("words", "array<string>"),))
    long = pa.RecordBatch.from_arrays([pa.array(["x" * 10**LENGTH_WIDTH])], names=["s"])
    with pytest.raises(InputError, match="texts of less than"):
        Compact((("s", "string"),)).encode(long)


@pytest.mark.spark
def test_spark_makes_the_same_of_it() -> None:
    """NaN included, which is no equal of itself."""
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    layout = Compact(tuple(KINDS.items()))
    messages = layout.messages(layout.encode(batch_of([*ROWS, {**ROWS[0], "d": math.nan}], KINDS)))
    frame = session.createDataFrame([(message,) for message in messages], "value binary")
    told = frame.selectExpr(*[f"{text} AS {name}" for name, text in layout.expressions("value").items()])
    assert dict(told.dtypes) == KINDS
    found = told.toArrow().to_pylist()
    *plain, odd = [{**row, "t": row["t"] and row["t"].astimezone(UTC)} for row in found]
    assert plain == ROWS
    assert math.isnan(odd["d"])


def test_columns_may_be_known_by_arrow() -> None:
    """The same layout."""
    assert Compact.of(batch_of(ROWS, KINDS).schema) == Compact(tuple(KINDS.items()))
