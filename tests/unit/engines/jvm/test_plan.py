"""The plan of a job on the JVM: what every kind of node becomes, and where times come from."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from streamgauge.conformance.cases import CASES, kinds
from streamgauge.core.plugin_options import TUNED
from streamgauge.core.schema import EVENT_TIME, INGEST_TIME, LINEAGE, Field, Schema
from streamgauge.dataflow import graph
from streamgauge.dataflow.lineage import with_lineage
from streamgauge.dataflow.nodes import Flow, RunningAggregate, Sink, Source
from streamgauge.engines.jvm import plan, plugin
from streamgauge.engines.spi import Edges
from streamgauge.transports.spi import Edge

RUNNABLE = [name for name, case in CASES.items() if kinds(case.flow) <= set(plan.kinds())]


def planned(
    flow: Flow, encoding: str = "compact", partitions: int = 1, keys: Mapping[str, str] = {},
    settings: Mapping[str, str] = {}, clients: str = TUNED,
) -> dict[str, Any]:  # fmt: skip
    """The document of a flow with its lineage, as the job reads it."""
    sources = {node for node in graph.operators(flow) if isinstance(node, Source)}
    columns = {node.name: (*node.schema.names, *LINEAGE) for node in sources}
    edge = Edge("127.0.0.1:9092", "run")
    options = {"brokers": "127.0.0.1:9092", "encoding": encoding}
    edges = Edges((edge,) * partitions, edge, columns, transport="kafka", transport_options=options, keys=keys)
    flow = plan.read_flow(flow, edges)
    made = plan.job_plan(flow, edges, "group", 2, "/scratch", settings, clients)
    document: dict[str, Any] = json.loads(json.dumps(asdict(made)))
    return document


def test_clients_have_the_settings_that_the_engine_leaves_open() -> None:
    flow = CASES["source"].flow
    tuned = planned(flow)
    assert (tuned["reading"]["max.poll.records"], tuned["writing"]["linger.ms"]) == ("10000", "5")
    open_to_engine = planned(flow, settings={"max.poll.records": "1000"})["reading"]
    assert open_to_engine.keys() == tuned["reading"].keys() - {"max.poll.records"}
    kafkas = planned(flow, clients="kafka")
    size = "max.request.size"
    assert (kafkas["reading"], kafkas["writing"]) == ({}, {size: tuned["writing"][size]})


@pytest.mark.parametrize("name", RUNNABLE)
def test_every_relation_is_named_before_it_is_read(name: str) -> None:
    document = planned(with_lineage(CASES[name].flow))
    known = {source["id"] for source in document["sources"]}
    for node in document["nodes"]:
        assert set(node["inputs"]) <= known
        known.add(node["id"])
    assert {sink["input"] for sink in document["sinks"]} <= known


@pytest.mark.parametrize("name", RUNNABLE)
def test_every_relation_but_updates_has_a_time(name: str) -> None:
    flow = with_lineage(CASES[name].flow)
    by_name = {node.name: node for node in graph.operators(flow)}
    for node in planned(flow)["nodes"]:
        columns = [column for column, _ in node["columns"]]
        updates = any(isinstance(each, RunningAggregate) for each in graph.walk(by_name[node["name"]]))
        assert columns.count(plan.TIME) == (not updates), node


def case_classes() -> dict[str, set[str]]:
    """The fields of each case class that the job reads a document into."""
    scala = Path(plan.__file__).parent / "scala"
    text = "".join(file.read_text() for file in scala.glob("*.scala"))
    classes = re.findall(r"case class (\w*Plan)\((.*?)\)", text, re.DOTALL)
    return {name: set(re.findall(r"(\w+):", fields)) for name, fields in classes}


@pytest.mark.parametrize("name", RUNNABLE)
def test_every_name_of_a_document_is_a_field_that_the_job_reads(name: str) -> None:
    """The job passes over names that it does not know."""
    document = planned(with_lineage(CASES[name].flow), keys={"purchases": "user_id"})
    parts = {"Plan": [document], "SourcePlan": document["sources"], "NodePlan": document["nodes"]}
    parts["SinkPlan"] = document["sinks"]
    parts["OrderPlan"] = [each for node in document["nodes"] for each in node.get("order", [])]
    parts["TablePlan"] = [node["table"] for node in document["nodes"] if "table" in node]
    fields = case_classes()
    assert [
        (part, each.keys() - fields[part]) for part in parts for each in parts[part] if each.keys() - fields[part]
    ] == []


def test_its_node_kinds_are_those_that_engines_declare() -> None:
    assert set(plan.kinds()) == set(plugin.KINDS)


def test_a_source_reads_what_its_flow_needs() -> None:
    """The time of an event is its planned one; the driver does not see when the broker delivers it."""
    (source,) = planned(with_lineage(CASES["source"].flow), partitions=3)["sources"]
    read = dict(source["columns"])
    assert source["partitions"] == 3
    assert source["topic"].endswith(source["name"])
    assert read[plan.TIME] == read[EVENT_TIME]
    assert read[INGEST_TIME] == "CAST(NULL AS BIGINT)"
    assert INGEST_TIME not in dict(source["fields"])


def test_a_source_names_its_encoding() -> None:
    (source,) = planned(with_lineage(CASES["source"].flow), encoding="json")["sources"]
    assert source["encoding"] == "json"
    assert "from_json" in source["opened"]


@pytest.mark.parametrize(
    ("field", "key"),
    [
        (Field("user_id", "int"), ["user_id", "int"]),
        (Field("user_id", "int", nullable=True), None),  # a null key is in any partition
        (Field("user_id", "double"), None),
        (Field("price", "int"), None),
    ],
)
def test_the_key_of_messages_is_named_if_every_message_has_one_that_can_be_read(
    field: Field, key: list[str] | None
) -> None:
    flow = Flow((Sink(Source("purchases", Schema((field,))), "out", "append"),))
    (source,) = planned(flow, keys={"purchases": "user_id"})["sources"]
    assert source.get("key") == key
