"""A flow as JSON for a job on the JVM: each node with its columns, and every expression as Spark SQL text.

The texts are those that Spark gets, because the job compiles them with Spark's own Catalyst. Every relation has the
column `_time` beside its own, microseconds, by which windows are made.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

from streamgauge.core.plugin_options import TUNED
from streamgauge.core.schema import EVENT_ID, EVENT_TIME, INGEST_TIME, LINEAGE, Schema
from streamgauge.core.units import backquote
from streamgauge.dataflow import graph, schema
from streamgauge.dataflow.expressions import check
from streamgauge.dataflow.lineage import pruned
from streamgauge.dataflow.nodes import (
    Distinct,
    Explode,
    Flow,
    IntervalJoin,
    Lookup,
    Node,
    RunningAggregate,
    Select,
    SessionAggregate,
    Sink,
    Source,
    TopN,
    Union,
    Where,
    Window,
    WindowAggregate,
    WindowJoin,
)
from streamgauge.engines.spi import Edges
from streamgauge.transports.kafka.encodings.choice import encoding
from streamgauge.transports.kafka.encodings.json import Json
from streamgauge.transports.kafka.result_messages import key_of, wire
from streamgauge.transports.kafka.settings import MESSAGE_BYTES_MAX, KafkaSettings
from streamgauge.transports.topic_names import results_of, topic_of

TIME, BY, ARRAY = "_time", "_by", "_array"
ALL = 0
"""The batch number of all results."""
KEYS = ("int", "bigint", "string")
"""Types whose values a message's key gives back."""
READING = {"max.poll.records": "10000", "fetch.max.wait.ms": "10", "max.partition.fetch.bytes": "10485760"}
LARGEST = {"max.request.size": str(MESSAGE_BYTES_MAX)}
"""As the driver's own client: Kafka's 1 MB would end a job whose results keep a payload."""
WRITING = {"linger.ms": "5", "batch.size": "262144", "compression.type": "lz4", "acks": "all", **LARGEST}
CLIENTS: Mapping[str, tuple[Mapping[str, str], Mapping[str, str]]] = {TUNED: (READING, WRITING), "kafka": ({}, LARGEST)}
"""Settings of consumers and producers, by the values of the option `kafka_clients`."""


@dataclass(frozen=True)
class JobPlan:
    """The document, as `scala/Plan.scala` reads it.

    `client`, `reading`, `writing`: settings of all Kafka clients, of consumers and of producers. `restore`: the state
    to go on from; None for a first start.
    """

    client: Mapping[str, str]
    reading: Mapping[str, str]
    writing: Mapping[str, str]
    group: str
    parallelism: int
    scratch: str
    options: Mapping[str, str]
    sources: list[dict[str, Any]]
    nodes: list[dict[str, Any]]
    sinks: list[dict[str, Any]]
    restore: str | None = None


def job_plan(
    flow: Flow, edges: Edges, group: str, parallelism: int, scratch: str, options: Mapping[str, str], clients: str
) -> JobPlan:
    """The plan of a flow over Kafka, which `read_flow` gave. `options`: the engine's settings, which go before those of
    `clients`, a value of `kafka_clients`.
    """
    settings = KafkaSettings(**edges.transport_options)
    nodes = list(graph.operators(flow))
    numbers = {node: number for number, node in enumerate(nodes)}
    reading, writing = (
        {name: value for name, value in each.items() if name not in options} for each in CLIENTS[clients]
    )
    return JobPlan(
        {"bootstrap.servers": settings.brokers, **settings.java()}, reading, writing, group, parallelism, scratch,
        options,
        sources=[_source(node, numbers[node], edges, settings) for node in nodes if isinstance(node, Source)],
        nodes=[_node(node, numbers) for node in nodes if not isinstance(node, Source)],
        sinks=[_sink(sink, numbers[sink.input], edges) for sink in flow.sinks],
    )  # fmt: skip


def read_flow(flow: Flow, edges: Edges) -> Flow:
    """The flow over those columns of its streams that messages have, without the columns that nothing reads."""
    flow, rewritten, lineage = pruned(flow), dict[Node, Node](), defaultdict[str, set[str]](set)
    for node in graph.operators(flow):
        if isinstance(node, Source):
            lineage[node.name].update(node.lineage)
    for node in graph.operators(flow):
        if isinstance(node, Source):  # a stream that several sinks read is read once, since its group has one progress
            fields = tuple(field for field in node.schema.fields if field.name in edges.columns[node.name])
            ids = tuple(name for name in LINEAGE if name in lineage[node.name])
            rewritten[node] = replace(node, schema=Schema(fields), lineage=ids)
        else:
            rewritten[node] = graph.with_inputs(node, tuple(rewritten[each] for each in graph.inputs(node)))
    return Flow(tuple(replace(sink, input=rewritten[sink.input]) for sink in flow.sinks))


def sink_types(flow: Flow) -> dict[str, dict[str, str]]:
    """Sink to the types of its columns."""
    return {sink.name: schema.columns(sink.input) for sink in flow.sinks}


def _source(node: Source, number: int, edges: Edges, settings: KafkaSettings) -> dict[str, Any]:
    types = {**node.schema.types(), **dict.fromkeys((EVENT_TIME, EVENT_ID), "bigint")}
    columns = tuple((name, types[name]) for name in edges.columns[node.name] if name != INGEST_TIME)
    layout = encoding(settings.encoding, columns)
    # The driver does not see when a broker delivers a message.
    texts = {**layout.expressions("event"), INGEST_TIME: "CAST(NULL AS BIGINT)"}
    return {
        **_partitioned_by(node, edges),
        "id": number, "name": node.name, "topic": topic_of(edges.output.token, node.name),
        "partitions": len(edges.inputs), "encoding": settings.encoding, "fields": list(columns),
        "opened": layout.opened("value"),
        "columns": [*((name, texts[name]) for name in schema.columns(node)), (TIME, texts[EVENT_TIME])],
    }  # fmt: skip


