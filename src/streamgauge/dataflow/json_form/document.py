"""A flow as a JSON document, and back: `from_json(to_json(flow)) == flow`.

Each kind of node has a form, derived from its dataclass. What a document states twice, such as the type of an
expression or the columns of a node, is derived from the flow again when it is read, and must agree.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

from pydantic import Field, JsonValue, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema

from streamgauge.core.errors import Fault, InputError, Problem, faults_of, near
from streamgauge.core.schema import EVENT_TIME
from streamgauge.dataflow import builder, graph, lineage, schema
from streamgauge.dataflow.describe import KINDS
from streamgauge.dataflow.json_form.codecs import (
    COLUMN,
    LIST,
    LITERAL,
    NOT_EMPTY,
    Codec,
    Types,
    codec_of,
    hints,
    object_form,
)
from streamgauge.dataflow.nodes import Flow, Mode, Node, OpaqueNode, RunningAggregate, Sink, Source, Union

Keys = Mapping[str, str | None]
DOCUMENT = "flow document"
WAY_OUT = "the JSON Schema of the form, flow.schema.json, has every field"
FORMAT_VERSION = 1

NODE_CLASSES: Mapping[str, Any] = {kind: class_ for class_, kind in KINDS.items() if class_ is not Source}
"""Kind to class. A source has a form of its own, and a user job or program has none, because it is code."""


class NodeForm(NamedTuple):
    """The form of one kind of node: the type of its JSON object, and the codecs of the fields that are no inputs."""

    form: Any
    codecs: Mapping[str, Codec]
    inputs: tuple[str, ...]
    takes_many: bool

    def write(self, node: Node, available: Types) -> dict[str, Any]:
        return {name: codec.write(getattr(node, name), available) for name, codec in self.codecs.items()}

    def read(self, class_: Any, data: Mapping[str, Any], inputs: Sequence[Node], place: str) -> Node:
        """The node of a valid object; its inputs come first in the document, and so exist."""
        values = {name: codec.read(data[name], f"{place}.{name}") for name, codec in self.codecs.items()}
        by_name = {self.inputs[0]: tuple(inputs)} if self.takes_many else dict(zip(self.inputs, inputs, strict=True))
        node: Node = class_(**by_name, **values)
        return node


@functools.cache
def form_of(class_: Any) -> NodeForm:
    """The form of a node class."""
    inputs = {name: hint for name, hint in hints(class_).items() if hint in (Node, tuple[Node, ...])}
    codecs = {name: codec_of(hint) for name, hint in hints(class_).items() if name not in inputs}
    takes_many = tuple[Node, ...] in inputs.values()
    least = 2 if class_ is Union else 1
    number = Field(min_length=least) if takes_many else Field(min_length=len(inputs), max_length=len(inputs))
    about: dict[str, Any] = {"id": str}
    if class_ is Source:
        about |= {"event_time_column": str, "key": str | None}
    else:
        about |= {"kind": LITERAL[KINDS[class_]], "inputs": Annotated[list[str], number]}
    about["output_columns"] = LIST[COLUMN]
    if taken := about.keys() & codecs:
        raise TypeError(f"{class_.__name__} has fields that the JSON form names itself: {taken}")
    fields = {**about, **{name: codec.form for name, codec in codecs.items()}}
    return NodeForm(object_form(class_.__name__, fields, class_.__doc__), codecs, tuple(inputs), takes_many)


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


@functools.cache
def document_form() -> TypeAdapter[dict[str, Any]]:
    """The form of a whole document."""
    kinds = functools.reduce(operator.or_, (form_of(class_).form for class_ in NODE_CLASSES.values()))
    node: Any = Annotated[kinds, Field(discriminator="kind")]
    form = object_form(
        "Flow",
        {
            "format_version": LITERAL[FORMAT_VERSION],
            "workload": WORKLOAD | None,
            "sources": Annotated[LIST[form_of(Source).form], NOT_EMPTY],
            "nodes": LIST[node],
            "sinks": Annotated[LIST[SINK], NOT_EMPTY],
        },
        "A dataflow of streamgauge. Inputs come before the nodes that read them.",
    )
    return TypeAdapter(form)


class _WithoutFieldTitles(GenerateJsonSchema):
    """Leaves out titles that only repeat the names of fields."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a document."""
    schema = document_form().json_schema(schema_generator=_WithoutFieldTitles)
    return {"$schema": GenerateJsonSchema.schema_dialect, **schema}


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
        ids[node] = _free(node.name, ids.values())
    return _document(flow, ids, keys or {}, workload)


