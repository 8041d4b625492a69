"""From a trial to what its verdict rests on: each trial here was made by rule, with one thing wrong with it at most."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamgauge.config.experiment import build
from streamgauge.core.clock import US
from streamgauge.core.trial import TrialSpans
from streamgauge.metrics.rates_and_backlog import backlog_of
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.preflight.settings_checks import check
from streamgauge.results.codes import Cause, Detail
from streamgauge.transports.spi import Delivery
from streamgauge.trial import policies
from streamgauge.user_workloads.user_job import UserJob
from streamgauge.verdict import collect_evidence as collect_module
from streamgauge.verdict.verdict import judge
from tests.unit.helpers_trials import RATE, START, cut_short, done_of
from tests.unit.verdict.helpers_collect import changing_rate, evidence_of, judged, verified, with_latencies
from tests.unit.verdict.helpers_evidence import check_of


@pytest.mark.parametrize(("faults", "expected"), [
    ({}, ("sustained", ())), ({"missing": 1}, ("not_sustained", ("answers",))),
])  # fmt: skip
def test_answers_decide_a_steady_trial(
    resolved: ResolvedExperiment, make: Any, faults: dict[str, int], expected: tuple[str, tuple[str, ...]]
) -> None:
    """Nothing wrong in what the driver saw."""
    assert judged(resolved, done_of(make), verified(**faults)) == expected


def test_without_answers_it_is_not_called_sustained(resolved: ResolvedExperiment, make: Any) -> None:
    """A trial that was not verified proves nothing."""
    verdict = judge(collect_module.collect_evidence(resolved, done_of(make), RATE))
    assert (verdict.value, verdict.decided_by) == ("undecided", ("answers",))


@pytest.mark.parametrize(("windows", "decided"), [(4, ("evidence",)), (5, ()), (None, ())])
def test_windows_that_never_closed_are_no_evidence(
    resolved: ResolvedExperiment, make: Any, windows: int | None, decided: tuple[str, ...]
) -> None:
    """Only those that a result closed count, however many were due; rows that are not windowed need none."""
    assert judged(resolved, done_of(make), verified(windows=windows))[1] == decided


def test_an_engine_that_falls_behind_is_not_sustained(resolved: ResolvedExperiment, make: Any) -> None:
    """Each batch 50 ms later than the last: the backlog and the output both grow by 5 %."""
    value, by = judged(resolved, done_of(make, growth_us=50_000))
    assert value == "not_sustained"
    assert set(by) == {"backlog_trend", "output_trend"}


@pytest.mark.parametrize("by_us", [50_000, 15_000])
def test_an_engine_whose_batches_take_longer_and_longer_is_seen(
    resolved: ResolvedExperiment, make: Any, by_us: int
) -> None:
    """The queue stays empty, and the commits come later and later. By 15 ms nothing waits yet, since each batch ends
    within its interval; its results are later by 1.5 % of the time.
    """
    record = slower_and_slower(done_of(make), make, by_us)
    assert record.trial_log.output_lags_at_reads() is not None or by_us > 15_000
    assert judged(resolved, record) == ("not_sustained", ("output_trend",))


def slower_and_slower(record: TrialRecord, make: Any, by_us: int) -> TrialRecord:
    """Each batch takes `by_us` longer than the one before."""
    record.trial_log.commits = [
        make.commit(one.batch, one.committed_us + one.batch * by_us) for one in record.trial_log.commits
    ]
    return record


@pytest.mark.parametrize(
    ("trigger", "busy_s"), [("1400 milliseconds", 0.25), ("500 milliseconds", 1.0), ("0 seconds", 1.0)]
)
def test_only_an_engine_that_waits_for_its_interval_has_time_left_over(make: Any, trigger: str, busy_s: float) -> None:
    """Batches a second apart, each committed after 0.25 s. If that is late, the engine may work on after its commit."""
    values = {"workload": "windowed_aggregation", "load": {"rate": 1000}, "options": {"trigger": trigger}}
    record = done_of(make, read_after_us=5_000, commit_after_us=245_000)
    record.trial_log.commits = [
        replace(commit, frontier_us=(commit.frontier_us - US) // (4 * US) * 4 * US)
        for commit in record.trial_log.commits
    ]
    (work,) = collect_module.collect_evidence(check(build(values)), record, RATE).work
    assert work.covered_s == pytest.approx(1.0)
    assert work.busy_s == pytest.approx(busy_s)
    # By the results, which come a batch later than what was read.
    assert (work.slide_s, work.closed.tolist()) == (4.0, [float(second % 4 == 2) for second in range(5, 35)])


def test_a_batch_in_progress_at_the_end_is_no_engine_that_stopped(resolved: ResolvedExperiment, make: Any) -> None:
    """Its events are uncommitted for as long as those of any other batch, and it counts when it is committed."""
    record = done_of(make, read_after_us=5_000, commit_after_us=695_000)
    until_us = record.spans.measured_to_us - 400_000
    record.spans = TrialSpans(START, record.spans.measured_from_us, until_us, until_us)
    log = record.trial_log
    log.commits = [commit for commit in log.commits if commit.committed_us < until_us]
    log.deliveries = [[part for part in parts if part.when_us < until_us] for parts in log.deliveries]
    (work,) = collect_module.collect_evidence(resolved, record, RATE).work
    assert work.busy_s == pytest.approx(0.7)


def test_batches_that_overlap_leave_no_time_over(resolved: ResolvedExperiment, make: Any) -> None:
    """The next one is read before this one is committed: then lengths say nothing of spare time."""
    record = done_of(make, commit_after_us=1_200_000)
    assert collect_module.collect_evidence(resolved, record, RATE).work == ()


def test_how_much_of_the_time_batches_fill(make: Any, resolved: ResolvedExperiment) -> None:
    """From a batch's end in event time; nothing where no batch was committed. What was left waiting counts as busy."""
    record = make.story(read_after_us=5_000, commit_after_us=245_000).record()
    assert collect_module.busy_share(resolved, record) == pytest.approx(0.25)
    waiting = make.story(read_after_us=305_000, commit_after_us=245_000).record()
    assert collect_module.busy_share(resolved, waiting) == pytest.approx(0.55)
    unnumbered = replace(resolved, engine=replace(resolved.engine, has_batch_ids=False))
    assert collect_module.busy_share(unnumbered, record) is None
    values = {"workload": "windowed_aggregation", "load": {"rate": 1000}, "options": {"trigger": "0 seconds"}}
    assert collect_module.busy_share(check(build(values)), record) is None
    record.trial_log.commits = []
    assert collect_module.busy_share(resolved, record) is None


