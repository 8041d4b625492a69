"""The pace of a consumer of known capacity, on a clock of the test's."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from streamgauge.engines.synthetic.main import Pace, degradation_us


class FakeClock:
    def __init__(self) -> None:
        self.time_us = 1_700_000_000_000_000

    def now_us(self) -> int:
        return self.time_us


@given(
    st.floats(1_000, 5e6),
    st.lists(st.tuples(st.integers(1, 200_000), st.integers(0, 400_000)), min_size=1, max_size=50),
)
def test_work_takes_events_over_capacity_whatever_sleeps_cost(
    capacity_per_s: float, reads: list[tuple[int, int]]
) -> None:
    """Always busy, the server is free after exactly events / capacity, though it slept too long after each read."""
    clock = FakeClock()
    pace, began_us = Pace(capacity_per_s, clock.now_us), clock.time_us
    for events, too_long_us in reads:
        pace.take_on(events)
        clock.time_us = max(clock.time_us, pace.free_us) + too_long_us
    expected_us = sum(events for events, _ in reads) / capacity_per_s * 1e6
    assert abs(pace.free_us - began_us - expected_us) <= 1


def test_time_without_work_is_lost() -> None:
    """A second of idleness buys nothing: the next batch takes as long as any."""
    clock = FakeClock()
    pace = Pace(1_000, clock.now_us)
    clock.time_us += 1_000_000
    pace.idle()
    pace.take_on(500)
    assert pace.free_us == clock.time_us + 500_000


@given(st.integers(2, 60), st.integers(1_000, 100_000))
def test_jitter_moves_the_ends_of_batches_and_not_the_pace(batches: int, events: int) -> None:
    """However many batches: all together end within the jitter of one of them, and yet no two last the same."""
    clock = FakeClock()
    pace, one_us = Pace(100_000, clock.now_us, jitter=0.2), events * 10
    ends_us = [clock.time_us]
    for n in range(1, batches + 1):
        pace.take_on(events)
        ends_us.append(pace.free_us)
        assert abs(pace.free_us - ends_us[0] - n * one_us) <= 0.2 * one_us + 1
        clock.time_us = max(clock.time_us, pace.free_us)
    lengths = {after - before for before, after in pairwise(ends_us)}
    assert max(lengths) - min(lengths) > 0.02 * one_us


def test_what_a_batch_takes_besides_is_paid_for_too() -> None:
    """Nothing of it is made good later."""
    clock = FakeClock()
    pace, began_us = Pace(1_000, clock.now_us), clock.time_us
    pace.take_on(100, extra_us=50_000)
    assert pace.free_us == began_us + 150_000
    pace.take_on(100)
    assert pace.free_us == began_us + 250_000


def test_an_engine_that_slows_takes_longer_with_every_batch() -> None:
    """By that share of the event time since its first event; without the option never."""
    assert [degradation_us(0.03, 5_000_000, 5_000_000 + s * 1_000_000) for s in (0, 1, 10)] == [0, 30_000, 300_000]
    assert degradation_us(0.0, 5_000_000, 9_000_000) == degradation_us(0.03, None, 9_000_000) == 0