def from_json(document: Mapping[str, Any]) -> Flow:
    """The flow of a document. Raises InputError with its first problem, or with all that its form alone shows.

    It imports the classes that the document names, so read no document that you do not trust.
    """
    data = _checked_form(document)
    nodes: dict[str, Node] = {}
    for number, each in enumerate(data["sources"]):
        _add(nodes, each, Source, f"sources[{number}]")
    for number, each in enumerate(data["nodes"]):
        _add(nodes, each, NODE_CLASSES[each["kind"]], f"nodes[{number}]")
    flow = Flow(tuple(_sink(nodes, each, f"sinks[{number}]") for number, each in enumerate(data["sinks"])))
    for one in flow.each() if any(map(graph.carries_lineage, nodes.values())) else (flow,):
        builder.check(one)
    ids = {node: id_ for id_, node in nodes.items()}
    for unread in ids.keys() - set(graph.operators(flow)):
        raise _refuse(f"node {ids[unread]!r}", "must be read by a node or a sink", "by none", "leave it out")
    keys = {each["name"]: each["key"] for each in data["sources"]}
    for place, stated, derived in _differences("", data, _document(flow, ids, keys, data["workload"])):
        raise _refuse(place, "disagrees with the rest of the flow", stated, repr(derived))
    return flow


def _free(name: str, taken: Any) -> str:
    """The name of an operator as its id. Sinks of a flow with lineage may have different operators of one name."""
    number, id_ = 1, name
    while id_ in taken:
        number += 1
        id_ = f"{name}#{number}"
    return id_


def _document(flow: Flow, ids: Mapping[Node, str], keys: Keys, workload: Mapping[str, Any] | None) -> dict[str, Any]:
    """The document, with the nodes in the order of `ids`."""
    return {
        "format_version": FORMAT_VERSION,
        "workload": None if workload is None else dict(workload),
        "sources": [_source(node, id_, keys) for node, id_ in ids.items() if isinstance(node, Source)],
        "nodes": [_node(node, ids) for node in ids if not isinstance(node, Source)],
        "sinks": [_sink_data(sink, ids) for sink in flow.sinks],
    }


def _source(node: Source, id_: str, keys: Keys) -> dict[str, Any]:
    return {
        "id": id_,
        **form_of(Source).write(node, {}),
        "event_time_column": EVENT_TIME,
        "key": keys.get(node.name),
        "output_columns": _columns(schema.columns(node)),
    }


def _node(node: Node, ids: Mapping[Node, str]) -> dict[str, Any]:
    class_: Any = type(node)
    inputs = graph.inputs(node)
    return {
        "id": ids[node],
        "kind": KINDS[class_],
        "inputs": [ids[input_] for input_ in inputs],
        **form_of(class_).write(node, schema.columns(inputs[0])),
        "output_columns": _columns(schema.columns(node)),
    }


def _sink_data(sink: Sink, ids: Mapping[Node, str]) -> dict[str, Any]:
    keys, added = _results(sink)
    return {
        "name": sink.name,
        "mode": sink.mode,
        "input": ids[sink.input],
        "keys": keys,
        "columns": _columns(schema.columns(sink.input)),
        "lineage": _columns(added),
    }


def _results(sink: Sink) -> tuple[list[str] | None, dict[str, str]]:
    """The columns that identify a result, and those that the lineage rewrite adds."""
    keys = list(sink.input.keys) if isinstance(sink.input, RunningAggregate) else None
    if graph.carries_lineage(sink.input):
        return keys, {}
    alone, own = Flow((sink,)), schema.columns(sink.input)
    carrying = schema.columns(lineage.with_lineage(alone).sink.input)
    added = {name: type_ for name, type_ in carrying.items() if name not in own}
    return list(lineage.identity(alone)) if keys is None else keys, added


def _columns(types: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "type": type_} for name, type_ in types.items()]


