"""Events as lines of text: fields apart by a character that texts do not have, one line for each event."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.errors import DriverError

SEPARATOR, END = "\x1f", "\n"
_ENDS = r"[\n\r\x1f]"
"""What would be taken for the end of a field or of a line, by the separator or by who reads lines."""


def lines_of(batch: pa.RecordBatch) -> pa.Array:
    """A line for each event, with its end.

    Raises:
        DriverError: a value is null, or a text holds what ends a field or a line.
    """
    pieces: list[pa.Array | pa.Scalar] = []
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if column.null_count:
            raise DriverError(f"lines carry no nulls, and {field.name} holds some")
        if pa.types.is_string(field.type) and pc.any(pc.match_substring_regex(column, _ENDS)).as_py():
            raise DriverError(f"lines carry no line's end within a text, and {field.name} holds one")
        pieces += [column.cast(pa.string()), pa.scalar(SEPARATOR)]
    pieces[-1] = pa.scalar(END)
    return pc.binary_join_element_wise(*pieces, "")


def bytes_of(lines: pa.Array) -> pa.Buffer:
    """The lines one after the other as they lie in memory, without a copy."""
    if not len(lines):
        return pa.py_buffer(b"")
    _, offsets, values = lines.buffers()
    borders = pa.Array.from_buffers(pa.int32(), len(lines) + 1, [None, offsets], offset=lines.offset)
    first, last = borders[0].as_py(), borders[-1].as_py()
    return values.slice(first, last - first)
