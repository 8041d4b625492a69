"""The JSON Schema of program files. It is of its own because only the command that prints it loads it."""

from typing import Any

from streamgauge.config.file_schema import Schema, closed, schema_of
from streamgauge.user_workloads.program_fields import FIELD_KINDS
from streamgauge.user_workloads.program_file import ProgramTable

_FIELD = "#/$defs/Field"


def program_schema() -> Schema:
    """The JSON Schema of the file of a program: its tables, and the kinds of fields that an input may have."""
    schema = schema_of(ProgramTable)
    nested = {"type": "object", "minProperties": 1, "additionalProperties": {"$ref": _FIELD}}
    schema["$defs"]["Field"] = {"anyOf": [*(_field(kind, type_) for kind, type_ in FIELD_KINDS.items()), nested]}
    schema["$defs"]["InputTable"]["properties"]["fields"]["additionalProperties"] = {"$ref": _FIELD}
    return {**schema, "title": "Program file of streamgauge"}


def _field(kind: str, type_: Any) -> Schema:
    """The table of a kind of field: the arguments of its class, whose name is the key of the table."""
    arguments = schema_of(type_)
    del arguments["properties"]["name"]
    required = ["kind", *(name for name in arguments["required"] if name != "name")]
    table = closed({"kind": {"const": kind}, **arguments["properties"]})
    about, _, _ = arguments["description"].partition("\n\n")
    return {**table, "required": required, "title": kind, "description": about}
