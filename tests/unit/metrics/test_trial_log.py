"""The trial log: what the driver saw, and what follows from it."""

import dataclasses
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from streamgauge.core.clock import US
from streamgauge.core.units import FAR_FUTURE_US, FAR_PAST_US
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.rate_profile import parse_profile
from streamgauge.metrics.trial_log import SCHEDULE_DELAY_POINTS, TrialLog
from streamgauge.transports.spi import Chunk, Delivery
from tests.unit.helpers_trials import START, journal_of, part

EVER = (FAR_PAST_US, FAR_FUTURE_US)


def test_events_are_counted_once_whatever_is_read_again(make: Any) -> None:
    """First deliveries, re-reads and commits are three numbers."""
    trial_log = journal_of(
        make,
        [part("purchases", 0, 1, 500, 1.1, 0), part("purchases", 0, 1, 500, 1.1, 1, True)],
        [part("purchases", 0, 1, 400, 1.2, 0), part("purchases", 1, 2, 300, 2.2, 1)],
        commits=(make.commit(0, START + 2 * US),),
    )
    running = trial_log.running
    events = running.delivered_by(FAR_FUTURE_US), running.reread_events, trial_log.committed_events()
    assert events == (1200, 500, 900)


def test_ingest_counts_by_the_stamp_and_commits_by_the_commit(make: Any) -> None:
    """What a delivery or a commit brings came evenly since the one before it, the first since the start."""
    trial_log = make.story(read_after_us=0, commit_after_us=500_000).trial_log()
    assert trial_log.running.delivered_between(START + US, START + 2 * US) == pytest.approx(1000)
    assert trial_log.running.delivered_between(START, START + US) == pytest.approx(1000)
    # The first commit is after 1.5 s, each with 1000 events; from then on one a second.
    assert trial_log.running.committed_between(START, START + US) == pytest.approx(1000 / 1.5)
    assert trial_log.running.committed_between(START + US, START + 2 * US) == pytest.approx(500 / 1.5 + 500)


def keeping_up(make: Any, interval_s: float, phase_s: float, until_s: float = 60.0) -> TrialLog:
    """Every batch takes all that there is, 1000 events a second in all, and is committed 0.3 s later."""
    moments = np.arange(phase_s or interval_s, until_s, interval_s)
    lows = np.concatenate([[0.0], moments[:-1]])
    spans = list(enumerate(zip(lows.tolist(), moments.tolist(), strict=True)))
    events = [round(500 * high) - round(500 * low) for _, (low, high) in spans]
    reads = [part("purchases", low, high, events[n], high, n) for n, (low, high) in spans]
    return journal_of(
        make, reads, list(reads),
        commits=tuple(make.commit(n, START + round((high + 0.3) * US)) for n, (_, high) in spans),
    )  # fmt: skip


@pytest.mark.parametrize("interval_s", [0.05, 0.7, 1.4, 5.0])
@pytest.mark.parametrize("phase", [0.0, 0.1, 0.5, 0.9])
def test_a_span_of_no_whole_number_of_batches_holds_what_the_plan_did(
    make: Any, interval_s: float, phase: float
) -> None:
    """Of 30 s from the 15th on, wherever the batches lie in them; batch by batch it would be up to 17 % off."""
    trial_log = keeping_up(make, interval_s, phase * interval_s)
    span = (START + 15 * US, START + 45 * US)
    assert trial_log.running.delivered_between(*span) == pytest.approx(30_000, rel=1e-3)
    assert trial_log.running.committed_between(*span) == pytest.approx(30_000, rel=1e-3)


def test_who_stops_reading_takes_in_no_more(make: Any) -> None:
    """No delivery after the tenth second: of the span from the fifth on, the other half is lost."""
    trial_log = keeping_up(make, 0.5, 0.0, until_s=10.1)
    assert trial_log.running.delivered_between(START + 5 * US, START + 15 * US) == pytest.approx(5000)
    assert trial_log.running.delivered_between(START + 12 * US, START + 15 * US) == 0