def test_a_partition_that_is_left_behind_keeps_batches_busy(resolved: ResolvedExperiment, make: Any) -> None:
    """A batch has read up to where all partitions are read."""
    record = done_of(make, commit_after_us=200_000)
    record.trial_log.deliveries[1] = [
        replace(part, from_us=part.from_us - 300_000, to_us=part.to_us - 300_000)
        for part in record.trial_log.deliveries[1]
    ]
    (work,) = collect_module.collect_evidence(resolved, record, RATE).work
    assert work.busy_s == pytest.approx(0.505)


def test_where_the_rate_grows_longer_batches_are_none_of_the_engines_faults(
    resolved: ResolvedExperiment, make: Any
) -> None:
    """They hold more events; what waits says whether the engine keeps up."""
    record = slower_and_slower(done_of(make, profile="ramp:4k"), make, 15_000)
    assert judged(changing_rate(resolved, "ramp:4k"), record) == ("sustained", ())


@pytest.mark.parametrize(("kind", "growth_us"), [("processing_time", 30_000), ("event_time", 100_000)])
def test_results_that_come_later_and_later_are_seen(
    resolved: ResolvedExperiment, make: Any, kind: str, growth_us: int
) -> None:
    """A job that holds results back inside batches that it has committed: nothing but their own latency tells."""
    later = with_latencies(lambda second: 1_000_000 + growth_us * second, kind)
    assert judged(resolved, done_of(make), later) == ("not_sustained", ("latency_trend",))
    level = with_latencies(lambda second: 1_000_000 + 30_000 * (second % 2), kind)
    assert judged(resolved, done_of(make), level)[1] == ()


def test_windows_and_batches_that_drift_against_each_other_are_no_growth(
    resolved: ResolvedExperiment, make: Any
) -> None:
    """Seen: later by 4.5 % of the time for half a minute, with a level backlog, until it is a batch sooner again."""
    verdict = judge(evidence_of(resolved, done_of(make), with_latencies(lambda second: 1_000_000 + 30_000 * second)))
    assert (verdict.value, verdict.decided_by) == ("sustained", ())
    assert check_of(verdict, "latency_trend").remarks[-1].code == Detail.WITHIN_DRIFT


CHANGING = ("ramp:4k", "ramp:100", "step:15k@15s", "step:100@15s", "burst:5@12s+4s", "step:8k@10s,200@16s,3k@24s")


