"""How the value of each field of a node stands in JSON, derived from the field's type.

A dataclass becomes an object of its fields, a tuple a list. Types with a rule of their own: expressions, pairs of
columns, static tables, Python classes and their parameters.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, NamedTuple

from pydantic import ConfigDict, JsonValue, with_config
from pydantic import Field as Limits
from typing_extensions import TypedDict

from streamgauge.core.schema import TYPES, Field, Schema
from streamgauge.dataflow.expressions import check
from streamgauge.dataflow.json_form import tables, values
from streamgauge.dataflow.nodes import Columns, Copies, Expression, Keys, OutputTypes, Positive
from streamgauge.dataflow.operators.api import Processor
from streamgauge.dataflow.static_table import Table

Types = Mapping[str, str]
LIST: Any = list
LITERAL: Any = typing.Literal
"""As values, so that their parts may be computed."""
NOT_EMPTY = Limits(min_length=1)


class Codec(NamedTuple):
    """The JSON of one type.

    - `form`: the type of the JSON value, for pydantic.
    - `write`: takes a value and the column types of the node's input.
    - `read`: takes a valid JSON value and its place in the document, for errors.
    """

    form: Any
    write: Callable[[Any, Types], Any]
    read: Callable[[Any, str], Any]


def object_form(name: str, forms: Mapping[str, Any], meaning: str) -> Any:
    """The type of a JSON object with exactly these fields."""
    make: Any = TypedDict
    form = make(name, dict(forms))
    form.__doc__ = meaning
    return with_config(ConfigDict(extra="forbid", strict=True))(form)


def hints(class_: type) -> dict[str, Any]:
    """The type of each field of a dataclass, in order."""
    all_hints = typing.get_type_hints(class_, include_extras=True)
    return {field.name: all_hints[field.name] for field in fields(class_)}


_RULES: dict[Any, Codec] = {}
"""The codecs of types that are more than their parts."""


@cache
def codec_of(hint: Any) -> Codec:
    """The codec of a type. Raises TypeError for a type without a rule."""
    if hint in _RULES:
        return _RULES[hint]
    parts = typing.get_args(hint)
    match typing.get_origin(hint):
        case None if hint in (str, int, bool):
            return _plain(hint)
        case None if isinstance(hint, type) and is_dataclass(hint):
            return record(hint)
        case typing.Literal:
            return _plain(hint)
        case builtin if builtin is tuple and parts[1:] == (...,):
            return _list(codec_of(parts[0]))
        case types.UnionType | typing.Union if len(parts) == 2 and parts[1] is type(None):
            return _optional(codec_of(parts[0]))
    raise TypeError(f"the JSON form of a flow has no rule for {hint}")


def record(class_: type, **forms: Any) -> Codec:
    """The codec of a dataclass; `forms` narrow the JSON types of some fields."""
    codecs = {name: codec_of(hint) for name, hint in hints(class_).items()}
    form = object_form(
        class_.__name__, {name: codec.form for name, codec in codecs.items()} | forms, class_.__doc__ or ""
    )
    return Codec(
        form,
        lambda value, available: {name: codec.write(getattr(value, name), available) for name, codec in codecs.items()},
        lambda data, place: class_(
            **{name: codec.read(data[name], f"{place}.{name}") for name, codec in codecs.items()}
        ),
    )


def _plain(form: Any) -> Codec:
    return Codec(form, lambda value, _: value, lambda data, _: data)


def _list(item: Codec) -> Codec:
    return Codec(
        LIST[item.form],
        lambda value, available: [item.write(each, available) for each in value],
        lambda data, place: tuple(item.read(each, f"{place}[{number}]") for number, each in enumerate(data)),
    )


def _optional(inner: Codec) -> Codec:
    return Codec(
        inner.form | None,
        lambda value, available: None if value is None else inner.write(value, available),
        lambda data, place: None if data is None else inner.read(data, place),
    )


_EXPRESSION = {"sql": str, "type": str, "reads": list[str]}
EXPRESSION = object_form(
    "Expression", _EXPRESSION, "Spark SQL text, the type of its result, and the columns that it reads."
)
NAMED_EXPRESSION = object_form("NamedExpression", {"name": str, **_EXPRESSION}, "An output column and its expression.")
COLUMN = object_form("Column", {"name": str, "type": str}, "A column and its Spark SQL type.")
COPY = object_form("Copy", {"name": str, "column": str}, "An output column and the input column that it copies.")


def _expression(sql: str, available: Types) -> dict[str, Any]:
    checked = check.checked(sql, available, "expression")
    return {"sql": sql, "type": checked.type, "reads": sorted(checked.columns)}


def _pairs(form: Any, second: str) -> Codec:
    """The codec of (name, text) pairs, in a list of type `form`; `second` names the text."""
    return Codec(
        form,
        lambda pairs, _: [{"name": name, second: text} for name, text in pairs],
        lambda data, _: tuple((each["name"], each[second]) for each in data),
    )


_RULES[Field] = record(Field, type=LITERAL[TYPES])
_RULES |= {
    Expression: Codec(EXPRESSION, _expression, lambda data, _: data["sql"]),
    Positive: _plain(typing.Annotated[int, Limits(ge=1)]),
    Keys: _list(_plain(str))._replace(form=typing.Annotated[list[str], NOT_EMPTY]),
    Columns: Codec(
        typing.Annotated[LIST[NAMED_EXPRESSION], NOT_EMPTY],
        lambda pairs, available: [{"name": name, **_expression(sql, available)} for name, sql in pairs],
        lambda data, _: tuple((each["name"], each["sql"]) for each in data),
    ),
    OutputTypes: _pairs(typing.Annotated[LIST[COLUMN], NOT_EMPTY], "type"),
    Copies: _pairs(LIST[COPY], "column"),
    type[Processor]: Codec(str, lambda class_, _: values.path_of(class_), values.operator_at),
    tuple[tuple[str, Any], ...]: Codec(
        dict[str, JsonValue],
        lambda pairs, _: {name: values.to_json(value, f"parameter {name!r}") for name, value in pairs},
        lambda data, place: tuple((name, values.from_json(value, f"{place}.{name}")) for name, value in data.items()),
    ),
    Table: Codec(
        object_form(
            "Table",
            {"name": str, "schema": codec_of(Schema).form, "rows": dict[str, list[JsonValue]]},
            "A static table. `rows` holds the values of each column; binary is base64, a timestamp is in microseconds.",
        ),
        lambda table, available: {
            "name": table.name,
            "schema": codec_of(Schema).write(table.schema, available),
            "rows": tables.rows_of(table),
        },
        lambda data, place: tables.table_of(
            data["name"], codec_of(Schema).read(data["schema"], f"{place}.schema"), data["rows"], f"{place}.rows"
        ),
    ),
}
