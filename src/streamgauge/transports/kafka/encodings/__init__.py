"""How a message carries the fields of an event or a result: compact, Avro, Protobuf, JSON, CSV, plain text."""
