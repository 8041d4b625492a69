"""Tables of the JSON form of a flow, made from its JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from streamgauge.dataflow.json_form.document import json_schema

EVERY_NODE = ("id", "kind", "name", "inputs", "output_columns")
Table = tuple[Sequence[str], Sequence[Sequence[str]]]


def blocks() -> dict[str, Table]:
    """Generated block to the head and rows of its table."""
    schema = json_schema()
    objects = {name: one for name, one in schema["$defs"].items() if "properties" in one}
    nodes = [one for one in objects.values() if "kind" in one["properties"]]
    parts = {"document": schema, **{_words(name): one for name, one in objects.items() if one not in nodes}}
    kinds = [(f"`{one['properties']['kind']['const']}`", _meaning(one), _fields(one, EVERY_NODE)) for one in nodes]
    return {
        "flow kinds": (("kind", "meaning", "own fields"), kinds),
        "flow parts": (
            ("object", "meaning", "fields"), [(name, _meaning(one), _fields(one)) for name, one in parts.items()]
        ),
    }  # fmt: skip


def _words(name: str) -> str:
    """`NamedExpression` as `named expression`; JsonValue is any value."""
    return "any value" if name == "JsonValue" else re.sub(r"(?<!^)(?=[A-Z])", " ", name).lower()


def _meaning(definition: Mapping[str, Any]) -> str:
    """The first paragraph of a description in one line."""
    return " ".join(definition["description"].partition("\n\n")[0].split())


def _fields(definition: Mapping[str, Any], without: Sequence[str] = ()) -> str:
    properties = definition["properties"].items()
    return ", ".join(f"`{name}` {_type(one)}" for name, one in properties if name not in without)


def _type(definition: Mapping[str, Any]) -> str:
    """The type of a field in words."""
    match definition:
        case {"$ref": reference}:
            return _words(str(reference).rpartition("/")[2])
        case {"anyOf": choices}:
            return " or ".join(map(_type, choices))
        case {"items": {"discriminator": _}}:
            return "list of node"
        case {"items": items}:
            return f"list of {_type(items)}"
        case {"additionalProperties": dict(values)} if values:
            return f"object of {_type(values)}"
        case {"enum": choices}:
            return " or ".join(f"`{one}`" for one in choices)
        case {"const": value}:
            return f"`{value}`"
        case _:
            return str(definition.get("type", "values"))
