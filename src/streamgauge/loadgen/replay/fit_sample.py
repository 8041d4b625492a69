"""Fits fields to a sample of the real input: types, number and skew of keys, ranges, texts, nulls.

Each column is fitted alone; correlations between columns are lost. The same file gives the same fields.

Rule: values that together cover nearly all rows (Good-Turing: the share of rows whose value occurs again) become a
table of frequencies, like all texts. For other numbers, the table has the frequent values, and quantiles have the rest.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streamgauge.core.errors import InputError, Problem, near, require
from streamgauge.core.schema import LINEAGE, arrow_type, quote, text_literal
from streamgauge.loadgen.fields import FieldSpec
from streamgauge.loadgen.fitted import Fitted
from streamgauge.loadgen.replay import text as text_files

if TYPE_CHECKING:
    import duckdb

ROWS_MAX = 200_000
"""The sample of a larger file has this number of rows, always the same ones."""
VALUES_MAX = 65_536
QUANTILES = 1025
COVERED = 0.99
FREQUENT = 5
"""The fewest occurrences with which a number enters the table if the values do not cover the sample."""

READERS = {"parquet": "read_parquet", "csv": "read_csv", "tsv": "read_csv", "json": "read_json_auto",
            "jsonl": "read_json_auto", "ndjson": "read_json_auto"}  # fmt: skip
EXACT_DIGITS = 15
"""A double keeps this number of decimal digits."""
_JSON_TEXTS = ("VARCHAR", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE", "UUID")
"""Types that DuckDB gives to texts in JSON. It takes the month of 04-03-2026 first, without a word."""
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")
_BOOLEANS = (("true", "false"), ("True", "False"), ("TRUE", "FALSE"))
_DAYS = {
    "%m/%d/%Y": "month/day/year", "%d/%m/%Y": "day/month/year", "%d.%m.%Y": "day.month.year",
    "%m-%d-%Y": "month-day-year", "%d-%m-%Y": "day-month-year",
}  # fmt: skip
_ZONE = r":[0-9.]+ *(Z|z|[+-][0-9:]+|[A-Za-z/_]+)$"


class _TextType(NamedTuple):
    """A type that a text column may have: SQL of the value, SQL of whether it keeps the text, and a note on reading.

    {0} is the text, {1} the value, {2} the most decimals of the column.
    """

    value: str
    keeps: str = "{1} IS NOT NULL"
    note: str = ""


_IN_YEARS = "{1} >= '1000-01-01'"
"""Four digits: 10-11-12 and 3.11.4 are codes or versions, and no days of the year 10 or 4."""
_TIMES = (
    _TextType("CASE WHEN regexp_matches({0}, '[0-9]') THEN TRY_CAST({0} AS TIMESTAMPTZ) END", _IN_YEARS),
    *(_TextType(f"TRY_STRPTIME({{0}}, ['{day}', '{day} %H:%M', '{day} %H:%M:%S'])", _IN_YEARS, f"read as {order}")
      for day, order in _DAYS.items()),
)  # fmt: skip
_TYPES = (
    # Codes such as 0417 and 1E5 are no numbers: different texts would become one value.
    _TextType("TRY_CAST({0} AS BIGINT)", "CAST({1} AS VARCHAR) = {0}"),
    _TextType("TRY_CAST({0} AS DOUBLE)", "isfinite({1}) AND printf('%.{2}f', {1}) = {0}"),
    *(_TextType(f"CASE {{0}} WHEN '{yes}' THEN true WHEN '{no}' THEN false END") for yes, no in _BOOLEANS),
    *_TIMES,
)
"""In this order."""


@dataclass(frozen=True)
class Sample:
    """The fitted `fields`, a note per column about its fit, and the last of its times if they are numbers."""

    fields: tuple[FieldSpec, ...]
    notes: tuple[str, ...]
    last_time: float | None = None


def fit(path: Path, time: str, named: bool = False) -> Sample:
    """Fits fields to the columns of a Parquet, CSV or JSON file, except the event time `time`, which the plan sets.

    Raises InputError if the file cannot be read, is empty, has a column of an unsupported type, or has no column
    `time` of times although the user has `named` it.
    """
    table, remarks, left_out = _read(path)
    # SQL ignores case in names.
    of_time = [name for name in table.column_names if name.lower() == time.lower()]
    close = near(time, table.column_names)
    way_out = f'time="{close}"' if close else f"time= one of its columns: {', '.join(table.column_names)}"
    rule = "must have the column that time= names"
    _require(not named or of_time, path, rule, time, f"{way_out}, or leave time= out")
    _require(table.num_rows, path, "must hold some rows", f"none; {left_out}" if left_out else "none")
    taken = "".join([name for name in table.column_names if name.lower() in LINEAGE][:1])
    _require(not taken, path, "has a column whose name the instrument needs", taken, "rename it")
    for name in of_time if named else ():
        values = table.column(name).drop_null()
        rule = "must have times in the column that time= names"
        got = f"{name}, with values such as {values[0] if len(values) else ''}"
        _require(_may_be_times(values), path, rule, got, "name another column, or leave time= out")
    names = [name for name in table.column_names if name not in of_time]
    _require(names, path, "must have a column beside the event time", table.column_names)
    fitted = [_fit(path, name, table.column(name), remarks.get(name, ())) for name in names]
    notes = (*(text for _, text in fitted), *([left_out] if left_out else []))
    last_times = [pc.max(table.column(name)).as_py() for name in of_time if _is_number(table.column(name).type)]
    return Sample(tuple(field for field, _ in fitted), notes, last_times[0] if last_times else None)


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)


def _may_be_times(values: pa.ChunkedArray) -> bool:
    """Whether a column can hold times. A text may: `01.03.2026 12:00`; but not one without a digit."""
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        return bool(pc.all(pc.match_substring_regex(values, r"\d"), min_count=0).as_py())
    return not len(values) or pa.types.is_temporal(values.type) or _is_number(values.type)


def _read(path: Path) -> tuple[pa.Table, dict[str, list[str]], str]:
    """(the rows, or a sample of them; remarks on how a column was read; a note about skipped lines)."""
    import duckdb

    _require(not path.is_dir(), path, "must be a file", f"{path}, which is a folder", "name one file of it")
    _require(path.is_file(), path, "must be an existing file", str(path), "the path, as seen from the job's file")
    suffixes = [suffix for suffix in path.suffixes if suffix not in text_files.COMPRESSED]
    kind = suffixes[-1][1:].lower() if suffixes else ""
    reader = READERS.get(kind, "")
    _require(reader, path, f"must be one of {', '.join(READERS)}, .gz or .zst after it", path.name)
    with duckdb.connect() as connection:
        # One thread, because a parallel reservoir samples other rows each time.
        connection.execute("SET threads = 1; SET TimeZone = 'UTC'")
        try:
            text_files.require_text(path, kind, _setting(path))
            if reader == "read_csv":
                return _csv(connection, path)
            with text_files.without_mark(path) as plain:
                source = f"{reader}({text_files.quoted_path(plain)})"
                whole = connection.sql(f"SELECT * FROM {source} LIMIT 0")
                _require_unlike(path, _names(connection, plain, reader))
                if reader == "read_parquet":
                    return connection.sql(_sampled(source)).to_arrow_table(), {}, ""
                types = dict(zip(whole.columns, map(str, whole.types), strict=True))
                return *_json(connection, types, plain), ""
        except (duckdb.Error, OSError) as error:
            reason = str(error).partition("\n")[0]
            raise InputError(Problem(_setting(path), "must be readable", reason, "another file")) from None


def _sampled(source: str) -> str:
    return f"SELECT * FROM {source} USING SAMPLE reservoir({ROWS_MAX} ROWS) REPEATABLE (1)"


def _json(
    connection: duckdb.DuckDBPyConnection, types: Mapping[str, str], path: Path
) -> tuple[pa.Table, dict[str, list[str]]]:
    """Reads JSON by DuckDB's `types`. A quoted number stays a text; a text may be a time, in the forms of a CSV."""
    texts = [name for name, type_ in types.items() if type_ in _JSON_TEXTS]
    declared = ", ".join(
        f"{text_literal(name)}: {text_literal('VARCHAR' if name in texts else type_)}" for name, type_ in types.items()
    )
    plain = f"read_json_auto({text_files.quoted_path(path)}, columns = {{{declared}}})"
    connection.execute(f"CREATE TEMP TABLE sampled AS {_sampled(plain)}")
    return _table(connection, list(types), dict.fromkeys(texts, _TIMES))


