"""A flow as a JSON document, for engines outside Python. Each kind of node has a form, derived from its dataclass."""

import functools
import operator
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, JsonValue, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from streamgauge.core.errors import InputError, Problem
from streamgauge.core.schema import EVENT_TIME
from streamgauge.dataflow import graph, lineage, schema
from streamgauge.dataflow.describe import KINDS
from streamgauge.dataflow.json_form.codecs import (
    COLUMN,
    LIST,
    LITERAL,
    NOT_EMPTY,
    Codec,
    codec_of,
    hints,
    object_form,
)
from streamgauge.dataflow.nodes import Flow, Mode, Node, OpaqueNode, RunningAggregate, Sink, Source, Union

Keys = Mapping[str, str | None]
FORMAT_VERSION = 1

NODE_CLASSES: Mapping[str, Any] = {kind: class_ for class_, kind in KINDS.items() if class_ is not Source}
"""Kind to class. A source has a form of its own, and a user job or program has none, because it is code."""


@functools.cache
def _codecs(class_: Any) -> dict[str, Codec]:
    """The codecs of a node's fields that are no inputs."""
    inputs = graph.input_fields(class_)
    return {name: codec_of(hint) for name, hint in hints(class_).items() if name not in inputs}


def form_of(class_: Any) -> Any:
    """The type of the JSON object of a kind of node."""
    inputs, codecs = graph.input_fields(class_), _codecs(class_)
    least, most = (2 if class_ is Union else 1, None) if graph.takes_many(class_) else (len(inputs), len(inputs))
    of_source = {"event_time_column": str, "key": str | None}
    ids = Annotated[list[str], Field(min_length=least, max_length=most)]
    about: dict[str, Any] = {
        "id": str,
        **(of_source if class_ is Source else {"kind": LITERAL[KINDS[class_]], "inputs": ids}),
        "output_columns": LIST[COLUMN],
    }
    if taken := about.keys() & codecs:
        raise TypeError(f"{class_.__name__} has fields that the JSON form names itself: {taken}")
    fields = {**about, **{name: codec.form for name, codec in codecs.items()}}
    return object_form(class_.__name__, fields, class_.__doc__)


WORKLOAD = object_form(
    "Workload",
    {"name": str, "parameters": dict[str, JsonValue], "rate_per_s": float},
    "The workload that the flow belongs to, its parameters by name (times in seconds), and its planned events per "
    "second.",
)
SINK = object_form(
    "Sink",
    {
        "name": str, "mode": codec_of(Mode).form, "input": str, "keys": list[str] | None, "columns": LIST[COLUMN],
        "lineage": LIST[COLUMN],
    },
    "Where results leave the flow. `append`: final rows. `update`: successive values of `keys`. `lineage`: the columns "
    "that a run adds to each result. `keys` identify a result; null if a flow with lineage does not say it.",
)  # fmt: skip


class _WithoutFieldTitles(GenerateJsonSchema):
    """Leaves out titles that only repeat the names of fields."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a document."""
    kinds = functools.reduce(operator.or_, (form_of(class_) for class_ in NODE_CLASSES.values()))
    node: Any = Annotated[kinds, Field(discriminator="kind")]
    form: TypeAdapter[Any] = TypeAdapter(
        object_form(
            "Flow",
            {
                "format_version": LITERAL[FORMAT_VERSION],
                "workload": WORKLOAD | None,
                "sources": Annotated[LIST[form_of(Source)], NOT_EMPTY],
                "nodes": LIST[node],
                "sinks": Annotated[LIST[SINK], NOT_EMPTY],
            },
            "A dataflow of streamgauge. Inputs come before the nodes that read them.",
        )
    )
    return {"$schema": GenerateJsonSchema.schema_dialect, **form.json_schema(schema_generator=_WithoutFieldTitles)}


def to_json(flow: Flow, keys: Keys | None = None, workload: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The flow as plain data for `json.dumps`.

    - `keys`: for each stream, the column by which a broker partitions it.
    - `workload`: `name`, `parameters` and `rate_per_s` of the workload that the flow belongs to.

    Raises InputError for a user job or program, and for a process whose class or parameters have no JSON form.
    """
    ids: dict[Node, str] = {}
    for node in graph.operators(flow):
        if isinstance(node, OpaqueNode):
            rule, setting = f"is {node.code}, and has no JSON form", f"{node.kind.replace('_', ' ')} {node.name!r}"
            raise InputError(Problem(setting, rule, node.path, "a flow of a workload"))
        # Sinks of a flow with lineage may have different operators of one name.
        names = (node.name, *(f"{node.name}#{number}" for number in range(2, len(ids) + 3)))
        ids[node] = next(name for name in names if name not in ids.values())
    return {
        "format_version": FORMAT_VERSION,
        "workload": None if workload is None else dict(workload),
        "sources": [_node(node, ids, keys or {}) for node in ids if isinstance(node, Source)],
        "nodes": [_node(node, ids, {}) for node in ids if not isinstance(node, Source)],
        "sinks": [
            {"name": sink.name, "mode": sink.mode, "input": ids[sink.input], **_results(sink)}
            for sink in flow.sinks
        ],
    }  # fmt: skip


def _node(node: Node, ids: Mapping[Node, str], keys: Keys) -> dict[str, Any]:
    class_: Any = type(node)
    inputs = graph.inputs(node)
    available = schema.columns(inputs[0]) if inputs else {}
    values = {name: codec.write(getattr(node, name), available) for name, codec in _codecs(class_).items()}
    if isinstance(node, Source):
        values |= {"event_time_column": EVENT_TIME, "key": keys.get(node.name)}
    else:
        values = {"kind": KINDS[class_], "inputs": [ids[input_] for input_ in inputs], **values}
    return {"id": ids[node], **values, "output_columns": _columns(schema.columns(node))}


def _results(sink: Sink) -> dict[str, Any]:
    """The `keys` that identify a result, its `columns`, and the `lineage` columns that the rewrite adds."""
    alone, own, added = Flow((sink,)), schema.columns(sink.input), dict[str, str]()
    keys = sink.input.keys if isinstance(sink.input, RunningAggregate) else None
    if not graph.carries_lineage(sink.input):
        keys = lineage.identity(alone) if keys is None else keys
        carrying = schema.columns(lineage.with_lineage(alone).sink.input)
        added = {name: type_ for name, type_ in carrying.items() if name not in own}
    return {"keys": keys and list(keys), "columns": _columns(own), "lineage": _columns(added)}


def _columns(types: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "type": type_} for name, type_ in types.items()]
