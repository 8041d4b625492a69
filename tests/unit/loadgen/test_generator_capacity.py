"""The generator's ceiling, on a clock of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from streamgauge.loadgen.fields import Integer, Payload, StreamSpec
from streamgauge.loadgen.generator_capacity import CHUNK_EVENTS, measure_capacity
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.rate_profile import parse_profile


def plan_of(*streams: StreamSpec) -> Plan:
    return Plan(streams, parse_profile("constant", 1000.0, 60.0), 0, 60.0, 1, 1)


def ticks(*steps: float) -> Iterator[float]:
    """Clock readings that go on by the given steps."""
    now = 0.0
    for step in steps:
        now += step
        yield now


def test_ceiling_is_events_by_time() -> None:
    """Two rounds of a tenth of a second in each slice: events of two rounds in 0.2 s."""
    clock = ticks(*[0.0, 0.1, 0.1] * 3)
    rate = measure_capacity(
        plan_of(StreamSpec("s", (Integer("a", 0, 9),))), {"s": ("a", "event_time")}, 0.5, clock.__next__
    )
    assert rate == pytest.approx(2 * CHUNK_EVENTS / 0.2)


def test_ceiling_is_the_median_slice() -> None:
    """One slow slice of three does not move the figure."""
    clock = ticks(0.0, 1.0, 0.0, 9.0, 0.0, 1.0)
    rate = measure_capacity(
        plan_of(StreamSpec("s", (Integer("a", 0, 9),))), {"s": ("a", "event_time")}, 0.5, clock.__next__
    )
    assert rate == pytest.approx(CHUNK_EVENTS)


def test_streams_count_in_their_shares() -> None:
    """Events of all streams count; large rows make rounds smaller, shares kept."""
    streams = (StreamSpec("a", (Payload("p", 2**20),), 0.25), StreamSpec("b", (Integer("a", 0, 9),), 0.75))
    rate = measure_capacity(plan_of(*streams), {"a": ("p",), "b": ("a",)}, 0.3, ticks(*[0.0, 1.0] * 3).__next__)
    assert rate == pytest.approx(256, abs=4)


def test_only_columns_that_generators_make_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wide field that nothing reads would make the ceiling lower than it is, an id that is made would be left out."""
    made: list[Any] = []
    plan, columns = plan_of(StreamSpec("s", (Integer("a", 0, 9), Payload("p", 2**20)))), ("a", "event_time", "event_id")
    batch = Plan.batch

    def counted_batch(*args: Any) -> Any:
        made.append(batch(*args))
        return made[-1]

    monkeypatch.setattr(Plan, "batch", counted_batch)
    rate = measure_capacity(plan, {"s": columns}, 0.3, ticks(*[0.0, 1.0] * 3).__next__)
    assert {tuple(one.schema.names) for one in made} == {columns}
    assert rate == CHUNK_EVENTS
