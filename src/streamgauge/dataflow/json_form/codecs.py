"""How the value of each field of a node stands in JSON, derived from the field's type.

A dataclass becomes an object of its fields, a tuple a list. Types with a rule of their own: expressions, pairs of
columns, static tables, Python classes and their parameters. In a static table a timestamp is in microseconds since
1970, binary is base64, and doubles that JSON lacks are the texts of `_NOT_FINITE`.
"""

from __future__ import annotations

import base64
import math
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import ConfigDict, JsonValue, with_config
from pydantic import Field as Limits
from typing_extensions import TypedDict

from streamgauge.core.errors import InputError, Problem, require
from streamgauge.core.schema import TYPES, Field, Schema
from streamgauge.dataflow.expressions import check
from streamgauge.dataflow.nodes import Columns, Copies, Expression, Keys, OutputTypes, Positive
from streamgauge.dataflow.operators.api import Processor
from streamgauge.dataflow.static_table import Table

if TYPE_CHECKING:
    import pyarrow as pa

Types = Mapping[str, str]
LIST: Any = list
LITERAL: Any = typing.Literal
"""As values, so that their parts may be computed."""
NOT_EMPTY = Limits(min_length=1)
Parameters = tuple[tuple[str, Any], ...]
"""(name, value) of each parameter of a process."""
_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


class Codec(NamedTuple):
    """The JSON of one type.

    - `form`: the type of the JSON value, for pydantic.
    - `write`: takes a value and the column types of the node's input.
    """

    form: Any
    write: Callable[[Any, Types], Any]


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
            inner = codec_of(parts[0])
            return Codec(
                inner.form | None, lambda value, available: None if value is None else inner.write(value, available)
            )
    raise TypeError(f"the JSON form of a flow has no rule for {hint}")


def record(class_: type, **forms: Any) -> Codec:
    """The codec of a dataclass; `forms` narrow the JSON types of some fields."""
    codecs = {name: codec_of(hint) for name, hint in hints(class_).items()}
    return Codec(
        object_form(
            class_.__name__, {name: codec.form for name, codec in codecs.items()} | forms, class_.__doc__ or ""
        ),
        lambda value, available: {name: codec.write(getattr(value, name), available) for name, codec in codecs.items()},
    )


def _plain(form: Any) -> Codec:
    return Codec(form, lambda value, _: value)


def _list(item: Codec) -> Codec:
    return Codec(LIST[item.form], lambda value, available: [item.write(each, available) for each in value])


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
    return Codec(form, lambda pairs, _: [{"name": name, second: text} for name, text in pairs])


def path_of(class_: type) -> str:
    """`module:Class`. Raises InputError unless the class can be imported by it."""
    is_local = "<locals>" in class_.__qualname__ or class_.__module__ == "__main__"
    path = f"{class_.__module__}:{class_.__qualname__}"
    rule = "cannot be imported by its name, so a flow's JSON form cannot name it"
    require(not is_local, "class", rule, path, "define it at the top level of a module that is no script")
    return path


def value_to_json(value: Any, setting: str) -> Any:
    """A parameter of a process as JSON. Raises InputError if it is no plain value."""
    if value is None or type(value) in (bool, int, str) or (type(value) is float and math.isfinite(value)):
        return value
    if type(value) is tuple:
        return [value_to_json(item, setting) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        parts = {
            field.name: value_to_json(getattr(value, field.name), setting) for field in fields(value) if field.init
        }
        return {"class": path_of(type(value)), "fields": parts}
    raise InputError(
        Problem(setting, "has no JSON form", value, "a finite number, a text, a tuple or a frozen dataclass of these")
    )


def _column_to_json(column: pa.ChunkedArray, type_: str) -> list[Any]:
    plain: list[Any] = (column.cast("int64") if type_ == "timestamp" else column).to_pylist()
    if type_ == "binary":
        return [None if each is None else base64.b64encode(each).decode() for each in plain]
    if type_ == "double":
        return [each if each is None or math.isfinite(each) else _NOT_FINITE[str(each)] for each in plain]
    return plain


def _write_columns(columns: Columns, available: Types) -> list[dict[str, Any]]:
    return [{"name": name, **_expression(sql, available)} for name, sql in columns]


def _write_parameters(parameters: Parameters, _: Types) -> dict[str, Any]:
    return {name: value_to_json(value, f"parameter {name!r}") for name, value in parameters}


def _write_table(table_: Table, available: Types) -> dict[str, Any]:
    schema = codec_of(Schema).write(table_.schema, available)
    columns = table_.to_arrow()
    rows = {name: _column_to_json(columns.column(name), type_) for name, type_ in table_.schema.types().items()}
    return {"name": table_.name, "schema": schema, "rows": rows}


_RULES[Field] = record(Field, type=LITERAL[TYPES])
_TABLE = object_form(
    "Table",
    {"name": str, "schema": codec_of(Schema).form, "rows": dict[str, list[JsonValue]]},
    "A static table. `rows` holds the values of each column; binary is base64, a timestamp is in microseconds.",
)
_RULES |= {
    Expression: Codec(EXPRESSION, _expression),
    Positive: _plain(typing.Annotated[int, Limits(ge=1)]),
    Keys: _list(_plain(str))._replace(form=typing.Annotated[list[str], NOT_EMPTY]),
    Columns: Codec(typing.Annotated[LIST[NAMED_EXPRESSION], NOT_EMPTY], _write_columns),
    OutputTypes: _pairs(typing.Annotated[LIST[COLUMN], NOT_EMPTY], "type"),
    Copies: _pairs(LIST[COPY], "column"),
    type[Processor]: Codec(str, lambda class_, _: path_of(class_)),
    Parameters: Codec(dict[str, JsonValue], _write_parameters),
    Table: Codec(_TABLE, _write_table),
}
