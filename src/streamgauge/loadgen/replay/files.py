"""Reads a user's data file into columns of a stream's types.

Malformed records are counted and do not stop the run: a value of a wrong type is null, and a line that is no row is
skipped. Unreadable files are refused.
"""

from __future__ import annotations

import codecs
import hashlib
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.errors import DriverError, InputError, Problem, near, require
from streamgauge.core.schema import ColumnTypes, arrow_type, quote, text_literal
from streamgauge.loadgen.replay import text as text_files
from streamgauge.loadgen.replay.fit_sample import READERS
from streamgauge.loadgen.replay.text import COMPRESSED, NONE_LEFT_OUT, LeftOut, quoted_path

if TYPE_CHECKING:
    import duckdb

JSON_LINES = ("jsonl", "ndjson")
LINES = ("txt", "log", "dat", "text", "")
"""Suffixes of files with text lines."""
BYTES_MAX = 2**30
"""The most bytes of the rows in memory, because every generator holds them."""
_SETTING = "set data"
ERROR_TEXT_MAX = 300
"""The most characters of a reader's message in an error, because it quotes whole lines of the file."""
_SQL = {
    "int": "INTEGER", "bigint": "BIGINT", "double": "DOUBLE", "string": "VARCHAR", "binary": "BLOB",
    "boolean": "BOOLEAN", "timestamp": "TIMESTAMPTZ",
}  # fmt: skip


class ColumnsError(InputError):
    """A file lacks the columns `missing`."""

    def __init__(self, problem: Problem, missing: Sequence[str]) -> None:
        super().__init__(problem)
        self.missing = missing


@dataclass(frozen=True)
class File:
    """A file, its SHA-256 at validation, and the columns to read."""

    path: str
    digest: str
    columns: ColumnTypes


@dataclass(frozen=True)
class Unreadable:
    """Values of a column that do not have its type: their number, the first one and its row (from 0), and how many of
    them are whole numbers that are too large."""

    count: int
    first: str
    row: int
    large: int


@dataclass(frozen=True)
class Content:
    """The columns of a file, the unreadable values by column (null in the column), and the skipped lines."""

    columns: dict[str, pa.Array]
    unreadable: dict[str, Unreadable]
    left_out: LeftOut = NONE_LEFT_OUT

    def values(self, name: str) -> int:
        """The number of rows with a value in a column, readable or not."""
        column = self.columns[name]
        return len(column) - column.null_count + (self.unreadable[name].count if name in self.unreadable else 0)


def digest(path: Path) -> str:
    """A file's SHA-256, cached until the file changes, because every rate makes its streams anew."""
    available = path.stat()
    return _digest(path, available.st_mtime_ns, available.st_size)


@lru_cache(maxsize=32)
def _digest(path: Path, changed_ns: int, size: int) -> str:
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


@lru_cache(maxsize=16)
def content(file: File) -> Content:
    """The content of a file.

    Raises:
        InputError: it cannot be read, lacks a column, or has no row.
        DriverError: it has changed since validation, so its rows are not those of the plan.
    """
    try:
        return _read(Path(file.path), file.columns)
    except OSError as error:
        raise InputError(Problem(_SETTING, "must be readable", str(error), "another file")) from None
    finally:
        _require_same(file)


def _require_same(file: File) -> None:
    # After reading, so that a change during the reading shows as well.
    try:
        current = digest(Path(file.path))
    except OSError as error:
        raise DriverError(f"{file.path} was there when it was checked, and cannot be read now: {error}") from None
    if current != file.digest:
        raise DriverError(
            f"{file.path} was changed after it was checked (SHA-256 {current[:12]}, was {file.digest[:12]}):"
            " run again, and leave it as it is"
        )


def _read(path: Path, columns: ColumnTypes) -> Content:
    suffixes = [suffix[1:].lower() for suffix in path.suffixes if suffix not in COMPRESSED]
    kind = suffixes[-1] if suffixes else ""
    known = (*READERS, *LINES)
    rule = f"must be one of {', '.join(filter(None, known))}, .gz or .zst after it"
    require_data(kind in known, rule, path.name, "another file")
    rule = "must hold some rows"
    require_data(text_files.first_bytes(path, 1), rule, f"{path.name}, which is empty", "another file")
    text_files.require_text(path, kind, _SETTING)
    stored = _lines(path, columns) if kind in LINES else _table(path, kind, columns)
    columns_, lines = stored.columns.values(), stored.left_out.lines
    left_out = f" that can be read; {f'{lines:,} lines' if lines > 1 else '1 line'} of it can not" if lines else ""
    require_data(len(next(iter(columns_))), rule, f"{path.name}, which has none{left_out}", "another file")
    size = sum(column.nbytes for column in columns_)
    rule = f"must fit into {BYTES_MAX / 2**30:.0f} GiB, since every generator holds it"
    require_data(size <= BYTES_MAX, rule, f"{size / 2**30:.3g} GiB", "a part of it")
    return stored