def _add(nodes: dict[str, Node], data: Mapping[str, Any], class_: Any, place: str) -> None:
    """Reads a node and adds it to those before it."""
    form: NodeForm = form_of(class_)
    inputs = [_found(nodes, id_, f"{place}.inputs[{number}]") for number, id_ in enumerate(data.get("inputs", ()))]
    node = form.read(class_, data, inputs, f"{DOCUMENT}, {place}")
    schema.columns(node)
    key = data.get("key")
    if key is not None and key not in schema.columns(node):
        raise _refuse(f"{place}.key", "must be a column of the source", key, ", ".join(schema.columns(node)))
    if data["id"] in nodes:
        raise _refuse(f"{place}.id", "must differ from all other ids", data["id"], f"{data['id']}_2")
    for id_, other in nodes.items():
        if other == node:
            raise _refuse(place, f"must differ from {id_!r}", data["id"], f"one node, and {id_!r} wherever it is read")
    nodes[data["id"]] = node


def _sink(nodes: Mapping[str, Node], data: Mapping[str, Any], place: str) -> Sink:
    return Sink(_found(nodes, data["input"], f"{place}.input"), data["name"], data["mode"])


def _found(nodes: Mapping[str, Node], id_: str, place: str) -> Node:
    if id_ not in nodes:
        way_out = f"one of {', '.join(nodes)}; inputs come first in the document"
        raise _refuse(place, "must be the id of a source or of a node before it", id_, near(id_, nodes) or way_out)
    return nodes[id_]


def _checked_form(document: Any) -> dict[str, Any]:
    """The document if every field is there and of its type, and no other."""
    version = document.get("format_version") if isinstance(document, Mapping) else None
    if version != FORMAT_VERSION or type(version) is not int:
        rule = f"must be {FORMAT_VERSION}, the version of the form that this streamgauge reads"
        way_out = f'"format_version": {FORMAT_VERSION}; streamgauge workloads WORKLOAD --flow-json shows a document'
        raise _refuse("format_version", rule, version, way_out)
    try:
        return document_form().validate_python(document)
    except ValidationError as error:
        raise InputError([_problem(fault) for fault in faults_of(error)]) from None


def _problem(fault: Fault) -> Problem:
    place = _place(fault.location)
    if fault.kind == "missing":
        return _problem_at(place, "must be given", "nothing", f"null if it does not apply; {WAY_OUT}")
    if fault.is_unknown:
        return _problem_at(place, "is not a field of the form", fault.got, f"leave it out; {WAY_OUT}")
    kinds = ", ".join(NODE_CLASSES)
    if fault.kind == "union_tag_invalid":
        kind = fault.context["tag"]
        nearest = near(kind, NODE_CLASSES)
        return _problem_at(
            f"{place}.kind", "must be a kind of node", kind, f"{nearest} ({kinds})" if nearest else kinds
        )
    if fault.kind == "union_tag_not_found":
        return _problem_at(f"{place}.kind", "must be given", "nothing", kinds)
    rule = "must be an object" if fault.kind in ("dict_type", "model_attributes_type") else fault.rule
    return _problem_at(place, rule, fault.got, near(fault.got, fault.choices) or WAY_OUT)


def _place(location: tuple[int | str, ...]) -> str:
    """`nodes[2].window.range_us`. Pydantic names the kind of a node after its number, which a document does not."""
    parts = (*location[:2], *location[3:]) if location[:1] == ("nodes",) else location
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts).removeprefix(".")


def _differences(place: str, stated: Any, derived: Any) -> Iterator[tuple[str, Any, Any]]:
    """(place, stated, derived) of each value that differs."""
    if isinstance(stated, dict) and isinstance(derived, dict) and stated.keys() == derived.keys():
        for name in derived:
            yield from _differences(f"{place}.{name}".removeprefix("."), stated[name], derived[name])
    elif isinstance(stated, list) and isinstance(derived, list) and len(stated) == len(derived):
        for number, pair in enumerate(zip(stated, derived, strict=True)):
            yield from _differences(f"{place}[{number}]", *pair)
    elif stated != derived or isinstance(stated, bool) is not isinstance(derived, bool):
        yield place, stated, derived


def _problem_at(place: str, rule: str, got: object, way_out: str) -> Problem:
    return Problem(f"{DOCUMENT}, {place}", rule, got, way_out)


def _refuse(place: str, rule: str, got: object, way_out: str) -> InputError:
    return InputError(_problem_at(place, rule, got, way_out))
