"""`truth` of a process: its semantics as DuckDB SQL, independent of the class, so that it can verify the class.

The text is one SELECT over the relation `input`, which has:

- the columns that the node reads, and `_time` (BIGINT, us);
- with several inputs `_input` (0, 1, ...; columns that an input lacks are null);
- `_row`, which stands for the row. Ordering by it is the order in which the class gets rows (by time, ties by id).

The text gives the node's output columns by name, and

- for results from a row: `_row`, and `_ordinal` (0, 1, ...) if the node sets `several`;
- for nodes with an `identity`: `_time`, `event_time`, `ingest_time`. `input` has the last two as well.
"""

from __future__ import annotations

from collections.abc import Sequence

from streamgauge.core.errors import InputError, Problem
from streamgauge.core.schema import EVENT_TIME, INGEST_TIME, quote
from streamgauge.dataflow.expressions.types import DUCKDB_TYPES, unsupported_type
from streamgauge.dataflow.nodes import Process
from streamgauge.dataflow.operators.api import INPUT, ORDINAL, ROW, TIME

STATED = (EVENT_TIME, INGEST_TIME)
Types = dict[str, str]


def statement(node: Process, inputs: Sequence[str], columns: Sequence[Types], time: str) -> str:
    """DuckDB SQL of the node's results: output columns, lineage, and `time`.

    `inputs` are the queries of the node's inputs, with a column `time` too. `columns` are their columns and types.
    """
    rows = (
        f"SELECT {_input_columns(node, number, available, time)} FROM ({query})"
        for number, (query, available) in enumerate(zip(inputs, columns, strict=True))
    )
    return f"WITH input AS ({' UNION ALL BY NAME '.join(rows)}) SELECT {_results(node, time)} FROM ({node.truth})"


def check(node: Process, columns: Sequence[Types], setting: str) -> None:
    """Raises InputError if the truth cannot be bound over the node's inputs or lacks an output column."""
    time = "__time"
    empty = [
        "SELECT " + ", ".join(f"NULL::{DUCKDB_TYPES[type_]} AS {quote(name)}" for name, type_ in available.items())
        + f", NULL::BIGINT AS {time}"
        for available in columns
    ]  # fmt: skip
    reason = unsupported_type(statement(node, empty, columns, time))
    if reason:
        passed_on = [TIME, *STATED] if node.identity else [ROW, *([ORDINAL] if node.several else [])]
        way_out = f"a SELECT over input({', '.join((*node.reads, TIME, ROW))}) that gives " + ", ".join(
            [*(name for name, _ in node.gives), *passed_on]
        )
        raise InputError(Problem(f"{setting}, truth", f"cannot be bound: {reason}", node.truth, way_out))


def _input_columns(node: Process, number: int, available: Types, time: str) -> str:
    columns = [quote(name) for name in node.reads if name in available]
    columns.append(f"{time} AS {quote(TIME)}")
    if len(node.inputs) > 1:
        columns.append(f"{number}::TINYINT AS {quote(INPUT)}")
    if node.identity:
        columns += [quote(name) if name in available else f"0::BIGINT AS {quote(name)}" for name in STATED]
    return ", ".join([*columns, f"{_row(node, number, time)} AS {quote(ROW)}"])


def _row(node: Process, number: int, time: str) -> str:
    """The struct `_row`. Structs compare field by field, so the fields that order rows come first."""
    fields = {"time": time, "input": str(number)}
    fields |= {f"order_{position}": quote(name) for position, name in enumerate(node.order)}
    fields |= {f"carried_{position}": quote(name) for position, (_, name) in enumerate(node.lineage) if name != ORDINAL}
    return "{" + ", ".join(f"'{name}': {value}" for name, value in fields.items()) + "}"


def _results(node: Process, time: str) -> str:
    outputs = [f"CAST({quote(name)} AS {DUCKDB_TYPES[type_]}) AS {quote(name)}" for name, type_ in node.gives]
    if node.identity:
        lineage = [f"CAST({quote(name)} AS BIGINT) AS {quote(name)}" for name, _ in node.lineage]
        return ", ".join([*outputs, *lineage, f"CAST({quote(TIME)} AS BIGINT) AS {time}"])
    passed_on = [
        f"CAST({quote(ORDINAL)} AS BIGINT) AS {quote(name)}"
        if column == ORDINAL
        else f"{quote(ROW)}.carried_{position} AS {quote(name)}"
        for position, (name, column) in enumerate(node.lineage)
    ]
    return ", ".join([*outputs, *passed_on, f"{quote(ROW)}.time AS {time}"])
