"""What generators can make: the measurement, on a clock of the test's own, and what it is of."""

from collections.abc import Iterator
from typing import Any
from unittest.mock import Mock

import pytest

from streamgauge.loadgen.fields import Integer, Payload, StreamSpec
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.rate_profile import parse_profile
from streamgauge.preflight import generator_ceiling
from streamgauge.preflight.generator_ceiling import CHUNK_EVENTS, ceiling_of, measure_capacity
from tests.unit.helpers_requests import GOOD, checked


def steady_plan_of(*streams: StreamSpec) -> Plan:
    return Plan(streams, parse_profile("constant", 1000.0, 60.0), 0, 60.0, 1, 1)


def ticks(*steps: float) -> Iterator[float]:
    """Clock readings that go on by the given steps."""
    now = 0.0
    for step in steps:
        now += step
        yield now


@pytest.mark.parametrize(("steps", "events_per_s"), [
    ([0.0, 0.1, 0.1] * 3, 2 * CHUNK_EVENTS / 0.2), ([0.0, 1.0, 0.0, 9.0, 0.0, 1.0], CHUNK_EVENTS),
], ids=["two rounds", "median"])  # fmt: skip
def test_ceiling_is_events_by_time(steps: list[float], events_per_s: float) -> None:
    """Two rounds of a tenth of a second in each slice: events of two rounds in 0.2 s. One slow slice of three does not
    move the figure.
    """
    plan, clock = steady_plan_of(StreamSpec("s", (Integer("a", 0, 9),))), ticks(*steps, *[0.0] * 6)
    rate = measure_capacity(plan, {"s": ("a", "event_time")}, 0.0, 0.5, clock.__next__)
    assert rate == pytest.approx(events_per_s)


@pytest.mark.parametrize(("rounds_per_s", "rest"), [(0.0, 1.0), (5.0, 0.5), (20.0, 0.0)])
def test_the_fixed_cost_of_batches_lowers_the_ceiling(rounds_per_s: float, rest: float) -> None:
    """Events get the rest of each second: a batch of one event takes 0.1 s of the 1.1 s of a whole one."""
    clock = ticks(*[0.0, 1.1] * 3, *[0.0, 0.1] * 3)
    plan = steady_plan_of(StreamSpec("s", (Integer("a", 0, 9),)))
    rate = measure_capacity(plan, {"s": ("a",)}, rounds_per_s, 0.5, clock.__next__)
    assert rate == pytest.approx(rest * CHUNK_EVENTS)


def test_streams_count_in_their_shares() -> None:
    """Events of all streams count; large rows make rounds smaller, shares kept."""
    streams = (StreamSpec("a", (Payload("p", 2**20),), 0.25), StreamSpec("b", (Integer("a", 0, 9),), 0.75))
    rate = measure_capacity(
        steady_plan_of(*streams), {"a": ("p",), "b": ("a",)}, 0.0, 0.3, ticks(*[0.0, 1.0] * 3, *[0.0] * 6).__next__
    )
    assert rate == pytest.approx(256, abs=4)


def test_the_ceiling_is_of_the_columns_that_generators_make(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not of fields that the flow does not read, and of ids where it needs them."""
    monkeypatch.setattr(generator_ceiling, "measure_capacity", measure := Mock(return_value=1.0))
    ceiling_of(checked(GOOD), 1000.0)
    assert measure.call_args.args[1] == {"purchases": ("gem_pack_id", "price", "event_time")}


@pytest.mark.parametrize(("load", "rounds_per_s"), [
    ({"chunk": "500ms", "generators": 2}, 2.0), ({"chunk": "10ms", "generators": 1}, 20.0),
])  # fmt: skip
def test_the_ceiling_is_of_a_trials_batches(
    monkeypatch: pytest.MonkeyPatch, load: dict[str, Any], rounds_per_s: float
) -> None:
    """Those of a chunk, or of the 50 ms for which short chunks are made at once."""
    monkeypatch.setattr(generator_ceiling, "measure_capacity", measure := Mock(return_value=1.0))
    ceiling_of(checked(GOOD | {"load": load}), 1000.0)
    assert measure.call_args.args[2] == rounds_per_s
