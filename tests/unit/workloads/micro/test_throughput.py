"""Throughput: what goes in comes out, byte for byte; a size that no message has is refused."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from streamgauge.engines.duckdb_oracle.engine import Oracle
from streamgauge.workloads import registry
from tests.unit.helpers_duckdb import duckdb_session

WORKLOAD = registry.get("throughput")


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
    found: Any = Oracle().answer(flow, {"messages": events}, duckdb_session()).to_arrow_table()
    assert found.sort_by("content").column("body").to_pylist() == bodies.to_pylist()