def _csv(connection: duckdb.DuckDBPyConnection, path: Path) -> tuple[pa.Table, dict[str, list[str]], str]:
    """Reads a CSV as data files are read, by its first line. A column has the first type that keeps all its values."""
    setting, first = _setting(path), text_files.header(path)
    _require_header(path, first)
    text_files.require_names(first, path, setting)
    _require_unlike(path, first.given)
    connection.execute(f"CREATE TEMP TABLE sampled AS {_sampled(text_files.csv_source(path, first, rejects=True))}")
    left_out = text_files.left_out(connection, path, setting)
    return *_table(connection, first.names, dict.fromkeys(first.names, _TYPES)), text_files.in_words(left_out)


def _table(
    connection: duckdb.DuckDBPyConnection, names: Sequence[str], types: Mapping[str, Sequence[_TextType]]
) -> tuple[pa.Table, dict[str, list[str]]]:
    """(the columns of the table `sampled`, remarks); a column in `types` is a text that may have one of these."""
    values = dict(zip(names, map(quote, names), strict=True))
    remarks: dict[str, list[str]] = {}
    for name, allowed in types.items():
        values[name], remarks[name] = _best_type(connection, name, allowed)
    selected = ", ".join(f"{value} AS {quote(name)}" for name, value in values.items())
    return connection.sql(f"SELECT {selected} FROM sampled").to_arrow_table(), remarks


