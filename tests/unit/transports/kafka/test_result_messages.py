"""Results as messages: what comes out is what went in, of one sink and of several."""

import base64
import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from streamgauge.core.schema import EMISSION_TIME, arrow_type
from streamgauge.transports.kafka.result_messages import (
    is_carried,
    table_of,
    wire,
)

KINDS = {
    "n": "int", "b": "bigint", "d": "double", "f": "boolean", "t": "timestamp", "s": "string", "x": "binary",
    "a": "array<string>",
}  # fmt: skip
MOMENT = datetime(2026, 1, 2, 3, 4, 5, 6, UTC)
ROWS: list[tuple[Any, ...]] = [
    (1, 2**63 - 1, 0.1, True, MOMENT, 'a "quoted"\nline', b"\x00\xff", ["x", None, ""]),
    (None, None, None, None, None, None, None, None),
    (-1, -(2**63), -math.inf, False, MOMENT, "", b"", []),
    (0, 0, 1e-300, False, MOMENT, "ü", b"y", ["z"]),
]


def wire_row(row: tuple[Any, ...]) -> dict[str, Any]:
    """A row as `wire` and Spark's `to_json` make it: nulls are left out."""
    streams = {
        "double": lambda v: "-Infinity" if v == -math.inf else f"{v:E}",
        "timestamp": lambda v: round(v.timestamp() * 1e6),
        "binary": lambda v: base64.b64encode(v).decode(),
    }
    columns = zip(KINDS.items(), row, strict=True)
    return {name: streams.get(kind, lambda v: v)(value) for (name, kind), value in columns if value is not None}


def expected(rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [[] for _ in KINDS]
    arrays = [pa.array(column, arrow_type(kind)) for column, kind in zip(columns, KINDS.values(), strict=True)]
    return pa.Table.from_arrays(arrays, names=list(KINDS))


def of_one(values: list[bytes], kinds: dict[str, str] | None = None) -> pa.Table:
    """The rows of messages that all came at once."""
    return table_of(values, {"out": kinds or KINDS}, [0] * len(values))["out"].drop([EMISSION_TIME])


def test_rows_of_one_sink() -> None:
    """Every type, nulls, and texts that JSON has to quote."""
    values = [json.dumps(wire_row(row)).encode() for row in ROWS]
    assert of_one(values).equals(expected(ROWS))


def test_rows_of_several_sinks() -> None:
    """A message has those sinks that its row is for; one that got nothing has no rows. Each row has its own stamp."""
    both = {"first": wire_row(ROWS[0]), "second": wire_row(ROWS[3])}
    values = [json.dumps(each).encode() for each in (both, {"second": wire_row(ROWS[2])})]
    stamped = table_of(values, {"first": KINDS, "second": KINDS, "third": KINDS}, [7, 9])
    assert [stamped[name].column(EMISSION_TIME).to_pylist() for name in stamped] == [[7], [7, 9], []]
    for name, rows in (("first", ROWS[:1]), ("second", [ROWS[3], ROWS[2]]), ("third", [])):
        assert stamped[name].drop([EMISSION_TIME]).equals(expected(rows))


@pytest.mark.parametrize(
    ("kind", "sent_as", "value"),
    [
        ("decimal(10,2)", "12.50", Decimal("12.50")), ("date", 20_000, date(2024, 10, 4)), ("float", "0.5", 0.5),
        ("smallint", -3, -3), ("tinyint", 7, 7), ("array<bigint>", [1, None], [1, None]),
    ],
)  # fmt: skip
def test_types_that_only_user_jobs_have_come_through(kind: str, sent_as: Any, value: Any) -> None:
    """Decimals as texts, dates as days. Nulls stay nulls."""
    assert is_carried(kind)
    column = of_one([json.dumps({"v": sent_as}).encode(), b"{}"], {"v": kind}).column("v")
    assert column.to_pylist() == [value, None]


@pytest.mark.parametrize("kind", ["struct<a:int>", "map<string,int>", "array<double>", "array<struct<a:int>>", "void"])
def test_other_types_are_not_carried(kind: str) -> None:
    """A user job with such a column is refused before it starts."""
    assert not is_carried(kind)


def test_nan_comes_through() -> None:
    """As the text that Spark makes of it."""
    assert math.isnan(of_one([b'{"d": "NaN"}'], {"d": "double"}).column("d")[0].as_py())


@pytest.mark.parametrize("value", [b"no object", b'{"other": 1}', b'{"n": "text"}'])
def test_what_is_no_result_is_no_row(value: bytes) -> None:
    """Nothing is guessed."""
    with pytest.raises(pa.ArrowInvalid):
        of_one([value], {"n": "int"})


@pytest.mark.spark
def test_spark_writes_what_is_read_here(spark: Any) -> None:
    """By `wire` and `to_json`."""
    columns = [f"{wire(name, kind)} AS {name}" for name, kind in KINDS.items()]
    frame = spark.createDataFrame(ROWS, ", ".join(f"{name} {kind}" for name, kind in KINDS.items()))
    rows = frame.selectExpr(*columns).selectExpr("to_json(struct(*)) AS value").collect()
    assert of_one([row.value.encode() for row in rows]).equals(expected(ROWS))
