"""The fields of a program's inputs: each is a table such as `price = { kind = "integer", low = 1, high = 100 }`.

Messages about a field name the types of TOML, since the classes of fields name those of Python.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from functools import partial
from typing import Any

from streamgauge.config.file_schema import Schema, closed, schema_of
from streamgauge.core.errors import InputError, Problem, Rule, attempt, first, nearest, refuse, require_all
from streamgauge.loadgen.fields import Decimal, FieldSpec, Integer, Key, Payload, Text
from streamgauge.loadgen.fitted import Choice
from streamgauge.user_workloads.program_file import ProgramTable

FIELD_KINDS: dict[str, type[FieldSpec]] = {
    "key": Key, "integer": Integer, "decimal": Decimal, "text": Text, "payload": Payload, "choice": Choice,
}  # fmt: skip
TOML_TYPES = {
    bool: "a boolean", int: "an integer", float: "a float", str: "a string", list: "an array", dict: "a table",
}  # fmt: skip
FIELD_EXAMPLES = {
    "domain": "domain = 1000", "distribution": 'distribution = "zipf"', "exponent": "exponent = 1.0",
    "low": "low = 1", "high": "high = 100", "words": "words = 2", "size_bytes": "size_bytes = 100",
    "values": 'values = ["Paris", "Rome"]', "weights": "weights = [3, 1]",
}  # fmt: skip
_MEANT = {
    "int": "integer", "long": "integer", "bigint": "integer", "float": "decimal", "double": "decimal",
    "number": "decimal", "string": "text", "str": "text", "bytes": "payload", "bool": "choice", "boolean": "choice",
    "enum": "choice",
}  # fmt: skip
"""Names of types that others use, to kinds of fields."""
_INTEGER = ("an integer",)
_ARGUMENT_TYPES = {
    "domain": _INTEGER, "words": _INTEGER, "size_bytes": _INTEGER,
    "distribution": ("a string",), "values": ("an array",), "weights": ("an array",),
}  # fmt: skip
"""Argument to the types in TOML that it may have; others are numbers, of an integer field integers."""
_NUMBER = ("an integer", "a float")


def specs_of(place: str, tables: Mapping[str, Any]) -> tuple[FieldSpec, ...]:
    """The fields of the input at `place`, those of nested tables with dotted names. Raises InputError for all."""
    problems: list[Problem] = []
    specs = [
        attempt(partial(_field, f"{place}.fields.{name}", name, table), problems) for name, table in flat_fields(tables)
    ]
    refuse(problems)
    return tuple(specs)


def field_text(spec: FieldSpec) -> str:
    """A field as its line of TOML, without defaults."""
    kinds = {type_: kind for kind, type_ in FIELD_KINDS.items()}
    arguments = {one.name: getattr(spec, one.name) for one in fields(spec) if one.init and one.name != "name"}
    defaults = {one.name: one.default for one in fields(spec)}
    given = {name: value for name, value in arguments.items() if value != defaults[name]}
    shown = {"kind": kinds.get(type(spec), type(spec).__name__), **given}
    return f"{spec.name} = {{ {', '.join(f'{name} = {json.dumps(value)}' for name, value in shown.items())} }}"


def toml_type(value: object) -> str:
    """The type of a value as TOML names it."""
    return TOML_TYPES.get(type(value), "a date or time")


def flat_fields(tables: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """(dotted name, table) of each field. A table of tables is a level of nesting."""
    for name, table in tables.items():
        if table and all(isinstance(value, dict) for value in table.values()):
            yield from flat_fields(table, f"{prefix}{name}.")
        else:
            yield prefix + name, table


def _field(setting: str, name: str, table: Mapping[str, Any]) -> FieldSpec:
    """A field from its table: `kind`, and the arguments of that kind."""
    kind, given = table.get("kind"), {key: value for key, value in table.items() if key != "kind"}
    require_all(*first(_field_rules(setting, name, kind, given)))
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}
    try:
        return FIELD_KINDS[str(kind)](name, **values)
    except InputError as error:
        shown = ", ".join(FIELD_EXAMPLES[key] for key in given) or FIELD_EXAMPLES["domain"]
        raise InputError(
            [
                replace(problem, setting=setting + part, way_out=FIELD_EXAMPLES.get(part[1:], shown))
                for problem in error.problems
                for part in [problem.setting.removeprefix(name)]
            ]
        ) from None


def _field_rules(setting: str, name: str, kind: Any, given: Mapping[str, Any]) -> Iterator[Rule]:
    """The rules of a field's table; each presumes those before it."""
    yield Rule(name, setting, "must have a name", name, 'user_id = { kind = "key", domain = 1000 }')
    meant = _MEANT.get(str(kind).lower()) or nearest(kind, list(FIELD_KINDS))
    known = isinstance(kind, str) and kind in FIELD_KINDS
    yield Rule(known, f"{setting}.kind", f"must be one of {', '.join(FIELD_KINDS)}", kind, f'kind = "{meant}"')
    arguments = {one.name: one for one in fields(FIELD_KINDS[kind]) if one.init and one.name != "name"}
    for key, value in given.items():
        place, wanted = f"{setting}.{key}", _ARGUMENT_TYPES.get(key, _INTEGER if kind == "integer" else _NUMBER)
        yield from (
            Rule(key in arguments, place, f"is not a setting of a {kind}", value,
                 FIELD_EXAMPLES[nearest(key, list(arguments))]),
            Rule(toml_type(value) in wanted, place, f"must be {' or '.join(wanted)}, not {toml_type(value)}", value,
                 FIELD_EXAMPLES.get(key, "")),
        )  # fmt: skip
    yield from (
        Rule(key in given or argument.default is not MISSING, f"{setting}.{key}", f"must be given for a {kind}", None,
             FIELD_EXAMPLES[key])
        for key, argument in arguments.items()
    )  # fmt: skip
    if kind == "choice":
        yield from _choice_rules(setting, **given)


