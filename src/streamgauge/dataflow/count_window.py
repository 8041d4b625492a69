"""Count windows: their aggregates, their output columns, and the same semantics as DuckDB SQL.

The window is a keyed process (class in `dataflow.operators.count_window_state`). Events of a key are ordered by time,
ties by event id. The window's last event identifies the result and gives its times.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from streamgauge.core.errors import Problem, attempt, refuse, require
from streamgauge.core.schema import Schema, quote
from streamgauge.dataflow.expressions.types import element_type
from streamgauge.dataflow.nodes import Columns, Count
from streamgauge.dataflow.schema import NUMBERS, repeated

FUNCTIONS = ("count", "sum", "avg", "min", "max", "last")
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
    problems = list(_key_problems(keys, available, setting))
    if not columns:
        problems.append(Problem(setting, "must compute at least one aggregate", "none", "count='count(*)'"))
    if twice := repeated((name for name, _ in columns), (key.lower() for key in keys)):
        problems.append(Problem(setting, "gives two columns of one name", twice, "another name for the aggregate"))
    parsed = [
        attempt(partial(_read_one, name, text, available, f"{setting}, column {name}"), problems)
        for name, text in columns
    ]
    refuse(problems)
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
    column = "*" if aggregate.column == "*" else quote(aggregate.column)
    return column if aggregate.function == "last" else f"{aggregate.function}({column}) OVER lately"


def _key_problems(keys: tuple[str, ...], available: Mapping[str, str], setting: str) -> Iterator[Problem]:
    if not keys:
        yield Problem(setting, "needs at least one key", "none", f"keys={next(iter(available))!r}")
    for key in keys:
        if key not in available:
            yield Problem(setting, f"key {key!r} must be a column of its input", key, f"one of {', '.join(available)}")
        elif available[key] == "double" or element_type(available[key]):
            rule = f"key {key!r} must be no double and no array"
            yield Problem(setting, rule, available[key], f"select({key}='try_cast({key} as string)') before it")


def _read_one(name: str, text: str, available: Mapping[str, str], setting: str) -> CountAggregate:
    match = _AGGREGATE.fullmatch(text)
    function, column = (match[1].lower(), match[2] or match[3]) if match else ("", "")
    rule = f"a count window takes one of {', '.join(FUNCTIONS)} of one column"
    require(function in FUNCTIONS, setting, rule, text, "avg(x), after select(x='...') if x is computed")
    if column == "*" and function == "count":
        return CountAggregate(name, function, column, "bigint")
    require(column in available, setting, f"column {column!r} does not exist", text, f"one of {', '.join(available)}")
    type_ = available[column]
    require(
        not element_type(type_), setting, f"{function} takes a plain column, not {type_}", text, "explode it before"
    )
    is_fitting = function in ("count", "last") or type_ in NUMBERS
    require(is_fitting, setting, f"{function} takes a number, not {type_}", text, "count or last, or a number")
    types = {"count": "bigint", "avg": "double", "sum": "double" if type_ == "double" else "bigint"}
    return CountAggregate(name, function, column, types.get(function, type_))
