"""How the value of each field of a node stands in JSON, derived from the field's type.

A dataclass becomes an object of its fields, a tuple a list. Types with a rule of their own: expressions, pairs of
columns, static tables, Python classes and their parameters. In a static table a timestamp is in microseconds since
1970, binary is base64, and doubles that JSON lacks are the texts of `_NOT_FINITE`.
"""

from __future__ import annotations

import base64
import binascii
import importlib
import math
import operator
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
from streamgauge.core.schema import TYPES, Field, Schema, arrow_type
from streamgauge.dataflow.expressions import check
from streamgauge.dataflow.nodes import Columns, Copies, Expression, Keys, OutputTypes, Positive
from streamgauge.dataflow.operators.api import Processor
from streamgauge.dataflow.static_table import Table, table

if TYPE_CHECKING:
    import pyarrow as pa

Types = Mapping[str, str]
LIST: Any = list
LITERAL: Any = typing.Literal
"""As values, so that their parts may be computed."""
NOT_EMPTY = Limits(min_length=1)
CLASS, FIELDS = "class", "fields"
"""The members of an object that stands for an instance of a frozen dataclass."""
Rows = Mapping[str, list[Any]]
Parameters = tuple[tuple[str, Any], ...]
"""(name, value) of each parameter of a process."""
_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_AS_TEXT = {str(number): text for text, number in _NOT_FINITE.items()}


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
            inner = codec_of(parts[0])
            return Codec(
                inner.form | None,
                lambda value, available: None if value is None else inner.write(value, available),
                lambda data, place: None if data is None else inner.read(data, place),
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


def path_of(class_: type) -> str:
    """`module:Class`. Raises InputError unless the class can be imported by it."""
    path = f"{class_.__module__}:{class_.__qualname__}"
    can_import = class_.__module__ != "__main__" and _imported(path) is class_
    rule = "cannot be imported by its name, so a flow's JSON form cannot name it"
    require(can_import, "class", rule, path, "define it at the top level of a module that is no script")
    return path


def operator_at(path: str, place: str) -> type[Processor]:
    """The class of a process. Imports its module."""
    class_ = _imported(path)
    rule, way_out = (
        "must be a subclass of Processor that can be imported",
        "module:Class, and its package on the Python path",
    )
    require(isinstance(class_, type) and issubclass(class_, Processor), place, rule, path, way_out)
    return class_


def _imported(path: str) -> Any:
    """The object at `module:name`; None if nothing is there."""
    module, _, name = path.partition(":")
    try:
        return operator.attrgetter(name)(importlib.import_module(module))
    except (ImportError, AttributeError, ValueError, TypeError):
        return None


def value_to_json(value: Any, setting: str) -> Any:
    """A parameter of a process as JSON. Raises InputError if it is no plain value."""
    if value is None or type(value) in (bool, int, str) or (type(value) is float and math.isfinite(value)):
        return value
    if type(value) is tuple:
        return [value_to_json(item, setting) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        parts = {name: value_to_json(getattr(value, name), setting) for name in _parameters(type(value))}
        return {CLASS: path_of(type(value)), FIELDS: parts}
    raise InputError(
        Problem(setting, "has no JSON form", value, "a finite number, a text, a tuple or a frozen dataclass of these")
    )


def value_from_json(value: Any, place: str) -> Any:
    """The inverse of `value_to_json`."""
    if isinstance(value, list):
        return tuple(value_from_json(item, f"{place}[{number}]") for number, item in enumerate(value))
    if not isinstance(value, Mapping):
        return value
    class_ = _imported(str(value.get(CLASS)))
    parts: Any = value.get(FIELDS)
    is_frozen = isinstance(class_, type) and is_dataclass(class_) and class_.__dataclass_params__.frozen  # type: ignore[attr-defined]
    rule = f"must have only the members {CLASS}, a frozen dataclass that can be imported, and {FIELDS}"
    way_out = f'{{"{CLASS}": "module:Class", "{FIELDS}": {{}}}}'
    require(set(value) == {CLASS, FIELDS} and is_frozen, place, rule, value, way_out)
    try:
        return class_(**{name: value_from_json(part, f"{place}.{name}") for name, part in parts.items()})
    except (TypeError, AttributeError) as error:
        raise InputError(
            Problem(f"{place}.{FIELDS}", f"do not fit the class ({error})", parts, ", ".join(_parameters(class_)))
        ) from None


def _parameters(class_: Any) -> list[str]:
    """The fields that a dataclass takes."""
    return [field.name for field in fields(class_) if field.init]


def rows_of(table_: Table) -> dict[str, list[Any]]:
    """The values of each column."""
    rows = table_.to_arrow()
    return {name: _column_to_json(rows.column(name), type_) for name, type_ in table_.schema.types().items()}


def _column_to_json(column: pa.ChunkedArray, type_: str) -> list[Any]:
    import pyarrow as pa

    if type_ == "timestamp":
        return list(column.cast(pa.int64()).to_pylist())
    plain = list(column.to_pylist())
    if type_ == "binary":
        return [None if each is None else base64.b64encode(each).decode() for each in plain]
    if type_ == "double":
        return [each if each is None or math.isfinite(each) else _AS_TEXT[str(each)] for each in plain]
    return plain


def table_of(name: str, schema: Schema, rows: Rows, place: str) -> Table:
    """The static table of these rows. Raises InputError with their `place` if they do not fit the schema."""
    import pyarrow as pa

    types = schema.types()
    require(set(rows) == set(types), place, "must have the columns of the schema", ", ".join(rows), ", ".join(types))
    columns = {column: _column_from_json(rows[column], type_, f"{place}.{column}") for column, type_ in types.items()}
    got = ", ".join(f"{column}: {len(values)}" for column, values in columns.items())
    is_even = len({len(column) for column in columns.values()}) <= 1
    require(is_even, place, "must have as many values in each column", got, "null for a missing value")
    return table(name, pa.table(columns), schema)


def _column_from_json(values: list[Any], type_: str, place: str) -> pa.Array:
    import pyarrow as pa

    try:
        if type_ == "timestamp":
            return pa.array(values, pa.int64()).cast(arrow_type(type_))
        if type_ == "binary":
            values = [None if each is None else base64.b64decode(each, validate=True) for each in values]
        if type_ == "double":
            values = [_NOT_FINITE.get(each, each) if isinstance(each, str) else each for each in values]
        return pa.array(values, arrow_type(type_))
    except (pa.ArrowException, TypeError, ValueError, OverflowError, binascii.Error) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            Problem(place, f"must hold values of type {type_}", reason, "other values, or another type in the schema")
        ) from None


def _write_columns(columns: Columns, available: Types) -> list[dict[str, Any]]:
    return [{"name": name, **_expression(sql, available)} for name, sql in columns]


def _write_parameters(parameters: Parameters, _: Types) -> dict[str, Any]:
    return {name: value_to_json(value, f"parameter {name!r}") for name, value in parameters}


def _read_parameters(data: Any, place: str) -> Parameters:
    return tuple((name, value_from_json(value, f"{place}.{name}")) for name, value in data.items())


def _write_table(table_: Table, available: Types) -> dict[str, Any]:
    schema = codec_of(Schema).write(table_.schema, available)
    return {"name": table_.name, "schema": schema, "rows": rows_of(table_)}


def _read_table(data: Any, place: str) -> Table:
    schema = codec_of(Schema).read(data["schema"], f"{place}.schema")
    return table_of(data["name"], schema, data["rows"], f"{place}.rows")


_RULES[Field] = record(Field, type=LITERAL[TYPES])
_TABLE = object_form(
    "Table",
    {"name": str, "schema": codec_of(Schema).form, "rows": dict[str, list[JsonValue]]},
    "A static table. `rows` holds the values of each column; binary is base64, a timestamp is in microseconds.",
)
_NAMED_EXPRESSIONS = typing.Annotated[LIST[NAMED_EXPRESSION], NOT_EMPTY]
_RULES |= {
    Expression: Codec(EXPRESSION, _expression, lambda data, _: data["sql"]),
    Positive: _plain(typing.Annotated[int, Limits(ge=1)]),
    Keys: _list(_plain(str))._replace(form=typing.Annotated[list[str], NOT_EMPTY]),
    Columns: _pairs(_NAMED_EXPRESSIONS, "sql")._replace(write=_write_columns),
    OutputTypes: _pairs(typing.Annotated[LIST[COLUMN], NOT_EMPTY], "type"),
    Copies: _pairs(LIST[COPY], "column"),
    type[Processor]: Codec(str, lambda class_, _: path_of(class_), operator_at),
    Parameters: Codec(dict[str, JsonValue], _write_parameters, _read_parameters),
    Table: Codec(_TABLE, _write_table, _read_table),
}
