"""Encodings of events as messages, and the expressions with which an engine decodes them."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from streamgauge.core.schema import TYPES, ColumnTypes, arrow_type
from streamgauge.transports.kafka.codecs.avro import Avro
from streamgauge.transports.kafka.codecs.compact import Compact
from streamgauge.transports.kafka.codecs.json import JsonObjects

_KINDS = {arrow_type(kind): kind for kind in TYPES}


class Encoding(Protocol):
    """Encodes batches of events ahead of time; slices are sent when due."""

    def encode(self, batch: pa.RecordBatch) -> pa.BinaryArray:
        """One message per event, shape (rows,); `batch` has the columns by name."""

    def messages(self, encoded: pa.BinaryArray) -> list[bytes]:
        """The result of `encode`, or a slice of it, as a list for a Kafka client."""

    def opened(self, value: str) -> str:
        """Spark SQL that parses a message in the column `value` once."""

    def expressions(self, opened: str) -> dict[str, str]:
        """Column to Spark SQL that extracts it from the parsed column `opened`."""


def encoding(name: str, columns: ColumnTypes) -> Encoding:
    """The encoding of a stream; `name` is one of `settings.ENCODINGS`."""
    if name == "json":
        return JsonObjects(columns)
    return Avro(columns) if name == "avro" else Compact(columns)


def columns_of(schema: pa.Schema) -> ColumnTypes:
    """The columns of a schema with their Spark SQL types."""
    return tuple((field.name, _KINDS[field.type]) for field in schema)
