"""The compact encoding: columns of fixed width as text, then variable-length texts.

Engines decode it with native functions (`substring`, `try_cast`) and their own Kafka source. Numbers are decimal and
padded with spaces on the left; null is blank. The fixed part has the byte length of each text, and the texts follow in
column order.
"""

from collections.abc import Iterator
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.errors import InputError, Problem
from streamgauge.transports.kafka.encodings.api import EngineEncoding

Bytes = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.uint64]

WIDTHS = {"int": 11, "bigint": 20, "double": 24, "boolean": 5, "timestamp": 20}
"""The longest value of each type, including the sign. A timestamp is encoded in microseconds."""
LENGTH_WIDTH = 7
"""The width of a text's length. By default a broker accepts messages up to 1 MB."""
TEXTS = ("string", "binary")


class Compact(EngineEncoding):
    """Implements `EngineEncoding` for the columns of one stream, in order."""

    @property
    def _fixed(self) -> int:
        return sum(self._widths)

    @property
    def _widths(self) -> list[int]:
        return [WIDTHS.get(kind, LENGTH_WIDTH) for _, kind in self.columns]

    def _places(self) -> Iterator[tuple[tuple[str, str], int, int]]:
        """Each column with its position in the fixed part, and its width."""
        return zip(self.columns, accumulate(self._widths, initial=0), self._widths, strict=False)

    def encode(self, batch: pa.RecordBatch) -> pa.BinaryArray:
        """Raises InputError if a text is too long."""
        rows = np.full((batch.num_rows, self._fixed), ord(" "), np.uint8)
        for (name, kind), position, width in self._places():
            _write(batch.column(name), kind, rows, position, width)
        texts = [
            pc.fill_null(batch.column(name).cast(pa.binary()), b"") for name, kind in self.columns if kind in TEXTS
        ]
        count, width = rows.shape
        offsets = pa.py_buffer((width * np.arange(count + 1)).astype(np.int32))
        parts = pa.BinaryArray.from_buffers(pa.binary(), count, [None, offsets, pa.py_buffer(rows)])  # without a copy
        return pc.binary_join_element_wise(parts, *texts, pa.scalar(b"", pa.binary())) if texts else parts

    def messages(self, encoded: pa.BinaryArray) -> list[bytes]:
        if any(kind in TEXTS for _, kind in self.columns):
            return super().messages(encoded)
        # NumPy splits values of one width several times faster than Arrow.
        rows = np.ascontiguousarray(_rows(encoded, self._fixed))
        return rows.view(f"S{self._fixed}").ravel().tolist()

    def opened(self, value: str) -> str:
        return value

    def expressions(self, opened: str) -> dict[str, str]:
        texts, before = {}, [str(1 + self._fixed)]
        for (name, kind), position, width in self._places():
            digits = f"cast(substring({opened}, {1 + position}, {width}) AS string)"
            if kind not in TEXTS:
                texts[name] = _value(digits, kind)
                continue
            length = f"try_cast({digits} AS int)"
            texts[name] = f"cast(substring({opened}, {' + '.join(before)}, {length}) AS {kind})"
            before.append(f"coalesce({length}, 0)")
        return texts


def _value(digits: str, kind: str) -> str:
    """For integers `try_cast` skips spaces and maps blank to null; for other types a null would throw internally."""
    if kind in ("double", "boolean"):
        return f"cast(nullif(trim({digits}), '') AS {kind})"
    return f"timestamp_micros(try_cast({digits} AS bigint))" if kind == "timestamp" else f"try_cast({digits} AS {kind})"


def _write(column: pa.Array, kind: str, rows: Bytes, position: int, width: int) -> None:
    """Writes each value into its row's bytes from `position` to `position + width`, which are blank."""
    if kind in TEXTS:
        column = pc.binary_length(column)
        if (longest := pc.max(column).as_py() or 0) >= 10**LENGTH_WIDTH:
            rule = f"must have texts of less than {10**LENGTH_WIDTH} bytes"
            raise InputError(Problem("the compact encoding", rule, longest, "shorter texts"))
    if kind == "timestamp":
        column = column.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    # Only non-negative integers without nulls.
    if len(column) and pa.types.is_integer(column.type) and not column.null_count and pc.min(column).as_py() >= 0:
        write_numbers(np.asarray(column).astype(np.uint64), rows, position, width)
        return
    padded = pc.utf8_lpad(pc.fill_null(pc.cast(column, pa.string()), ""), width, " ")
    rows[:, position : position + width] = _rows(padded, width)


def _rows(values: pa.Array, width: int) -> Bytes:
    """Values of equal width as an array of bytes, shape (rows, width), without a copy."""
    start = values.offset * width
    whole = np.frombuffer(values.buffers()[2] or b"", np.uint8)
    return whole[start : start + len(values) * width].reshape(len(values), width)


GROUP = 4
"""Integers are written four digits at a time from a table, because Arrow's casts and padding take several times as
long."""
_SIZE = 10**GROUP


def _table(zero: str) -> npt.NDArray[np.uint32]:
    """The texts of all groups of four digits as 32-bit integers, shape (20000,).

    First the groups after other digits, then the leading groups, in which zero is written as `zero`.
    """
    within = (f"{number:0{GROUP}d}" for number in range(_SIZE))
    first = (f"{number:{GROUP}d}" for number in range(1, _SIZE))
    return np.frombuffer("".join((*within, zero.rjust(GROUP), *first)).encode(), np.uint32)


_LAST, _BEFORE = _table("0"), _table("")


def write_numbers(numbers: Numbers, rows: Bytes, position: int, width: int) -> None:
    """Writes each number into its row's bytes from `position` to `position + width`, which are blank."""
    end = position + width
    for texts in _groups(numbers):
        begin = max(position, end - GROUP)
        if end - begin == GROUP:
            _words(rows, begin)[:] = texts
        else:
            rows[:, begin:end] = texts.view(np.uint8).reshape(len(rows), GROUP)[:, begin - end :]
        end = begin


def _groups(numbers: Numbers) -> Iterator[npt.NDArray[np.uint32]]:
    """The texts of each number's last four digits, of the four before, and so on, shape (rows,) each."""
    table = _LAST
    while len(numbers) and (table is _LAST or numbers.any()):
        quotients = numbers // np.uint64(_SIZE)
        group = (numbers - quotients * np.uint64(_SIZE)).astype(np.intp)
        yield table[group + _SIZE * (quotients == 0)]
        numbers, table = quotients, _BEFORE


def _words(rows: Bytes, begin: int) -> npt.NDArray[np.uint32]:
    """A view of each row's four bytes from `begin` as 32-bit integers, shape (rows,)."""
    return np.ndarray((len(rows),), np.uint32, rows.data, begin, (rows.strides[0],))
