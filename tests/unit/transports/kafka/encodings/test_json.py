"""Events as JSON: any reader of JSON finds what was sent."""

import base64
import json
import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa

from streamgauge.transports.kafka.encodings.json import Json
from tests.unit.transports.kafka.helpers_rows import KINDS, ROWS, batch_of, micros


def written(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    by = Json(tuple(KINDS.items()))
    return [json.loads(message) for message in by.messages(by.encode(batch_of(rows, KINDS)))]


def test_each_row_is_one_object() -> None:
    """Nulls, quotes, signs that JSON escapes, and the longest numbers; bytes are base64, times their microseconds."""
    objects = written(ROWS)
    assert objects == [
        {**micros(row), "x": None if row["x"] is None else base64.b64encode(row["x"]).decode()} for row in ROWS
    ]
    assert math.copysign(1, objects[-1]["d"]) == -1
    assert written([]) == []  # a chunk may be empty


def test_two_threads_may_encode_at_once() -> None:
    """A generator makes the events of its next plan while those of the last one still go out."""
    batch = pa.record_batch({"n": pa.array(range(20_000), pa.int64())})
    encoder = Json((("n", "bigint"),))
    with ThreadPoolExecutor(2) as threads:
        encoded = list(threads.map(encoder.encode, [batch] * 20))
    assert all(each.equals(encoded[0]) for each in encoded)