def _lines(path: Path, columns: ColumnTypes) -> Content:
    """Reads text lines, which end with LF or CR LF. Empty lines are rows."""
    rule, got = f"must have the columns {_named(columns)}", f"lines of text in {path.name}"
    require_data([kind for _, kind in columns] == ["string"], rule, got, "a CSV, JSON or Parquet file")
    ((name, _),) = columns
    raw = text_files.first_bytes(path).removeprefix(codecs.BOM_UTF8)
    lines = [text_files.decoded(line) for line in raw.split(b"\n")]
    whole = lines if lines[-1] != "" else lines[:-1]
    texts = pa.array([line and line.removesuffix("\r") for line in whole], pa.string())
    if not texts.null_count:
        return Content({name: texts}, {})
    row = pc.index(texts.is_null(), pa.scalar(True)).as_py()
    return Content({name: texts}, {name: Unreadable(texts.null_count, "bytes that are no UTF-8 text", row, 0)})


def _table(path: Path, kind: str, columns: ColumnTypes) -> Content:
    import duckdb

    with duckdb.connect() as connection, text_files.without_mark(path) as plain:
        connection.execute("SET TimeZone = 'UTC'; SET preserve_insertion_order = true")
        try:
            available = _names(connection, plain, kind, columns)
            what = "JSON objects" if READERS[kind] == "read_json_auto" else "a first line of names"
            require_data(available, f"must have {what}", f"{path.name}, which has none", "another file")
            if missing := tuple(pair for pair in columns if pair[0] not in available):
                raise _lacking(path, missing, available)
            return _cast(connection, plain, kind, columns)
        except duckdb.Error as error:
            raise InputError(
                Problem(_SETTING, "must be readable", _error_text(error), "correct the file, or name another one")
            ) from None


def _names(connection: duckdb.DuckDBPyConnection, path: Path, kind: str, columns: ColumnTypes) -> list[str]:
    """The columns of a file. For JSON lines, the keys of the first lines, because some lines may be no objects."""
    if READERS[kind] == "read_csv":
        of = text_files.header(path, [name for name, _ in columns])
        text_files.require_names(of, path, _SETTING, [name for name, _ in columns])
        return list(of.names)
    if kind not in JSON_LINES:
        return list(connection.sql(f"SELECT * FROM {_source(path, kind, columns)} LIMIT 0").columns)
    lines = f"SELECT json FROM read_ndjson_objects({quoted_path(path)}, ignore_errors = true) LIMIT {_NAMES_LINES}"
    keys = connection.sql(f"SELECT unnest(json_keys(json)) FROM ({lines}) WHERE json_type(json) = 'OBJECT'")
    return list(dict.fromkeys(name for (name,) in keys.fetchall()))


_NAMES_LINES = 20_480


def _source(path: Path, kind: str, columns: ColumnTypes, typed: bool = False, rejects: bool = False) -> str:
    """A file as DuckDB SQL. It skips lines that are no rows; `rejects` stores these.

    `typed` declares `columns`, which must exist.
    """
    reader, options = READERS[kind], ""
    if reader == "read_csv":
        return text_files.csv_source(path, text_files.header(path, [name for name, _ in columns]), rejects)
    if reader == "read_json_auto":
        # For JSON lines, a line that is no JSON is a row without values.
        options = ", format = 'newline_delimited', ignore_errors = true" if kind in JSON_LINES else ""
        # For texts and numbers in one column DuckDB would guess the type JSON, which keeps the quotes.
        texts = ", ".join(f"{text_literal(name)}: 'VARCHAR'" for name, _ in columns)
        options += f", columns = {{{texts}}}" if typed else ""
    return f"{reader}({quoted_path(path)}{options})"


