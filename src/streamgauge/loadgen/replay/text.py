"""Reads text files, for data and samples: requires UTF-8, and reads a CSV by its first line.

Nothing is guessed from the rows of a CSV, because readers that look for the largest regular part of a file drop what
precedes it. The first line has the names. Lines that are no rows are skipped and counted.
"""

from __future__ import annotations

import codecs
import csv
import io
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow as pa

from streamgauge.core.errors import InputError, Problem, require
from streamgauge.core.schema import text_literal

if TYPE_CHECKING:
    import duckdb

REJECTS = "rejected_lines"
"""The table of skipped lines after a query of a `csv_source`."""
_FIRST_LINE_MAX = 2**16
_PIECE_BYTES = 2**24
_SEPARATORS = ",;\t|"
_NO_SEPARATOR = "\x1f"
"""The separator for files with one column, whose texts may have commas. It is a control character not used in text."""
_CSV = (
    # Unchanged texts: without these options DuckDB guesses types, reads "" as null and # as the start of a comment.
    "auto_detect = false, header = true, skip = 0, allow_quoted_nulls = false, comment = '', "
    "quote = '\"', escape = '\"', ignore_errors = true"
)
COMPRESSED = (".gz", ".zst")
_MAGIC_BYTES = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
"""The first bytes of such files."""
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True)
class LeftOut:
    """The number of skipped lines of a CSV, and of those that are no UTF-8."""

    lines: int = 0
    no_utf8: int = 0


NONE_LEFT_OUT = LeftOut()


@dataclass(frozen=True)
class Header:
    """The first line of a CSV: names (unique even if `given` names are equal for DuckDB), and separator."""

    names: tuple[str, ...]
    separator: str
    given: tuple[str, ...]


def first_bytes(path: Path, most: int | None = None) -> bytes:
    """The decompressed content of a file, or its first `most` bytes. Raises OSError if it cannot be read."""
    with pa.input_stream(str(path), compression="detect") as stream:
        return bytes(stream.read(most))


def require_text(path: Path, kind: str, setting: str) -> None:
    """Raises InputError for a file of text that is cut off, or not UTF-8 for the most part. `kind` is its suffix.

    - Readers skip single lines in another encoding. A zero byte is not text: UTF-16 without its byte order mark is full
      of them.
    - Of a JSON file that begins as an array, readers accept the beginning alone.
    """
    if kind == "parquet":
        return
    beginning = first_bytes(path, 4)
    got, way_out = "is compressed without .gz or .zst in its name", "add .gz or .zst to the name"
    if path.suffix in COMPRESSED:
        got, way_out = "is compressed twice", "gunzip it once, or zstd -d"
    require(not beginning.startswith(_MAGIC_BYTES), setting, "must be readable", f"{path.name}, which {got}", way_out)
    rule, got = "must be text in UTF-8", f"{path.name}, which begins as UTF-16 does"
    require(beginning[:2] not in _UTF16, setting, rule, got, "iconv -f UTF-16 -t UTF-8")
    lines = wrong = 0
    first, last = b"", b""
    for piece in _pieces(path):
        stripped = piece.removeprefix(codecs.BOM_UTF8).strip()
        first, last = first or stripped[:1], stripped[-1:] or last
        lines += piece.count(b"\n") + (not piece.endswith(b"\n"))
        if not _is_text(piece):
            wrong += sum(not _is_text(line) for line in piece.removesuffix(b"\n").split(b"\n"))
    got = f"{path.name}, where {wrong:,} of {lines:,} lines are not"
    require(2 * wrong <= lines, setting, rule, got, "iconv -f ENCODING -t UTF-8, or another file")
    got, way_out = f"{path.name}, whose array is not closed", "the whole file, or one object a line in a .jsonl"
    require(kind != "json" or first != b"[" or last == b"]", setting, "must be whole", got, way_out)


