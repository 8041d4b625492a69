"""The records that `docs/reference/kafka-records.md` describes, as files, and readers of them in plain Python.

The readers follow the page and know nothing of the code that writes.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from streamgauge.transports.kafka.result_messages import Mark, Position
from tests.unit.transports.kafka.helpers_rows import KINDS, MOMENT

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


def _write() -> None:
    """Writes the files anew: `python -m tests.unit.transports.kafka.helpers_golden`. The page shows some of them."""
    from streamgauge.transports.kafka.encodings.avro import Avro
    from streamgauge.transports.kafka.encodings.choice import encoding
    from tests.unit.transports.kafka.helpers_rows import batch_of

    for name, (kinds, row) in EVENTS.items():
        for by in ("compact", "json", "avro"):
            codec = encoding(by, tuple(kinds.items()))
            (message,) = codec.messages(codec.encode(batch_of([row], kinds)))
            (FOLDER / f"{name}.{by}.bin").write_bytes(message)
        (FOLDER / f"{name}.avsc").write_text(Avro(tuple(kinds.items())).schema)
    for name, mark in MARKS.items():
        (FOLDER / f"{name}.json").write_bytes(mark.to_bytes())


if __name__ == "__main__":
    _write()