def test_what_belongs_to_an_earlier_trial_is_left_out(make: Any) -> None:
    """On a warm test bed the last trial's late commits and reads arrive in this one's ticks."""
    trial_log = TrialLog(make.plan(partitions=1))
    old = Chunk(START - 2 * US, START - US, 99, START - US)
    trial_log.add(
        make.tick(
            [[old, Chunk(START, START + US, 1, START + US)]],
            [[part("purchases", -2, -1, 99, -0.5, 0), part("purchases", 0, 1, 1000, 1.1, 1)]],
            [make.commit(0, START - 1), make.commit(1, START + 2 * US)],
        )
    )
    assert (
        trial_log.running.offered_events,
        trial_log.running.delivered_by(FAR_FUTURE_US),
        len(trial_log.commits),
    ) == (
        1,
        1000,
        1,
    )


def test_what_happened_before_the_plan_is_left_out(make: Any) -> None:
    """Reads that were cut off, tasks that ran again and what the trial before had to wait for."""
    trial_log = TrialLog(make.plan(partitions=1))
    when = [START - 1, START]
    spent = [(START - US, START), (START - 2, START + 3)]
    waited = dict.fromkeys(("delivering", "receiving", "writing"), spent)
    trial_log.add(make.tick([[]], [[]], [], aborted_us=when, retried_us=when, **waited))
    assert (trial_log.aborted_us, trial_log.retried_us) == ([START], [START])
    logs = (trial_log.delivering, trial_log.receiving, trial_log.writing)
    assert [list(log) for log in logs] == [[(START - 2, START + 3)]] * 3


def test_ticks_add_up(make: Any) -> None:
    """An overflow is not forgotten; of the recorder's running sum of ignored rows, earlier trials have their own."""
    trial_log = TrialLog(make.plan(partitions=1))
    for overflowed, ignored in ((False, {"": 1, "b": 2}), (True, {"": 4, "b": 2}), (False, {"": 5, "b": 2, "c": 1})):
        trial_log.add(make.tick([[]], [[]], [], overflowed=overflowed, rows_ignored=ignored))
    assert (trial_log.overflowed, trial_log.rows_ignored) == (True, {"": 4, "c": 1})


def test_planned_and_kept_are_binned_by_the_plan(make: Any) -> None:
    """A second counts what was available soon after its end; of ten chunks 150 ms late, the last is too late."""
    story = make.story(schedule_delay_us=150_000)
    planned, in_time = story.trial_log().events_in_time(START, START + 5 * US, 100_000)
    assert planned.tolist() == [1000] * 5
    assert in_time.tolist() == [900] * 5
    _, in_time = story.trial_log().events_in_time(START, START + 5 * US, 150_000)
    assert in_time.tolist() == [1000] * 5


@pytest.mark.parametrize("chunk_ms", [60, 70, 80, 300])
@pytest.mark.parametrize("profile", ["constant", "burst:3@4s+3s"])
def test_seconds_that_are_no_whole_number_of_chunks_are_kept(make: Any, chunk_ms: int, profile: str) -> None:
    """A punctual generator keeps every second, wherever the span begins and ends; a late chunk is seen in its own."""
    plan = replace(make.plan(rate=999.0), profile=parse_profile(profile, 999.0, 60.0))
    low, high = START + 3 * US + 130_000, START + 9 * US + 690_000
    trial_log = TrialLog(plan)
    trial_log.chunks = [chunks_of(plan, partition, chunk_ms * 1000) for partition in range(plan.partitions)]
    planned, in_time = trial_log.events_in_time(low, high, 100_000)
    assert in_time.tolist() == planned.tolist()
    assert planned.sum() == plan.planned_events(low, high)
    late_us = START + 6 * US + 500_000
    trial_log.chunks = [
        [replace(c, published_us=c.published_us + 2 * US * (c.from_us <= late_us < c.to_us)) for c in log]
        for log in trial_log.chunks
    ]
    planned, in_time = trial_log.events_in_time(low, high, 100_000)
    assert (in_time < planned).tolist() == [second == 3 for second in range(7)]


def chunks_of(plan: Plan, partition: int, chunk_us: int) -> list[Chunk]:
    """What a punctual generator offers in 12 s."""

    def before(time_us: int) -> int:
        return plan.count_before(0, partition, time_us)

    starts = range(START, START + 12 * US, chunk_us)
    return [Chunk(at, at + chunk_us, before(at + chunk_us) - before(at), at + chunk_us + 1000) for at in starts]


