"""Throughput: what goes in comes out, byte for byte."""

from tests.unit.workloads.helpers_cuts import answered, flow_of, table


def test_every_message_comes_back_as_it_was() -> None:
    """Null among them; nothing is dropped."""
    messages = [(1, b"abc"), (2, b""), (3, None)]
    results = answered(flow_of("throughput"), {"messages": table(messages, content="int32", body="binary")})
    assert results.sort_by("content")["body"].to_pylist() == [body for _, body in messages]
