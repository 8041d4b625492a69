"""The rows of a user's own file as columns of a stream's types: each value as it stands there, or a refusal."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.errors import DriverError, InputError, Problem
from streamgauge.events import arrow_type
from streamgauge.load.sample import COMPRESSED, READERS

if TYPE_CHECKING:
    import duckdb

LINES = ("txt", "log", "dat", "text", "")
"""What a file of text lines is called after its last dot."""
BYTES_MAX = 2**30
"""Of the rows in memory: every generator holds them."""
SAID_MAX = 300
"""Characters of a reader's own words in an error: it quotes whole lines of the file."""
_SQL = {
    "int": "INTEGER", "bigint": "BIGINT", "double": "DOUBLE", "string": "VARCHAR", "binary": "BLOB",
    "boolean": "BOOLEAN", "timestamp": "TIMESTAMPTZ",
}  # fmt: skip

Columns = tuple[tuple[str, str], ...]
"""(name, Spark's name of the type)."""


@dataclass(frozen=True)
class File:
    """A file, the SHA-256 that it had when it was checked, and the columns that are taken of it."""

    path: str
    digest: str
    columns: Columns


def digest(path: Path) -> str:
    """A file's SHA-256; of one that was not changed since, from memory: streams are made anew for every rate."""
    there = path.stat()
    return _digest(path, there.st_mtime_ns, there.st_size)


@lru_cache(maxsize=32)
def _digest(path: Path, changed_ns: int, size: int) -> str:
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


@lru_cache(maxsize=8)
def rows(file: File) -> dict[str, pa.Array]:
    """The columns of a file, each whole.

    Raises:
        InputError: it cannot be read, lacks a column, holds nothing, or a value that is none of its column's type.
        DriverError: it is not the file any more that was checked, so its rows are not those of the plan.
    """
    try:
        return _read(Path(file.path), file.columns)
    finally:
        _require_same(file)


def _require_same(file: File) -> None:
    # After the reading: a file that was changed under way has another digest then, whatever was read of it.
    try:
        found = digest(Path(file.path))
    except OSError as error:
        raise DriverError(f"{file.path} was there when it was checked, and cannot be read now: {error}") from None
    if found != file.digest:
        was = f"SHA-256 {found[:12]}, was {file.digest[:12]}"
        raise DriverError(f"{file.path} was changed after it was checked ({was}): run again, and leave it as it is")


def _read(path: Path, columns: Columns) -> dict[str, pa.Array]:
    suffixes = [suffix[1:].lower() for suffix in path.suffixes if suffix not in COMPRESSED]
    kind = suffixes[-1] if suffixes else ""
    if kind not in (*READERS, *LINES):
        known = ", ".join((*READERS, *(name for name in LINES if name)))
        raise refuse(f"must be one of {known}, .gz or .zst after it", path.name, "another file")
    if not _content(path, 1):
        raise refuse("must hold some rows", f"{path.name}, which is empty", "another file")
    found = _lines(path, columns) if kind in LINES else _table(path, READERS[kind], columns)
    if not len(next(iter(found.values()))):
        raise refuse("must hold some rows", f"{path.name}, which has none", "another file")
    if (size := sum(column.nbytes for column in found.values())) > BYTES_MAX:
        rule = f"must fit into {BYTES_MAX / 2**30:.0f} GiB, since every generator holds it"
        raise refuse(rule, f"{size / 2**30:.3g} GiB", "a part of it")
    return found


def _content(path: Path, most: int | None = None) -> bytes:
    """What a file holds, unpacked; its first bytes where only so many are wanted."""
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            return bytes(stream.read(most))
    except OSError as error:
        raise refuse("must be readable", str(error), "another file") from None


def _lines(path: Path, columns: Columns) -> dict[str, pa.Array]:
    """Lines end with LF or CR LF and with nothing else; empty ones are rows like others."""
    if [kind for _, kind in columns] != ["string"]:
        rule = f"must have the columns {_named(columns)}"
        raise refuse(rule, f"lines of text in {path.name}", "a CSV, JSON or Parquet file")
    try:
        lines = _content(path).decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        got = f"line {line} of {path.name} ({error.reason})"
        raise refuse("must be UTF-8 text", got, "a file that iconv -f LATIN1 -t UTF-8 made of it") from None
    ((name, _),) = columns
    whole = lines if lines[-1] else lines[:-1]
    return {name: pa.array([line.removesuffix("\r") for line in whole], pa.string())}


def _table(path: Path, reader: str, columns: Columns) -> dict[str, pa.Array]:
    import duckdb

    source = f"{reader}({_quoted(path)}{_csv_options(path, columns) if reader == 'read_csv' else ''})"
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'; SET preserve_insertion_order = true")
        try:
            there = connection.sql(f"SELECT * FROM {source} LIMIT 0").columns
            if missing := tuple(pair for pair in columns if pair[0] not in there):
                raise _lacking(path, missing, there)
            if reader == "read_json_auto":
                source = _json_texts(path, columns)
            values, said = _cast(connection, source, columns, reader)
        except duckdb.Error as error:
            raise refuse("must be readable", _said(error), "mend the file, or another one") from None
    if said:
        raise InputError(said)
    return values


