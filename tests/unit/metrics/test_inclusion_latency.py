"""metrics/inclusion_latency.py: how long events waited until they were counted, by hand, and against the
newest event's latency.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.clock import US
from streamgauge.core.trial import TrialSpans
from streamgauge.loadgen.fields import Key, StreamSpec
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.rate_profile import parse_profile
from streamgauge.metrics.event_latency import LatencyRule, sink_latencies
from streamgauge.metrics.inclusion_latency import (
    NO_BATCHES,
    ONE_BY_ONE,
    with_inclusion_latency,
)
from streamgauge.metrics.records import Commit
from streamgauge.metrics.trial_log import TrialLog
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.results.latency import Latency
from streamgauge.transports.spi import Chunk, Delivery
from tests.unit.helpers_answers import START, UPDATES, Case

NAMES = ("purchases", "ads")
NEWEST_US = 800_000
"""So long after a batch's newest event its results come."""


def plan_of(partitions: int = 1, shares: tuple[float, ...] = (1.0,)) -> Plan:
    """1000 events/s for 60 s."""
    specs = tuple(StreamSpec(name, (Key("user_id", 100),), share) for name, share in zip(NAMES, shares, strict=False))
    return Plan(specs, parse_profile("constant", 1000.0, 60.0), START, 60.0, partitions, 1)


PLAN = plan_of()
TIMES = PLAN.event_times(0, 0, 0, 60_000)


def trial(ends_s: list[float], took_us: list[int], rows: int = 10, plan: Plan = PLAN) -> TrialRecord:
    """Batch n has read up to second `ends_s[n]`, and its results came `took_us[n]` after that; 8 s to 48 s measured."""
    trial_log = TrialLog(plan)
    ends = [START + round(end * US) for end in ends_s]
    starts = [START, *ends[:-1]]
    trial_log.chunks = [[Chunk(START, START + 60 * US, 1, START + 60 * US)] for _ in range(plan.partitions)]
    trial_log.deliveries = [
        [
            Delivery(stream.name, low, high, 1, high, batch, False)
            for batch, (low, high) in enumerate(zip(starts, ends, strict=True))
            for stream in plan.streams
        ]
        for _ in range(plan.partitions)
    ]
    came = zip(ends, took_us, strict=True)
    trial_log.commits = [
        Commit("", batch, "", end + took + 50_000, end + took if rows else 0, rows, end, None, [])
        for batch, (end, took) in enumerate(came)
    ]
    spans = TrialSpans(START, START + 8 * US, START + 48 * US, START + 60 * US)
    return TrialRecord(trial_log, spans, drained=True, deadline_us=START + 70 * US)


def every(interval_s: float, **more: Any) -> TrialRecord:
    ends = np.arange(interval_s, 60 + interval_s / 2, interval_s).tolist()
    return trial(ends, [NEWEST_US] * len(ends), **more)


def found_of(record: TrialRecord, *streams: str, in_batches: bool = True) -> Any:
    """The latencies of a sink without results, and of these streams' events until they were counted."""
    spans = record.spans
    found = sink_latencies((), LatencyRule("update"), (spans.measured_from_us, spans.measured_to_us))
    return with_inclusion_latency(found, record, streams or ("purchases",), in_batches)


def latency_of(record: TrialRecord, *streams: str) -> Any:
    return found_of(record, *streams).latencies.until_counted_us


def near(seconds: float) -> Any:
    return pytest.approx(seconds * US, rel=2e-3)


def test_every_event_waits_for_its_batch_and_its_results() -> None:
    """By hand: batches of 4 s whose results come 0.8 s after their end. The newest event waits 0.8 s, the oldest 4.8 s,
    the one in the middle 2.8 s; 40 s of 1000 events/s lie in 10 batches.
    """
    latency = latency_of(every(4))
    assert (latency.min, latency.p50, latency.p90, latency.max) == (near(0.801), near(2.8), near(4.4), near(4.8))
    assert (latency.count, latency.effective_count, latency.lower_bounds) == (40_000, 10, 0)
    assert latency.p99 is None


def test_a_batch_that_changed_nothing_has_counted_its_events_when_it_is_committed() -> None:
    latency = latency_of(every(4, rows=0))
    assert (latency.p50, latency.max) == (near(2.85), near(4.85))


