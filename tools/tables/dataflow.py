"""The kinds of nodes in the JSON form of a flow, made from its JSON Schema."""

from __future__ import annotations

from collections.abc import Callable

from streamgauge.dataflow.json_form.document import json_schema
from tables.markdown import code, described, listed

EVERY_NODE = ("id", "kind", "name", "inputs", "output_columns")


def makers() -> dict[str, Callable[[], str]]:
    return {"flow kinds": kinds}


def kinds() -> str:
    """Every kind of node: the first paragraph of its description, and the names of the fields that are its own."""
    rows = []
    for definition in json_schema()["$defs"].values():
        properties = definition.get("properties", {})
        if "kind" in properties:
            text = " ".join(definition["description"].partition("\n\n")[0].split())
            own = [name for name in properties if name not in EVERY_NODE]
            rows.append((code(properties["kind"]["const"]), f"{text} Fields: {listed(own)}." if own else text))
    return described(rows)