@contextmanager
def without_mark(path: Path) -> Iterator[Path]:
    """A file for a reader that takes a byte order mark for content: the file, or a copy of the text after the mark."""
    if first_bytes(path, len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:
        yield path
        return
    with TemporaryDirectory(prefix="streamgauge-") as folder:
        copy = Path(folder, path.name.removesuffix(".gz").removesuffix(".zst"))
        with pa.input_stream(str(path), compression="detect") as stream, copy.open("wb") as plain:
            stream.read(len(codecs.BOM_UTF8))
            shutil.copyfileobj(stream, plain, _PIECE_BYTES)
        yield copy


def _pieces(path: Path) -> Iterator[bytes]:
    """A file in pieces of complete lines."""
    with pa.input_stream(str(path), compression="detect") as stream:
        rest = b""
        while piece := bytes(stream.read(_PIECE_BYTES)):
            whole, end, last = piece.rpartition(b"\n")
            if end:
                yield rest + whole + end
            rest = last if end else rest + last
        if rest:
            yield rest


def _is_text(line: bytes) -> bool:
    return b"\0" not in line and decoded(line) is not None


def decoded(line: bytes) -> str | None:
    """A line as text; None if it is no UTF-8."""
    try:
        return line.decode()
    except UnicodeDecodeError:
        return None


def header(path: Path, expected: Collection[str] = ()) -> Header:
    """The first line of a CSV. The separator is the character that gives most `expected` names, then most names."""
    text = first_bytes(path, _FIRST_LINE_MAX).decode("utf-8-sig", errors="replace")
    cells = {sign: _cells(text, sign) for sign in _SEPARATORS}
    best = max(cells, key=lambda sign: (len({*expected} & {*cells[sign]}), len(cells[sign])))
    separator = best if len(cells[best]) > 1 else _NO_SEPARATOR
    given = tuple(_cells(text, separator))
    return Header(tuple(_unique_names(given)), separator, given)


def _cells(text: str, separator: str) -> list[str]:
    try:
        cells = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
        return [name.strip() for name in next(cells, [])]
    except csv.Error:  # a cell too long for a name
        return []


def _unique_names(names: Iterable[str]) -> Iterator[str]:
    """Unique names. A column without a name, such as a table's index, is named after its position."""
    taken: set[str] = set()
    for place, name in enumerate(names):
        base = name or f"column{place}"
        names_of_base = (base, *(f"{base}_{number}" for number in range(1, place + 1)))
        free = next(each for each in names_of_base if each.lower() not in taken)
        taken.add(free.lower())
        yield free


def csv_source(path: Path, of: Header, rejects: bool = False) -> str:
    """A CSV as DuckDB SQL with text columns. It skips lines that are no rows; `rejects` stores these in `REJECTS`."""
    columns = ", ".join(f"{text_literal(name)}: 'VARCHAR'" for name in of.names)
    storing = f", store_rejects = true, rejects_table = '{REJECTS}'" if rejects else ""
    return f"read_csv({quoted_path(path)}, {_CSV}, delim = '{of.separator}', columns = {{{columns}}}{storing})"


def left_out(connection: duckdb.DuckDBPyConnection, path: Path, setting: str) -> LeftOut:
    """The lines that the last query of a `csv_source` skipped.

    Raises InputError for an unclosed quote, whose text would be the rest of the file.
    """
    runs_on = "error_type = 'UNQUOTED VALUE' AND contains(csv_line, chr(10))"
    query = (
        f"SELECT min(line_byte_position) FILTER ({runs_on}), count(DISTINCT line),"
        f" count(DISTINCT line) FILTER (error_type = 'INVALID ENCODING') FROM {REJECTS}"
    )
    ((opened, lines, no_utf8),) = connection.sql(query).fetchall()
    if opened is not None:
        line = first_bytes(path, int(opened)).count(b"\n") + 1
        raise InputError(
            Problem(
                setting,
                "must close every quote",
                f"{path.name}, in whose line {line:,} one begins that swallows the lines after it",
                f'correct line {line:,}; a quote within quotes is written ""',
            )
        )
    return LeftOut(int(lines), int(no_utf8))


def in_words(of: LeftOut) -> str:
    """A note such as `3 lines are no rows, and are left out`, with those of a wrong encoding; empty if all are rows."""
    if not of.lines:
        return ""
    note = "1 line is no row, and is left out" if of.lines == 1 else f"{of.lines:,} lines are no rows, and are left out"
    number = "all" if of.no_utf8 == of.lines else f"{of.no_utf8:,}"
    return f"{note} ({number} for being no UTF-8)" if of.no_utf8 else note


def require_names(of: Header, path: Path, setting: str, needed: Sequence[str] | None = None) -> None:
    """Raises InputError if two columns have the same name, among those `needed` (None: all)."""
    repeated = [name for name in dict.fromkeys(of.given) if name and of.given.count(name) > 1]
    twice = [name for name in repeated if needed is None or name in needed]
    got = f"{path.name}, where {', '.join(twice)} is there more than once"
    require(not twice, setting, "must name each column once", got, "rename one of them")


def quoted_path(path: Path) -> str:
    """A path as SQL text that names only this file, with pattern characters escaped."""
    return text_literal("".join(f"[{sign}]" if sign in "[*?" else sign for sign in str(path)))