def _choice_rules(setting: str, values: list[Any], weights: Sequence[Any] = ()) -> tuple[Rule, ...]:
    """The rules of values to choose from, and of their weights."""
    place, way_out = f"{setting}.weights", FIELD_EXAMPLES["weights"]
    alike = len(set(map(toml_type, values))) == 1 and type(values[0]) in (str, int, float, bool)
    return (
        Rule(alike, f"{setting}.values", "must be strings, integers, floats or booleans, all of one type", values[:5],
             FIELD_EXAMPLES["values"]),
        *(Rule(toml_type(weight) in _NUMBER, place, f"must be an array of numbers, not of {toml_type(weight)}",
               weight, way_out)
          for weight in weights),
        Rule(not weights or len(weights) == len(values), place,
             f"must have a weight for each of the {len(values)} values", weights, way_out),
    )  # fmt: skip


_FIELD = "#/$defs/Field"


def program_schema() -> Schema:
    """The JSON Schema of the file of a program: its tables, and the kinds of fields that an input may have."""
    schema = schema_of(ProgramTable)
    nested = {"type": "object", "minProperties": 1, "additionalProperties": {"$ref": _FIELD}}
    schema["$defs"]["Field"] = {"anyOf": [*(_field_schema(kind, type_) for kind, type_ in FIELD_KINDS.items()), nested]}
    schema["$defs"]["InputTable"]["properties"]["fields"]["additionalProperties"] = {"$ref": _FIELD}
    return {**schema, "title": "Program file of streamgauge"}


def _field_schema(kind: str, type_: Any) -> Schema:
    """The table of a kind of field: the arguments of its class, whose name is the key of the table."""
    arguments = schema_of(type_)
    del arguments["properties"]["name"]
    required = ["kind", *(name for name in arguments["required"] if name != "name")]
    table = closed({"kind": {"const": kind}, **arguments["properties"]})
    about, _, _ = arguments["description"].partition("\n\n")
    return {**table, "required": required, "title": kind, "description": about}
