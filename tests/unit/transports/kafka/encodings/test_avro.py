"""Avro's binary encoding, against the examples of its specification and a reader in plain Python."""

import io
import json
import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.transports.kafka.encodings.avro import Avro
from tests.unit.transports.kafka.helpers_rows import batch_of


def messages(rows: list[dict[str, Any]], kinds: dict[str, str]) -> list[bytes]:
    by = Avro(tuple(kinds.items()))
    return by.messages(by.encode(batch_of(rows, kinds)))


def long_of(source: io.BytesIO) -> int:
    """Seven bits a byte, the lowest first, then zigzag."""
    number, shift = 0, 0
    while True:
        (byte,) = source.read(1)
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1)


READ: dict[str, Callable[[io.BytesIO], Any]] = {
    "null": lambda source: None,
    "long": long_of,
    "int": long_of,
    "double": lambda source: struct.unpack("<d", source.read(8))[0],
    "boolean": lambda source: source.read(1) == b"\x01",
    "bytes": lambda source: source.read(long_of(source)),
    "string": lambda source: source.read(long_of(source)).decode(),
}


def read(message: bytes, schema: dict[str, Any]) -> dict[str, Any]:
    """A record, by its schema, in plain Python; fields of records within have names with dots."""
    source = io.BytesIO(message)
    row = dict(record(source, schema, ""))
    assert source.read() == b""
    return row


def record(source: io.BytesIO, schema: Any, prefix: str) -> Any:
    """(dotted name, value) of each plain value."""
    for field in schema["fields"]:
        name, kind = prefix + field["name"], field["type"]
        kind = kind[long_of(source)] if isinstance(kind, list) else kind
        if isinstance(kind, dict) and kind["type"] == "record":
            yield from record(source, kind, f"{name}.")
        else:
            yield name, READ[kind["type"] if isinstance(kind, dict) else kind](source)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [("bigint", 0, "00"), ("bigint", -1, "01"), ("bigint", 1, "02"), ("bigint", -2, "03"), ("bigint", 2, "04"),
     ("bigint", -64, "7f"), ("bigint", 64, "8001"), ("string", "foo", "06666f6f")],
)  # fmt: skip
def test_a_value_is_as_the_specification_says(kind: str, value: Any, expected: str) -> None:
    """Its own examples, behind the branch of the union."""
    assert messages([{"v": value}], {"v": kind}) == [bytes.fromhex("02" + expected)]


@given(st.lists(st.tuples(st.none() | st.integers(-(2**63), 2**63 - 1), st.none() | st.text())), st.integers(0, 3))
def test_rows_are_separate(values: list[tuple[int | None, str | None]], skipped: int) -> None:
    """Of any lengths, a slice of what was encoded, too."""
    kinds = {"b": "bigint", "s": "string"}
    rows = [dict(zip(kinds, value, strict=True)) for value in values]
    by = Avro(tuple(kinds.items()))
    sliced = by.messages(by.encode(batch_of(rows, kinds)).slice(skipped))
    assert [read(message, json.loads(by.schema)) for message in sliced] == rows[skipped:]
