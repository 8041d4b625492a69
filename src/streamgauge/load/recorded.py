"""A user's own data as a stream: the rows of a file, one after the other, and from the beginning again.

Event n of a stream is row n modulo the number of rows, whichever generator makes it, and is due when the plan says: so
the data lie on one continuous time line however often they are repeated. Times within the data are content like any
other, and come again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.load.bits import Bits
from streamgauge.load.fields import FieldSpec, StreamSpec
from streamgauge.load.file_rows import File, digest, refuse, rows


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


def recorded(stream: StreamSpec, path: Path, known: str | None = None) -> StreamSpec:
    """The stream with the rows of a file in the place of made ones.

    Text lines go into a stream's only column, which is a text; CSV, JSON and Parquet must have its columns, and others
    are left out. Compressed by gzip or zstd. `known` is the SHA-256 that the file had when it was first looked at.

    Raises:
        InputError: the file is not like that.
        DriverError: it has been changed since `known`.
    """
    if known is None and not path.is_file():
        raise refuse("must be a file that exists", str(path), "--set data=FILE, as seen from this folder")
    names = tuple((field.name, field.spark_type) for field in stream.fields)
    file = File(str(path.resolve()), known or digest(path), names)
    found = rows(file)
    for field in stream.fields:
        nulls = found[field.name].null_count
        if nulls and not field.nullable:
            rule = f"must have a value in each row of {field.name}: stream {stream.name} has no empty ones there"
            first = pc.index(found[field.name].is_null(), pa.scalar(True)).as_py() + 1
            raise refuse(rule, f"{nulls} without, the first in row {first}", "a file without such rows")
    return StreamSpec(stream.name, tuple(Recorded(field.name, file, field) for field in stream.fields), stream.share)
