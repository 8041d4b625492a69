"""The compact encoding of an event as a message: columns of a fixed width as text, then texts with their lengths.

Every engine can take it apart with functions that it computes natively, `substring` and `try_cast`, so nothing stands
between a broker and its own source. Numbers are decimal, blanks before them; one that is null is blank. A text has the
number of its bytes among the columns of a fixed width, and its bytes after them, in the order of the columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.errors import InputError, Problem
from streamgauge.transports.kafka.codecs.digits import Bytes, write_numbers

WIDTHS = {"int": 11, "bigint": 20, "double": 24, "boolean": 5, "timestamp": 20}
"""Of the longest value of each type, sign included; a timestamp is its microseconds."""
LENGTH_WIDTH = 7
"""Of a text's length: a broker takes messages of a megabyte."""
TEXTS = ("string", "binary")


@dataclass(frozen=True)
class Compact:
    """Fills `Encoding`: how the columns of one stream stand in a message, (name, Spark SQL type) of each, in order."""

    columns: tuple[tuple[str, str], ...]

    @property
    def _fixed(self) -> int:
        return sum(self._widths)

    @property
    def _widths(self) -> list[int]:
        return [WIDTHS.get(kind, LENGTH_WIDTH) for _, kind in self.columns]

    def encode(self, batch: pa.RecordBatch) -> pa.BinaryArray:
        """InputError where a text is longer than a length can say."""
        rows = np.full((batch.num_rows, self._fixed), ord(" "), np.uint8)
        places = accumulate(self._widths, initial=0)
        for (name, kind), place, width in zip(self.columns, places, self._widths, strict=False):
            _write(batch.column(name), kind, rows, place, width)
        texts = [_text(batch.column(name)) for name, kind in self.columns if kind in TEXTS]
        parts = _binary(rows)
        return pc.binary_join_element_wise(parts, *texts, pa.scalar(b"", pa.binary())) if texts else parts

    def messages(self, encoded: pa.BinaryArray) -> list[bytes]:
        if not any(kind in TEXTS for _, kind in self.columns):
            return _of_one_width(encoded, self._fixed)
        found: list[bytes] = encoded.to_pylist()
        return found

    def opened(self, value: str) -> str:
        return value

    def expressions(self, opened: str) -> dict[str, str]:
        value = opened
        place, found, before = 1, {}, [str(1 + self._fixed)]
        for name, kind in self.columns:
            width = WIDTHS.get(kind, LENGTH_WIDTH)
            digits = f"cast(substring({value}, {place}, {width}) AS string)"
            place += width
            if kind not in TEXTS:
                found[name] = _value(digits, kind)
                continue
            length = f"try_cast({digits} AS int)"
            found[name] = f"cast(substring({value}, {' + '.join(before)}, {length}) AS {kind})"
            before.append(f"coalesce({length}, 0)")
        return found


def _value(digits: str, kind: str) -> str:
    """Of whole numbers `try_cast` skips blanks, and makes a null of nothing else: of others that takes an exception."""
    if kind in ("double", "boolean"):
        return f"cast(nullif(trim({digits}), '') AS {kind})"
    return f"timestamp_micros(try_cast({digits} AS bigint))" if kind == "timestamp" else f"try_cast({digits} AS {kind})"


def _write(column: pa.Array, kind: str, rows: Bytes, place: int, width: int) -> None:
    """Into each row's bytes from `place` to `place + width`, which are blank."""
    if kind in TEXTS:
        column = _lengths(column)
    if kind == "timestamp":
        column = column.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    if _is_plain(column):
        write_numbers(np.asarray(column).astype(np.uint64), rows, place, width)
        return
    padded = pc.utf8_lpad(pc.fill_null(pc.cast(column, pa.string()), ""), width, " ")
    rows[:, place : place + width] = _rows(padded, width)


def _is_plain(column: pa.Array) -> bool:
    """Whether it has whole numbers alone, none of them null or negative."""
    return bool(
        len(column) and pa.types.is_integer(column.type) and not column.null_count and pc.min(column).as_py() >= 0
    )


def _lengths(column: pa.Array) -> pa.Array:
    lengths = pc.binary_length(column)
    if len(lengths) and (pc.max(lengths).as_py() or 0) >= 10**LENGTH_WIDTH:
        rule = f"must have texts of less than {10**LENGTH_WIDTH} bytes"
        raise InputError(Problem("the compact encoding", rule, pc.max(lengths).as_py(), "shorter texts"))
    return lengths


def _text(column: pa.Array) -> pa.Array:
    return pc.fill_null(column.cast(pa.binary()), b"")


def _binary(rows: Bytes) -> pa.BinaryArray:
    """Rows of bytes as values, without a copy."""
    count, width = rows.shape
    offsets = pa.py_buffer((width * np.arange(count + 1)).astype(np.int32))
    return pa.BinaryArray.from_buffers(pa.binary(), count, [None, offsets, pa.py_buffer(rows)])


def _rows(values: pa.Array, width: int) -> Bytes:
    """Values that are all so wide, as rows of bytes, without a copy."""
    start = values.offset * width
    whole = np.frombuffer(values.buffers()[2] or b"", np.uint8)
    return whole[start : start + len(values) * width].reshape(len(values), width)


def _of_one_width(joined: pa.Array, width: int) -> list[bytes]:
    """The values of an array whose values are all so wide: cut by NumPy, which is several times faster than Arrow."""
    found: list[bytes] = np.ascontiguousarray(_rows(joined, width)).view(f"S{width}").ravel().tolist()
    return found
