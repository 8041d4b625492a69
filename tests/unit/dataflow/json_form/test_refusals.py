"""A document that is no flow is refused with its place, the rule, the value and a way out."""

from __future__ import annotations

import copy
import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from streamgauge.core.errors import InputError
from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import hop, source, table
from streamgauge.dataflow.json_form.codecs import codec_of
from streamgauge.dataflow.json_form.document import from_json, json_schema, to_json
from streamgauge.dataflow.nodes import Flow, Sink, UserJobNode
from streamgauge.dataflow.operators.api import Processor
from streamgauge.user_workloads.program_node import ProgramNode
from streamgauge.workloads.registry import get
from tests.unit.dataflow.json_form.helpers_flows import every_node, picky
from tests.unit.helpers_refusals import assert_refused, problem_of

A = source("a", Schema.from_types(k="int", v="int"))
NAMES = table("names", {"k": [1, 2], "title": ["x", "y"]}, Schema.from_types(k="int", title="string"))
SUMS = A.lookup(NAMES, on="k").where("v > 5").window(hop("8s", "4s"), keys="k").aggregate(total="sum(v)").sink("sums")
LOOKUP, WHERE, AGGREGATE = 0, 1, 2

Change = Callable[[Any], object]


def refusal(change: Change, flow: Flow = SUMS) -> str:
    """How the flow's document is refused after a change."""
    document = copy.deepcopy(to_json(flow, {"a": "k"}))
    change(document)
    with pytest.raises(InputError) as refused:
        from_json(document)
    return str(refused.value.problems[0])


def at(path: str, change: Callable[[Any, Any], object]) -> Change:
    """Changes what holds `nodes.0.id`, given its last part."""
    *before, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    return lambda document: change(functools.reduce(operator.getitem, before, document), last)


def put(path: str, value: Any) -> Change:
    return at(path, lambda part, last: part.__setitem__(last, value))


def drop(path: str) -> Change:
    return at(path, lambda part, last: part.__delitem__(last))


def both(*changes: Change) -> Change:
    return lambda document: [change(document) for change in changes]


