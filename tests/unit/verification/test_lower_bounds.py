"""Verification without an engine: what never came is a lower bound of the latencies, counted from the right time."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from streamgauge.core.arrays import Int64s
from streamgauge.core.clock import US
from streamgauge.core.schema import EVENT_TIME, INGEST_TIME, WINDOW_END
from streamgauge.dataflow.builder import tumble
from streamgauge.dataflow.nodes import Flow
from streamgauge.metrics.event_latency import Missing
from streamgauge.verification import expected as module
from streamgauge.verification.expected import verify
from streamgauge.verification.sink_comparison import MISSING_ROWS, comparison
from tests.unit.helpers_answers import (
    ADS,
    DEADLINE,
    FLOWS,
    PAIRS,
    PURCHASES,
    ROWS,
    START,
    WINDOWS,
    Case,
    faults,
    last_before,
    latency_of,
    without,
)


def test_nothing_received_is_all_missing(case: Callable[..., Case], make: Any) -> None:
    """Every row that was due is there as a lower bound: it took at least until the deadline."""
    trial = case(ROWS).receive(make, rows=[])
    found = verify(trial.resolved, trial.record)
    times = trial.answer().column(EVENT_TIME).to_numpy()
    assert faults(found.verification) == {"missing": np.count_nonzero(times < START + 15 * US)}
    latency = latency_of(found)
    measured = np.count_nonzero((times >= START + 5 * US) & (times < START + 15 * US))
    assert latency.count == latency.lower_bounds == measured
    assert latency.min >= 6 * US


# --- lower bounds ---


@FLOWS
def test_a_missing_result_counts_from_what_it_would_have_counted_from(
    case: Callable[..., Case], make: Any, flow: Flow
) -> None:
    """Up to the deadline, in both latencies; for a pair from the last event of its window."""
    trial = case(flow)
    rows = trial.answer()
    place = rows.num_rows // 2
    lost = rows.slice(place, 1).to_pylist()[0]
    base, stamp = lost[EVENT_TIME], lost[INGEST_TIME]
    if flow is PAIRS:
        end = round(lost[WINDOW_END].timestamp()) * US
        base, stamp = last_before(trial, end), end + 5000
    latencies = trial.verified(make, **{flow.sink.name: [without(rows, place)]}).sinks[0].latencies.latencies
    assert latencies.event_time_us is not None
    assert latencies.processing_time_us is not None
    assert latencies.event_time_us.max == pytest.approx(DEADLINE - base, rel=1e-3)
    assert latencies.processing_time_us.max == pytest.approx(DEADLINE - stamp, rel=1e-3)


def test_a_missing_window_that_was_never_read_has_no_processing_time(case: Callable[..., Case], make: Any) -> None:
    """Nothing was delivered, so there is nothing to count from; its event time is known."""
    trial = case(WINDOWS)
    trial.receive(make, windows=[trial.answer().slice(0, 0)])
    trial.record.trial_log.deliveries = [[] for _ in trial.record.trial_log.deliveries]
    latencies = verify(trial.resolved, trial.record).sinks[0].latencies.latencies
    assert latencies.event_time_us is not None
    assert latencies.event_time_us.lower_bounds > 0
    assert latencies.processing_time_us is None


@pytest.mark.parametrize("how", ["engine_failed", "hopeless"])
def test_what_a_trial_that_ended_early_still_owed_is_a_bound_and_no_fault(
    case: Callable[..., Case], make: Any, how: str
) -> None:
    """Ten batches were committed: later rows are not missing, but those of the span waited until the deadline. A
    hopeless trial that went on, and did not drain, owes no more.
    """
    trial = case(ROWS, drained=False, **{how: "said so"})
    rows = trial.answer()
    came = rows.filter(pc.less(rows.column(EVENT_TIME), START + 10 * US))
    empty = came.slice(0, 0)
    found = trial.verified(make, rows=[came, *[empty] * 9])
    times = rows.column(EVENT_TIME)
    owed = pc.sum(pc.and_(pc.greater_equal(times, START + 10 * US), pc.less(times, START + 15 * US))).as_py()
    assert faults(found.verification) == {}
    assert found.verification.expected == came.num_rows
    assert latency_of(found).lower_bounds == owed
    assert trial.faults(make, rows=[came.slice(1), *[empty] * 9]) == {"missing": 1}
    trial.record.drained = how == "hopeless"
    assert (trial.faults(make, rows=[came, *[empty] * 9]) == {}) is (how != "hopeless")


def test_a_window_that_ends_where_a_batch_did_is_owed_one_batch_later(case: Callable[..., Case], make: Any) -> None:
    """The last event before the cut of 10 s leaves the watermark below it: eleven batches do not close that window."""
    trial = case(WINDOWS, drained=False, engine_failed="the engine died")
    rows = trial.answer()
    ends = pc.cast(rows.column(WINDOW_END), pa.int64())
    closed = rows.filter(pc.less_equal(ends, START + 8 * US))
    for came, found in ((closed, {}), (closed.slice(1), {"missing": 1})):
        assert trial.faults(make, windows=[came, *[came.slice(0, 0)] * 10]) == found
    trial.receive(make, windows=[closed, *[closed.slice(0, 0)] * 11])
    due = pc.sum(pc.equal(ends, START + 10 * US)).as_py()
    assert faults(verify(trial.resolved, trial.record).verification) == {"missing": due}


@FLOWS
def test_an_engine_that_hangs_at_the_end_owes_what_it_did_not_deliver(
    case: Callable[..., Case], make: Any, flow: Flow
) -> None:
    """It lived, read, and committed until shortly before the span's end; at the deadline the rest is missing."""
    trial = case(flow, drained=False)
    rows = trial.answer()
    came = rows.filter(pc.less(rows.column(EVENT_TIME), START + 13 * US))
    found = trial.verified(make, **{flow.sink.name: [came, *[came.slice(0, 0)] * 12]}).verification
    due = pc.sum(pc.less(rows.column(EVENT_TIME), START + 15 * US)).as_py()
    assert faults(found) == {"missing": due - came.num_rows}
    assert found.expected == due


