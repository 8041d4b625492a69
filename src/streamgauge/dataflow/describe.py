"""A flow as text: one label per node and its edges, for reports and `workloads --json`."""

from typing import Any

from streamgauge.dataflow import graph, schema
from streamgauge.dataflow.nodes import (
    Columns,
    Distinct,
    Explode,
    Flow,
    IntervalJoin,
    InWindows,
    Lookup,
    Node,
    OpaqueNode,
    Process,
    RunningAggregate,
    Select,
    SessionAggregate,
    Source,
    TopN,
    Union,
    Where,
    Window,
    WindowAggregate,
    WindowJoin,
)

KINDS: dict[type, str] = {
    Source: "source",
    Select: "select",
    Where: "where",
    WindowAggregate: "window_aggregate",
    RunningAggregate: "running_aggregate",
    WindowJoin: "window_join",
    Explode: "explode",
    InWindows: "in_windows",
    Lookup: "lookup",
    Union: "union",
    SessionAggregate: "session_aggregate",
    Distinct: "distinct",
    IntervalJoin: "interval_join",
    TopN: "top_n",
    Process: "process",
}
"""The kind of each node with a JSON form, there and in results."""

LETTERS_MAX = 160
"""The longest expression in a label."""


def describe(flow: Flow) -> list[dict[str, Any]]:
    """One dict per node, sinks last: `name`, `kind`, `label`, `inputs` (names), `columns` (name: type)."""
    sinks = (
        {
            "name": sink.name,
            "kind": "sink",
            "label": f"{sink.mode} to {sink.name}",
            "inputs": [sink.input.name],
            "columns": schema.columns(sink.input),
        }
        for sink in flow.sinks
    )
    return [*map(_row, graph.operators(flow)), *sinks]


def _row(node: Node) -> dict[str, Any]:
    return {
        "name": node.name,
        "kind": node.kind if isinstance(node, OpaqueNode) else KINDS[type(node)],
        "label": _label(node),
        "inputs": [input_.name for input_ in graph.inputs(node)],
        "columns": schema.columns(node),
    }


def _label(node: Node) -> str:
    match node:
        case Source():
            return f"{node.name}({', '.join(f'{name} {type_}' for name, type_ in schema.columns(node).items())})"
        case Select():
            return _list(node.columns)
        case Where():
            return f"where {_cut(node.predicate)}"
        case WindowAggregate():
            return f"{_list(node.aggregates)} by {', '.join(node.keys)} over {_window(node.window)}"
        case RunningAggregate():
            return f"{_list(node.aggregates)} by {', '.join(node.keys)} so far"
        case WindowJoin():
            return f"{node.left.name} with {node.right.name} on {', '.join(node.keys)} over {_window(node.window)}"
        case OpaqueNode():
            return node.label
        case Explode():
            return f"each of {node.array} as {node.column}"
        case InWindows():
            return f"each window of {_window(node.windows)}"
        case Lookup():
            return f"{', '.join(node.keys)} in table {node.table.name}" + (" or null" if node.how == "left" else "")
        case Union():
            return f"all of {', '.join(input_.name for input_ in node.inputs)}"
        case SessionAggregate():
            pause = schema.seconds(node.session.gap_us)
            return f"{_list(node.aggregates)} by {', '.join(node.keys)} until a pause of {pause}"
        case Distinct():
            over = f"over {_window(node.window)}" if node.window else "so far"
            return f"first by {', '.join(node.keys)} {over}"
        case IntervalJoin():
            bounds = f"{schema.seconds(node.earliest_us)} to {schema.seconds(node.latest_us)} later"
            return f"{node.left.name} with {node.right.name} on {', '.join(node.keys)}, {bounds}"
        case TopN():
            among = f" of each {', '.join(node.keys)}" if node.keys else ""
            return f"greatest {node.n} by {node.by}{among} in each window"
        case Process():
            label = node.operator.label(**dict(node.parameters))
            everywhere = f", all of {node.inputs[-1].name} to each instance" if node.broadcast else ""
            return (f"{label} by {', '.join(node.keys)}" if node.keys else label) + everywhere


def _list(columns: Columns) -> str:
    return ", ".join(name if name == expression else f"{_cut(expression)} as {name}" for name, expression in columns)


def _cut(expression: str) -> str:
    return expression if len(expression) <= LETTERS_MAX else f"{expression[: LETTERS_MAX - 1]}…"


def _window(window: Window) -> str:
    if window.slide_us == window.range_us:
        return schema.seconds(window.range_us)
    return f"{schema.seconds(window.range_us)} every {schema.seconds(window.slide_us)}"