def _partitioned_by(node: Source, edges: Edges) -> dict[str, Any]:
    """The column and type of the key by which events stand in partitions, if each event has one that can be read."""
    key = edges.keys.get(node.name)
    for field in node.schema.fields:
        if field.name == key and not field.nullable and field.type in KEYS:
            return {"key": [field.name, field.type]}
    return {}


def _node(node: Node, numbers: Mapping[Node, int]) -> dict[str, Any]:
    return {
        "id": numbers[node], "kind": type(node).__name__, "name": node.name,
        "inputs": [numbers[each] for each in graph.inputs(node)],
        "columns": [*schema.columns(node).items(), (TIME, "bigint")], **_fields(node),
    }  # fmt: skip


def _sink(sink: Sink, number: int, edges: Edges) -> dict[str, Any]:
    values = (f"{wire(name, kind)} AS {backquote(name)}" for name, kind in schema.columns(sink.input).items())
    return {
        "input": number, "name": sink.name, "topic": results_of(edges.output.token), "key": key_of(sink.name, ALL),
        "value": f"to_json(struct({', '.join(values)}))",
    }  # fmt: skip


@singledispatch
def _fields(node: Any) -> dict[str, Any]:
    """The fields of a node's kind."""
    raise TypeError(f"no JSON for the node {type(node).__name__}")


def kinds() -> tuple[type, ...]:
    """The node kinds that have a form here."""
    return (Source, *(kind for kind in _fields.registry if kind is not object))


def _passed(names: Any) -> list[tuple[str, str]]:
    """Columns as they are."""
    return [(name, backquote(name)) for name in names]


@_fields.register
def _(node: Select) -> dict[str, Any]:
    return {"made": [*node.columns, (TIME, TIME)], "columns": [*schema.columns(node).items(), (TIME, TIME)]}


@_fields.register
def _(node: Where) -> dict[str, Any]:
    return {"predicate": node.predicate}


@_fields.register
def _(node: Explode) -> dict[str, Any]:
    return {
        "made": [*_passed(schema.columns(node.input)), (TIME, TIME), (ARRAY, node.array)],
        "column": node.column, "ordinal": node.ordinal,
    }  # fmt: skip


@_fields.register
def _(node: Lookup) -> dict[str, Any]:
    layout = Json(tuple(node.table.schema.types().items()))
    messages = (text for batch in node.table.to_arrow().to_batches() for text in layout.encode(batch).to_pylist())
    table = {
        "rows": [bytes(text).decode() for text in messages], "opened": layout.opened("value"),
        "columns": list(layout.expressions("event").items()),
    }  # fmt: skip
    return {"keys": list(node.keys), "how": node.how, "table": table}


@_fields.register
def _(node: Union) -> dict[str, Any]:
    return {"made": _passed([*schema.columns(node), TIME])}


@_fields.register
def _(node: WindowAggregate) -> dict[str, Any]:
    return {"keys": list(node.keys), "made": list(node.aggregates), **_window(node.window)}


@_fields.register
def _(node: SessionAggregate) -> dict[str, Any]:
    return {"keys": list(node.keys), "made": list(node.aggregates), "gap_us": node.session.gap_us}


@_fields.register
def _(node: RunningAggregate) -> dict[str, Any]:
    return {
        "keys": list(node.keys), "made": list(node.aggregates), "columns": list(schema.columns(node).items()),
    }  # fmt: skip


@_fields.register
def _(node: WindowJoin) -> dict[str, Any]:
    return {"keys": list(node.keys), "predicate": _has_keys(node), **_window(node.window)}


@_fields.register
def _(node: IntervalJoin) -> dict[str, Any]:
    return {
        "keys": list(node.keys), "predicate": _has_keys(node),
        "earliest_us": node.earliest_us, "latest_us": node.latest_us,
    }  # fmt: skip


@_fields.register
def _(node: Distinct) -> dict[str, Any]:
    window = {**_window(node.window), "windowed": True} if node.window is not None else {}
    return {"keys": list(node.keys), "order": _order(node.ties), **window}


@_fields.register
def _(node: TopN) -> dict[str, Any]:
    is_double = check.check(node.by, schema.columns(node.input), node.name) == "double"
    predicate = f"{BY} IS NOT NULL" + (f" AND NOT isnan({BY})" if is_double else "")
    return {
        "keys": list(node.groups), "made": [*_passed(schema.columns(node.input)), (TIME, TIME), (BY, node.by)],
        "predicate": predicate, "n": node.n,
        "order": [{"column": BY, "ascending": False}, *_order(schema.tie_order(node))], "latest": list(node.latest),
    }  # fmt: skip


def _has_keys(node: WindowJoin | IntervalJoin) -> str:
    """A null key never matches."""
    return " AND ".join(f"{backquote(key)} IS NOT NULL" for key in node.keys)


def _window(window: Window) -> dict[str, int]:
    return {"range_us": window.range_us, "slide_us": window.slide_us}


def _order(columns: Any) -> list[dict[str, Any]]:
    return [{"column": name, "ascending": True} for name in columns]