# --- the last event of a window ---


ENDS: Int64s = np.array([START + 4 * US, START + 2 * US, START + 4 * US, START + 2_500_000], np.int64)


def test_the_last_event_in_a_window_is_found_for_each_end(case: Callable[..., Case]) -> None:
    """Of all partitions and streams that the flow reads; ends may come in any order, and again."""
    trial = case(PAIRS)
    rule: Any = module.rule_of(trial.resolved, trial.record)
    assert rule.window_event_time(ENDS).tolist() == [last_before(trial, int(end)) for end in ENDS]
    assert rule.window_ingest_time(ENDS).tolist() == [START + second * US + 5000 for second in (4, 2, 4, 3)]


def test_streams_that_the_flow_does_not_read_have_no_part_in_it(case: Callable[..., Case]) -> None:
    """A purchase after the last advertisement changes nothing for a flow of advertisements alone."""
    trial = case(ADS.sink("ads"))
    log = trial.record.trial_log
    found = module._last_in_window(log.plan, module.ingest_times(log), trial.resolved.columns, ENDS)[:, 0].tolist()
    assert found == [last_before(trial, int(end), [1]) for end in ENDS]
    assert found != [last_before(trial, int(end)) for end in ENDS]


def lost(trial: Case, ends: Int64s) -> Missing:
    """What enters the latencies where a result of each of these windows never came."""
    with comparison(trial.record) as compared:
        for end in ends:
            compared.connection.execute(f"INSERT INTO {MISSING_ROWS} VALUES ({end - 1}, {end + 7}, {end})")
        (found,) = compared.missing_results(module.rule_of(trial.resolved, trial.record))
        return found


def test_a_joins_missing_results_count_from_the_last_event(case: Callable[..., Case]) -> None:
    """Both stamps are the driver's, and not those of the pair."""
    trial = case(PAIRS)
    found = lost(trial, ENDS)
    assert found.window_end_us is not None
    assert sorted(found.window_end_us) == sorted(ENDS)
    assert sorted(found.event_time_us) == sorted(last_before(trial, int(end)) for end in ENDS)
    assert found.ingest_time_us is not None
    assert sorted(found.ingest_time_us) == [START + second * US + 5000 for second in (2, 3, 4, 4)]
    assert found.deadline_us == DEADLINE


def test_a_join_whose_events_were_never_read_has_no_ingest_time(case: Callable[..., Case]) -> None:
    """Nothing after 20 s was delivered."""
    assert lost(case(PAIRS), np.array([START + 2 * US, START + 30 * US])).ingest_time_us is None


ANY_PAIR = PURCHASES.join(ADS.select(user_id="user_id", cost="price"), window=tumble("2s"), on="user_id")


def test_a_joins_results_without_their_window_are_verified(make: Any, case: Callable[..., Case]) -> None:
    trial = case(ANY_PAIR.select(user_id="user_id", cost="cost").sink("pairs"))
    found = verify(trial.receive(make, pairs=[trial.answer("pairs")]).resolved, trial.record)
    assert found.verification.right, found.verification.sentence
    assert found.sinks[0].latencies.latencies.event_time_us is not None


def test_other_results_keep_their_own_times(case: Callable[..., Case]) -> None:
    found = lost(case(WINDOWS), ENDS)
    assert sorted(found.event_time_us) == sorted(ENDS - 1)
    assert found.ingest_time_us is not None
    assert sorted(found.ingest_time_us) == sorted(ENDS + 7)
