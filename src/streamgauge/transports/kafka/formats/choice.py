"""The format of a topic, by its declaration."""

from __future__ import annotations

from streamgauge.transports.kafka.formats.api import Columns, ProgramFormat
from streamgauge.transports.kafka.formats.avro import Avro
from streamgauge.transports.kafka.formats.csv import Csv
from streamgauge.transports.kafka.formats.json import NestedJson
from streamgauge.transports.kafka.formats.text import Text
from streamgauge.transports.kafka.program_topics import MessageFormat


def format_of(declared: MessageFormat, columns: Columns) -> ProgramFormat:
    """The format of messages with these fields."""
    if declared.kind == "csv":
        return Csv(columns, declared.delimiter)
    if declared.kind == "text":
        return Text(columns)
    if declared.kind == "json":
        return NestedJson(columns)
    return Avro(columns, declared.schema, declared.schema_id if declared.kind == "avro-confluent" else None)
