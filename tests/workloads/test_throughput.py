"""Throughput: what goes in comes out, byte for byte; a size that no message has is refused."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.engines.oracle import Oracle
from streamgauge.errors import InputError
from streamgauge.flow.lineage import with_lineage
from streamgauge.workloads import base

WORKLOAD = base.get("throughput")


@pytest.mark.parametrize("size", [1, 100, 65_536])
def test_messages_have_the_size_asked_for(size: int) -> None:
    """Of each, whatever the rate."""
    ((stream,)) = WORKLOAD.build(WORKLOAD.read({"message_bytes": size}), 1000.0).streams
    body = next(field for field in stream.fields if field.name == "body")
    assert body.row_bytes >= size
    assert stream.schema.types()["body"] == "binary"


def test_every_message_comes_back_as_it_was() -> None:
    """Null among them; nothing is dropped."""
    bodies = pa.array([b"abc", b"", None], pa.binary())
    numbers = pa.array([1, 2, 3], pa.int64())
    events = pa.table({"content": numbers.cast(pa.int32()), "body": bodies, "event_time": numbers})
    flow = WORKLOAD.build(WORKLOAD.read({}), 1000.0).flow
    found: Any = Oracle().answer(flow, {"messages": events}, duckdb.connect()).to_arrow_table()
    assert found.sort_by("content").column("body").to_pylist() == bodies.to_pylist()


MESSAGES = st.lists(st.tuples(st.none() | st.integers(-(2**31), 2**31 - 1), st.none() | st.binary(max_size=20)))


@given(MESSAGES)
@settings(max_examples=30, deadline=None)
def test_messages_come_back_in_plain_python(messages: list[tuple[int | None, bytes | None]]) -> None:
    """Each once, with its own number and bytes, whatever they are; equal ones as often as they came."""
    numbers = pa.array(range(len(messages)), pa.int64())
    events = pa.table({
        "content": pa.array([content for content, _ in messages], pa.int32()),
        "body": pa.array([body for _, body in messages], pa.binary()),
        "event_time": numbers, "event_id": numbers,
    })  # fmt: skip
    flow = with_lineage(WORKLOAD.build(WORKLOAD.read({}), 1000.0).flow, ingest_time=False)
    found: Any = Oracle().answer(flow, {"messages": events}, duckdb.connect()).to_arrow_table()
    rows = found.sort_by("event_id").to_pylist()
    assert [(row["content"], row["body"]) for row in rows] == messages
    assert [row["event_id"] for row in rows] == list(range(len(messages)))


@pytest.mark.parametrize("size", [0, 65_537, "much"])
def test_a_size_that_no_message_has_is_refused(size: Any) -> None:
    """By its name."""
    with pytest.raises(InputError) as refused:
        WORKLOAD.read({"message_bytes": size})
    assert refused.value.problems[0].setting == "set message_bytes"
