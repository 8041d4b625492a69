"""The rules while a trial still runs: each trial here was made by rule, with at most one fault."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from streamgauge.config.experiment import build
from streamgauge.config.limits import parse_limit
from streamgauge.core.clock import US
from streamgauge.core.trial import TrialSpans
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.preflight.settings_checks import check
from streamgauge.results.codes import Cause, Detail
from streamgauge.results.text.sentences import check_sentence, unsettled
from streamgauge.results.verdict import Finding, Judgement, Remark
from streamgauge.transports.spi import Delivery
from streamgauge.trial import policies
from tests.unit.helpers_trials import RATE, SECONDS, START, cut_short, done_of

REACHED = "the queue's bound was reached"


@pytest.mark.parametrize(("longest", "worth"), [(2.0, True), (1.5, False)])
def test_a_trial_with_too_few_windows_is_extended_where_that_brings_enough(
    make: Any, longest: float, worth: bool
) -> None:
    """Three windows are due in 30 s at a slide of 10 s, six in twice as long, and four in half as long again."""
    values: dict[str, Any] = {"workload": "windowed_aggregation", "parameters": {"range": "20s", "slide": "10s"}}
    few = check(build({**values, "load": {"rate": 1000, "duration": "30s"}}))
    assert policies.undecided_checks(few, still(make), RATE, longest) == (("evidence",) if worth else ())


@pytest.mark.parametrize(("level", "longest", "worth"), [
    ("p95", 3.0, False), ("p99", 3.0, False), ("p99", 3.5, True), ("max", 3.5, False),
])  # fmt: skip
def test_a_trial_is_extended_for_a_level_where_that_brings_enough(
    make: Any, level: str, longest: float, worth: bool
) -> None:
    """30 batches of a second, where nothing else is open: p95 has its 20; 100, for p99, are not in 90 s."""
    resolved, record = identity(f"{level}<=5s"), still(make)
    assert policies.undecided_checks(resolved, record, RATE, longest) == ((f"event_time_{level}",) if worth else ())
    assert policies.lacks_samples(resolved, record) is (level == "p99")


@pytest.mark.parametrize(
    ("growth_us", "limits", "longest"), [(0, [], 2.0), (100_000, [], 2.0), (100_000, ["p99<=5s"], 4.0)]
)
def test_a_decided_trial_is_not_extended(
    resolved: ResolvedExperiment, make: Any, growth_us: int, limits: list[str], longest: float
) -> None:
    """More time would not acquit a failed one, and its percentile would change nothing."""
    limited = replace(resolved, limits=tuple(map(parse_limit, limits)))
    assert not policies.undecided_checks(limited, still(make, growth_us=growth_us), RATE, longest)


def still(make: Any, **story: Any) -> TrialRecord:
    """A trial that still runs, at the end of its span."""
    record = done_of(make, **story)
    record.deadline_us = 0
    return record


def identity(*limits: str) -> ResolvedExperiment:
    return check(build({"workload": "identity", "load": {"rate": 1000, "duration": "30s"}, "limits": list(limits)}))


def noisy(make: Any) -> TrialRecord:
    """A trial whose batches come at wild moments."""
    random, record = np.random.default_rng(5), still(make)
    late = {batch: int(random.integers(0, 900_000)) for batch in range(SECONDS)}
    record.trial_log.deliveries = [
        [Delivery(p.stream, p.from_us, p.to_us, p.events, p.ingest_us + late[p.batch], p.batch, False) for p in log]
        for log in record.trial_log.deliveries
    ]
    record.trial_log.commits = [make.commit(c.batch, c.committed_us + late[c.batch]) for c in record.trial_log.commits]
    return record


def test_a_noisy_trial_is_extended(resolved: ResolvedExperiment, make: Any) -> None:
    """It carries no trend yet; where not even the longest span could tell, it is given up."""
    assert policies.undecided_checks(resolved, noisy(make), RATE, 3.0)
    assert not policies.undecided_checks(resolved, noisy(make), RATE, 1.5)


def test_a_search_learns_what_can_no_longer_hold(resolved: ResolvedExperiment, make: Any) -> None:
    """At the end of the last look: a failed trend, or an undecided one; a level trial is verified."""
    records = still(make), still(make, growth_us=100_000), noisy(make)
    level, growing, undecided = (policies.infeasible_trend(resolved, record, RATE) for record in records)
    assert level is None
    assert growing is not None
    assert undecided is not None
    assert (growing.code, undecided.state) == (Cause.BACKLOG_GROWS, "undecided")
    assert unsettled(undecided) == f"still undecided: {check_sentence(undecided)}"


def test_a_warm_up_is_level_once_its_backlog_does_not_fall(make: Any) -> None:
    """Falling by a tenth of the rate a second at the end of the warm-up: not yet; level or growing: yes."""
    for growth_us, falls in ((-100_000, True), (0, False), (100_000, False)):
        record = warming(make, 20, growth_us=growth_us, read_after_us=3 * US)
        assert bool(policies.warmup_incomplete_reason(record)) is falls


def warming(make: Any, seconds: int = 30, **story: Any) -> TrialRecord:
    """A trial with so long a warm-up."""
    record = done_of(make, **story)
    record.spans = TrialSpans(START, START + seconds * US, START + 35 * US, START + 40 * US)
    return record


@pytest.mark.parametrize(
    ("interval_s", "prolonged_s", "starts"), [(1.0, 0, True), (1.0, 30, False), (3.0, 0, False), (0.0, 0, False)]
)
def test_a_warm_up_lasts_while_much_more_waits_than_an_interval(
    make: Any, interval_s: float, prolonged_s: int, starts: bool
) -> None:
    """What waits is level at three seconds: the rise may still be felt, or it is the rate; half a minute tells."""
    record = warming(make, read_after_us=3 * US)
    record.prolonged_us = prolonged_s * US
    assert bool(policies.warmup_incomplete_reason(record, interval_s)) is starts
    assert not policies.warmup_incomplete_reason(record, interval_s, behind_max_us=prolonged_s * US)


@pytest.mark.parametrize(
    ("interval_s", "last_read_s", "prolonged_s", "starts"),
    [(0.0, 24, 0, True), (0.0, 24, 30, False), (0.0, 29, 0, False), (1.0, 24, 0, False)],
)
def test_a_warm_up_without_an_interval_lasts_while_a_backlog_piles_up(
    make: Any, interval_s: float, last_read_s: int, prolonged_s: int, starts: bool
) -> None:
    """Nothing was read for six seconds, beside a batch of that length, where none took a second before."""
    record = cut_short(warming(make), last_read_s * US)
    record.prolonged_us = prolonged_s * US
    assert bool(policies.warmup_incomplete_reason(record, interval_s)) is starts


@pytest.mark.parametrize(("share", "faster"), [(0.99, True), (1.0, False), (1.01, False)])
def test_a_warm_up_lasts_until_batches_get_no_shorter(make: Any, share: float, faster: bool) -> None:
    """Each takes a hundredth less time than the one before: a JVM that still compiles. Nothing waits all the while."""
    record = batches_of(make, [600 * share**batch for batch in range(SECONDS)])
    assert bool(policies.warmup_incomplete_reason(record)) is faster


def batches_of(make: Any, took_ms: Sequence[float]) -> TrialRecord:
    """A warm-up of 30 s with a batch a second, the n-th of which took so many milliseconds."""
    record = warming(make)
    reads = {part.batch: part.when_us for log in record.trial_log.deliveries for part in log}
    record.trial_log.commits = [
        make.commit(batch, when + round(took_ms[min(batch, len(took_ms) - 1)] * 1000))
        for batch, when in sorted(reads.items())
    ]
    return record


@pytest.mark.parametrize(
    ("took_ms", "faster"),
    [
        pytest.param([900] * 9 + [600] * 21, False, id="before the last twenty seconds only"),
        pytest.param([900] * 19 + [600] * 11, True, id="within them"),
        pytest.param([600] * 19 + [585] * 11, False, id="surely, but by a fortieth only"),
        pytest.param([300, 900] * 10 + [250, 850] * 5, False, id="by a twelfth, but within the noise"),
        pytest.param([580, 620] * 10 + [530, 570] * 5, True, id="by a twelfth, beyond the noise"),
    ],
)
def test_batches_get_shorter_where_the_last_ones_surely_did(make: Any, took_ms: list[int], faster: bool) -> None:
    """By a twentieth at least and beyond the noise; what was long ago is forgotten."""
    assert bool(policies.warmup_incomplete_reason(batches_of(make, took_ms))) is faster


@pytest.mark.parametrize(("slide", "limit", "lacks"), [
    ("10s", "p95<=5s", True), ("1s", "p95<=5s", False), ("0.2s", "p95<=5s", False), ("0.2s", "p99<=5s", True),
])  # fmt: skip
def test_observations_are_windows_or_batches_whichever_are_fewer(
    make: Any, slide: str, limit: str, lacks: bool
) -> None:
    """Of 30 s: 30 batches, and 3, 30 or 150 windows; p95 needs 20 and p99 needs 100."""
    values: dict[str, Any] = {"workload": "windowed_aggregation", "parameters": {"range": "20s", "slide": slide}}
    # A level that never can be decided is refused; a span that was cut short has fewer than were foreseen.
    resolved = check(build({**values, "load": {"rate": 1000, "duration": "30s"}}))
    assert policies.lacks_samples(replace(resolved, limits=(parse_limit(limit),)), done_of(make)) is lacks


@pytest.mark.parametrize(("factor", "lacks"), [(0.7, False), (0.6, True)])
def test_a_span_of_another_length_is_judged_by_what_it_would_hold(make: Any, factor: float, lacks: bool) -> None:
    """Of 30 batches in 30 s, where a verdict needs 20."""
    assert policies.lacks_samples(identity(), done_of(make), factor) is lacks


def test_a_warm_up_lasts_until_every_sink_has_had_a_batch(make: Any) -> None:
    """Events that were read are none: the first batch may still be at work when the span would begin."""
    record = done_of(make)
    assert not policies.warmup_incomplete_reason(record)
    record.trial_log.sinks = ("", "late")
    assert policies.warmup_incomplete_reason(record) == Detail.NOTHING_COMMITTED
    record.trial_log.sinks, record.trial_log.commits = ("",), []
    assert policies.warmup_incomplete_reason(record) == Detail.NOTHING_COMMITTED


def test_a_longer_warm_up_says_for_what(make: Any) -> None:
    """An engine that takes in the full rate while its backlog drains is not starting any more."""
    draining = warming(make, 20, growth_us=-100_000, read_after_us=3 * US)
    assert policies.warmup_incomplete_reason(draining) == Detail.DRAINING
    assert policies.warmup_incomplete_reason(warming(make, 20, read_after_us=3 * US), 1.0) == Detail.BEHIND
    assert policies.warmup_incomplete_reason(batches_of(make, [900] * 19 + [600] * 11)) == Detail.FASTER


def test_a_slope_at_its_limit_is_given_up(
    monkeypatch: pytest.MonkeyPatch, resolved: ResolvedExperiment, make: Any
) -> None:
    """Where twice the span could not tell either, it stays undecided; a little further away it is extended, and where
    batches may leave time over.
    """
    record = done_of(make)
    for slope, spare, worth in ((0.0099, False, False), (0.0, False, True), (0.02, False, True), (0.0099, True, True)):
        monkeypatch.setattr(policies, "may_decide", lambda *_, spare=spare: spare)
        interval = {"low": slope - 0.015, "high": slope + 0.015}
        trend = Finding("backlog_trend", "undecided", Cause.TREND_UNDECIDED, slope, 0.01, "s/s", **interval)
        judged = Judgement(value="undecided", cause=trend.code, checks=(trend,))
        monkeypatch.setattr(policies, "judge", lambda _, judged=judged: judged)
        assert policies.undecided_checks(resolved, record, RATE, 2.0) == (("backlog_trend",) if worth else ())


@pytest.mark.parametrize("bound_s", [None, 10.0])
def test_steady_trials_are_not_hopeless(
    monkeypatch: pytest.MonkeyPatch, resolved: ResolvedExperiment, make: Any, bound_s: float | None
) -> None:
    """At any moment of the span. A queue that holds less than what is left of it is not full because of that."""
    if bound_s:
        monkeypatch.setattr(ResolvedExperiment, "bound_s", lambda *_: (bound_s, True))
    for second in range(12 if bound_s else 0, 36, 5):
        record = cut_short(done_of(make), second * US)
        assert policies.reason_to_stop_early(resolved, record, RATE, START + second * US) is None


def test_a_trial_that_is_known_to_be_hopeless_is_not_asked_again(
    monkeypatch: pytest.MonkeyPatch, resolved: ResolvedExperiment, make: Any
) -> None:
    """Only whether its queue is full."""
    monkeypatch.setattr(policies, "cannot_recover", lambda *_: Remark(Detail.QUEUE_REACHED))
    load = resolved.experiment.load.model_copy(update={"early_stop": False})
    going_on = replace(resolved, experiment=resolved.experiment.model_copy(update={"load": load}))
    trial, record = policies.JudgedTrial(going_on, RATE, fresh=True, duration_s=30.0), done_of(make)
    assert (trial.stops_early, trial.early_stop_reason(record, START + 20 * US)) == (False, REACHED)
    assert trial.behind_max_us == 0  # or its warm-up would fill the queue
    record.hopeless = REACHED
    assert trial.early_stop_reason(record, START + 20 * US) is None
    record.trial_log.overflowed = True
    assert trial.early_stop_reason(record, START + 20 * US) == REACHED


@pytest.mark.parametrize(("schedule_delay_us", "lost"), [(0, False), (90_000, False), (250_000, True)])
def test_a_plan_that_was_not_kept_is_seen_at_once(make: Any, schedule_delay_us: int, lost: bool) -> None:
    """Whatever comes after, such a trial is invalid: not before the span, and not of what is not due yet."""
    record = cut_short(done_of(make, schedule_delay_us=schedule_delay_us), 12 * US)
    assert (policies.invalid_reason(record) is not None) is lost
    assert policies.invalid_reason(cut_short(done_of(make, schedule_delay_us=schedule_delay_us), 5 * US)) is None


def test_one_second_that_was_lost_is_enough(make: Any) -> None:
    """Seen while it is among the last ones."""
    record = done_of(make)
    late = [replace(chunk, published_us=chunk.published_us + US * (10 * US < chunk.from_us - START < 11 * US))
            for chunk in record.trial_log.chunks[0]]  # fmt: skip
    record.trial_log.chunks[0] = late
    assert policies.invalid_reason(cut_short(record, 12 * US)) is not None
    assert policies.invalid_reason(cut_short(record, 9 * US)) is None


def test_a_judged_trial_waits_by_the_engines_interval_and_until_reads_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it waits too short for the last batch."""
    monkeypatch.setattr(ResolvedExperiment, "unseen_s", 15.0)
    values = {"workload": "windowed_aggregation", "load": {"duration": "200s"}, "options": {"trigger": "10 seconds"}}
    resolved = check(build(values))
    trial = policies.JudgedTrial(resolved, RATE, fresh=True, duration_s=200.0, drain_s=60.0)
    assert (trial.interval_s, trial.drain_s) == (10.0, 75.0)