def _names(connection: duckdb.DuckDBPyConnection, path: Path, reader: str) -> list[str]:
    """The columns as the file names them, because DuckDB renames those that differ only in case."""
    if reader == "read_parquet":
        return list(pq.read_schema(path).names)
    objects = f"SELECT json FROM read_json_objects({text_files.quoted_path(path)}) LIMIT {ROWS_MAX}"
    keys = f"SELECT DISTINCT unnest(json_keys(json)) FROM ({objects}) WHERE json_type(json) = 'OBJECT'"
    return [name for (name,) in connection.sql(keys).fetchall()]


def _require_unlike(path: Path, names: Sequence[str]) -> None:
    """InputError if SQL would take two columns for one."""
    counts = Counter(name.lower() for name in names)
    alike = sorted(name for name in names if name and counts[name.lower()] > 1)
    rule = "must have columns whose names differ by more than case, which Spark does not see"
    _require(not alike, path, rule, ", ".join(alike), "rename one of them")


def _require_header(path: Path, first: text_files.Header) -> None:
    """Raises InputError if the first line has a number, because it is probably a row and not the names."""
    rule = "must begin with a line of names"
    _require(first.given, path, rule, "an empty line", "add one")
    for name in first.given:
        got = f"{', '.join(first.given)}, where {name} is a number"
        _require(not _NUMBER.fullmatch(name), path, rule, got, "add one, such as user_id,town")


def _best_type(connection: duckdb.DuckDBPyConnection, name: str, allowed: Sequence[_TextType]) -> tuple[str, list[str]]:
    """(SQL of a text column as the first type that keeps all its values, remarks); without values, as text."""
    raw = f"NULLIF({quote(name)}, '')"
    decimals = f"coalesce(max(length(split_part({raw}, '.', 2))), 0)"
    query = f"SELECT count({raw}), {decimals}, count(TRY_CAST({raw} AS DOUBLE)), min({raw}) FROM sampled"
    ((count, places, of_numbers, lowest),) = connection.sql(query).fetchall()
    if not count:
        return quote(name), []
    casts = [(one.value.format(raw), one) for one in allowed]
    keeps = ", ".join(f"count(*) FILTER ({one.keeps.format(raw, value, places)})" for value, one in casts)
    (kept,) = connection.sql(f"SELECT {keeps} FROM sampled").fetchall()
    fitting = [pair for pair, number in zip(casts, kept, strict=True) if number == count]
    if not fitting:
        is_code = allowed is _TYPES and of_numbers == count
        return quote(name), [f"a text, because numbers would not keep texts such as {lowest}"] if is_code else []
    value, best = fitting[0]
    remarks = [best.note] if best.note else []
    if best in _TIMES:
        zones = f"bool_and(regexp_matches({raw}, '{_ZONE}')), bool_or(contains({raw}, '24:00'))"
        ((zoned, midnight),) = connection.sql(f"SELECT {zones} FROM sampled").fetchall()
        remarks += [] if zoned else ["times without a zone are in UTC"]
        remarks += ["24:00 is 0:00 of the next day"] if midnight else []
    return value, remarks


def _fit(path: Path, name: str, column: pa.ChunkedArray, remarks: Sequence[str]) -> tuple[FieldSpec, str]:
    """(the field, a note about it)."""
    kind, present = _typed(path, name, column.drop_null().combine_chunks())
    nulls = column.null_count
    counts = sorted(_counts(present), key=lambda pair: -pair[1])
    covered = not counts or 1 - sum(1 for _, count in counts if count == 1) / len(present) >= COVERED
    whole = kind in ("string", "binary", "boolean") or (covered and len(counts) <= VALUES_MAX)
    table = counts[:VALUES_MAX] if whole else [pair for pair in counts[:VALUES_MAX] if pair[1] >= FREQUENT]
    values, weights = tuple(value for value, _ in table), tuple(float(count) for _, count in table)
    quantiles, decimals = () if whole else _quantiles(present, set(values)), _decimals(kind, present)
    between = 0 if whole else len(present) - sum(weights)
    weights = (*weights, *((float(nulls),) if nulls else ()), *((between,) if quantiles else ()))
    field = Fitted(name, kind, (*values, *((None,) if nulls else ())), weights, quantiles, decimals)
    if kind == "double" and not pa.types.is_floating(column.type) and _digits(column) > EXACT_DIGITS:
        remarks = (*remarks, f"numbers of more than {EXACT_DIGITS} digits are rounded")
    return field, "; ".join((_in_words(field, counts, len(column), nulls), *remarks))