def test_schedule_delay_includes_the_chunk(make: Any) -> None:
    """An event at the chunk's begin waits for its end: slip is the hand-over's lateness and up to a chunk more."""
    delays_us = make.story(schedule_delay_us=1000).trial_log().schedule_delays(START, START + 2 * US)
    assert len(delays_us) == 2 * 10 * SCHEDULE_DELAY_POINTS
    half = make.chunk_us / SCHEDULE_DELAY_POINTS / 2
    assert delays_us.min() == pytest.approx(1000 + half)
    assert delays_us.max() == pytest.approx(1000 + make.chunk_us - half)


def test_the_first_overflow_says_what_the_queue_was_full_of(make: Any) -> None:
    """Whichever bound other generators reach after it: they only fill because one has stopped."""
    trial_log = TrialLog(make.plan())
    for overflowed, waiting_us in ((False, None), (True, 2 * US), (True, None)):
        trial_log.add(make.tick([[]], [[]], [], overflowed=overflowed, memory_full_us=waiting_us))
    assert (trial_log.overflowed, trial_log.memory_full_us) == (True, 2 * US)


def test_an_event_is_available_when_the_last_generator_has_come_so_far(make: Any) -> None:
    """Each generator is late with another chunk: nobody could read either span before, whosesoever events they are."""
    trial_log = make.story(schedule_delay_us=0).trial_log()
    for partition, place in ((0, 3), (1, 12)):
        log = list(trial_log.chunks[partition])
        log[place] = replace(log[place], published_us=log[place].to_us + 300_000)
        trial_log.chunks[partition] = log
    delays_us = trial_log.schedule_delays(START, START + 2 * US).reshape(20, SCHEDULE_DELAY_POINTS)
    assert np.flatnonzero(delays_us.min(axis=1) > 300_000).tolist() == [3, 12]


def test_the_wait_is_how_long_ago_the_oldest_event_was_due(make: Any) -> None:
    """Whatever the rate: here it rises ninefold, and each batch finds one second and the 5 ms until the read."""
    trial_log = make.story(plan=make.plan(profile="ramp:9k"), read_after_us=5000).trial_log()
    times, waits = trial_log.backlog_waits()
    assert times.tolist() == trial_log.backlog_peaks()[0].tolist()
    assert waits.tolist() == pytest.approx([1.005] * 20)


def test_output_lag_is_a_sample_a_commit_that_moved_the_frontier(make: Any) -> None:
    """Seconds between a commit and the event time up to which its batch read."""
    times, lags = make.story(seconds=3, read_after_us=0, commit_after_us=400_000).trial_log().output_lags()
    assert (times - START).tolist() == [1_400_000, 2_400_000, 3_400_000]
    assert lags.tolist() == pytest.approx([0.4, 0.4, 0.4])


def test_output_lag_without_known_batches_takes_the_results_frontier(make: Any) -> None:
    """Where a commit names no batch of the transport's; one that moves nothing is no sample."""
    commits = (
        make.commit(-1, START + 5 * US, frontier_us=START + 4 * US),
        make.commit(-2, START + 6 * US, frontier_us=START + 4 * US),
        make.commit(-3, START + 7 * US, frontier_us=START + 5 * US),
    )
    times, lags = journal_of(make, [], commits=commits).output_lags()
    assert (times - START).tolist() == [5 * US, 7 * US]
    assert lags.tolist() == [1.0, 2.0]


def test_results_between_two_reads_move_no_frontier(make: Any) -> None:
    """A group commits each second what it read by then; the results of a window come in slices, at other times."""
    trial_log = make.story(seconds=3, read_after_us=0, commit_after_us=400_000).trial_log()
    without = [each.tolist() for each in trial_log.output_lags()]
    trial_log.commits += [
        make.commit(90 + second, START + second * US + 100_000, frontier_us=START + second * US) for second in (1, 2, 3)
    ]
    assert [each.tolist() for each in trial_log.output_lags()] == without


def test_output_lag_at_reads_has_no_batch_time_in_it(make: Any) -> None:
    """Just before a batch reads, all that was committed is done: the lag is that of the read before, however long the
    batch between took.
    """
    for commit_after_us in (100_000, 400_000, 900_000):
        story = make.story(seconds=4, read_after_us=0, commit_after_us=commit_after_us)
        lags_at_reads: Any = story.trial_log().output_lags_at_reads()
        times, lags = lags_at_reads
        assert (times - START).tolist() == [US, 2 * US, 3 * US, 4 * US]
        assert lags.tolist() == pytest.approx([1.0] * 4)


