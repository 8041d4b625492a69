"""Events as lines: nothing is lost of what they carry, and what they cannot carry is refused."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.errors import DriverError
from streamgauge.transports.socket.lines import SEPARATOR, bytes_of, lines_of

TEXTS = st.text(st.characters(blacklist_characters="\n\r\x1f", blacklist_categories=("Cs",)))
ROWS = st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), TEXTS, st.booleans()), max_size=20)


def batch_of(rows: list[tuple[int, str, bool]]) -> pa.RecordBatch:
    numbers, texts, flags = ([row[place] for row in rows] for place in range(3))
    arrays = [pa.array(numbers, pa.int64()), pa.array(texts, pa.string()), pa.array(flags, pa.bool_())]
    return pa.RecordBatch.from_arrays(arrays, names=["number", "text", "flag"])


@given(ROWS, st.integers(0, 20), st.integers(0, 20))
def test_any_part_of_the_lines_is_read_as_it_was(rows: list[tuple[int, str, bool]], first: int, count: int) -> None:
    """A chunk is a part of what was prepared at once."""
    part = rows[first : first + count]
    read = bytes(bytes_of(lines_of(batch_of(rows)).slice(first, count))).decode()
    fields = [line.split(SEPARATOR) for line in read.split("\n")[:-1]]
    assert [(int(number), text, flag == "true") for number, text, flag in fields] == part


@pytest.mark.parametrize("text", ["two\nlines", "a\rb", "a\x1fb", None])
def test_what_lines_cannot_carry_is_refused(text: str | None) -> None:
    """It would be read as something else."""
    with pytest.raises(DriverError, match=r"column text has .*Use --transport flight"):
        lines_of(batch_of([(1, "right", True), (2, text, True)]))  # type: ignore[list-item]
