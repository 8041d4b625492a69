"""JSON messages that Arrow parses in blocks: what it reads, and what it leaves to Spark."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from streamgauge.engines.spark.io.json_blocks import ROWS_A_BLOCK, ROWS_LEAST, UNPARSED, is_parsable, parser
from tests.unit.engines.spark.io.helpers_json_messages import CERTAIN, KINDS, UNCERTAIN

BAD = b"{"


def rows_of(messages: Sequence[bytes | None], kinds: dict[str, str] | None = None) -> list[dict[str, Any]]:
    batch = pa.record_batch([pa.array(messages, pa.binary())], ["value"])
    return [row for part in parser(kinds or KINDS)([batch]) for row in part.to_pylist()]


@pytest.mark.parametrize(("message", "row"), CERTAIN.items())
def test_arrow_reads_objects_of_numbers(message: bytes, row: tuple[Any, ...]) -> None:
    """Missing fields and nulls are null, further fields are left out, and the order of fields is free."""
    assert [tuple(found.values()) for found in rows_of([message])] == [(*row, None)]


@pytest.mark.parametrize("message", UNCERTAIN)
def test_what_spark_may_read_differently_is_left_to_it(message: bytes | None) -> None:
    (found,) = rows_of([message])
    assert found[UNPARSED] == message
    assert {value for name, value in found.items() if name != UNPARSED} == {None}


def test_a_message_with_two_objects_does_not_shift_rows() -> None:
    """Though there are as many objects as messages."""
    pair = b'{"n":1}{"n":2}'
    messages = [pair, b'{"x":"}', b'{"}']
    assert [row[UNPARSED] for row in rows_of(messages)] == messages
    assert [row[UNPARSED] for row in rows_of([pair, b""])] == [pair, b""]


def test_one_bad_message_leaves_few_to_spark() -> None:
    """All rows stay in order, whatever the borders of blocks."""
    count = ROWS_A_BLOCK + 1000
    messages = [b'{"n":%d}' % number for number in range(count)]
    messages[5000] = BAD
    found = rows_of(messages, {"n": "bigint"})
    left = [number for number, row in enumerate(found) if row[UNPARSED] is not None]
    assert 5000 in left
    assert len(left) <= ROWS_LEAST
    assert all(found[number][UNPARSED] == messages[number] for number in left)
    assert all(row["_0"] == number for number, row in enumerate(found) if row[UNPARSED] is None)


def test_a_slice_of_a_batch_is_read_as_such() -> None:
    batch = pa.record_batch([pa.array([BAD, b'{"n":1}', b'{"n":2}', BAD], pa.binary())], ["value"]).slice(1, 2)
    assert [row["_0"] for part in parser({"n": "int"})([batch]) for row in part.to_pylist()] == [1, 2]


def test_nothing_comes_of_nothing() -> None:
    assert rows_of([]) == []


def test_texts_are_left_to_spark() -> None:
    assert is_parsable(["int", "bigint", "double", "boolean"])
    assert not is_parsable(["bigint", "string"])