def test_an_engine_that_reads_ahead_is_sampled_at_its_commits(make: Any) -> None:
    """It takes every second of input at once, and each batch is committed half a second later than the one before."""
    trial_log = make.story(seconds=12, read_after_us=0, commit_after_us=0).trial_log()
    trial_log.commits = [
        dataclasses.replace(commit, committed_us=commit.committed_us + number * US // 2)
        for number, commit in enumerate(trial_log.commits)
    ]
    _, waits = trial_log.backlog_waits()
    _, lags = trial_log.output_lags()
    assert np.ptp(waits) < 0.01
    assert trial_log.output_lags_at_reads() is None
    assert lags[-1] - lags[0] == pytest.approx(5.5)


def test_a_job_that_reads_its_input_twice_in_every_batch_retried_nothing(make: Any) -> None:
    """What every batch reads again is the job's own doing; what one batch reads besides is a retry."""
    trial_log = make.story().trial_log()
    for log in trial_log.deliveries:
        log += [replace(part, again=True) for part in log]
    assert trial_log.retried_tasks(*EVER, as_a_rule=False) == 2 * 20
    assert trial_log.retried_tasks(*EVER, as_a_rule=True) == 0
    trial_log.deliveries[0].append([part for part in trial_log.deliveries[0] if part.batch == 7][-1])
    assert trial_log.retried_tasks(*EVER, as_a_rule=True) == 1
    once = make.story().trial_log()
    once.deliveries[0].append(replace(once.deliveries[0][3], again=True))
    assert [once.retried_tasks(*EVER, as_a_rule=usual) for usual in (False, True)] == [1, 1]


# --- several sinks, several queries ---


def of(query: str, batch: int, low: float, high: float, events: int, when: float, **more: Any) -> Delivery:
    times = {"from_us": START + round(low * US), "to_us": START + round(high * US), "read_us": START + round(when * US)}
    stamp = START + round(more.pop("stamp", when) * US)
    return Delivery("purchases", events=events, ingest_us=stamp, batch=batch, query=query, again=False, **times, **more)


def two_queries(make: Any) -> TrialLog:
    """q0 serves `dear` and `even` and keeps up; q1 serves `counts`, reads the same later and has committed less."""
    reads = [
        of("q0", 0, 0, 1, 500, 1.1),
        of("q0", 1, 1, 2, 500, 2.1),
        of("q1", 0, 0, 1, 500, 2.0, stamp=1.1, shared=True),
        of("q1", 1, 1, 2, 500, 3.0, stamp=2.1, shared=True),
    ]
    times = {("q0", 0): 1.5, ("q0", 1): 2.5, ("q1", 0): 2.9}
    sinks = {"q0": ("dear", "even"), "q1": ("counts",)}
    commits = [
        make.commit(batch, START + round(when * US), query=query, sink=sink)
        for (query, batch), when in times.items()
        for sink in sinks[query]
    ]
    trial_log = TrialLog(make.plan(partitions=1), ("dear", "even", "counts"))
    trial_log.add(make.tick([[]], [[]], []))
    trial_log.add(make.tick([[]], [reads], commits, rows_ignored={"even": 3}))
    return trial_log


def test_several_queries_count_every_event_once(make: Any) -> None:
    """Ingested at the first delivery; read by all, and committed, when the slowest has come so far."""
    trial_log = two_queries(make)
    running = trial_log.running
    assert (running.delivered_by(FAR_FUTURE_US), running.shared_events.total(), running.reread_events) == (
        1000,
        1000,
        0,
    )
    assert (running.taken_events(), running.taken_by(START + 2 * US + US // 2)) == (1000, 500)
    assert trial_log.committed_events() == 500
    # 500 by 1.1 s, and 500 more by 2.1 s; the slower of the two queries has committed 500, 2.9 s after the start.
    assert trial_log.running.delivered_between(START, START + 2 * US) == pytest.approx(950)
    assert trial_log.running.committed_between(START, START + 2 * US) == pytest.approx(500 * 2 / 2.9)


def reads_each_second(make: Any, until_s: tuple[int, ...], plan: Any, query: str = "") -> TrialLog:
    """A batch a second that reads what is due, of each (stream, partition) in turn until a second, and its commit."""
    trial_log, places = TrialLog(plan), [(spec.name, n) for spec in plan.streams for n in range(plan.partitions)]
    for second in range(1, 7):
        parts: list[list[Delivery]] = [[] for _ in range(plan.partitions)]
        for (stream, partition), last in zip(places, until_s, strict=True):
            if second <= last:
                parts[partition].append(
                    dataclasses.replace(part(stream, second - 1, second, 500, second + 0.2, second), query=query)
                )
        commit = make.commit(second, START + second * US + 300_000, query=query)
        trial_log.add(make.tick([[] for _ in parts], parts, [commit]))
    return trial_log


@pytest.mark.parametrize(("streams", "until_s", "behind_s"), [
    (1, (6, 6), 1), (1, (6, 2), 5), (1, (6, 0), 7), (2, (6, 6, 6, 6), 1), (2, (6, 6, 0, 0), 7), (2, (6, 6, 6, 3), 4),
])  # fmt: skip
def test_everything_was_read_as_far_as_the_place_that_is_furthest_behind(
    make: Any, streams: int, until_s: tuple[int, ...], behind_s: int
) -> None:
    """A partition or stream that was never read is behind since its first event; one that stopped, since then."""
    trial_log = reads_each_second(make, until_s, make.plan(streams=streams))
    end, near = START + 7 * US, pytest.approx(behind_s, abs=0.01)
    assert (end - trial_log.committed_until()) / US == near
    assert (trial_log.waiting_at(end), trial_log.of_query("").waiting_at(end), trial_log.lag_at(end)) == (near,) * 3
    assert trial_log.backlog_waits()[1][-1] == pytest.approx(max(behind_s - 0.8, 1.2), abs=0.01)
    assert trial_log.backlog_peaks()[1][-1] >= 1200
    assert trial_log.forgettable_until() == (0 if 0 in until_s else START + min(5, *until_s) * US)


def test_a_partition_without_events_holds_nothing_back(make: Any) -> None:
    """All keys of this plan are of one partition, so the other has nothing to read."""
    plan = make.plan()
    key = dataclasses.replace(plan.streams[0].fields[0], domain=1)
    stream = dataclasses.replace(plan.streams[0], fields=(key, *plan.streams[0].fields[1:]), key=key.name)
    plan = dataclasses.replace(plan, streams=(stream,), keyed=True)
    shares = plan.partition_shares(0)
    assert sorted(shares) == [0, 1]
    until_s = (6, 0) if shares[0] else (0, 6)
    trial_log = reads_each_second(make, until_s, plan)
    assert trial_log.committed_until() == START + 6 * US
    assert trial_log.backlog_waits()[1].tolist() == pytest.approx([1.2] * 6)
    assert trial_log.forgettable_until() == START + 5 * US


def test_a_stream_that_another_query_reads_holds_nothing_back(make: Any) -> None:
    """Neither query reads what the other one does."""
    plan = make.plan(streams=2)
    whole = reads_each_second(make, (6, 6, 0, 0), plan, "q0")
    other = reads_each_second(make, (0, 0, 6, 6), plan, "q1")
    whole.add(make.tick([[], []], other.deliveries, other.commits))
    assert [one.waiting_at(START + 7 * US) for one in whole.by_query()] == [1.0, 1.0]
    assert [one.lag_at(START + 7 * US) for one in whole.by_query()] == [1.0, 1.0]
    assert whole.of_query("q0").committed_until() == START + 6 * US


def test_the_backlog_of_partitions_read_unevenly_is_the_sum_of_each(make: Any) -> None:
    """One is read 0.4 s less far: its events wait longer, and only its own; the output is as far as it is."""
    story = make.story()
    even, uneven = story.trial_log(), story.trial_log()
    log, lag_us = uneven.deliveries[1], 400_000
    log[:] = [replace(part, from_us=max(part.from_us - lag_us, START), to_us=part.to_us - lag_us) for part in log]
    (times, before), (same_times, waiting) = even.backlog_peaks(), uneven.backlog_peaks()
    assert times.tolist() == same_times.tolist()
    assert (waiting[1:] - before[1:]).tolist() == [200] * 19  # 500/s for 0.4 s
    (_, ahead), (_, behind) = even.output_lags(), uneven.output_lags()
    assert behind - ahead == pytest.approx(0.4)
