"""Events of programs, byte by byte, against files that were written by hand from the formats' specifications."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streamgauge.core.clock import US
from streamgauge.core.schema import arrow_type
from streamgauge.transports.kafka.encodings.choice import columns_of, encoding, format_of
from streamgauge.transports.kafka.program_results import ResultParser
from streamgauge.transports.topic_names import MessageFormat, OutputTopic

GOLDEN = Path(__file__).parents[1] / "golden"
PAGE = Path(__file__).parents[5] / "docs" / "reference" / "wire.md"
SCHEMA = (GOLDEN / "program.avsc").read_text()
COLUMNS = (
    ("user.id", "int"), ("user.city", "string"), ("price", "double"), ("dear", "boolean"), ("payload", "binary"),
    ("ts", "bigint"),
)  # fmt: skip
EVENT = {
    "user.id": 7, "user.city": 'naïve, "q"', "price": 2.5, "dear": True, "payload": b"\x00\xff",
    "ts": 1_800_000_000_123,
}  # fmt: skip
EVENTS: dict[str, dict[str, Any]] = {"program": EVENT, "program_nulls": EVENT | {"user.city": None, "price": None}}
FORMATS = {
    "json": MessageFormat(),
    "csv": MessageFormat("csv"),
    "avro": MessageFormat("avro", schema=SCHEMA),
    "avro-confluent": MessageFormat("avro-confluent", schema=SCHEMA, schema_id=7),
}


MOMENT = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=1_800_000_000_123_456)


def golden(name: str) -> bytes:
    return (GOLDEN / name).read_bytes()


def written(declared: MessageFormat, columns: tuple[tuple[str, str], ...], row: dict[str, Any]) -> bytes:
    arrays = [pa.array([row[name]], arrow_type(kind)) for name, kind in columns]
    by = format_of(declared, columns)
    (message,) = by.messages(by.encode(pa.RecordBatch.from_arrays(arrays, names=[name for name, _ in columns])))
    return message


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", EVENTS)
def test_an_event_has_the_bytes_that_are_kept(name: str, kind: str) -> None:
    """Fields within an object, every type, quotes, letters of several bytes, nulls."""
    assert written(FORMATS[kind], COLUMNS, EVENTS[name]) == golden(f"{name}.{kind}.bin")


def test_a_text_is_itself() -> None:
    """Without quotes."""
    city = {"city": EVENT["user.city"]}
    assert written(MessageFormat("text"), (("city", "string"),), city) == golden("program.text.bin")
    assert golden("program.text.bin").decode() == EVENT["user.city"]


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", EVENTS)
def test_an_event_that_is_passed_on_is_a_result(name: str, kind: str) -> None:
    """Its bytes are texts where the format has no bytes."""
    wide = {"int": "bigint", "binary": "binary" if kind.startswith("avro") else "string"}
    columns = [(each, wide.get(type_, type_)) for each, type_ in COLUMNS if each != "payload" or "avro" not in kind]
    of = OutputTopic(dict(columns), ("user.id", "ts"), "ts", format=FORMATS[kind])
    (row,) = ResultParser(of).parse([golden(f"{name}.{kind}.bin")], [5], 1_800_000_000 * US).results.to_pylist()
    expected = EVENTS[name] | {"payload": "AP8=", "event_time": 1_800_000_000_123_000, "emission_time": 5}
    assert row == {each: expected[each] for each in row}
    assert {*row} == {*dict(columns), "event_time", "emission_time"}


@pytest.mark.parametrize(("file", "columns"), [
    ("event.json", {
        "user_id": pa.array([7], pa.int32()), "price": pa.array([95], pa.int32()),
        "ts": pa.array([1_800_000_000_123], pa.int64()),
    }),
    ("types.json", {
        "whole": pa.array([-9007199254740993], pa.int64()), "number": pa.array([1.5], pa.float64()),
        "truth": pa.array([True]), "text": pa.array(['Ü "q"\n']), "bytes": pa.array([b"\x00\xff"], pa.binary()),
        "moment": pa.array([MOMENT], pa.timestamp("us", "UTC")), "nothing": pa.array([None], pa.string()),
    }),
])  # fmt: skip
def test_an_event_of_json(file: str, columns: dict[str, pa.Array]) -> None:
    """Its declared fields in their order, and nothing else, of every type: whole numbers keep all digits; a moment is
    in microseconds.
    """
    batch = pa.record_batch(columns)
    by = encoding("json", columns_of(batch.schema))
    assert by.messages(by.encode(batch)) == [golden(file).rstrip(b"\n")]


def test_the_page_shows_these_bytes() -> None:
    """So a reader of the page reads what is sent."""
    page = PAGE.read_text()
    assert golden("event.json").decode().strip() in page
    for kind in ("json", "csv", "text"):
        assert golden(f"program.{kind}.bin").decode() in page
    hexadecimal = " ".join(page.split())
    for kind in ("avro", "avro-confluent"):
        assert golden(f"program.{kind}.bin").hex(" ") in hexadecimal
    assert json.loads(SCHEMA) == json.loads(page.split("```json\n")[1].split("```")[0])
