"""The plan: times, exact counts, slices, batches."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.clock import US
from streamgauge.core.errors import InputError
from streamgauge.core.schema import Schema, event_id_base
from streamgauge.loadgen.fields import Integer, Key, StreamSpec, Text
from streamgauge.loadgen.plan import EVENTS_MAX, Plan
from streamgauge.loadgen.rate_profile import RateProfile, parse_profile
from tests.helpers_recording import append_and_return
from tests.unit.helpers_refusals import assert_refused

START = 1_700_000_000_000_000
BOTH = (
    StreamSpec("purchases", (Key("user_id", 5000), Key("pack", 100, "normal"), Integer("price", 1, 100)), 0.7),
    StreamSpec("ads", (Key("user_id", 5000), Text("words", 3)), 0.3),
)
LINEAGE = ("event_id", "event_time", "user_id")


def plan_of(profile: RateProfile, partitions: int = 3, seed: int = 1, duration_s: float = 61.5) -> Plan:
    return Plan(BOTH, profile, START, duration_s, partitions, seed)


RATE = st.one_of(st.floats(0.7, 100), st.floats(100, 8e6))
TEXTS = st.one_of(
    st.just("constant"),
    st.builds("step:{}@10s,{}@45s".format, st.integers(1, 10**6), st.integers(1, 10**6)),
    st.builds("ramp:{}".format, st.integers(1, 10**6)),
    st.builds("burst:{}@20s+10s".format, st.floats(0.1, 20)),
)
PROFILES = st.builds(parse_profile, TEXTS, RATE, st.just(60.0))
PLANS = st.builds(plan_of, PROFILES, st.integers(1, 9))
STEADY = plan_of(parse_profile("constant", 1000.0, 60.0))


def exact_count(plan: Plan, stream: int, partition: int, t_us: int) -> int:
    """Events before `t_us` by bisection over event times alone."""
    low, high = 0, int(plan.profile.events_by(plan.duration_s + 1)) + 10
    while low < high:
        middle = (low + high) // 2
        before = plan.event_times(stream, partition, middle, middle + 1)[0] < t_us
        low, high = (middle + 1, high) if before else (low, middle)
    return low


@given(PLANS, st.integers(0, 1), st.data())
def test_count_before_is_exact(plan: Plan, stream: int, data: st.DataObject) -> None:
    """Counts agree with event times at any time, also at the very time of an event, and stay within the plan."""
    partition = data.draw(st.integers(0, plan.partitions - 1))
    total = plan.count_before(stream, partition, plan.end_us)
    t_us = START + data.draw(st.integers(-10, round(plan.duration_s * US) + 10))
    if total and data.draw(st.booleans()):
        sequence = data.draw(st.integers(0, total - 1))
        t_us = int(plan.event_times(stream, partition, sequence, sequence + 1)[0]) + data.draw(st.integers(0, 1))
    expected = exact_count(plan, stream, partition, min(t_us, plan.end_us))
    assert plan.count_before(stream, partition, t_us) == expected


@given(PLANS, st.integers(0, 1), st.integers(0, 10**6), st.integers(0, 400))
def test_times_follow_the_plans_rule(plan: Plan, stream: int, first: int, count: int) -> None:
    """A sequence's time is start + floor(time_of(n / share) * 1e6) of its number n; times never fall."""
    partition = plan.partitions - 1
    numbers = np.arange(first, first + count, dtype=np.int64) * plan.partitions + partition
    rule = START + np.floor(plan.profile.time_of(numbers / plan.streams[stream].share) * 1e6).astype(np.int64)
    times = plan.event_times(stream, partition, first, first + count)
    assert (times == rule).all()
    assert (np.diff(times) >= 0).all()


@given(PLANS, st.integers(0, 62 * US), st.integers(0, 62 * US))
def test_planned_events_are_the_sum_of_counts(plan: Plan, one: int, other: int) -> None:
    """Planned events of a span are the differences of counts, summed over streams and partitions."""
    low, high = START + min(one, other), START + max(one, other)
    by_stream = [
        sum(plan.count_before(s, p, high) - plan.count_before(s, p, low) for p in range(plan.partitions))
        for s in range(2)
    ]
    assert [plan.planned_events(low, high, s) for s in range(2)] == by_stream
    assert plan.planned_events(low, high) == sum(by_stream)
    assert plan.planned_events(high, low) == (0 if low < high else plan.planned_events(low, high))


@given(st.integers(0, 10**9), st.lists(st.integers(1, 40_000), min_size=1, max_size=4), st.integers(0, 1))
def test_any_cut_gives_the_same_rows(first: int, lengths: list[int], stream: int) -> None:
    """However a run of sequences is cut, the rows are the same."""
    cuts = np.cumsum([first, *lengths]).tolist()
    parts = [STEADY.batch(stream, 1, low, high) for low, high in pairwise(cuts)]
    assert (
        pa.Table.from_batches(parts)
        .combine_chunks()
        .equals(pa.Table.from_batches([STEADY.batch(stream, 1, first, cuts[-1])]).combine_chunks())
    )


