"""The table of a study: one row a cell, as Parquet and CSV; that of a matrix is cells.parquet and cells.csv.

Columns: number, the varied settings by their dotted names, repetition, and every field of `CellFigures`. A setting has
its value in force, as in `experiment` of result.json: rates in events per second, times in seconds.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pyarrow.csv

from streamgauge.artifacts.run_folder import OUT, write_table, write_text
from streamgauge.config.matrix import Cell, value_of
from streamgauge.core.formatting import format_value
from streamgauge.results.matrix import CellFigures, MatrixResult

TABLES = "cells"


def write_tables(folder: Path, name: str, table: pa.Table) -> None:
    """Writes both files."""
    write_table(folder / f"{name}.parquet", table)
    text = io.BytesIO()
    pyarrow.csv.write_csv(table, text)
    write_text(folder / f"{name}.csv", text.getvalue().decode(), OUT)


def cells_table(result: MatrixResult, cells: Mapping[int, Cell]) -> pa.Table:
    """The cells that were run, by number. `cells`: every cell of the matrix by its number."""
    rows = result.cells
    columns = {"number": [row.number for row in rows]}
    columns |= {name: [value_of(cells[row.number].experiment, name) for row in rows] for name in result.varied}
    columns["repetition"] = [row.repetition for row in rows]
    return rows_table(columns, rows)


def rows_table(first: Mapping[str, list[Any]], rows: Sequence[CellFigures]) -> pa.Table:
    """The rows with every figure, behind other columns."""
    columns = {name: _column(values) for name, values in first.items()}
    for name, field in CellFigures.model_fields.items():
        columns[name] = pa.array([getattr(row, name) for row in rows], _type(field.annotation))
    return pa.table(columns)


def _column(values: list[Any]) -> pa.Array:
    """Numbers stay numbers if all values are; everything else is text. None stays null."""
    kinds = {type(value) for value in values if value is not None}
    for accepted, type_ in (({bool}, pa.bool_()), ({int}, pa.int64()), ({int, float}, pa.float64())):
        if kinds and kinds <= accepted:
            return pa.array(values, type_)
    return pa.array([None if value is None else format_value(value) for value in values], pa.string())


def _type(annotation: Any) -> pa.DataType:
    kinds = get_args(annotation) or (annotation,)
    return pa.float64() if float in kinds else pa.int64() if int in kinds else pa.string()
