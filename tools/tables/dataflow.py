"""Lists of what the JSON form of a flow consists of, made from its JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from streamgauge.dataflow.json_form.document import json_schema
from tables.markdown import described, listed

EVERY_NODE = ("id", "kind", "name", "inputs", "output_columns")


def makers() -> dict[str, Callable[[], str]]:
    return {"flow kinds": kinds, "flow parts": parts}


def kinds() -> str:
    """Every kind of node, with the fields that not every node has."""
    return described(
        (f"`{one['properties']['kind']['const']}`", _description(one, EVERY_NODE)) for one in _objects()[0].values()
    )


def parts() -> str:
    """The document and the other objects in it."""
    rows = {"document": json_schema(), **{_words(name): one for name, one in _objects()[1].items()}}
    return described((name, _description(one)) for name, one in rows.items())


def _objects() -> tuple[dict[str, Any], dict[str, Any]]:
    """(nodes, other objects) of the JSON Schema, by name."""
    objects = {name: one for name, one in json_schema()["$defs"].items() if "properties" in one}
    nodes = {name: one for name, one in objects.items() if "kind" in one["properties"]}
    return nodes, {name: one for name, one in objects.items() if name not in nodes}


def _words(name: str) -> str:
    """`NamedExpression` as `named expression`."""
    return re.sub(r"(?<!^)(?=[A-Z])", " ", name).lower()


def _description(definition: Mapping[str, Any], without: Sequence[str] = ()) -> str:
    """The first paragraph of a description in one line, and the names of the fields."""
    text = " ".join(definition["description"].partition("\n\n")[0].split())
    own = [name for name in definition["properties"] if name not in without]
    return f"{text} Fields: {listed(own)}." if own else text
