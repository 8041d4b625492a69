"""The compact encoding of an event as a message: columns of a fixed width as text, then texts with their lengths.

Every engine can take it apart with two functions that it computes natively, `substring` and `cast`, so nothing stands
between a broker and its own source. Numbers are decimal, blanks before them; one that is null is blank. A text has the
number of its bytes among the columns of a fixed width, and its bytes after them, in the order of the columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.errors import InputError, Problem

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
        return sum(WIDTHS.get(kind, LENGTH_WIDTH) for _, kind in self.columns)

    def encode(self, batch: pa.RecordBatch) -> pa.BinaryArray:
        """InputError where a text is longer than a length can say."""
        parts = [_padded(batch.column(name), kind) for name, kind in self.columns]
        texts = [_text(batch.column(name)) for name, kind in self.columns if kind in TEXTS]
        return pc.binary_join_element_wise(*parts, *texts, pa.scalar(b"", pa.binary()))

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
            digits = f"trim(cast(substring({value}, {place}, {width}) AS string))"
            place += width
            if kind not in TEXTS:
                found[name] = _value(digits, kind)
                continue
            length = f"cast(nullif({digits}, '') AS int)"
            found[name] = f"cast(substring({value}, {' + '.join(before)}, {length}) AS {kind})"
            before.append(f"coalesce({length}, 0)")
        return found


def _value(digits: str, kind: str) -> str:
    number = f"nullif({digits}, '')"
    return f"timestamp_micros(cast({number} AS bigint))" if kind == "timestamp" else f"cast({number} AS {kind})"


def _padded(column: pa.Array, kind: str) -> pa.Array:
    """Texts of one width, blank where there is no value."""
    if kind in TEXTS:
        lengths, width = pc.binary_length(column), LENGTH_WIDTH
        if len(lengths) and (pc.max(lengths).as_py() or 0) >= 10**LENGTH_WIDTH:
            rule = f"must have texts of less than {10**LENGTH_WIDTH} bytes"
            raise InputError(Problem("the compact encoding", rule, pc.max(lengths).as_py(), "shorter texts"))
        column = lengths
    else:
        width = WIDTHS[kind]
        column = column.cast(pa.timestamp("us", "UTC")).cast(pa.int64()) if kind == "timestamp" else column
    return pc.utf8_lpad(pc.fill_null(pc.cast(column, pa.string()), ""), width, " ").cast(pa.binary())


def _text(column: pa.Array) -> pa.Array:
    return pc.fill_null(column.cast(pa.binary()), b"")


def _of_one_width(joined: pa.Array, width: int) -> list[bytes]:
    """The values of an array whose values are all so wide: cut by NumPy, which is several times faster than Arrow."""
    import numpy as np

    start = joined.offset * width
    whole = np.frombuffer(joined.buffers()[2], np.uint8)[start : start + len(joined) * width]
    found: list[bytes] = whole.view(f"S{width}").tolist()
    return found
