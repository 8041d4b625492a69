"""Avro's binary encoding, against the examples of its specification and a reader in plain Python."""

from __future__ import annotations

import io
import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.transports.kafka.encodings.avro import Avro
from tests.unit.transports.kafka.helpers_rows import KINDS, ROWS, batch_of, micros


def messages(rows: list[dict[str, Any]], kinds: dict[str, str]) -> list[bytes]:
    way = Avro(tuple(kinds.items()))
    return way.messages(way.encode(batch_of(rows, kinds)))


def long_of(source: io.BytesIO) -> int:
    """Seven bits a byte, the lowest first, then zigzag."""
    found, place = 0, 0
    while True:
        (byte,) = source.read(1)
        found |= (byte & 0x7F) << place
        place += 7
        if byte < 0x80:
            return (found >> 1) ^ -(found & 1)


def value_of(source: io.BytesIO, kind: str) -> Any:
    if kind in ("string", "bytes"):
        text = source.read(long_of(source))
        return text.decode() if kind == "string" else text
    if kind == "double":
        return struct.unpack("<d", source.read(8))[0]
    return source.read(1) == b"\x01" if kind == "boolean" else long_of(source)


def read(message: bytes, schema: dict[str, Any]) -> dict[str, Any]:
    """A record, by its schema, in plain Python."""
    source, found = io.BytesIO(message), {}
    for field in schema["fields"]:
        kind = field["type"][long_of(source)]
        found[field["name"]] = None if kind == "null" else value_of(source, kind)
    assert source.read() == b""
    return found


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, "00"), (-1, "01"), (1, "02"), (-2, "03"), (2, "04"), (-64, "7f"), (64, "8001")],
)
def test_a_long_is_as_the_specification_says(value: int, expected: str) -> None:
    """Its own examples, behind the branch of the union."""
    assert messages([{"n": value}], {"n": "bigint"}) == [bytes.fromhex("02" + expected)]


def test_a_text_is_as_the_specification_says() -> None:
    """Its own example: foo."""
    assert messages([{"s": "foo"}], {"s": "string"}) == [bytes.fromhex("0206666f6f")]


def test_each_row_is_one_record() -> None:
    """Nulls, empty texts, and the longest numbers of each type, by a schema of their own."""
    schema = json.loads(Avro(tuple(KINDS.items())).schema)
    fields = {field["name"]: field["type"][1] for field in schema["fields"]}
    assert fields["t"] == {"type": "long", "logicalType": "timestamp-micros"}
    assert [read(message, schema) for message in messages(ROWS, KINDS)] == [micros(row) for row in ROWS]


@given(st.lists(st.tuples(st.none() | st.integers(-(2**63), 2**63 - 1), st.none() | st.text())), st.integers(0, 3))
def test_rows_are_told_apart(values: list[tuple[int | None, str | None]], skipped: int) -> None:
    """Of any lengths, a slice of what was encoded, too."""
    kinds = {"b": "bigint", "s": "string"}
    rows = [dict(zip(kinds, value, strict=True)) for value in values]
    way = Avro(tuple(kinds.items()))
    found = way.messages(way.encode(batch_of(rows, kinds)).slice(skipped))
    assert [read(message, json.loads(way.schema)) for message in found] == rows[skipped:]
