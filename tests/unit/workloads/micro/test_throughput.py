"""Throughput: what goes in comes out, byte for byte; a size that no message has is refused."""

import pytest

from tests.unit.workloads.helpers_cuts import answered, flow_of, job_of, table


@pytest.mark.parametrize("size", [1, 100, 65_536])
def test_messages_have_the_size_of_the_parameter(size: int) -> None:
    """Of each, whatever the rate."""
    (stream,) = job_of("throughput", 1000.0, message_bytes=size).streams
    assert next(field for field in stream.fields if field.name == "body").row_bytes >= size
    assert stream.schema.types()["body"] == "binary"


def test_every_message_comes_back_as_it_was() -> None:
    """Null among them; nothing is dropped."""
    messages = [(1, b"abc"), (2, b""), (3, None)]
    results = answered(flow_of("throughput"), {"messages": table(messages, content="int32", body="binary")})
    assert results.sort_by("content")["body"].to_pylist() == [body for _, body in messages]