def test_what_no_batch_took_in_is_a_lower_bound() -> None:
    """The last 4 s of the span were never read: at least from their time to the deadline, at second 70."""
    record = every(4)
    record.trial_log.deliveries[0][11:] = []
    latency = latency_of(record)
    assert (latency.count, latency.effective_count, latency.lower_bounds) == (40_000, 9, 4_000)
    assert latency.max == near(26)
    uncommitted = every(4)
    uncommitted.trial_log.commits.pop(5)
    assert latency_of(uncommitted).lower_bounds == 4_000


def test_an_event_that_is_read_again_was_counted_the_first_time() -> None:
    """A part of a batch that a later one asks for again is no news of it."""
    record = every(4)
    part = record.trial_log.deliveries[0][5]
    record.trial_log.deliveries[0].append(replace(part, to_us=part.from_us + US, batch=9, again=True))
    assert found_of(record) == found_of(every(4))


def test_what_another_query_has_read_is_not_counted_for_this_one() -> None:
    """Its batches end elsewhere, and have numbers of their own."""
    record, apart_us = every(4), 2 * US
    others = [
        replace(part, query="other", from_us=part.from_us - apart_us, to_us=part.to_us - apart_us, shared=True)
        for part in record.trial_log.deliveries[0]
    ]
    record.trial_log.deliveries[0] += others
    assert found_of(record) == found_of(every(4))


def test_an_event_is_counted_when_all_places_of_the_query_have_it() -> None:
    """A flow that branches reads its stream twice: the second place is a batch behind."""
    record = every(4)
    behind = [
        replace(part, reader=1, batch=part.batch + 1, shared=True) for part in record.trial_log.deliveries[0][:-1]
    ]
    record.trial_log.deliveries[0] += behind
    latency = latency_of(record)
    assert (latency.count, latency.p50) == (40_000, near(6.8))


def test_all_streams_and_partitions_count_but_no_other_stream() -> None:
    record = every(4, plan=plan_of(2, (0.75, 0.25)))
    assert latency_of(record, "purchases", "ads").count == 40_000
    assert latency_of(record, "ads").count == 10_000


def test_blocks_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = found_of(every(4))
    monkeypatch.setattr("streamgauge.metrics.inclusion_latency.BLOCK_EVENTS", 777)
    assert found_of(every(4)) == whole


def test_without_known_batches_it_is_null_and_says_why() -> None:
    record = every(4)
    record.trial_log.commits = [replace(commit, batch=commit.batch + 1000) for commit in record.trial_log.commits]
    assert latency_of(record) == Latency(note=NO_BATCHES)


@given(st.lists(st.tuples(st.floats(0.2, 8.0), st.integers(1_000, 3_000_000)), min_size=1, max_size=7), st.data())
def test_it_is_never_less_than_the_newest_events_latency(batches: list[tuple[float, int]], data: st.DataObject) -> None:
    """Of each batch, however long it is and takes: its newest event is one of its events, and waits the least."""
    ends_s = np.cumsum([length for length, _ in batches]).tolist()
    record = trial(ends_s, [took for _, took in batches])
    number = data.draw(st.integers(0, len(batches) - 1))
    low, high = (START + round(second * US) for second in [0, *ends_s][number : number + 2])
    record.spans = TrialSpans(START, low, high, START + 60 * US)
    newest = TIMES[: np.searchsorted(TIMES, high)][-1:]
    rows = pa.record_batch(
        {"event_time": newest, "emission_time": np.array([record.trial_log.commits[number].emitted_us])}
    )
    of_newest: Any = sink_latencies([rows], LatencyRule("update"), (low, high)).latencies.event_time_us
    counted = latency_of(record)
    assert counted.min == of_newest.min
    assert counted.mean >= of_newest.mean
    assert counted.max >= of_newest.max


# --- of a trial ---


def test_a_verified_trial_of_updates_has_it_beside_the_others(case: Callable[..., Case], make: Any) -> None:
    """Batch n has read up to second n + 1, and its results came at n + 2: from 1 s to 2 s, 1.5 s in the median."""
    trial = case(UPDATES)
    latencies = trial.verified(make, updates=trial.updates()).sinks[0].latencies
    counted: Any = latencies.latencies.until_counted_us
    assert (counted.min, counted.p50, counted.max) == (near(1.0), near(1.5), near(2.0))
    assert (counted.count, counted.effective_count) == (7_500, 10)
    assert latencies.histograms["until_counted"].count == 7_500


def test_updates_of_single_events_have_no_second_figure() -> None:
    latencies = found_of(every(4), in_batches=False).latencies
    assert (latencies.until_counted_us, latencies.notes) == (None, (ONE_BY_ONE,))