def _csv_options(path: Path, columns: Columns) -> str:
    """Nothing is guessed from the first rows but what separates columns where the line of names does not tell."""
    first = _content(path, _FIRST_LINE_MAX).decode("utf-8-sig", errors="replace").partition("\n")[0]
    wanted = {name for name, _ in columns}
    found = {
        sign: len(wanted & {name.strip(' "\r') for name in first.split(sign)}) for sign in ",;\t|" if sign in first
    }
    delimiter = max(found, key=found.__getitem__, default="")
    return _CSV + (f", delim = '{delimiter}'" if delimiter and found[delimiter] else "")


_FIRST_LINE_MAX = 2**16
_CSV = (
    # Texts as they stand: a guessed type would change them, "" would be nothing, and # the beginning of a comment.
    ", header = true, skip = 0, all_varchar = true, allow_quoted_nulls = false, comment = '', "
    "quote = '\"', escape = '\"'"
)


def _json_texts(path: Path, columns: Columns) -> str:
    """A guessed type of texts with a number among them would be JSON, which keeps its quotes."""
    texts = ", ".join(f"'{name}': 'VARCHAR'" for name, _ in columns)
    return f"read_json({_quoted(path)}, columns = {{{texts}}})"


def _quoted(path: Path) -> str:
    """A path as an SQL text that names this file alone, and no pattern of others."""
    plain = "".join(f"[{sign}]" if sign in "[*?" else sign for sign in str(path))
    return "'" + plain.replace("'", "''") + "'"


def _cast(
    connection: duckdb.DuckDBPyConnection, source: str, columns: Columns, reader: str
) -> tuple[dict[str, pa.Array], list[Problem]]:
    """(the columns in their types, what is none of its type)."""
    relation = connection.sql(f"SELECT * FROM {source} LIMIT 0")
    types = dict(zip(relation.columns, map(str, relation.types), strict=True))
    pairs = [_as(name, kind, types[name], reader) for name, kind in columns]
    taken = ", ".join(f"{value}, {raw} IS NOT NULL AND {spoilt}" for raw, value, spoilt in pairs)
    table = connection.sql(f"SELECT {taken} FROM {source}").to_arrow_table()
    values, problems = {}, []
    for number, (name, kind) in enumerate(columns):
        spoilt = table.column(2 * number + 1)
        if (row := pc.index(spoilt, pa.scalar(True)).as_py()) >= 0:
            place = f'SELECT CAST("{name}" AS VARCHAR) FROM {source} LIMIT 1 OFFSET {row}'
            ((got,),) = connection.sql(place).fetchall()
            problems.append(_spoilt(name, kind, got, row, pc.sum(spoilt).as_py()))
        values[name] = _whole(table.column(2 * number), kind)
    return values, problems


def _as(name: str, kind: str, there: str, reader: str) -> tuple[str, str, str]:
    """SQL of a column of type `there`: (as it stands, as the type `kind`, whether that is another value or none)."""
    raw, type_ = f'"{name}"', _SQL[kind]
    if there == "VARCHAR" and kind in ("string", "binary"):
        return raw, raw if kind == "string" else f"encode({raw})", "false"
    if reader == "read_csv":
        raw = f"NULLIF({raw}, '')"
    value = f"TRY_CAST({raw} AS {type_})"
    if there != "VARCHAR":
        return raw, value, f"TRY_CAST({value} AS {there}) IS DISTINCT FROM {raw}"
    changed = {
        "int": f"CAST({value} AS DOUBLE) IS DISTINCT FROM TRY_CAST({raw} AS DOUBLE)",
        "bigint": f"CAST({value} AS DOUBLE) IS DISTINCT FROM TRY_CAST({raw} AS DOUBLE)",
        "timestamp": rf"regexp_matches({raw}, '\.\d{{6}}\d*[1-9]')",
    }.get(kind, "false")
    return raw, value, f"({value} IS NULL OR {changed})"


def _spoilt(name: str, kind: str, got: object, row: int, count: int) -> Problem:
    more = f" (and {count - 1} more)" if count > 1 else ""
    rule = f"must have values of the right types: {name} is {kind}, and nothing is rounded"
    return Problem("set data", rule, f"{got} in row {row + 1}{more}", f"mend {name}, or leave such rows out")


def _whole(values: pa.ChunkedArray, kind: str) -> pa.Array:
    column: Any = values.cast(arrow_type(kind)).combine_chunks()
    return column if isinstance(column, pa.Array) else pa.concat_arrays(column.chunks)


def _said(error: Exception) -> str:
    """What DuckDB says of the place, without its advice on options that nobody can give here."""
    first = takewhile(str.strip, str(error).splitlines())
    return "; ".join(line for line in first if not line.startswith(("Try ", "Possible ")))[:SAID_MAX]


def _lacking(path: Path, missing: Columns, there: Sequence[str]) -> InputError:
    rule = f"must have {'a column' if len(missing) == 1 else 'the columns'} {_named(missing)}"
    got = f"{path.name} with {', '.join(there)}"
    return refuse(rule, got, "; ".join(_ways_out([name for name, _ in missing], there)))


def _ways_out(missing: Sequence[str], there: Sequence[str]) -> Iterator[str]:
    lower = {name.strip().lower(): name for name in there}
    for name in missing:
        near = difflib.get_close_matches(name.lower(), lower, 1)
        yield f"rename {lower[near[0]]} to {name}" if near else f"name one of its columns {name}"


def _named(columns: Columns) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in columns)


def refuse(rule: str, got: object, way_out: str) -> InputError:
    """Of the setting `data`, whatever stream it is for."""
    return InputError(Problem("set data", rule, got, way_out))
