"""How text files are read, be they data or samples: what is UTF-8 at all, and a CSV by its first line.

Of a CSV nothing is guessed from its rows: a reader that looks for the largest regular part of a file finds one, and
drops what stands before it. The first line has the names; what is no row is left out and counted.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from streamgauge.core.errors import InputError, Problem

if TYPE_CHECKING:
    import duckdb

REJECTS = "rejected_lines"
"""The table of lines that are no rows, after a query of a `csv_source`."""
_FIRST_LINE_MAX = 2**16
_PIECE_BYTES = 2**24
_SEPARATORS = ",;\t|"
_NO_SEPARATOR = "\x1f"
"""Of a file with one column, whose texts may have commas: a character that means to separate, and is in no text."""
_CSV = (
    # Texts as they stand: a guessed type would change them, "" would be nothing, and # the beginning of a comment.
    "auto_detect = false, header = true, skip = 0, allow_quoted_nulls = false, comment = '', "
    "quote = '\"', escape = '\"', ignore_errors = true"
)
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True)
class LeftOut:
    """Lines of a CSV that are no rows: how many, and how many of them because they are no UTF-8."""

    lines: int = 0
    no_utf8: int = 0


NONE_LEFT_OUT = LeftOut()


@dataclass(frozen=True)
class Header:
    """The first line of a CSV: its names, made different where two are alike as DuckDB has them, and what separates."""

    names: tuple[str, ...]
    separator: str
    given: tuple[str, ...]

    def repeated(self) -> tuple[str, ...]:
        """The names that stand there more than once."""
        return tuple(name for name in dict.fromkeys(self.given) if self.given.count(name) > 1)


def first_bytes(path: Path, most: int | None = None) -> bytes:
    """What a file holds, unpacked; its first bytes where only so many are wanted. OSError where it cannot be read."""
    with pa.input_stream(str(path), compression="detect") as stream:
        return bytes(stream.read(most))


def require_utf8(path: Path, setting: str) -> None:
    """InputError where most of a file is no text in UTF-8; single lines that are none are the reader's business.

    A character of zero is in no text: it is what UTF-16 without its mark is full of.
    """
    rule, way_out = "must be text in UTF-8", "iconv -f ENCODING -t UTF-8, or another file"
    if first_bytes(path, 2) in _UTF16:
        way_out = "iconv -f UTF-16 -t UTF-8"
        raise InputError(Problem(setting, rule, f"{path.name}, which begins as UTF-16 does", way_out))
    lines = wrong = 0
    for piece in _pieces(path):
        found = _no_utf8(piece)
        lines, wrong = lines + piece.count(b"\n") + (not piece.endswith(b"\n")), wrong + found
    if 2 * wrong > lines:
        raise InputError(Problem(setting, rule, f"{path.name}, of whose {lines:,} lines {wrong:,} are none", way_out))


def _pieces(path: Path) -> Iterator[bytes]:
    """A file in pieces of whole lines."""
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
    """How many lines are no text in UTF-8."""
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
    """InputError where a JSON file begins as an array and does not end as one: a reader takes what there is of it."""
    first, last = b"", b""
    for piece in _pieces(path):
        stripped = piece.removeprefix(codecs.BOM_UTF8).strip()
        first, last = first or stripped[:1], stripped[-1:] or last
    if first == b"[" and last != b"]":
        got = f"{path.name}, whose array is not closed"
        raise InputError(Problem(setting, "must be whole", got, "the whole file, or one object a line in a .jsonl"))


def header(path: Path, wanted: Collection[str] = ()) -> Header:
    """The first line of a CSV; what separates is the sign that gives most of the names `wanted`, then most names."""
    text = first_bytes(path, _FIRST_LINE_MAX).decode("utf-8-sig", errors="replace")
    found = {sign: _cells(text, sign) for sign in _SEPARATORS}
    best = max(found, key=lambda sign: (len({*wanted} & {*found[sign]}), len(found[sign])))
    separator = best if len(found[best]) > 1 else _NO_SEPARATOR
    given = tuple(_cells(text, separator))
    return Header(tuple(_unique_names(given)), separator, given)


def _cells(text: str, separator: str) -> list[str]:
    try:
        cells = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
        return [name.strip() for name in next(cells, [])]
    except csv.Error:  # a cell that is longer than any name
        return []


def _unique_names(names: Iterable[str]) -> Iterator[str]:
    """A column without a name, as a table's index has it, is called after its place."""
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
    """A CSV as DuckDB SQL, every column a text; lines that are no rows are passed over, and told in `REJECTS`."""
    columns = ", ".join(f"{quoted_text(name)}: 'VARCHAR'" for name in of.names)
    told = f", store_rejects = true, rejects_table = '{REJECTS}'" if rejects else ""
    return f"read_csv({quoted_path(path)}, {_CSV}, delim = '{of.separator}', columns = {{{columns}}}{told})"


def left_out(connection: duckdb.DuckDBPyConnection, path: Path, setting: str) -> LeftOut:
    """What the last query of a `csv_source` passed over.

    InputError where a quote is not closed: what follows it is its text, be it the rest of the file.
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
    """`3 lines are no rows, and are left out`, and how many of them for their encoding; empty where there are none."""
    if not of.lines:
        return ""
    said = "1 line is no row, and is left out" if of.lines == 1 else f"{of.lines:,} lines are no rows, and are left out"
    if not of.no_utf8:
        return said
    return f"{said} ({'all' if of.no_utf8 == of.lines else f'{of.no_utf8:,}'} for being no UTF-8)"


def require_names(of: Header, path: Path, setting: str, needed: Sequence[str] | None = None) -> None:
    """InputError where a name that is needed (all, where it is not said which) is that of two columns."""
    twice = [name for name in of.repeated() if name and (needed is None or name in needed)]
    if twice:
        got = f"{path.name}, where {', '.join(twice)} is there more than once"
        raise InputError(Problem(setting, "must name each column once", got, "rename one of them"))


def quoted_path(path: Path) -> str:
    """A path as an SQL text that names this file alone, and no pattern of others."""
    return quoted_text("".join(f"[{sign}]" if sign in "[*?" else sign for sign in str(path)))


def quoted_text(plain: str) -> str:
    return "'" + plain.replace("'", "''") + "'"
