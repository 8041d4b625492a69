"""Count windows: their aggregates, their output columns, and the same semantics as DuckDB SQL.

The window is a keyed process (class in `dataflow.operators.count_window_state`). Events of a key are ordered by time,
ties by event id. The window's last event identifies the result and gives its times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from streamgauge.core.errors import InputError, Problem
from streamgauge.core.schema import Schema, quote
from streamgauge.dataflow.expressions.types import element_type
from streamgauge.dataflow.nodes import Columns, Count

FUNCTIONS = ("count", "sum", "avg", "min", "max", "last")
NUMBERS = ("int", "bigint", "double")
_AGGREGATE = re.compile(r"\s*(\w+)\s*\(\s*(?:(\*|\w+)|`([^`]+)`)\s*\)\s*")


@dataclass(frozen=True)
class CountAggregate:
    """One output column: its name, the function, the input column (`*`: rows), and its type."""

    name: str
    function: str
    column: str
    type: str


def read(
    columns: Columns, keys: tuple[str, ...], available: Mapping[str, str], setting: str
) -> tuple[CountAggregate, ...]:
    """Parses aggregates over `available` (column to type). Raises InputError with every problem."""
    problems = [*_key_problems(keys, available, setting), *_name_problems(columns, keys, setting)]
    parsed = []
    for name, text in columns:
        aggregate = _read_one(name, text, available, f"{setting}, column {name}")
        if isinstance(aggregate, Problem):
            problems.append(aggregate)
        else:
            parsed.append(aggregate)
    if problems:
        raise InputError(problems)
    return tuple(parsed)


def gives(aggregates: tuple[CountAggregate, ...], keys: tuple[str, ...], available: Mapping[str, str]) -> Schema:
    """The keys, then the aggregates."""
    return Schema.from_types(**{key: available[key] for key in keys} | {each.name: each.type for each in aggregates})


def truth(window: Count, keys: tuple[str, ...], aggregates: tuple[CountAggregate, ...]) -> str:
    """The same semantics as DuckDB SQL, by windows of rows."""
    by_key = f"PARTITION BY {', '.join(map(quote, keys))} ORDER BY _row"
    columns = [*map(quote, keys), *(f"{_sql(each)} AS {quote(each.name)}" for each in aggregates), "_row"]
    recent = f"WINDOW lately AS ({by_key} ROWS BETWEEN {window.size - 1} PRECEDING AND CURRENT ROW)"
    every = f" QUALIFY row_number() OVER ({by_key}) % {window.slide} = 0" if window.slide > 1 else ""
    return f"SELECT {', '.join(columns)} FROM input {recent}{every}"


def _sql(aggregate: CountAggregate) -> str:
    if aggregate.function == "last":
        return quote(aggregate.column)
    return f"{aggregate.function}({'*' if aggregate.column == '*' else quote(aggregate.column)}) OVER lately"


def _key_problems(keys: tuple[str, ...], available: Mapping[str, str], setting: str) -> Iterator[Problem]:
    if not keys:
        yield Problem(setting, "needs at least one key", "none", f"keys={next(iter(available))!r}")
    for key in keys:
        if key not in available:
            way_out = f"one of {', '.join(available)}"
            yield Problem(setting, f"key {key!r} must be a column of its input", key, way_out)
        elif available[key] == "double" or element_type(available[key]):
            rule = f"key {key!r} must be no double and no array"
            yield Problem(setting, rule, available[key], f"select({key}='try_cast({key} as string)') before it")


def _name_problems(columns: Columns, keys: tuple[str, ...], setting: str) -> Iterator[Problem]:
    if not columns:
        yield Problem(setting, "must compute at least one aggregate", "none", "count='count(*)'")
    names = {key.lower() for key in keys}
    for name, _ in columns:
        if name.lower() in names:
            yield Problem(setting, "gives two columns of one name", name, "another name for the aggregate")
        names.add(name.lower())


def _read_one(name: str, text: str, available: Mapping[str, str], setting: str) -> CountAggregate | Problem:
    match = _AGGREGATE.fullmatch(text)
    function = match.group(1).lower() if match else ""
    if match is None or function not in FUNCTIONS:
        rule = f"a count window takes one of {', '.join(FUNCTIONS)} of one column"
        return Problem(setting, rule, text, "avg(x), after select(x='...') if x is computed")
    column = match.group(2) or match.group(3)
    if column == "*" and function == "count":
        return CountAggregate(name, function, column, "bigint")
    if column not in available:
        return Problem(setting, f"column {column!r} does not exist", text, f"one of {', '.join(available)}")
    type_ = available[column]
    if element_type(type_):
        return Problem(setting, f"{function} takes a plain column, not {type_}", text, "explode it before")
    if function not in ("count", "last") and type_ not in NUMBERS:
        return Problem(setting, f"{function} takes a number, not {type_}", text, "count or last, or a number")
    return CountAggregate(name, function, column, _type(function, type_))


def _type(function: str, type_: str) -> str:
    match function:
        case "count":
            return "bigint"
        case "avg":
            return "double"
        case "sum":
            return "double" if type_ == "double" else "bigint"
        case _:
            return type_
