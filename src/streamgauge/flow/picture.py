"""A flow in words: its nodes and edges in order, one readable line each, for reports and `workloads --json`."""

from __future__ import annotations

from typing import Any

from streamgauge.flow import schema
from streamgauge.flow.nodes import (
    Columns,
    Flow,
    Node,
    RunningAggregate,
    Select,
    Sink,
    Source,
    Where,
    Window,
    WindowAggregate,
    WindowJoin,
)

_KINDS: dict[type, str] = {
    Source: "source",
    Select: "select",
    Where: "where",
    WindowAggregate: "window_aggregate",
    RunningAggregate: "running_aggregate",
    WindowJoin: "window_join",
}


def describe(flow: Flow) -> list[dict[str, Any]]:
    """One dict a node, inputs first, sinks last: `name`, `kind`, `label`, `inputs` (names), `columns` (name: type)."""
    return [*map(_row, schema.operators(flow)), *map(_sink_row, flow.sinks)]


def _sink_row(sink: Sink) -> dict[str, Any]:
    return {
        "name": sink.name,
        "kind": "sink",
        "label": f"{sink.mode} to {sink.name}",
        "inputs": [sink.input.name],
        "columns": schema.columns(sink.input),
    }


def _row(node: Node) -> dict[str, Any]:
    return {
        "name": node.name,
        "kind": _KINDS[type(node)],
        "label": _label(node),
        "inputs": [input_.name for input_ in schema.inputs(node)],
        "columns": schema.columns(node),
    }


def _label(node: Node) -> str:
    match node:
        case Source():
            return f"{node.name}({', '.join(f'{name} {type_}' for name, type_ in schema.columns(node).items())})"
        case Select():
            return _list(node.columns)
        case Where():
            return f"where {node.predicate}"
        case WindowAggregate():
            return f"{_list(node.aggregates)} by {', '.join(node.keys)} over {_window(node.window)}"
        case RunningAggregate():
            return f"{_list(node.aggregates)} by {', '.join(node.keys)} so far"
        case WindowJoin():
            return f"{node.left.name} with {node.right.name} on {', '.join(node.keys)} over {_window(node.window)}"


def _list(columns: Columns) -> str:
    return ", ".join(name if name == expression else f"{expression} as {name}" for name, expression in columns)


def _window(window: Window) -> str:
    if window.slide_us == window.range_us:
        return schema.seconds(window.range_us)
    return f"{schema.seconds(window.range_us)} every {schema.seconds(window.slide_us)}"