WINDOW = f"nodes.{AGGREGATE}.window"
CHANGES: dict[str, tuple[Change, str, str]] = {
    "another version": (put("format_version", 2), "format_version: must be 1", "got 2"),
    "no version": (drop("format_version"), "format_version: must be 1", "--flow-json shows a document"),
    "version as text": (put("format_version", "1"), "format_version: must be 1", "got '1'"),
    "unknown kind": (
        put("nodes.1.kind", "wehre"), "nodes[1].kind: must be a kind of node; got 'wehre'", "try: where (select"
    ),
    "user job": (put("nodes.1.kind", "user_job"), "nodes[1].kind: must be a kind of node", "got 'user_job'"),
    "no kind": (drop("nodes.1.kind"), "nodes[1].kind: must be given", "window_aggregate"),
    "missing field": (drop(f"{WINDOW}.slide_us"), "nodes[2].window.slide_us: must be given", "flow.schema.json"),
    "missing part": (drop("sinks"), "sinks: must be given", "flow.schema.json"),
    "extra field": (put(f"{WINDOW}.gap_us", 1), "nodes[2].window.gap_us: is not a field", "leave it out"),
    "seconds": (put(f"{WINDOW}.range_us", 8.5), "nodes[2].window.range_us: must be a whole number", "got 8.5"),
    "text for a number": (put(f"{WINDOW}.range_us", "8s"), "nodes[2].window.range_us", "got '8s'"),
    "slide over range": (put(f"{WINDOW}.slide_us", 9_000_000), "is longer than its range", "tumbling"),
    "no list": (put("nodes", {}), "nodes: must be a list", "got {}"),
    "no object": (put("nodes.1", 3), "nodes[1]: must be an object", "got 3"),
    "mode": (put("sinks.0.mode", "upsert"), "sinks[0].mode: must be one of append, update", "got 'upsert'"),
    "wrong mode": (put("sinks.0.mode", "update"), "takes mode append", "got 'update'"),
    "no sink": (put("sinks", []), "sinks: must have at least 1 entry", "got []"),
    "no source": (put("sources", []), "sources: must have at least 1 entry", "got []"),
    "empty window": (put(f"{WINDOW}.range_us", 0), "nodes[2].window.range_us: must be at least 1", "got 0"),
    "no slide": (put(f"{WINDOW}.slide_us", -1), "nodes[2].window.slide_us: must be at least 1", "got -1"),
    "no keys": (put("nodes.2.keys", []), "nodes[2].keys: must have at least 1 entry", "got []"),
    "no aggregates": (put("nodes.2.aggregates", []), "nodes[2].aggregates: must have at least 1 entry", "got []"),
    "unknown input": (put("nodes.1.inputs", ["lokup"]), "nodes[1].inputs[0]: must be the id", "try: lookup"),
    "input behind": (put("nodes.0.inputs", ["aggregate"]), "nodes[0].inputs[0]: must be the id", "one of a;"),
    "two inputs": (put("nodes.1.inputs", ["a", "a"]), "nodes[1].inputs: must have at most 1 entry", "got ['a', 'a']"),
    "no input": (put("nodes.1.inputs", []), "nodes[1].inputs: must have at least 1 entry", "got []"),
    "equal ids": (put("nodes.1.id", "lookup"), "nodes[1].id: must differ from all other ids", "lookup_2"),
    "unread node": (put("sinks.0.input", "where"), "must be read by a node or a sink", "leave it out"),
    "node twice": (
        lambda document: document["nodes"].insert(2, {**document["nodes"][1], "id": "again"}),
        "nodes[2]: must differ from 'where'", "one node",
    ),
    "key": (put("sources.0.key", "user"), "sources[0].key: must be a column of the source", "k, v"),
    "unknown column": (put("nodes.1.predicate.sql", "price > 5"), "price", "where 'where'"),
    "expression type": (
        put("nodes.2.aggregates.0.type", "int"), "nodes[2].aggregates[0].type: disagrees with the rest", "'bigint'"
    ),
    "expression reads": (put("nodes.1.predicate.reads", ["k"]), "nodes[1].predicate.reads", "'v'"),
    "columns": (drop("nodes.1.output_columns.0"), "nodes[1].output_columns: disagrees", "'name': 'k'"),
    "event time": (put("sources.0.event_time_column", "ts"), "sources[0].event_time_column", "'event_time'"),
    "sink keys": (put("sinks.0.keys", ["k"]), "sinks[0].keys: disagrees", "window_start"),
    "column type": (put("sources.0.schema.fields.0.type", "decimal"), "must be one of int, bigint", "got 'decimal'"),
    "table values": (put("nodes.0.table.rows.k", [1, "b"]), "nodes[0].table.rows.k: must hold values", "type int"),
    "table lengths": (put("nodes.0.table.rows.k", [1]), "nodes[0].table.rows: must have as many", "k: 1, title: 2"),
    "table columns": (drop("nodes.0.table.rows.k"), "nodes[0].table.rows: must have the columns", "k, title"),
    "table keys": (put("nodes.0.table.rows.k", [1, 1]), "keys must be unique", "one row for each key"),
    "workload": (put("workload", {"name": "x"}), "workload.parameters: must be given", "try:"),
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGES)
def test_a_wrong_document_is_refused(what: str) -> None:
    change, *parts = CHANGES[what]
    message = refusal(change)
    assert [part for part in parts if part not in message] == []


def test_the_schema_says_so_too() -> None:
    """Of what `dataflow.schema` refuses, so that other readers need not find out."""
    form = json_schema()
    parts = {name: one.get("properties", {}) for name, one in form["$defs"].items()}
    keyed = {"Distinct", "IntervalJoin", "Lookup", "RunningAggregate", "SessionAggregate", "WindowJoin"}
    keyed |= {"WindowAggregate"}
    assert {name for name, part in parts.items() if part.get("keys", {}).get("minItems") == 1} == keyed
    assert {name for name, part in parts.items() if part.get("aggregates", {}).get("minItems") == 1} == {
        name for name in keyed if name.endswith("Aggregate")
    }
    assert parts["Select"]["columns"]["minItems"] == parts["Process"]["gives"]["minItems"] == 1
    assert parts["Union"]["inputs"]["minItems"] == 2
    assert {name: one["minimum"] for name, one in parts["Window"].items()} == {"range_us": 1, "slide_us": 1}
    assert parts["TopN"]["n"]["minimum"] == 1
    assert form["properties"]["sinks"]["minItems"] == form["properties"]["sources"]["minItems"] == 1


@pytest.mark.parametrize("document", [None, [], "flow", {}])
def test_what_is_no_document_is_refused(document: Any) -> None:
    assert_refused("format_version", from_json, document)


