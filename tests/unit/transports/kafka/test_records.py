"""The records of `docs/reference/kafka-records.md`, byte by byte, against files that are kept."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from streamgauge.transports.kafka.encodings.avro import Avro
from streamgauge.transports.kafka.encodings.choice import encoding
from streamgauge.transports.kafka.result_messages import Mark, Position, key_of, mark_of, table_of, wire
from streamgauge.transports.kafka.settings import ENCODINGS
from tests.unit.transports.kafka.helpers_rows import KINDS, MOMENT, batch_of

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "kafka-records.md"
FOLDER = Path(__file__).parent / "golden"
EVENT_KINDS = {
    "user_id": "int", "price": "int", "note": "string", "event_time": "bigint", "event_id": "bigint",
}  # fmt: skip
EVENT = {"user_id": 7, "price": 95, "note": "naïve", "event_time": 1_800_000_000_123_456, "event_id": 42}
TYPES = {"n": -7, "b": -(2**63), "d": 1.5, "f": True, "t": MOMENT, "s": 'Ü "q"', "x": b"\x00\xff"}
EVENTS: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "event": (EVENT_KINDS, EVENT),
    "types": (KINDS, TYPES),
    "nulls": (KINDS, dict.fromkeys(KINDS)),
}
"""Name of the files to (types, row)."""
RESULT_KINDS = {
    "gem_pack_id": "int", "window_start": "timestamp", "window_end": "timestamp", "mean": "double",
    "event_time": "bigint", "ingest_time": "bigint",
}  # fmt: skip
RESULT = {
    "gem_pack_id": 7, "window_start": datetime(2027, 1, 15, 7, 59, 56, tzinfo=UTC),
    "window_end": datetime(2027, 1, 15, 8, 0, 4, tzinfo=UTC), "mean": 2.5, "event_time": 1_800_000_003_999_999,
    "ingest_time": None,
}  # fmt: skip
MARKS = {
    "mark_first": Mark("q0", 7, True, {"revenue": RESULT_KINDS}, (Position("purchases", 0, 1, 4096),)),
    "mark_last": Mark("q0", 7, False),
    "mark_endless": Mark("q0", 0, False, {}, (Position("purchases", 0, 0, 4096),), endless=True),
}


def golden(name: str) -> bytes:
    return (FOLDER / name).read_bytes()


@pytest.mark.parametrize("by", ENCODINGS)
@pytest.mark.parametrize("name", EVENTS)
def test_an_event_has_the_bytes_that_are_kept(name: str, by: str) -> None:
    """Of every type, and of nulls."""
    kinds, row = EVENTS[name]
    codec = encoding(by, tuple(kinds.items()))
    assert codec.messages(codec.encode(batch_of([row], kinds))) == [golden(f"{name}.{by}.bin")]
    assert Avro(tuple(kinds.items())).schema == golden(f"{name}.avsc").decode()


@pytest.mark.parametrize("name", MARKS)
def test_a_mark_has_the_bytes_that_are_kept(name: str) -> None:
    """And is read back from them."""
    assert MARKS[name].to_bytes() == golden(f"{name}.json")
    assert mark_of(golden(f"{name}.json")) == MARKS[name]


RESULTS = "result", "result_of_several"


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_read_from_the_bytes_that_are_kept(name: str) -> None:
    """Of one sink; of several, where a message names those that its row is for."""
    sinks = {"revenue": RESULT_KINDS} | ({"counts": {"n": "bigint"}} if name == "result_of_several" else {})
    results = table_of([golden(f"{name}.json")], sinks, [5])
    assert results["revenue"].drop(["emission_time"]).to_pylist() == [RESULT]
    assert all(rows.num_rows == 0 for sink, rows in results.items() if sink != "revenue")
    assert key_of("q0", 7) == "q0/7"


@pytest.mark.spark
def test_spark_writes_the_result_that_is_kept(spark: Any) -> None:
    """By the texts that every query over Kafka ends with."""
    columns = [f"{wire(name, kind)} AS {name}" for name, kind in RESULT_KINDS.items()]
    rows, types = [tuple(RESULT.values())], ", ".join(f"{name} {kind}" for name, kind in RESULT_KINDS.items())
    (row,) = spark.createDataFrame(rows, types).selectExpr(*columns).selectExpr("to_json(struct(*)) AS value").collect()
    assert row.value.encode() == golden("result.json")


def test_the_page_shows_these_bytes() -> None:
    """So a reader of the page reads what is sent."""
    page = PAGE.read_text()
    assert golden("event.avro.bin").hex(" ") in page.replace("\n", " ")
    assert json.loads(golden("event.avsc")) == json.loads(page.split("```json\n")[1].split("```")[0])
    for name in ("event.compact.bin", "event.json.bin", *(f"{mark}.json" for mark in (*MARKS, *RESULTS))):
        assert golden(name).decode() in page or golden(name).decode() in " ".join(page.split()), name
