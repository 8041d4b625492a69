"""Events as lines of text, with a field separator that texts do not contain."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.errors import DriverError

SEPARATOR, END = "\x1f", "\n"
_ENDS = r"[\n\r\x1f]"
"""Characters that would end a field or a line."""
_WAY_OUT = ", which the socket transport cannot carry. Use --transport flight"


def lines_of(batch: pa.RecordBatch) -> pa.Array:
    """One line per event, including its end.

    Raises:
        DriverError: a value is null, or a text contains a character that ends a field or line.
    """
    pieces: list[pa.Array | pa.Scalar] = []
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if column.null_count:
            raise DriverError(f"column {field.name} has nulls{_WAY_OUT}")
        if pa.types.is_string(field.type) and pc.any(pc.match_substring_regex(column, _ENDS)).as_py():
            raise DriverError(f"column {field.name} has a line end or a field separator within a text{_WAY_OUT}")
        pieces += [column.cast(pa.string()), pa.scalar(SEPARATOR)]
    pieces[-1] = pa.scalar(END)
    return pc.binary_join_element_wise(*pieces, "")


def bytes_of(lines: pa.Array) -> pa.Buffer:
    """The concatenated lines, without a copy."""
    if not len(lines):
        return pa.py_buffer(b"")
    _, offsets, values = lines.buffers()
    borders = pa.Array.from_buffers(pa.int32(), len(lines) + 1, [None, offsets], offset=lines.offset)
    first, last = borders[0].as_py(), borders[-1].as_py()
    return values.slice(first, last - first)
