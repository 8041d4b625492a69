"""The fields of an input from their tables, such as `price = { kind = "integer", low = 1, high = 100 }`.

Messages name the types of TOML, since the classes of fields name those of Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, replace
from typing import Any

from streamgauge.core.errors import InputError, Problem, nearest
from streamgauge.loadgen.fields import Decimal, FieldSpec, Integer, Key, Payload, Text
from streamgauge.loadgen.fitted import Choice

KINDS: dict[str, type[FieldSpec]] = {
    "key": Key, "integer": Integer, "decimal": Decimal, "text": Text, "payload": Payload, "choice": Choice,
}  # fmt: skip
TOML_TYPES = {
    bool: "a boolean", int: "an integer", float: "a float", str: "a string", list: "an array", dict: "a table",
}  # fmt: skip
EXAMPLES = {
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
_WHOLE = ("domain", "words", "size_bytes")
_NUMBER = "an integer or a float"


def specs_of(setting: str, tables: Mapping[str, Any]) -> tuple[FieldSpec, ...]:
    """The fields, those of nested tables with dotted names. Raises InputError with the problems of all."""
    problems: list[Problem] = []
    specs: list[FieldSpec] = []
    for name, table in _flat(tables):
        try:
            specs.append(_field(f"{setting}.{name}", name, table))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return tuple(specs)


def toml_type(value: object) -> str:
    """The type of a value as TOML names it."""
    return TOML_TYPES.get(type(value), "a date or time")


def _flat(tables: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """(dotted name, table) of each field. A table of tables is a level of nesting."""
    for name, table in tables.items():
        if table and all(isinstance(value, dict) for value in table.values()):
            yield from _flat(table, f"{prefix}{name}.")
        else:
            yield prefix + name, table


def _field(setting: str, name: str, table: Mapping[str, Any]) -> FieldSpec:
    """A field from its table: `kind`, and the arguments of that kind."""
    if not name:
        raise InputError(Problem(setting, "must have a name", name, 'user_id = { kind = "key", domain = 1000 }'))
    kind, given = table.get("kind"), {key: value for key, value in table.items() if key != "kind"}
    if not isinstance(kind, str) or kind not in KINDS:
        way_out = f'kind = "{_MEANT.get(str(kind).lower()) or nearest(kind, list(KINDS))}"'
        raise InputError(Problem(f"{setting}.kind", f"must be one of {', '.join(KINDS)}", kind, way_out))
    arguments = {one.name: one for one in fields(KINDS[kind]) if one.init and one.name != "name"}
    for key, value in given.items():
        if key not in arguments:
            way_out = EXAMPLES[nearest(key, list(arguments))]
            raise InputError(Problem(f"{setting}.{key}", f"is not a setting of a {kind}", value, way_out))
        if (wanted := _wanted(kind, key, value)) is not None:
            rule = f"must be {wanted}, not {toml_type(value)}"
            raise InputError(Problem(f"{setting}.{key}", rule, value, EXAMPLES[key]))
    for key, argument in arguments.items():
        if key not in given and argument.default is MISSING:
            raise InputError(Problem(f"{setting}.{key}", f"must be given for a {kind}", None, EXAMPLES[key]))
    if kind == "choice":
        _check_choice(setting, **given)
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}
    try:
        return KINDS[kind](name, **values)
    except InputError as error:
        own = {"way_out": f"{EXAMPLES['values']}, {EXAMPLES['weights']}"} if kind == "choice" else {}
        raise InputError([replace(problem, setting=setting, **own) for problem in error.problems]) from None


def _wanted(kind: str, key: str, value: object) -> str | None:
    """The type that an argument must have; None if it has it."""
    if key in ("values", "weights"):
        return None if isinstance(value, list) else "an array"
    if key == "distribution":
        return None if isinstance(value, str) else "a string"
    if key in _WHOLE or kind == "integer":
        return None if type(value) is int else "an integer"
    return None if type(value) in (int, float) else _NUMBER


def _check_choice(setting: str, values: list[Any], weights: list[Any] | None = None) -> None:
    """Raises InputError unless a field can choose from these values with these weights."""
    kinds = list(dict.fromkeys(map(toml_type, values)))
    if len(kinds) != 1 or type(values[0]) not in (str, int, float, bool):
        rule = "must be strings, integers, floats or booleans, all of one type"
        raise InputError(Problem(f"{setting}.values", rule, values[:5], EXAMPLES["values"]))
    for weight in weights or ():
        if type(weight) not in (int, float):
            rule = f"must be an array of numbers, not of {toml_type(weight)}"
            raise InputError(Problem(f"{setting}.weights", rule, weight, EXAMPLES["weights"]))
    if weights and len(weights) != len(values):
        rule = f"must have a weight for each of the {len(values)} values"
        raise InputError(Problem(f"{setting}.weights", rule, weights, EXAMPLES["weights"]))
