"""The rows of a static table as JSON, by column.

A timestamp is in microseconds since 1970, binary is base64. Doubles that JSON lacks are the texts of `_NOT_FINITE`.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from streamgauge.core.errors import InputError, Problem
from streamgauge.core.schema import Schema, arrow_type
from streamgauge.dataflow.static_table import Table, table

if TYPE_CHECKING:
    import pyarrow as pa

Rows = Mapping[str, list[Any]]
_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def rows_of(table_: Table) -> dict[str, list[Any]]:
    """The values of each column."""
    rows = table_.to_arrow()
    return {name: _to_json(rows.column(name), type_) for name, type_ in table_.schema.types().items()}


def _to_json(column: pa.ChunkedArray, type_: str) -> list[Any]:
    import pyarrow as pa

    if type_ == "timestamp":
        return list(column.cast(pa.int64()).to_pylist())
    plain = list(column.to_pylist())
    if type_ == "binary":
        return [None if each is None else base64.b64encode(each).decode() for each in plain]
    if type_ == "double":
        return [each if each is None or math.isfinite(each) else _not_finite(each) for each in plain]
    return plain


def _not_finite(number: float) -> str:
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def table_of(name: str, schema: Schema, rows: Rows, place: str) -> Table:
    """The static table of these rows. Raises InputError with their `place` if they do not fit the schema."""
    import pyarrow as pa

    types = schema.types()
    if set(rows) != set(types):
        raise InputError(Problem(place, "must have the columns of the schema", ", ".join(rows), ", ".join(types)))
    columns = {column: _from_json(rows[column], type_, f"{place}.{column}") for column, type_ in types.items()}
    if len({len(column) for column in columns.values()}) > 1:
        got = ", ".join(f"{column}: {len(values)}" for column, values in columns.items())
        raise InputError(Problem(place, "must have as many values in each column", got, "null for a missing value"))
    return table(name, pa.table(columns), schema)


def _from_json(values: list[Any], type_: str, place: str) -> pa.Array:
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
        way_out = "other values, or another type in the schema"
        raise InputError(Problem(place, f"must hold values of type {type_}", reason, way_out)) from None
