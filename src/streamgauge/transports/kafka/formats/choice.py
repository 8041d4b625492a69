"""The format of a topic, by its declaration."""

from __future__ import annotations

from streamgauge.core.schema import ColumnTypes
from streamgauge.transports.kafka.formats.api import ProgramFormat
from streamgauge.transports.kafka.formats.avro import Avro
from streamgauge.transports.kafka.formats.csv import Csv
from streamgauge.transports.kafka.formats.json import NestedJson
from streamgauge.transports.kafka.formats.text import Text
from streamgauge.transports.kafka.program_topics import MessageFormat


def format_of(declared: MessageFormat, columns: ColumnTypes) -> ProgramFormat:
    """The format of messages with these fields."""
    match declared.kind:
        case "json":
            return NestedJson(columns)
        case "csv":
            return Csv(columns, declared.delimiter)
        case "text":
            return Text(columns)
        case "avro":
            return Avro(columns, declared.schema)
        case "avro-confluent":
            return Avro(columns, declared.schema, declared.schema_id)