def _cast(connection: duckdb.DuckDBPyConnection, path: Path, kind: str, columns: ColumnTypes) -> Content:
    """The columns in their types."""
    source = _source(path, kind, columns, typed=True)
    relation = connection.sql(f"SELECT * FROM {source} LIMIT 0")
    types = dict(zip(relation.columns, map(str, relation.types), strict=True))
    pairs = [_as(name, type_, types[name], READERS[kind]) for name, type_ in columns]
    selected = ", ".join(f"{value}, {raw} IS NOT NULL AND {spoilt}" for raw, value, spoilt in pairs)
    with_rejects = _source(path, kind, columns, typed=True, rejects=True)
    table = connection.sql(f"SELECT {selected} FROM {with_rejects}").to_arrow_table()
    values, unreadable = {}, {}
    for number, (name, type_) in enumerate(columns):
        column: Any = table.column(2 * number).cast(arrow_type(type_)).combine_chunks()
        spoilt = table.column(2 * number + 1)
        if (row := pc.index(spoilt, pa.scalar(True)).as_py()) >= 0:
            column = pc.if_else(spoilt.combine_chunks(), pa.scalar(None, column.type), column)
            unreadable[name] = _unreadable(connection, source, name, type_, row, pc.sum(spoilt).as_py())
        values[name] = column
    is_csv = READERS[kind] == "read_csv"
    return Content(values, unreadable, text_files.left_out(connection, path, _SETTING) if is_csv else NONE_LEFT_OUT)


def _unreadable(
    connection: duckdb.DuckDBPyConnection, source: str, name: str, kind: str, row: int, count: int
) -> Unreadable:
    text = f"CAST({quote(name)} AS VARCHAR)"
    ((first,),) = connection.sql(f"SELECT {text} FROM {source} LIMIT 1 OFFSET {row}").fetchall()
    large = 0
    if kind in ("int", "bigint"):
        whole = f"regexp_full_match({text}, '[+-]?[0-9]+') AND TRY_CAST({text} AS {_SQL[kind]}) IS NULL"
        ((large,),) = connection.sql(f"SELECT count(*) FROM {source} WHERE {whole}").fetchall()
    return Unreadable(count, str(first), row, int(large))


def _as(name: str, kind: str, available: str, reader: str) -> tuple[str, str, str]:
    """SQL of a column of type `available`: (raw, as the type `kind`, whether the cast changes or loses the value)."""
    raw, type_ = quote(name), _SQL[kind]
    if available == "VARCHAR" and kind in ("string", "binary"):
        return raw, raw if kind == "string" else f"encode({raw})", "false"
    if reader == "read_csv":
        raw = f"NULLIF({raw}, '')"
    value = f"TRY_CAST({raw} AS {type_})"
    if available != "VARCHAR":
        return raw, value, f"TRY_CAST({value} AS {available}) IS DISTINCT FROM {raw}"
    changed = {
        "int": f"CAST({value} AS DOUBLE) IS DISTINCT FROM TRY_CAST({raw} AS DOUBLE)",
        "bigint": f"CAST({value} AS DOUBLE) IS DISTINCT FROM TRY_CAST({raw} AS DOUBLE)",
        "timestamp": rf"regexp_matches({raw}, '\.\d{{6}}\d*[1-9]')",
    }.get(kind, "false")
    return raw, value, f"({value} IS NULL OR {changed})"


def no_value(name: str, kind: str, unreadable: Unreadable) -> Problem:
    """The problem of a column without any value of its type: the user probably meant another file or column."""
    more = f" (and {unreadable.count - 1} more)" if unreadable.count > 1 else ""
    rule = f"must have values of the right types: {name} is {kind}, and nothing is rounded; none of its values is one"
    return Problem(
        _SETTING, rule, f"{unreadable.first} in row {unreadable.row + 1}{more}", f"correct {name}, or name another file"
    )


def _error_text(error: Exception) -> str:
    """DuckDB's message without its advice on options that users cannot set here."""
    first = takewhile(str.strip, str(error).splitlines())
    text = "; ".join(line.strip() for line in first if not line.startswith(("Try ", "Possible ", "* ")))
    return textwrap.shorten(text.removeprefix("Invalid Input Error: "), ERROR_TEXT_MAX, placeholder=" ...")


def _lacking(path: Path, missing: ColumnTypes, available: Sequence[str]) -> ColumnsError:
    rule = f"must have {'a column' if len(missing) == 1 else 'the columns'} {_named(missing)}"
    got, names = f"{path.name} with {', '.join(available)}", [name for name, _ in missing]
    renamed = {name: near(name, [each.strip() for each in available]) for name in names}
    steps = (f"rename {old} to {new}" if old else f"name one of its columns {new}" for new, old in renamed.items())
    return ColumnsError(Problem(_SETTING, rule, got, "; ".join(steps)), names)


def _named(columns: ColumnTypes) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in columns)


def require_data(holds: object, rule: str, got: object, way_out: str) -> None:
    """Raises InputError about the setting `data` unless `holds` is true."""
    require(holds, _SETTING, rule, got, way_out)
