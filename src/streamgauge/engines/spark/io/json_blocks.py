"""JSON messages parsed in blocks by Arrow in Python, for streams of numbers. Does not load Spark.

Spark's `from_json` makes a parser for each message, which costs more than reading it. Arrow parses thousands of
messages at once. If it is not certain that `from_json` reads a block alike, the block is halved. Small blocks in doubt
leave Python as messages, for `from_json`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.schema import arrow_type
from streamgauge.engines.spark.session.python_workers import freeze_gc
from streamgauge.transports.kafka.encodings.json import read_lines

UNPARSED = "_message"
"""The column of messages that Arrow did not parse; null where it did."""
ROWS_A_BLOCK = 16_384
"""A megabyte or two, so that a block stays in the processor's cache."""
ROWS_LEAST = 256
"""A block of so few messages is not cut again: a call costs as much as parsing them."""
MESSAGE_MAX = 1000
"""Bytes. Jackson refuses numbers of over 1000 digits and over 1000 levels of nesting; Arrow does not."""
_NUMBERS = ("int", "bigint", "double", "boolean")
_OPEN, _CLOSE = ord("{"), ord("}")
_NON_NUMERIC = (b"NaN", b"Inf")
"""Both read these as numbers, but not in the same spellings."""

Batches = Iterator[pa.RecordBatch]


def is_parsable(kinds: Iterable[str]) -> bool:
    """Whether all columns have types (of messages) that Arrow reads as `from_json` does: no texts, whose escapes and
    invalid characters differ.
    """
    return all(kind in _NUMBERS for kind in kinds)


def parser(kinds: Mapping[str, str]) -> Callable[[Iterable[pa.RecordBatch]], Batches]:
    """A function for `mapInArrow`: from batches with messages as their only column to the columns `kinds` (name to
    Spark SQL type) by position, and `UNPARSED`.
    """
    wanted = pa.schema([(name, arrow_type(kind)) for name, kind in kinds.items()])

    def parse(batches: Iterable[pa.RecordBatch]) -> Batches:
        freeze_gc()
        for batch in batches:
            messages = batch.column(0).cast(pa.binary())
            for start in range(0, len(messages), ROWS_A_BLOCK):
                yield from _rows(messages.slice(start, ROWS_A_BLOCK), wanted)

    return parse


def names(count: int) -> list[str]:
    """The parsed columns' names in Spark, which no column of a stream hides."""
    return [f"_{number}" for number in range(count)]


def _rows(messages: pa.BinaryArray, wanted: pa.Schema) -> Batches:
    count = len(messages)
    columns = parsed(messages, wanted)
    if columns is None and count > ROWS_LEAST:
        yield from _rows(messages.slice(0, count // 2), wanted)
        yield from _rows(messages.slice(count // 2), wanted)
        return
    unparsed = messages if columns is None else pa.nulls(count, pa.binary())
    columns = columns or [pa.nulls(count, kind) for kind in wanted.types]
    yield pa.RecordBatch.from_arrays([*columns, unparsed], [*names(len(wanted)), UNPARSED])


def parsed(messages: pa.BinaryArray, wanted: pa.Schema) -> list[pa.Array] | None:
    """The columns `wanted`, one row per message; None unless they certainly are what `from_json` gives."""
    if not _are_objects(messages):
        return None
    block = _joined(messages)
    if not block.isascii() or any(spelling in block for spelling in _NON_NUMERIC):
        return None
    try:
        table = read_lines(block, wanted, "ignore")
    except pa.ArrowException:  # text for a number, a number out of range, a name twice, or what is no JSON
        return None
    # Messages begin and end with braces, and Arrow takes no line break inside of a text. So each message has one object
    # or more, and as many rows as messages means one each.
    if table.num_rows != len(messages):
        return None
    columns = [table.column(name).combine_chunks() for name in wanted.names]
    return None if any(_is_uncertain(column) for column in columns) else columns


def _are_objects(messages: pa.BinaryArray) -> bool:
    """Whether all messages are of moderate length and in braces."""
    if messages.null_count or not len(messages):
        return False
    offsets = np.frombuffer(messages.buffers()[1], np.int32)[messages.offset :][: len(messages) + 1]
    lengths = np.diff(offsets)
    if lengths.min() < len("{}") or lengths.max() > MESSAGE_MAX:
        return False
    content = np.frombuffer(messages.buffers()[2], np.uint8)
    return bool((content[offsets[:-1]] == _OPEN).all() and (content[offsets[1:] - 1] == _CLOSE).all())


def _joined(messages: pa.BinaryArray) -> bytes:
    """All messages, one per line."""
    whole = pa.ListArray.from_arrays(pa.array([0, len(messages)], pa.int32()), messages)
    return pc.binary_join(whole, b"\n")[0].as_py()


def _is_uncertain(column: pa.Array) -> bool:
    """Whether a double is the zero of `-0`, which `from_json` reads without its sign, or too large."""
    if not pa.types.is_floating(column.type):
        return False
    values = column.fill_null(1.0).to_numpy(zero_copy_only=False)
    return bool((~np.isfinite(values)).any() or (np.signbit(values) & (values == 0)).any())