@pytest.mark.parametrize("profile", CHANGING)
@pytest.mark.parametrize(
    ("growth_us", "expected"),
    [(0, ("sustained", set())), (50_000, ("not_sustained", {"backlog_trend", "output_trend"}))],
)
def test_where_the_rate_changes_the_backlog_is_judged_by_its_age(
    resolved: ResolvedExperiment, make: Any, profile: str, growth_us: int, expected: tuple[str, set[str]]
) -> None:
    """More events wait at a higher rate: that is no backlog that grows, and a falling rate hides none that does."""
    record = done_of(make, profile=profile, growth_us=growth_us)
    value, by = judged(resolved, record)
    assert (value, set(by)) == expected
    early_stop = policies.reason_to_stop_early(resolved, record, RATE, START + 34 * US)
    assert (early_stop.code if early_stop else None) == (Detail.CANNOT_DRAIN if growth_us else None)
    assert not policies.warmup_incomplete_reason(record)
    assert backlog_of(record).max_s == pytest.approx(1.005 + 32 * growth_us / US, abs=0.002 + growth_us / US)


@pytest.mark.parametrize(("full", "cause"), [(True, Cause.DISK_FULL), (False, Cause.SUT_DIED)])
def test_the_engines_flag_says_whether_a_disk_was_full(
    resolved: ResolvedExperiment, make: Any, full: bool, cause: Cause
) -> None:
    """The code does not rest on the text of the reason."""
    record = cut_short(done_of(make), 12 * US)
    record.engine_failed, record.engine_disk_full = "No space left on device", full
    verdict = judge(evidence_of(resolved, record))
    assert (verdict.decided_by[0], verdict.cause) == ("connected", cause)


def read_again(at_s: float) -> Delivery:
    """The first second, read once more then; it keeps the stamp of its first delivery."""
    return Delivery("purchases", START, START + US, 500, START + US, 9, again=True, read_us=START + round(at_s * US))


def as_own_job(resolved: ResolvedExperiment) -> ResolvedExperiment:
    nothing: Any = None
    job = UserJob(**vars(resolved.workload), path=Path("job.py"), described={}, batch_job=nothing)
    return replace(resolved, workload=job)


@pytest.mark.parametrize(("at_s", "counts"), [(4.9, 0), (5.0, 1), (34.9, 1), (35.0, 0)])
@pytest.mark.parametrize("own", [False, True])
def test_a_task_retried_outside_the_span_decides_nothing(
    resolved: ResolvedExperiment, make: Any, at_s: float, counts: int, own: bool
) -> None:
    """By what it read again and by what it sent again, each when that was: a fresh engine may still be starting."""
    resolved = as_own_job(resolved) if own else resolved
    reading, sending = done_of(make), done_of(make)
    reading.trial_log.deliveries[0].append(read_again(at_s))
    retried_us = [START - US, START + round(at_s * US)]  # the first is another trial's
    sending.trial_log.add(make.tick([[], []], [[], []], [], retried_us=retried_us))
    for record in (reading, sending):
        assert evidence_of(resolved, record).retried_tasks == counts
        assert judged(resolved, record) == (("not_sustained", ("connected",)) if counts else ("sustained", ()))


@pytest.mark.parametrize(("at_s", "counts"), [(4.9, False), (5.0, True), (34.9, True), (35.0, False)])
@pytest.mark.parametrize("own", [False, True])
def test_a_read_that_was_cut_off_in_the_span_decides(
    resolved: ResolvedExperiment, make: Any, at_s: float, counts: bool, own: bool
) -> None:
    """Before it the engine may still be starting, after it somebody may have stopped it. An own job may end a read as
    it likes: `limit` takes what it needs, and what the job loses by that shows in its answers.
    """
    resolved, counts = (as_own_job(resolved), False) if own else (resolved, counts)
    record = done_of(make)
    record.trial_log.add(make.tick([[], []], [[], []], [], aborted_us=[START + round(at_s * US)]))
    assert judged(resolved, record) == (("not_sustained", ("connected",)) if counts else ("sustained", ()))


@pytest.mark.parametrize("after_us", [3_200_000, 12 * US, 12_370_000, 12_999_999, 20_050_000])
def test_an_engine_that_died_decides_at_any_moment(resolved: ResolvedExperiment, make: Any, after_us: int) -> None:
    """The driver was cut short in the middle of a second, and is not blamed for what was not due yet; before the span
    began there is nothing measured, and yet an answer.
    """
    record = cut_short(done_of(make), after_us)
    record.engine_failed = "the Spark process ended (exit code -9)"
    verdict = judge(evidence_of(resolved, record))
    assert (verdict.value, "connected" in verdict.decided_by) == ("not_sustained", True)
    assert check_of(verdict, "connected").remarks[0].facts["reason"] == record.engine_failed


