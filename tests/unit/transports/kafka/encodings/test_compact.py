"""The compact encoding: every row in one message, which is laid out as is said.

Whole numbers as text of one width: the same as Python's own.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamgauge.core.errors import InputError
from streamgauge.transports.kafka.encodings.compact import LENGTH_WIDTH, WIDTHS, Compact, write_numbers
from tests.unit.transports.kafka.helpers_rows import batch_of


def taken_apart(message: bytes, kinds: dict[str, str]) -> dict[str, Any]:
    """The definition, in Python."""
    row: dict[str, Any] = {}
    place = 0
    lengths: dict[str, int | None] = {}
    for name, kind in kinds.items():
        width = WIDTHS.get(kind, LENGTH_WIDTH)
        text = message[place : place + width].decode().strip()
        place += width
        if kind in ("string", "binary"):
            lengths[name] = int(text) if text else None
        elif kind == "boolean":
            row[name] = {"": None, "true": True, "false": False}[text]
        else:
            row[name] = None if not text else float(text) if kind == "double" else int(text)
    for name, length in lengths.items():
        part = message[place : place + (length or 0)]
        place += length or 0
        row[name] = None if length is None else part.decode() if kinds[name] == "string" else part
    assert place == len(message)
    return row


NUMBERS = {"n": "int", "d": "double", "b": "bigint"}


@given(
    st.lists(st.tuples(st.integers(-(2**31), 2**31 - 1), st.floats(allow_nan=False), st.integers(-(2**63), 2**63 - 1))),
    st.integers(0, 3),
)
def test_numbers_alone_have_one_width(values: list[tuple[int, float, int]], skipped: int) -> None:
    """They are cut out of one buffer, a slice's too."""
    rows = [dict(zip(NUMBERS, value, strict=True)) for value in values]
    whole = batch_of(rows, NUMBERS)
    layout = Compact(tuple(NUMBERS.items()))
    messages = layout.messages(layout.encode(whole).slice(skipped))
    assert [taken_apart(message, NUMBERS) for message in messages] == rows[skipped:]


def test_a_text_that_is_too_long_is_refused() -> None:
    """A text that is longer than its length can say."""
    long = pa.RecordBatch.from_arrays([pa.array(["x" * 10**LENGTH_WIDTH])], names=["s"])
    with pytest.raises(InputError, match="texts of less than"):
        Compact((("s", "string"),)).encode(long)


def written(numbers: list[int], place: int, width: int, wide: int) -> list[str]:
    """Rows of `wide` bytes, blank but for the numbers."""
    rows = np.full((len(numbers), wide), ord(" "), np.uint8)
    write_numbers(np.array(numbers, np.uint64), rows, place, width)
    return [bytes(row).decode() for row in rows]


@given(st.lists(st.integers(0, 2**63 - 1), max_size=20), st.integers(1, 22), st.integers(0, 5), st.integers(0, 5))
@example([0, 9999, 10_000, 10_001, 99_990_000, 100_000_000, 2**63 - 1], 19, 0, 0)
@example([0, 1, 10**6, 10**7 - 1], 7, 1, 1)
def test_they_stand_at_the_end_of_their_width(drawn: list[int], width: int, before: int, after: int) -> None:
    """With zeros inside and none before, whatever the others are; nothing beside the width is touched. Also where it
    is no whole number of groups.
    """
    numbers = [number % 10**width for number in drawn]
    expected = [" " * before + f"{number:{width}d}" + " " * after for number in numbers]
    assert written(numbers, before, width, before + width + after) == expected
