"""Every flow has a document that conforms to the JSON Schema; what has no JSON form is refused."""

import json
import math
from typing import Any

import jsonschema
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from streamgauge.core.schema import Schema
from streamgauge.dataflow import graph
from streamgauge.dataflow.builder import flow, hop, source, table
from streamgauge.dataflow.json_form.codecs import codec_of
from streamgauge.dataflow.json_form.document import NODE_CLASSES, json_schema, to_json
from streamgauge.dataflow.lineage import with_lineage
from streamgauge.dataflow.nodes import Flow, Sink, UserJobNode
from streamgauge.dataflow.operators.api import Processor
from streamgauge.user_workloads.program_node import ProgramNode
from streamgauge.workloads import registry
from tests.unit.dataflow.helpers_random_flows import flows
from tests.unit.dataflow.json_form.helpers_flows import Rule, every_node, picky
from tests.unit.helpers_refusals import assert_refused, problem_of

A = source("a", Schema.from_types(k="int", v="int", text="string"))
FORM = json_schema()
VALIDATOR = jsonschema.Draft202012Validator(FORM)


def assert_conforms(flow_: Flow) -> None:
    """By itself, and with the lineage that an engine gets, for each sink and for all at once."""
    for one in (flow_, *map(with_lineage, flow_.each()), with_lineage(flow_)):
        assert list(VALIDATOR.iter_errors(json.loads(json.dumps(to_json(one), allow_nan=False)))) == []


@pytest.mark.parametrize("name", registry.names())
def test_every_workload_conforms(name: str) -> None:
    """With each setting that a feature needs; parameters of processes are objects too."""
    workload = registry.get(name)
    settings = [{name: value} for name, value in workload.features_with.values()]
    for setting in settings + ([{"filter": "bloom"}] if name == "voipstream" else []):
        assert_conforms(workload.build(workload.read(setting), 100_000.0).flow)


def test_every_kind_of_node_conforms() -> None:
    """No kind is left out of the test, and none of the form."""
    early = graph.with_early_firing(A.window(hop("8s", "4s"), keys="k").aggregate(n="count(*)").sink("early"))
    whole = Flow((*every_node().sinks, *early.sinks))
    assert_conforms(whole)
    assert {type(node) for node in graph.operators(whole)} >= set(NODE_CLASSES.values())


@given(flows(most=3))
def test_random_flows_conform(drawn: Flow) -> None:
    """Every kind of node in any order, and several sinks."""
    assert_conforms(drawn)


def test_a_shared_node_appears_once() -> None:
    """Two sinks of one operator name the same id."""
    rows = A.where("v > 5")
    document = to_json(flow(rows.sink("rows"), rows.running(keys="k", n="count(*)").sink("counts")))
    assert [node["id"] for node in document["nodes"]] == ["where", "running"]
    assert [node["inputs"] for node in document["nodes"]] == [["a"], ["where"]]
    assert [sink["input"] for sink in document["sinks"]] == ["where", "running"]


def test_what_a_document_says() -> None:
    """Microseconds, typed expressions with the columns they read, keys and lineage of the results."""
    document = to_json(A.window(hop("8s", "4s"), keys="k").aggregate(total="sum(v)").sink("sums"), {"a": "k"})
    (aggregate,), (sums,), (source_,) = document["nodes"], document["sinks"], document["sources"]
    assert (source_["name"], source_["key"], source_["event_time_column"]) == ("a", "k", "event_time")
    assert aggregate["window"] == {"range_us": 8_000_000, "slide_us": 4_000_000}
    assert aggregate["aggregates"] == [{"name": "total", "sql": "sum(v)", "type": "bigint", "reads": ["v"]}]
    assert [column["name"] for column in sums["columns"]] == ["k", "window_start", "window_end", "total"]
    assert sums["keys"] == ["k", "window_start"]
    assert [column["name"] for column in sums["lineage"]] == ["event_time", "ingest_time"]
    rows = to_json(A.sink("rows"))["sinks"][0]
    assert (rows["keys"], [column["name"] for column in rows["lineage"]][-1]) == (["event_id"], "event_id")
    updates = to_json(A.running(keys="k", n="count(*)").sink("counts"))["sinks"][0]
    assert (updates["mode"], updates["keys"]) == ("update", ["k"])


TYPES = Schema.from_types(id="bigint", real="double", flag="boolean", text="string", bits="binary", time="timestamp")
PLAIN = {"id": [1, 2, 3, 4], "flag": [True, False, None, True], "text": ["", "a\n\"ü'", None, "\U0001f600"]}
VALUES = PLAIN | {
    "real": [math.nan, -math.inf, -0.0, None],
    "bits": [b"", b"\x00\xff", None, b"a"],
    "time": pa.array([0, -1, None, 10**15], pa.timestamp("us", "UTC")),
}
WRITTEN: dict[str, Any] = PLAIN | {
    "real": ["NaN", "-Infinity", -0.0, None],
    "bits": ["", "AP8=", None, "YQ=="],
    "time": [0, -1, None, 10**15],
}


@pytest.mark.parametrize("rows", [4, 0])
def test_a_static_table_holds_every_value(rows: int) -> None:
    """Every type with its edges: nulls, numbers that JSON lacks, bytes, times before 1970."""
    held = table("held", pa.table(VALUES).slice(0, rows), TYPES)
    looked_up = source("a", Schema.from_types(id="bigint")).lookup(held, on="id").sink("out")
    assert_conforms(looked_up)
    assert to_json(looked_up)["nodes"][0]["table"]["rows"] == {name: each[:rows] for name, each in WRITTEN.items()}


def test_parameters_of_a_process() -> None:
    """Plain values, tuples as lists, and objects by the import path of their class."""
    stated = to_json(picky((Rule((0.5, 1.0), Rule(())), True, 1, None, "x")))["nodes"][0]["parameters"]["rule"]
    assert stated[1:] == [True, 1, None, "x"]
    assert stated[0]["class"].endswith("helpers_flows:Rule")
    assert stated[0]["fields"]["limits"] == [0.5, 1.0]
    assert stated[0]["fields"]["inner"]["fields"] == {"limits": [], "inner": None}


@pytest.mark.parametrize("value", [math.inf, 1 + 2j, frozenset({1}), np.float64(1.5), b"x", Schema.from_types])
def test_a_parameter_without_a_json_form_is_refused(value: Any) -> None:
    assert "frozen dataclass" in problem_of(to_json, picky(value)).way_out


def test_a_class_that_cannot_be_imported_is_refused() -> None:
    """One inside a function has no path."""

    class Local(Processor):
        def process(self, batch: Any, watermark_us: int) -> Any:
            return batch

    local = A.process(Local, gives=Schema.from_types(k="int")).sink("out")
    assert_refused("cannot be imported by its name", to_json, local)


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


def test_the_schema_refuses_what_a_flow_refuses() -> None:
    """So that other readers need not find out."""
    parts = {name: one.get("properties", {}) for name, one in FORM["$defs"].items()}
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
    assert FORM["properties"]["sinks"]["minItems"] == FORM["properties"]["sources"]["minItems"] == 1
