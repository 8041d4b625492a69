"""Validation of a whole flow: its nodes, the names of its operators, its sinks."""

from __future__ import annotations

import re

from streamgauge.core.errors import InputError, Problem
from streamgauge.dataflow import graph, schema
from streamgauge.dataflow.expressions.types import element_type
from streamgauge.dataflow.nodes import Flow, Node, RunningAggregate, Sink, Source


def check(flow: Flow) -> None:
    """Raises InputError if a node, an operator name or a sink is invalid."""
    if not flow.sinks:
        raise InputError(Problem("flow", "must have a sink", "none", '.sink("results")'))
    for sink in flow.sinks:
        schema.columns(sink.input)
    _check_names(flow)
    for sink in flow.sinks:
        _check_sink(sink)
    _check_sink_names(flow)


def _check_sink(sink: Sink) -> None:
    setting = f"sink {sink.name!r}"
    for name, type_ in schema.columns(sink.input).items():
        if element_type(type_) is not None:
            rule = f"column {name} is an array, and results cannot hold arrays"
            raise InputError(Problem(setting, rule, type_, f"explode it, or select(...) without {name}"))
    is_running = isinstance(sink.input, RunningAggregate)
    if is_running != (sink.mode == "update"):
        needed = "update" if is_running else "append"
        rule = f"takes mode {needed} after {type(sink.input).__name__.lower()}"
        raise InputError(Problem(setting, rule, sink.mode, f"mode={needed!r}, or none"))
    if not re.fullmatch(r"\w[\w.-]*", sink.name):
        rule = "must be a word of letters, digits, _, - and ., because files are named after it"
        raise InputError(
            Problem(setting, rule, sink.name, re.sub(r"[^\w.-]+", "_", sink.name).strip("_.-") or "results")
        )


def _check_sink_names(flow: Flow) -> None:
    """Names must differ by more than case: files are named after sinks, and some file systems ignore case."""
    seen: set[str] = set()
    for sink in flow.sinks:
        if sink.name.lower() in seen:
            raise InputError(Problem("sink", "two sinks have one name", sink.name, "another name for one of them"))
        seen.add(sink.name.lower())


def _check_names(flow: Flow) -> None:
    seen: dict[str, Node] = {}
    for node in graph.operators(flow):
        if isinstance(node, Source) and isinstance(seen.get(node.name), Source) and seen[node.name] != node:
            rule = "is read with two schemas"
            raise InputError(Problem(f"source {node.name!r}", rule, node.schema.names, "one schema for one stream"))
        if seen.setdefault(node.name, node) != node:
            raise InputError(Problem("name", "two operators have one name", node.name, "name='...' on one of them"))
