"""The wire that `docs/reference/wire.md` describes: messages byte by byte, against files that are kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from streamgauge.core.clock import US
from streamgauge.transports.kafka.encodings.choice import columns_of, encoding
from streamgauge.transports.kafka.program_results import ResultParser
from streamgauge.transports.topics import OutputTopic

GOLDEN = Path(__file__).parent / "golden"
PAGE = Path(__file__).parents[4] / "docs" / "reference" / "wire.md"
MOMENT = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=1_800_000_000_123_456)


def golden(name: str) -> bytes:
    return (GOLDEN / name).read_bytes().rstrip(b"\n")


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
def test_an_event(file: str, columns: dict[str, pa.Array]) -> None:
    """Its declared fields in their order, and nothing else, of every type: whole numbers keep all digits; a moment is
    in microseconds.
    """
    batch = pa.record_batch(columns)
    by = encoding("json", columns_of(batch.schema))
    assert by.messages(by.encode(batch)) == [golden(file)]


def test_an_event_passed_on_is_a_result() -> None:
    """As the examples do it."""
    of = OutputTopic({"user_id": "bigint", "price": "bigint", "ts": "bigint"}, ("user_id", "ts"), "ts")
    assert ResultParser(of).parse([golden("event.json")], [5], 1_800_000_000 * US).results.to_pylist() == [
        {
            "user_id": 7,
            "price": 95,
            "ts": 1_800_000_000_123,
            "event_time": 1_800_000_000_123_000,
            "emission_time": 5,
        }
    ]


def test_the_page_shows_the_message() -> None:
    """The one that the test compares."""
    assert golden("event.json").decode() in PAGE.read_text()
