"""A flow as a JSON document, and back: `from_json(to_json(flow)) == flow`.

Each kind of node has a form, derived from its dataclass. What a document states twice, such as the type of an
expression or the columns of a node, is derived from the flow again when it is read, and must agree.
"""

import functools
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

from pydantic import Field, JsonValue, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema

from streamgauge.core.errors import Fault, InputError, Problem, faults_of, near, problems_of, require
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

    def write(self, node: Node, available: Types) -> dict[str, Any]:
        return {name: codec.write(getattr(node, name), available) for name, codec in self.codecs.items()}

    def read(self, class_: Any, data: Mapping[str, Any], inputs: Sequence[Node], place: str) -> Node:
        """The node of a valid object; its inputs come first in the document, and so exist."""
        values = {name: codec.read(data[name], f"{place}.{name}") for name, codec in self.codecs.items()}
        return class_(**graph.as_fields(class_, tuple(inputs)), **values)


@functools.cache
def form_of(class_: Any) -> NodeForm:
    """The form of a node class."""
    inputs = graph.input_fields(class_)
    codecs = {name: codec_of(hint) for name, hint in hints(class_).items() if name not in inputs}
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
    return NodeForm(object_form(class_.__name__, fields, class_.__doc__), codecs)


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
    return TypeAdapter(
        object_form(
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
    )


class _WithoutFieldTitles(GenerateJsonSchema):
    """Leaves out titles that only repeat the names of fields."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a document."""
    return {
        "$schema": GenerateJsonSchema.schema_dialect,
        **document_form().json_schema(schema_generator=_WithoutFieldTitles),
    }


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
    return _document(flow, ids, keys or {}, workload)


def from_json(document: Mapping[str, Any]) -> Flow:
    """The flow of a document. Raises InputError with its first problem, or with all that its form alone shows.

    It imports the classes that the document names, so read no document that you do not trust.
    """
    data = _checked_form(document)
    nodes: dict[str, Node] = {}
    for part in ("sources", "nodes"):
        for number, each in enumerate(data[part]):
            _add(nodes, each, NODE_CLASSES[each["kind"]] if "kind" in each else Source, f"{part}[{number}]")
    flow = Flow(
        tuple(
            Sink(_found(nodes, each["input"], f"sinks[{number}].input"), each["name"], each["mode"])
            for number, each in enumerate(data["sinks"])
        )
    )
    for one in flow.each() if any(map(graph.carries_lineage, nodes.values())) else (flow,):
        builder.check(one)
    ids = {node: id_ for id_, node in nodes.items()}
    read = set(graph.operators(flow))
    for node, id_ in ids.items():
        _require(node in read, f"node {id_!r}", "must be read by a node or a sink", "by none", "leave it out")
    keys = {each["name"]: each["key"] for each in data["sources"]}
    for place, stated, derived in _differences("", data, _document(flow, ids, keys, data["workload"])):
        raise InputError(Problem(f"{DOCUMENT}, {place}", "disagrees with the rest of the flow", stated, repr(derived)))
    return flow


def _document(flow: Flow, ids: Mapping[Node, str], keys: Keys, workload: Mapping[str, Any] | None) -> dict[str, Any]:
    """The document, with the nodes in the order of `ids`."""
    return {
        "format_version": FORMAT_VERSION,
        "workload": None if workload is None else dict(workload),
        "sources": [_node(node, ids, keys) for node in ids if isinstance(node, Source)],
        "nodes": [_node(node, ids, keys) for node in ids if not isinstance(node, Source)],
        "sinks": [
            {"name": sink.name, "mode": sink.mode, "input": ids[sink.input], **_results(sink)}
            for sink in flow.sinks
        ],
    }  # fmt: skip


def _node(node: Node, ids: Mapping[Node, str], keys: Keys) -> dict[str, Any]:
    class_: Any = type(node)
    inputs = graph.inputs(node)
    values = form_of(class_).write(node, schema.columns(inputs[0]) if inputs else {})
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


def _add(nodes: dict[str, Node], data: Mapping[str, Any], class_: Any, place: str) -> None:
    """Reads a node and adds it to those before it."""
    inputs = [_found(nodes, id_, f"{place}.inputs[{number}]") for number, id_ in enumerate(data.get("inputs", ()))]
    node = form_of(class_).read(class_, data, inputs, f"{DOCUMENT}, {place}")
    columns, key, own_id = schema.columns(node), data.get("key"), data["id"]
    _require(key is None or key in columns, f"{place}.key", "must be a column of the source", key, ", ".join(columns))
    _require(own_id not in nodes, f"{place}.id", "must differ from all other ids", own_id, f"{own_id}_2")
    for id_, other in nodes.items():
        _require(
            other != node, place, f"must differ from {id_!r}", own_id, f"one node, and {id_!r} wherever it is read"
        )
    nodes[own_id] = node


def _found(nodes: Mapping[str, Node], id_: str, place: str) -> Node:
    way_out = near(id_, nodes) or f"one of {', '.join(nodes)}; inputs come first in the document"
    _require(id_ in nodes, place, "must be the id of a source or of a node before it", id_, way_out)
    return nodes[id_]


def _checked_form(document: Any) -> dict[str, Any]:
    """The document if every field is there and of its type, and no other."""
    version = document.get("format_version") if isinstance(document, Mapping) else None
    rule = f"must be {FORMAT_VERSION}, the version of the form that this streamgauge reads"
    way_out = f'"format_version": {FORMAT_VERSION}; streamgauge workloads WORKLOAD --flow-json shows a document'
    _require(version == FORMAT_VERSION and type(version) is int, "format_version", rule, version, way_out)
    try:
        return document_form().validate_python(document)
    except ValidationError as error:
        raise InputError(problems_of(faults_of(error), _setting, lambda _: _UNKNOWN, _way_out, _RULES)) from None


def _setting(fault: Fault) -> str:
    return f"{DOCUMENT}, {_place(fault.location)}{'.kind' if fault.kind in _OF_KINDS else ''}"


def _way_out(fault: Fault, _: str) -> str:
    if fault.kind in _OF_KINDS:
        kinds, meant = ", ".join(NODE_CLASSES), near(fault.context.get("tag", ""), NODE_CLASSES)
        return f"{meant} ({kinds})" if meant else kinds
    meant = near(fault.got, fault.choices) or WAY_OUT
    return f"null if it does not apply; {WAY_OUT}" if fault.kind == "missing" else meant


_OF_KINDS = {"union_tag_not_found": "must be given", "union_tag_invalid": "must be a kind of node"}
_RULES = {**_OF_KINDS, **dict.fromkeys(("dict_type", "model_attributes_type"), "must be an object")}
_UNKNOWN = "is not a field of the form", f"leave it out; {WAY_OUT}"


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


def _require(holds: object, place: str, rule: str, got: object, way_out: str) -> None:
    require(holds, f"{DOCUMENT}, {place}", rule, got, way_out)
