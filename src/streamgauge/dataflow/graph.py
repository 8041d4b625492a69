"""A flow as a graph: the inputs of each node, all nodes in topological order, and rewritings that keep its meaning.

Early firing: windows emit their current values instead of waiting for their end. Engines that only write updates need
it. A windowed aggregate at a sink becomes a running aggregate by keys and window. Each result is verified as the value
after all events of its key and window up to the one that caused it.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from streamgauge.core.schema import WINDOW_END, WINDOW_START, Schema
from streamgauge.dataflow.nodes import Flow, InWindows, Node, RunningAggregate, Sink, Source, WindowAggregate


def inputs(node: Node) -> tuple[Node, ...]:
    """The nodes that a node reads; the left input of a join comes first."""
    values = tuple(getattr(node, name) for name in input_fields(type(node)))
    return values[0] if takes_many(type(node)) else values


def with_inputs(node: Node, inputs_: tuple[Node, ...]) -> Node:
    """The node with its inputs replaced, in the order of `inputs`."""
    return replace(node, **as_fields(type(node), inputs_))


def as_fields(class_: type[Node], inputs_: tuple[Node, ...]) -> dict[str, Any]:
    """The fields of a kind of node that hold these inputs, by name."""
    return dict(zip(input_fields(class_), (inputs_,) if takes_many(class_) else inputs_, strict=True))


def input_fields(class_: type[Node]) -> tuple[str, ...]:
    """The fields of a kind of node that hold its inputs."""
    return tuple(name for name in ("input", "left", "right", "inputs") if name in class_.__dataclass_fields__)


def takes_many(class_: type[Node]) -> bool:
    """Whether a kind of node has one field for any number of inputs."""
    return input_fields(class_) == ("inputs",)


def free_name(name: str, taken: Collection[str]) -> str:
    """A name that is not taken: `where`, then `where_2`, `where_3`."""
    return next(each for each in (name, *(f"{name}_{n}" for n in range(2, len(taken) + 3))) if each not in taken)


def with_schemas(flow: Flow, schemas: Mapping[str, Schema]) -> Flow:
    """The flow with the schemas of its sources replaced, by source name. Only nullability may differ."""
    rewritten: dict[Node, Node] = {}
    for node in operators(flow):
        new = with_inputs(node, tuple(rewritten[input_] for input_ in inputs(node)))
        rewritten[node] = replace(new, schema=schemas[new.name]) if isinstance(new, Source) else new
    return Flow(tuple(replace(sink, input=rewritten[sink.input]) for sink in flow.sinks))


def walk(*nodes: Node) -> Iterator[Node]:
    """Every node upstream of these and themselves: inputs first, each once (equal nodes are one operator)."""
    seen: dict[Node, None] = {}

    def visit(current: Node) -> None:
        for input_ in inputs(current):
            visit(input_)
        seen.setdefault(current)

    for node in nodes:
        visit(node)
    return iter(seen)


def operators(flow: Flow) -> Iterator[Node]:
    """Every node of a flow, inputs first, each once."""
    return walk(*(sink.input for sink in flow.sinks))


def sources(flow: Flow) -> tuple[Source, ...]:
    """The flow's sources in topological order, each once."""
    return tuple(node for node in operators(flow) if isinstance(node, Source))


def carries_lineage(node: Node) -> bool:
    """Whether the lineage rewrite was already applied."""
    return any(isinstance(each, Source) and each.lineage for each in walk(node))


def with_early_firing(flow: Flow) -> Flow:
    """The flow in which every windowed aggregate at a sink fires early."""
    return Flow(tuple(map(_early, flow.sinks)))


def _early(sink: Sink) -> Sink:
    node = sink.input
    if not isinstance(node, WindowAggregate):
        return sink
    each = InWindows(node.input, node.window, f"{node.name}.windows")
    keys = (*node.keys, WINDOW_START, WINDOW_END)
    return replace(sink, input=RunningAggregate(each, keys, node.aggregates, node.name), mode="update")
