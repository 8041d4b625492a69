"""The table of a matrix: one row a cell, numbers as numbers."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from streamgauge.config.matrix import expand, varied
from streamgauge.config.options_and_settings import build
from streamgauge.results.matrix import CellFigures, MatrixCell, MatrixResult
from streamgauge.studies.matrix.cells import TABLES, cells_table, write_tables


def written(folder: Path, matrix: dict[str, Any], *figures: CellFigures) -> tuple[pa.Table, list[dict[str, str]]]:
    cells = expand(build({"workload": "windowed_aggregation", "matrix": matrix}))
    rows = [
        MatrixCell.from_figures(cell.number, dict(cell.settings), cell.repetition, one)
        for cell, one in zip(cells, figures, strict=False)
    ]
    result = MatrixResult(
        command="run", workload="windowed_aggregation", engine="spark", varied=varied(cells), planned=len(cells),
        environment={}, start_time="", folder=str(folder), cells=tuple(rows),
    )  # fmt: skip
    write_tables(folder, TABLES, cells_table(result, {cell.number: cell for cell in cells}))
    with (folder / "cells.csv").open(newline="") as lines:
        return pq.read_table(folder / "cells.parquet"), list(csv.DictReader(lines))


def test_the_columns_are_number_settings_repetition_and_figures(tmp_path: Path) -> None:
    """In both files, and the rows are those of the cells that were run."""
    matrix = {"load.rate": ["10k", "1.5M"], "parameters.range": ["4s"], "parameters.packs": [10], "tuning": ["tuned"]}
    first = CellFigures(verdict="sustained", ingested_per_s=9999.5, faults=0, sentence='said "so",\nin two lines')
    table, rows = written(tmp_path, matrix, first, CellFigures(verdict="invalid"))
    names = ["number", *matrix, "repetition", *CellFigures.model_fields]
    assert table.column_names == names
    assert list(rows[0]) == names
    assert table.column("load.rate").to_pylist() == [10_000.0, 1_500_000.0]
    assert table.schema.field("parameters.packs").type == pa.int64()
    assert table.schema.field("parameters.range").type == pa.string()
    assert table.column("faults").to_pylist() == [0, None]
    assert table.schema.field("ingested_per_s").type == pa.float64()
    assert [(row["verdict"], row["ingested_per_s"], row["faults"]) for row in rows] == [
        ("sustained", "9999.5", "0"), ("invalid", "", "")
    ]  # fmt: skip
    assert rows[0]["sentence"] == 'said "so",\nin two lines'


def test_without_a_cell_there_is_a_table_without_rows(tmp_path: Path) -> None:
    """With the same columns, so that programs need no exception."""
    table, rows = written(tmp_path, {"load.rate": ["10k"]})
    assert (table.num_rows, rows) == (0, [])
    assert table.column_names[:3] == ["number", "load.rate", "repetition"]


def test_values_of_several_kinds_are_text_and_lists_too(tmp_path: Path) -> None:
    """A setting that is not set is null."""
    matrix = {
        "include": [
            {"parameters.packs": 10, "limits": ["p50<=1s", "p90<=2s"]},
            {"parameters.packs": "many"},
            {"load.warmup": "5s"},
        ]
    }
    table, _ = written(tmp_path, matrix, *[CellFigures()] * 3)
    assert table.column("parameters.packs").to_pylist() == ["10", "many", None]
    assert table.column("limits").to_pylist()[0] == "p50<=1s, p90<=2s"
    assert table.column("load.warmup").to_pylist() == [None, None, 5.0]
