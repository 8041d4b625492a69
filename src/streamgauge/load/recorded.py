"""A user's own data as a stream: the rows of a file, one after the other, and from the beginning again.

Event n of a stream is row n modulo the number of rows, whichever generator makes it, and is due when the plan says: so
the data lie on one continuous time line however often they are repeated. Times within the data are content like any
other, and come again.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from streamgauge.errors import InputError, Problem
from streamgauge.events import arrow_type
from streamgauge.load.bits import Bits
from streamgauge.load.fields import FieldSpec, StreamSpec
from streamgauge.load.sample import COMPRESSED, READERS

LINES = ("txt", "log", "dat", "text", "")
"""What a file of text lines is called after its last dot."""
BYTES_MAX = 2**30
"""Of the rows in memory: every generator holds them."""
_SQL = {
    "int": "INTEGER", "bigint": "BIGINT", "double": "DOUBLE", "string": "VARCHAR", "binary": "BLOB",
    "boolean": "BOOLEAN", "timestamp": "TIMESTAMPTZ",
}  # fmt: skip


@dataclass(frozen=True)
class File:
    """A file, the SHA-256 that it had, and the columns that are taken of it: (name, Spark's name of the type)."""

    path: str
    digest: str
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Recorded(FieldSpec):
    """A column of a file, in the place of the field `like`."""

    file: File
    like: FieldSpec

    @property
    def spark_type(self) -> str:  # type: ignore[override]
        return self.like.spark_type

    @property
    def nullable(self) -> bool:
        return self.like.nullable

    @property
    def row_bytes(self) -> float:
        return self._rows.nbytes / len(self._rows)

    def column(self, bits: Bits, first: int, last: int) -> pa.Array:
        return self.of_events(bits, first, last, 1)

    def of_events(self, bits: Bits, first: int, last: int, partitions: int) -> pa.Array:
        numbers = np.arange(first, last) * partitions + bits.partition
        return self._rows.take(pa.array(numbers % len(self._rows)))

    @property
    def _rows(self) -> pa.Array:
        return rows(self.file)[self.name]


def recorded(stream: StreamSpec, path: Path) -> StreamSpec:
    """The stream with the rows of a file in the place of made ones.

    Text lines go into a stream's only column, which is a text; CSV, JSON and Parquet must have its columns, and others
    are left out. Compressed by gzip or zstd. InputError where the file is not like that.
    """
    if not path.is_file():
        raise _refuse("must be a file that exists", str(path), "--set data=FILE, as seen from this folder")
    names = tuple((field.name, field.spark_type) for field in stream.fields)
    file = File(str(path.resolve()), digest(path), names)
    found = rows(file)
    for field in stream.fields:
        nulls = found[field.name].null_count
        if nulls and not field.nullable:
            rule = f"must have a value in each row of {field.name}: stream {stream.name} has no empty ones there"
            raise _refuse(rule, f"{nulls} without", "a file without such rows")
    return StreamSpec(stream.name, tuple(Recorded(field.name, file, field) for field in stream.fields), stream.share)


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
    """The columns of a file, each whole. InputError where it cannot be read, lacks one, or holds nothing."""
    path = Path(file.path)
    suffixes = [suffix[1:].lower() for suffix in path.suffixes if suffix not in COMPRESSED]
    kind = suffixes[-1] if suffixes else ""
    if kind not in (*READERS, *LINES):
        known = ", ".join((*READERS, *(name for name in LINES if name)))
        raise _refuse(f"must be one of {known}, .gz or .zst after it", path.name, "another file")
    found = _lines(path, file.columns) if kind in LINES else _table(path, READERS[kind], file.columns)
    if not len(next(iter(found.values()))):
        raise _refuse("must hold some rows", path.name, "another file")
    if (size := sum(column.nbytes for column in found.values())) > BYTES_MAX:
        rule = f"must fit into {BYTES_MAX / 2**30:.0f} GiB, since every generator holds it"
        raise _refuse(rule, f"{size / 2**30:.3g} GiB", "a part of it")
    return found


def _lines(path: Path, columns: tuple[tuple[str, str], ...]) -> dict[str, pa.Array]:
    if [kind for _, kind in columns] != ["string"]:
        wanted = ", ".join(f"{name} {kind}" for name, kind in columns)
        raise _refuse(f"must have the columns {wanted}", f"lines of text in {path.name}", "a CSV, JSON or Parquet file")
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            text = stream.read().decode(errors="replace")
    except OSError as error:
        raise _refuse("must be readable", str(error), "another file") from None
    ((name, _),) = columns
    return {name: pa.array([line for line in text.splitlines() if line], pa.string())}


def _table(path: Path, reader: str, columns: tuple[tuple[str, str], ...]) -> dict[str, pa.Array]:
    import duckdb

    quoted = str(path).replace("'", "''")
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'; SET preserve_insertion_order = true")
        try:
            there = [str(name) for name in connection.sql(f"SELECT * FROM {reader}('{quoted}') LIMIT 0").columns]
            if missing := [name for name, _ in columns if name not in there]:
                raise _lacking(path, missing[0], there)
            taken = ", ".join(f'CAST("{name}" AS {_SQL[kind]}) AS "{name}"' for name, kind in columns)
            table = connection.sql(f"SELECT {taken} FROM {reader}('{quoted}')").to_arrow_table()
        except duckdb.Error as error:
            raise _refuse("must be readable, with values of the right types", str(error).partition("\n")[0],
                          "another file") from None  # fmt: skip
    return dict(_arrow(table, columns))


def _arrow(table: pa.Table, columns: tuple[tuple[str, str], ...]) -> Iterator[tuple[str, pa.Array]]:
    for name, kind in columns:
        column: Any = table.column(name).cast(arrow_type(kind)).combine_chunks()
        yield name, column if isinstance(column, pa.Array) else pa.concat_arrays(column.chunks)


def _lacking(path: Path, name: str, there: list[str]) -> InputError:
    near = difflib.get_close_matches(name, there, 1)
    way_out = f"rename {near[0]} to {name}" if near else f"name one of its columns {name}: {', '.join(there)}"
    return _refuse(f"must have a column {name}", path.name, way_out)


def _refuse(rule: str, got: object, way_out: str) -> InputError:
    return InputError(Problem("set data", rule, got, way_out))
