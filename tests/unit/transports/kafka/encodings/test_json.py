"""Events as JSON: any reader of JSON finds what was sent."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

from streamgauge.transports.kafka.encodings.json import Json
from tests.unit.transports.kafka.helpers_rows import KINDS, ROWS, batch_of, micros


def written(rows: list[dict[str, Any]], kinds: dict[str, str]) -> list[dict[str, Any]]:
    way = Json(tuple(kinds.items()))
    return [json.loads(message) for message in way.messages(way.encode(batch_of(rows, kinds)))]


def test_each_row_is_one_object() -> None:
    """Nulls, quotes, signs that JSON escapes, and the longest numbers; bytes are base64, times their microseconds."""
    found = written(ROWS, KINDS)
    assert found == [
        {**micros(row), "x": None if row["x"] is None else base64.b64encode(row["x"]).decode()} for row in ROWS
    ]
    assert math.copysign(1, found[-1]["d"]) == -1


def test_no_events_are_no_messages() -> None:
    """A chunk may be empty."""
    assert written([], KINDS) == []