@pytest.mark.parametrize(("seed", "stream", "partition"), [(2, 0, 0), (1, 1, 0), (1, 0, 1)])
def test_another_seed_stream_or_partition_gives_another_input(seed: int, stream: int, partition: int) -> None:
    """User ids of another seed, stream or partition agree no more often than chance has it."""
    one = STEADY.batch(0, 0, 0, 5000, ["user_id"]).column(0).to_numpy()
    other = plan_of(STEADY.profile, seed=seed).batch(stream, partition, 0, 5000, ["user_id"]).column(0).to_numpy()
    assert (one == other).sum() < 12


def test_a_batch_has_the_named_columns() -> None:
    """Default: all fields and event_time; else the named columns in that order, event_id among them."""
    assert [STEADY.number_of(stream.name) for stream in BOTH] == [0, 1]
    assert STEADY.batch(0, 2, 0, 1).schema.names == ["user_id", "pack", "price", "event_time"]
    batch = STEADY.batch(0, 2, 10, 20, LINEAGE)
    assert batch.schema.names == list(LINEAGE)
    assert batch.column(0).to_pylist() == list(range(event_id_base(0, 2) + 10, event_id_base(0, 2) + 20))
    assert batch.column(1).to_pylist() == STEADY.event_times(0, 2, 10, 20).tolist()
    assert STEADY.batch(1, 0, 5, 5).num_rows == 0


def test_an_unknown_column_is_refused() -> None:
    """A column that the stream has not is refused with those that it has."""
    assert_refused("user_id", STEADY.batch, 0, 0, 0, 1, ["missing"])


PROFILE = parse_profile("constant", 1000.0, 60.0)


@pytest.mark.parametrize(
    ("values", "settings"),
    [
        ({"partitions": 0, "seed": -1}, "partitions seed"),
        ({"streams": ()}, "streams"),
        ({"streams": BOTH[:1]}, "streams"),
        ({"partitions": 0}, "partitions"),
        ({"partitions": 5000}, "partitions"),
        ({"seed": -1}, "seed"),
        ({"duration_s": 0.0}, "duration"),
        ({"profile": parse_profile("constant", 1e15, 60.0)}, "rate"),
        ({"profile": parse_profile("constant", 1.01 * EVENTS_MAX / 60, 60.0)}, "rate"),
    ],
)
def test_wrong_plans_are_refused(values: dict, settings: str) -> None:
    """A plan that cannot be made is refused when it is built, by the names of all wrong settings."""
    right = {"streams": BOTH, "profile": PROFILE, "start_us": START, "duration_s": 60.0, "partitions": 2, "seed": 1}
    with pytest.raises(InputError) as caught:
        Plan(**(right | values))
    assert [problem.setting for problem in caught.value.problems] == settings.split()


@pytest.mark.parametrize("guess", [5.0, 50_000.0])
def test_a_guess_that_is_far_off_is_mended(monkeypatch: pytest.MonkeyPatch, guess: float) -> None:
    """An analytic guess that is far too low, or too high, changes no count."""
    right = STEADY.count_before(0, 1, START + 7 * US + 123)
    monkeypatch.setattr(RateProfile, "events_by", lambda self, t_s: guess)
    assert STEADY.count_before(0, 1, START + 7 * US + 123) == right


@given(PLANS, st.integers(0, 1), st.data())
def test_the_last_event_before_a_time_is_the_last_of_those_counted(
    plan: Plan, stream: int, data: st.DataObject
) -> None:
    """None where none is; any other lies before the time, and no event of the partition between both."""
    partition = data.draw(st.integers(0, plan.partitions - 1))
    t_us = START + data.draw(st.integers(-10, round(plan.duration_s * US)))
    before_us, count = plan.last_before(stream, partition, t_us), plan.count_before(stream, partition, t_us)
    assert (before_us is None) == (count == 0)
    if before_us is not None:
        last_us, next_us = plan.event_times(stream, partition, count - 1, count + 1).tolist()
        assert before_us == last_us < t_us <= next_us


def steady_plan_of(*streams: StreamSpec) -> Plan:
    return Plan(streams, parse_profile("constant", 1000.0, 60.0), 0, 60.0, 1, 1)


def test_a_batch_costs_in_proportion_to_its_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """The names of a stream are listed no more often for 400 columns than for 4."""
    listed: list[int] = []
    names = Schema.names.fget  # type: ignore[attr-defined]
    monkeypatch.setattr(Schema, "names", property(lambda self: append_and_return(listed, 1, names(self))))
    counts = []
    for count in (4, 400):
        listed.clear()
        plan = steady_plan_of(StreamSpec("s", tuple(Integer(f"c{number}", 0, 9) for number in range(count)), key="c0"))
        plan.batch(0, 0, 0, 1)
        counts.append(len(listed))
    assert counts[0] == counts[1] > 0