def _digits(column: pa.ChunkedArray) -> int:
    """The most digits of whole numbers or decimals."""
    largest = pc.max(pc.abs(column)).as_py()
    return 0 if largest is None else len(str(largest).lstrip("0.").replace(".", ""))


def _typed(path: Path, name: str, column: pa.Array) -> tuple[str, pa.Array]:
    """(the SQL type, the values in that type)."""
    kind, is_ = column.type, pa.types
    large = is_.is_uint64(kind) and len(column) > 0 and pc.max(column).as_py() >= 2**63
    kinds = {
        "boolean": is_.is_boolean(kind),
        "int": is_.is_integer(kind) and kind.bit_width <= (32 if is_.is_signed_integer(kind) else 16),
        "bigint": is_.is_integer(kind) and not large,
        "double": is_.is_floating(kind) or is_.is_decimal(kind) or large,
        "string": is_.is_string(kind) or is_.is_large_string(kind) or is_.is_dictionary(kind) or is_.is_null(kind),
        "binary": is_.is_binary(kind) or is_.is_large_binary(kind),
        "timestamp": is_.is_timestamp(kind) or is_.is_date(kind),
    }
    sql_type = next((each for each, holds in kinds.items() if holds), "")
    rule = f"column {name} has a type that no field has"
    _require(sql_type, path, rule, str(kind), "leave the column out of the sample")
    return sql_type, pc.cast(column, arrow_type(sql_type), safe=False)


def _counts(values: pa.Array) -> list[tuple[Any, int]]:
    """(value, count); timestamps as microseconds."""
    counted = pc.value_counts(values.view(pa.int64()) if pa.types.is_timestamp(values.type) else values)
    return sorted(zip(*(column.to_pylist() for column in counted.flatten()), strict=True), key=str)


def _quantiles(values: pa.Array, without: set[Any]) -> tuple[float, ...]:
    """The quantiles of the numbers that are not in the table."""
    numbers = values.view(pa.int64()) if pa.types.is_timestamp(values.type) else values
    rest = np.asarray([each for each in numbers.to_pylist() if each not in without and each == each], np.float64)
    return tuple(np.quantile(rest, np.linspace(0, 1, QUANTILES)).tolist()) if len(rest) else ()


def _decimals(kind: str, values: pa.Array) -> int | None:
    numbers = values.to_numpy(zero_copy_only=False) if kind == "double" else np.empty(0)
    exact = (places for places in range(7) if len(numbers) and np.array_equal(np.round(numbers, places), numbers))
    return next(exact, None)


def _in_words(field: Fitted, counts: list[tuple[Any, int]], rows: int, nulls: int) -> str:
    table = len(field.values) - bool(nulls)
    if not counts:
        words = "always null"
    elif not field.quantiles:
        words = f"{table:,} values, the most frequent in {counts[0][1] / rows:.2g} of the rows"
        words += "" if table == len(counts) else f" (of {len(counts):,} in the sample)"
    else:
        share = sum(field.weights[:table]) / rows
        words = f"{table:,} values in {share:.2g} of the rows, the others " if table else ""
        words += f"from {_shown(field, field.quantiles[0])} to {_shown(field, field.quantiles[-1])} by quantiles"
    return f"{field.name} {field.sql_type}: {words}" + (f", {nulls / rows:.2g} null" if nulls and counts else "")


def _shown(field: Fitted, value: float) -> str:
    """A quantile: a time in ISO 8601, other numbers without a power of ten."""
    if field.sql_type == "timestamp":
        return (datetime(1970, 1, 1) + timedelta(microseconds=value)).isoformat(sep=" ", timespec="seconds")
    if 0 < abs(value) < 1e-4:
        return f"{value:.15f}".rstrip("0")
    return f"{value:,.10g}" if abs(value) < 1e10 else f"{value:,.0f}"


def _setting(path: Path) -> str:
    return f"sample {path.name}"


def _require(holds: object, path: Path, rule: str, got: object, way_out: str = "another file") -> None:
    require(holds, _setting(path), rule, got, way_out)