def test_every_problem_of_form_is_reported_at_once() -> None:
    """Two fields of wrong types, two problems."""
    document = to_json(SUMS)
    both(put(f"{WINDOW}.range_us", "x"), drop("sinks.0.mode"))(document)
    with pytest.raises(InputError) as refused:
        from_json(document)
    assert len(refused.value.problems) == 2


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (put("nodes.0.operator", "no_such_module:Totals"), "nodes[0].operator: must be a subclass of Processor"),
        (put("nodes.0.operator", "pathlib:Path"), "nodes[0].operator: must be a subclass of Processor"),
        (put("nodes.0.operator", "Totals"), "nodes[0].operator: must be a subclass of Processor"),
        (put("nodes.0.parameters", {"limit": 1}), "cannot make Picky"),
        (put("nodes.0.parameters.rule", {"limit": 1}), "nodes[0].parameters.rule: must have only the members class"),
        (
            put("nodes.0.parameters.rule", {"class": "pathlib:Path", "fields": {}}),
            "nodes[0].parameters.rule: must have only the members class",
        ),
        (
            put("nodes.0.parameters.rule", {"class": "streamgauge.core.schema:Field", "fields": {"nom": "k"}}),
            "nodes[0].parameters.rule.fields: do not fit the class",
        ),
        (put("nodes.0.parameters.rule", math.nan), "has no JSON form"),
        (put("nodes.0.gives.0.type", "decimal"), "has no type of a flow"),
    ],
)
def test_a_wrong_process_is_refused(change: Change, rule: str) -> None:
    assert rule in refusal(change, picky(3))


@pytest.mark.parametrize("value", [math.inf, 1 + 2j, frozenset({1}), np.float64(1.5), b"x", Schema.from_types])
def test_a_parameter_without_a_json_form_is_refused(value: Any) -> None:
    assert "frozen dataclass" in problem_of(to_json, picky(value)).way_out


def test_a_class_that_cannot_be_imported_is_refused() -> None:
    """One inside a function has no path."""

    class Local(Processor):
        def process(self, batch: Any, watermark_us: int) -> Any:
            return batch

    assert_refused(
        "cannot be imported by its name", to_json, A.process(Local, gives=Schema.from_types(k="int")).sink("out")
    )


@pytest.mark.parametrize(("node", "message"), [
    (UserJobNode((A.node,), ("t",), "jobs/mine.py", "mine"), "user job 'mine': is PySpark code"),
    (ProgramNode((A.node,), ("t",), "dear/program.toml", "mine"), "program 'mine': is any code over Kafka"),
])  # fmt: skip
def test_a_user_job_and_a_program_are_refused(node: Any, message: str) -> None:
    """One is code for one engine, the other any code."""
    assert_refused(f"{message}, and has no JSON form", to_json, Flow((Sink(node, "out", "append"),)))


def test_a_type_without_a_rule_is_found() -> None:
    """A node with a field of a new type fails every test here, rather than a user's run."""
    with pytest.raises(TypeError, match="has no rule for"):
        codec_of(set[str])


def test_every_value_that_a_document_derives_is_checked() -> None:
    """No type and no list of columns can be changed unnoticed, in a flow with every kind of node."""
    document = to_json(every_node())

    def places(value: Any, path: str = "") -> Any:
        for name, part in value.items() if isinstance(value, dict) else enumerate(value):
            if name == "reads" and "operator" in value:  # what a process reads is stated once
                continue
            if name in ("type", "reads", "output_columns", "lineage", "event_time_column"):
                yield f"{path}.{name}".removeprefix(".")
            elif isinstance(part, dict | list) and name not in ("schema", "gives", "rows", "parameters"):
                yield from places(part, f"{path}.{name}".removeprefix("."))

    paths = list(places(document))
    assert len(paths) > 50
    for path in paths[:: len(paths) // 25]:
        changed = copy.deepcopy(document)
        put(path, "other" if path.endswith(("type", "column")) else [])(changed)
        if changed != document:
            assert_refused("try: ", from_json, changed)


def test_a_golden_flow_with_another_range_is_another_flow() -> None:
    """A change that leaves the document valid is read as what it says."""
    workload = get("windowed_aggregation")
    document = workload.flow_document(workload.read({}), 100_000.0)
    flow = from_json(document)
    put("nodes.0.window.range_us", 12_000_000)(document)
    assert from_json(document) != flow
    assert from_json(document) == workload.build(workload.read({"range": "12s"}), 100_000.0).flow
