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

from streamgauge.core.errors import InputError, Problem

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

    def repeated(self) -> tuple[str, ...]:
        """The names that occur more than once."""
        return tuple(name for name in dict.fromkeys(self.given) if self.given.count(name) > 1)


def first_bytes(path: Path, most: int | None = None) -> bytes:
    """The decompressed content of a file, or its first `most` bytes. Raises OSError if it cannot be read."""
    with pa.input_stream(str(path), compression="detect") as stream:
        return bytes(stream.read(most))


def require_utf8(path: Path, setting: str) -> None:
    """Raises InputError if most of a file is not UTF-8. The reader skips single lines in another encoding.

    A zero byte is not text: UTF-16 without its byte order mark is full of them.
    """
    rule, way_out = "must be text in UTF-8", "iconv -f ENCODING -t UTF-8, or another file"
    beginning = first_bytes(path, 4)
    if beginning.startswith(_MAGIC_BYTES):
        got, way_out = "is compressed without .gz or .zst in its name", "add .gz or .zst to the name"
        if path.suffix in COMPRESSED:
            got, way_out = "is compressed twice", "gunzip it once, or zstd -d"
        raise InputError(Problem(setting, "must be readable", f"{path.name}, which {got}", way_out))
    if beginning[:2] in _UTF16:
        way_out = "iconv -f UTF-16 -t UTF-8"
        raise InputError(Problem(setting, rule, f"{path.name}, which begins as UTF-16 does", way_out))
    lines = wrong = 0
    for piece in _pieces(path):
        lines += piece.count(b"\n") + (not piece.endswith(b"\n"))
        wrong += _no_utf8(piece)
    if 2 * wrong > lines:
        raise InputError(Problem(setting, rule, f"{path.name}, where {wrong:,} of {lines:,} lines are not", way_out))


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


def _no_utf8(piece: bytes) -> int:
    """The number of lines that are not UTF-8 text."""
    if _is_text(piece):
        return 0
    return sum(not _is_text(line) for line in piece.removesuffix(b"\n").split(b"\n"))


def _is_text(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in line


def require_whole_array(path: Path, setting: str) -> None:
    """Raises InputError if a JSON file begins as an array and is cut off, because readers accept its beginning."""
    first, last = b"", b""
    for piece in _pieces(path):
        stripped = piece.removeprefix(codecs.BOM_UTF8).strip()
        first, last = first or stripped[:1], stripped[-1:] or last
    if first == b"[" and last != b"]":
        got = f"{path.name}, whose array is not closed"
        raise InputError(Problem(setting, "must be whole", got, "the whole file, or one object a line in a .jsonl"))


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
        free = base = name or f"column{place}"
        count = 0
        while free.lower() in taken:
            count += 1
            free = f"{base}_{count}"
        taken.add(free.lower())
        yield free


def csv_source(path: Path, of: Header, rejects: bool = False) -> str:
    """A CSV as DuckDB SQL with text columns. It skips lines that are no rows; `rejects` stores these in `REJECTS`."""
    columns = ", ".join(f"{quoted_text(name)}: 'VARCHAR'" for name in of.names)
    storing = f", store_rejects = true, rejects_table = '{REJECTS}'" if rejects else ""
    return f"read_csv({quoted_path(path)}, {_CSV}, delim = '{of.separator}', columns = {{{columns}}}{storing})"


def left_out(connection: duckdb.DuckDBPyConnection, path: Path, setting: str) -> LeftOut:
    """The lines that the last query of a `csv_source` skipped.

    Raises InputError for an unclosed quote, whose text would be the rest of the file.
    """
    runs_on = "error_type = 'UNQUOTED VALUE' AND contains(csv_line, chr(10))"
    query = f"SELECT line_byte_position FROM {REJECTS} WHERE {runs_on} ORDER BY 1 LIMIT 1"
    if opened := connection.sql(query).fetchall():
        line = first_bytes(path, int(opened[0][0])).count(b"\n") + 1
        got = f"{path.name}, in whose line {line:,} one begins that swallows the lines after it"
        way_out = f'correct line {line:,}; a quote within quotes is written ""'
        raise InputError(Problem(setting, "must close every quote", got, way_out))
    query = f"SELECT count(DISTINCT line), count(DISTINCT line) FILTER (error_type = 'INVALID ENCODING') FROM {REJECTS}"
    ((lines, no_utf8),) = connection.sql(query).fetchall()
    return LeftOut(int(lines), int(no_utf8))


def in_words(of: LeftOut) -> str:
    """A note such as `3 lines are no rows, and are left out`, with those of a wrong encoding; empty if all are rows."""
    if not of.lines:
        return ""
    note = "1 line is no row, and is left out" if of.lines == 1 else f"{of.lines:,} lines are no rows, and are left out"
    if not of.no_utf8:
        return note
    return f"{note} ({'all' if of.no_utf8 == of.lines else f'{of.no_utf8:,}'} for being no UTF-8)"


def require_names(of: Header, path: Path, setting: str, needed: Sequence[str] | None = None) -> None:
    """Raises InputError if two columns have the same name, among those `needed` (None: all)."""
    twice = [name for name in of.repeated() if name and (needed is None or name in needed)]
    if twice:
        got = f"{path.name}, where {', '.join(twice)} is there more than once"
        raise InputError(Problem(setting, "must name each column once", got, "rename one of them"))


def quoted_path(path: Path) -> str:
    """A path as SQL text that names only this file, with pattern characters escaped."""
    return quoted_text("".join(f"[{sign}]" if sign in "[*?" else sign for sign in str(path)))


def quoted_text(plain: str) -> str:
    return "'" + plain.replace("'", "''") + "'"
