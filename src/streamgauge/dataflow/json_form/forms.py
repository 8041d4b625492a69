"""The forms of a document in JSON: one for each kind of node, derived from its dataclass, and the whole document."""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple

from pydantic import Field, JsonValue, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

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
from streamgauge.dataflow.nodes import Mode, Node, Source, Union

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
