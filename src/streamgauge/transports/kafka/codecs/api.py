"""How an event becomes a message, and what an engine makes its columns of again: one of three encodings, by name."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from streamgauge.core.schema import TYPES, arrow_type
from streamgauge.transports.kafka.codecs.avro import Avro
from streamgauge.transports.kafka.codecs.compact import Compact
from streamgauge.transports.kafka.codecs.json import JsonObjects

Columns = tuple[tuple[str, str], ...]
"""(name, Spark SQL type) of each column of a stream, in order."""
_KINDS = {arrow_type(kind): kind for kind in TYPES}


class Encoding(Protocol):
    """Events are encoded ahead of their time, many at once, and given out in parts."""

    def encode(self, batch: pa.RecordBatch) -> pa.BinaryArray:
        """One message an event; `batch` has the columns by name."""

    def messages(self, encoded: pa.BinaryArray) -> list[bytes]:
        """What `encode` gave, or a part of that, for a client."""

    def opened(self, value: str) -> str:
        """Spark SQL of what a message in the column `value` is made once, before its columns are."""

    def expressions(self, opened: str) -> dict[str, str]:
        """Spark SQL that makes each column, of the column `opened`."""


def encoding(name: str, columns: Columns) -> Encoding:
    """That of a stream; `name` is one of `settings.ENCODINGS`."""
    if name == "json":
        return JsonObjects(columns)
    return Avro(columns) if name == "avro" else Compact(columns)


def columns_of(schema: pa.Schema) -> Columns:
    """The columns of batches of a schema."""
    return tuple((field.name, _KINDS[field.type]) for field in schema)