@pytest.mark.parametrize("after_us", [12 * US, 12_370_000, 20_050_000])
def test_a_full_queue_decides(resolved: ResolvedExperiment, make: Any, after_us: int) -> None:
    """Generators stop at the bound: that is the system's doing, not the driver's."""
    record = cut_short(done_of(make), after_us)
    record.trial_log.overflowed = True
    record.deadline_us += 700_000
    value, by = judged(resolved, record)
    assert value == "not_sustained"
    assert "queue_bound" in by


def test_start_up_backlog_in_the_span_is_undecided(resolved: ResolvedExperiment, make: Any) -> None:
    """A span that began while backlog of the start was worked off shows a slope that is not the rate's."""
    record = done_of(make)
    firsts = [
        replace(p, from_us=p.from_us - max(0, 12 - p.batch) * US, to_us=p.to_us - max(0, 11 - p.batch) * US)
        for p in record.trial_log.deliveries[0]
    ]
    record.trial_log.deliveries[0] = firsts
    assert evidence_of(resolved, record).draining_at_start
    assert not evidence_of(resolved, done_of(make)).draining_at_start


@pytest.mark.parametrize(("unseen_s", "share"), [(9.0, 0.0), (13.0, 1.0)])
def test_reads_that_are_seen_late_are_not_missed_too_early(
    resolved: ResolvedExperiment, make: Any, monkeypatch: pytest.MonkeyPatch, unseen_s: float, share: float
) -> None:
    """Of a trial of 40 s: what is seen after 13 s would be a small share in the first of these spans."""
    monkeypatch.setattr(ResolvedExperiment, "unseen_s", unseen_s)
    record = done_of(make)
    record.trial_log.deliveries = [[], []]
    assert evidence_of(resolved, record).ingested_share == share


def test_numbers_are_of_the_measured_span(resolved: ResolvedExperiment, make: Any) -> None:
    """Batches, seconds and samples of warm-up and tail are left out."""
    seen = evidence_of(resolved, done_of(make))
    assert seen.planned_per_s.tolist() == seen.offered_per_s.tolist() == [1000] * 30
    assert (seen.batches, seen.backlog[0].value.size, seen.output_lag[0].value.size) == (30, 30, 30)
    assert seen.backlog_max_s == pytest.approx(1.005, abs=0.002)


def test_limits_are_judged_after_the_run_only(make: Any) -> None:
    """While it runs there are no latencies to hold a limit against."""
    limited = check(build({"workload": "identity", "limits": ["p99 <= 2s"]}))
    assert len(evidence_of(limited, done_of(make)).levels) == 1
    assert collect_module.collect_evidence(limited, done_of(make), RATE).levels == ()


# --- an engine that stops ---


def test_an_engine_that_stops_before_the_spans_end_is_not_acquitted(resolved: ResolvedExperiment, make: Any) -> None:
    """It leaves no samples behind: what waits at the end, and how far the output is behind, speak for it."""
    steady, stopped = done_of(make), done_of(make)
    end = stopped.spans.measured_to_us - 8 * US
    stopped.trial_log.deliveries = [
        [part for part in log if part.when_us < end] for log in stopped.trial_log.deliveries
    ]
    stopped.trial_log.commits = [commit for commit in stopped.trial_log.commits if commit.committed_us < end]
    verdicts = [judge(evidence_of(resolved, record)) for record in (steady, stopped)]
    for name in ("backlog_trend", "output_trend"):
        before, after = (check_of(verdict, name).state for verdict in verdicts)
        assert (before, after in ("undecided", "failed")) == ("ok", True)
    assert evidence_of(resolved, stopped).backlog_max_s == pytest.approx(8, abs=1.1)


def test_a_queue_that_was_full_before_the_span_says_nothing_of_the_rate(
    resolved: ResolvedExperiment, make: Any
) -> None:
    """A cold engine that had not read a thing: undecided. One that had read and fell behind: not sustained."""
    for batches, state in ((0, "undecided"), (12, "failed")):
        record = done_of(make)
        record.trial_log.overflowed = True
        record.early_stop = "the queue's bound was reached"
        record.spans = TrialSpans(START, START + 50 * US, START + 80 * US, START + 85 * US)
        record.trial_log.commits = record.trial_log.commits[:batches]
        seen = collect_module.collect_evidence(resolved, record, RATE)
        assert (seen.span_began, seen.batches, seen.batches_ever) == (False, 0, batches)
        assert check_of(judge(seen), "queue_bound").state == state
