"""The encoding of a topic: by the transport's option, or by the declaration of a program."""

import pyarrow as pa

from streamgauge.core.schema import TYPES, ColumnTypes, arrow_type
from streamgauge.transports.kafka.encodings.api import EngineEncoding, ProgramFormat
from streamgauge.transports.kafka.encodings.avro import Avro
from streamgauge.transports.kafka.encodings.compact import Compact
from streamgauge.transports.kafka.encodings.json import Json
from streamgauge.transports.kafka.encodings.text import Csv, Text
from streamgauge.transports.topic_names import FRAMED, MessageFormat

_KINDS = {arrow_type(kind): kind for kind in TYPES}


def encoding(name: str, columns: ColumnTypes) -> EngineEncoding:
    """The encoding of a stream; `name` is one of `settings.ENCODINGS`."""
    return {"json": Json, "avro": Avro, "compact": Compact}[name](columns)


def format_of(declared: MessageFormat, columns: ColumnTypes) -> ProgramFormat:
    """The format of messages with these fields."""
    match declared.kind:
        case "json":
            return Json(columns, nested=True)
        case "csv":
            return Csv(columns, declared.delimiter)
        case "text":
            return Text(columns)
        case "avro" | "avro-confluent":
            return Avro(columns, declared.schema, declared.schema_id if declared.kind in FRAMED else None)
        case "protobuf" | "protobuf-confluent":
            from streamgauge.transports.kafka.encodings.protobuf import Protobuf

            return Protobuf(columns, declared)


def columns_of(schema: pa.Schema) -> ColumnTypes:
    """The columns of a schema with their SQL types."""
    return tuple((field.name, _KINDS[field.type]) for field in schema)
