"""Process nodes: what each must be, the types of its lineage columns, and its `truth`.

A truth is the semantics as DuckDB SQL, independent of the class, so that it can verify the class. The text is one
SELECT over the relation `input`, which has:

- the columns that the node reads, and `_time` (BIGINT, us);
- with several inputs `_input` (0, 1, ...; columns that an input lacks are null);
- `_row`, which stands for the row. Ordering by it is the order in which the class gets rows (by time, ties by id).

The text gives the node's output columns by name, and

- for results from a row: `_row`, and `_ordinal` (0, 1, ...) if the node sets `several`;
- for nodes with an `identity`: `_time`, `event_time`, `ingest_time`. `input` has the last two as well.
"""

import inspect
from collections.abc import Iterator, Sequence
from typing import Any

from streamgauge.core.errors import Problem, refuse, require
from streamgauge.core.schema import EVENT_TIME, LINEAGE_TIMES, TYPES, quote
from streamgauge.dataflow.expressions.types import DUCKDB_TYPES, unsupported_type
from streamgauge.dataflow.nodes import Process
from streamgauge.dataflow.operators.api import INPUT, ORDINAL, ROW, TIME, Processor

Types = dict[str, str]
Broken = Sequence[Any]
"""A broken rule, the value that breaks it, and the way out."""


def statement(node: Process, inputs: Sequence[str], columns: Sequence[Types], time: str) -> str:
    """DuckDB SQL of the node's results: output columns, lineage, and `time`.

    `inputs` are the queries of the node's inputs, with a column `time` too. `columns` are their columns and types.
    """
    rows = (
        f"SELECT {_input_columns(node, number, available, time)} FROM ({query})"
        for number, (query, available) in enumerate(zip(inputs, columns, strict=True))
    )
    return f"WITH input AS ({' UNION ALL BY NAME '.join(rows)}) SELECT {_results(node, time)} FROM ({node.truth})"


def _check_truth(node: Process, columns: Sequence[Types], setting: str) -> None:
    """Raises InputError if the truth cannot be bound over the node's inputs or lacks an output column."""
    time = "__time"
    empty = [
        "SELECT " + ", ".join(f"NULL::{DUCKDB_TYPES[type_]} AS {quote(name)}" for name, type_ in available.items())
        + f", NULL::BIGINT AS {time}"
        for available in columns
    ]  # fmt: skip
    reason = unsupported_type(statement(node, empty, columns, time))
    passed_on = [TIME, *LINEAGE_TIMES] if node.identity else [ROW, *([ORDINAL] if node.several else [])]
    names = ", ".join([*(name for name, _ in node.gives), *passed_on])
    way_out = f"a SELECT over input({', '.join((*node.reads, TIME, ROW))}) that gives {names}"
    require(not reason, f"{setting}, truth", f"cannot be bound: {reason}", node.truth, way_out)


def _input_columns(node: Process, number: int, available: Types, time: str) -> str:
    stated = (quote(name) if name in available else f"0::BIGINT AS {quote(name)}" for name in LINEAGE_TIMES)
    columns = (
        *(quote(name) for name in node.reads if name in available),
        f"{time} AS {quote(TIME)}",
        *([f"{number}::TINYINT AS {quote(INPUT)}"] if len(node.inputs) > 1 else []),
        *(stated if node.identity else []),
        f"{_row(node, number, time)} AS {quote(ROW)}",
    )
    return ", ".join(columns)


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


def check(node: Process, columns: Sequence[Types], setting: str) -> None:
    """Raises InputError with every problem of the node. `columns` are the columns of each input."""
    broken = [*_class_problems(node), *_reading_problems(node, columns), *_giving_problems(node)]
    refuse([Problem(setting, *each) for each in broken])
    if node.truth is not None:
        _check_truth(node, columns, setting)


def _class_problems(node: Process) -> Iterator[Broken]:
    class_ = node.operator
    if not (isinstance(class_, type) and issubclass(class_, Processor)):
        yield "takes a subclass of Processor", class_, "class Mine(Processor): ..."
        return
    for name in sorted(class_.__abstractmethods__):
        yield f"needs a class that has {name}()", class_.__name__, f"def {name}(self, ...)"
    missing = [name for name in ("snapshot", "restore") if getattr(class_, name) is getattr(Processor, name)]
    if node.keys and missing:
        way_out = " and ".join(f"def {name}(self, ...)" for name in missing)
        yield "keeps state by key, and its class cannot save it", class_.__name__, way_out
    try:
        inspect.signature(class_).bind(**dict(node.parameters))
    except TypeError as error:
        way_out = f"the parameters of {class_.__name__}{inspect.signature(class_)}"
        yield f"cannot make {class_.__name__} ({error})", dict(node.parameters), way_out


def _reading_problems(node: Process, columns: Sequence[Types]) -> Iterator[Broken]:
    names = ", ".join(dict.fromkeys(name for available in columns for name in available))
    by_key = columns[:-1] if node.broadcast else columns
    for name in node.reads:
        types = {available[name] for available in columns if name in available}
        if not types:
            yield f"column {name!r} must be one of its input", name, f"one of {names}"
        elif len(types) > 1:
            way_out = "rename one of them with select before the process"
            yield f"column {name!r} must have one type in all inputs", ", ".join(sorted(types)), way_out
        elif name in node.keys and any(name not in available for available in by_key):
            yield f"key {name!r} must be in every input", name, "select it before"


def _giving_problems(node: Process) -> Iterator[Broken]:
    names = [name for name, _ in node.gives]
    if not names:
        yield "must give at least one column", "none", "gives=Schema.from_types(name='type')"
    for name, type_ in node.gives:
        if type_ not in TYPES:
            yield f"column {name} has no type of a flow", type_, f"one of {', '.join(TYPES)}"
    for name in node.identity:
        if name not in (*names, EVENT_TIME):
            yield f"identity {name!r} must be a column it gives", name, f"one of {', '.join(names)}"
    if node.identity and not node.keys:
        yield "has an identity, so it must have keys", "no keys", "keys='...', or no identity"
    if node.broadcast and (node.identity or not node.keys):
        got = "an identity" if node.identity else "no keys"
        yield "broadcasts an input, so it must have keys and no identity", got, "keys='...' and no identity"
    if node.identity and node.several:
        yield "has an identity, so several does not apply", "several", "remove several"
