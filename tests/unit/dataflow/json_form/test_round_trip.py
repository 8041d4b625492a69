"""A flow comes back from its JSON form as it was: every kind of node, every workload, and flows drawn at random."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.errors import InputError
from streamgauge.core.schema import Schema
from streamgauge.dataflow import builder, graph
from streamgauge.dataflow.builder import flow, hop, source, table
from streamgauge.dataflow.graph import with_early_firing
from streamgauge.dataflow.json_form.document import NODE_CLASSES, from_json, to_json
from streamgauge.dataflow.lineage import with_lineage
from streamgauge.dataflow.nodes import Flow, InWindows, Process
from streamgauge.workloads import registry
from tests.unit.dataflow.helpers_random_flows import flows
from tests.unit.dataflow.json_form.helpers_flows import Rule, every_node, picky

A = source("a", Schema.from_types(k="int", v="int", text="string"))


def back(document: dict[str, Any]) -> Flow:
    """The flow of the document's text, as another program would have written it."""
    return from_json(json.loads(json.dumps(document, allow_nan=False)))


def early(flow_: Flow) -> Iterator[Flow]:
    """With early firing, if the flow can have it."""
    fired = with_early_firing(flow_)
    with contextlib.suppress(InputError):
        builder.check(fired)
        yield from (fired, with_lineage(fired))


def check_round_trip(flow_: Flow) -> None:
    """By itself, and with the lineage that an engine gets, for each sink and for all at once."""
    for one in (flow_, *map(with_lineage, flow_.each()), with_lineage(flow_), *early(flow_)):
        assert back(to_json(one)) == one


@pytest.mark.parametrize("name", registry.names())
def test_every_workload_comes_back(name: str) -> None:
    """At its default parameters, and with each setting that a feature needs."""
    workload = registry.get(name)
    for setting in ({}, *({name: value} for name, value in workload.features_with.values())):
        check_round_trip(workload.build(workload.read(setting), 100_000.0).flow)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("voipstream", {"filter": "bloom"}),
        ("smart_grid", {"slice_length": "2s", "slices_per_day": 43_200, "range": "4s"}),
        ("windowed_aggregation", {"range": "10s", "slide": "2s"}),
        ("traffic_monitoring", {"map_matcher_radius": 20, "speed_calculator_window": 6}),
        ("reinforcement_learner", {"actions": "a,b", "distribution": "1/1,2/2"}),
    ],
)
def test_workloads_come_back_at_other_parameters(name: str, values: dict[str, Any]) -> None:
    """Parameters of processes that are objects, windows of other lengths."""
    workload = registry.get(name)
    check_round_trip(workload.build(workload.read(values), 100_000.0).flow)


def test_every_kind_of_node_comes_back() -> None:
    """No kind is left out of the test, and none of the form."""
    whole = every_node()
    check_round_trip(whole)
    assert ({type(node) for node in graph.operators(whole)} | {InWindows}) >= set(NODE_CLASSES.values())


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


TYPES = Schema.from_types(
    id="bigint", whole="int", real="double", flag="boolean", text="string", bits="binary", time="timestamp"
)
VALUES = {
    "id": [1, 2, 3, 4],
    "whole": [-(2**31), None, 2**31 - 1, 0],
    "real": [float("nan"), float("-inf"), -0.0, None],
    "flag": [True, False, None, True],
    "text": ["", "a\n\"ü'", None, "\U0001f600"],
    "bits": [b"", b"\x00\xff", None, b"a"],
    "time": pa.array([0, -1, None, 10**15], pa.timestamp("us", "UTC")),
}


@pytest.mark.parametrize("rows", [4, 0])
def test_a_static_table_comes_back(rows: int) -> None:
    """Every type with its edges: nulls, numbers that JSON lacks, bytes, times before 1970."""
    held = table("held", pa.table(VALUES).slice(0, rows), TYPES)
    check_round_trip(source("a", Schema.from_types(id="bigint")).lookup(held, on="id").sink("out"))


PLAIN = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text())


@given(st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=6))
def test_parameters_of_a_process_come_back(value: Any) -> None:
    """Plain values and tuples of them, by their types too: 1, 1.0 and true are not the same."""
    (node,) = (each for each in graph.operators(back(to_json(picky(value)))) if isinstance(each, Process))
    assert repr(node.parameters) == repr((("rule", value),))


def test_objects_as_parameters_come_back() -> None:
    """By the import path of their class."""
    rule = Rule((0.5, 1.0), Rule(()))
    document = to_json(picky(rule))
    stated = document["nodes"][0]["parameters"]["rule"]
    assert stated["class"].endswith("helpers_flows:Rule")
    assert stated["fields"]["inner"]["fields"] == {"limits": [], "inner": None}
    assert back(document) == picky(rule)


@given(flows(most=3))
def test_random_flows_come_back(drawn: Flow) -> None:
    """Every kind of node in any order, and several sinks."""
    check_round_trip(drawn)
