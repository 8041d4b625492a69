"""verdict/collect_evidence.py: two queries that go at paces of their own; of each figure, which of the two it is of."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from streamgauge.core.clock import US
from streamgauge.core.trial import TrialSpans
from streamgauge.metrics.event_latency import LatencyBySecond, SinkLatencies
from streamgauge.metrics.histogram import Histogram
from streamgauge.metrics.trial_log import TrialLog
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.transports.spi import Delivery
from streamgauge.verdict import collect_evidence as collect_module
from streamgauge.verdict.evidence import Evidence, Samples
from streamgauge.verification.sink_comparison import SinkDiff, VerificationResult
from tests.unit.helpers_trials import LATENCIES, RIGHT, SECONDS, START, cut_short, done_of
from tests.unit.verdict import helpers_collect
from tests.unit.verdict.helpers_collect import changing_rate

QUICK = ("q0", "quick", 1, 400_000)
SLOW = ("q1", "slow", 2, 1_000_000)
"""Query, sink, seconds between its batches, and microseconds from a read to its commit."""


def two_queries(make: Any, *more_sinks: str) -> TrialRecord:
    """Of 40 s, 30 measured. `quick` reads every second and commits 0.4 s later, `slow` every other, and 1 s later."""
    story = make.story(plan=make.plan(seconds=120, partitions=1))
    trial_log = TrialLog(story.plan, ("quick", "slow", *more_sinks))
    trial_log.add(make.tick([story.chunks(0, START, START + SECONDS * US)], [[]], []))
    for query, sink, every_s, commit_after_us in (QUICK, SLOW):
        for batch in range(SECONDS // every_s):
            low = START + batch * every_s * US
            high = low + every_s * US
            when = high + 5000
            events = story.count(0, low, high)
            part = Delivery("purchases", low, high, events, when, batch, False, query=query, shared=query == "q1")
            commit = make.commit(batch, when + commit_after_us, query=query, sink=sink)
            trial_log.add(make.tick([[]], [[part]], [commit]))
    spans = TrialSpans(START, START + 5 * US, START + 35 * US, START + 40 * US)
    return TrialRecord(trial_log, spans, drained=True, deadline_us=START + 42 * US)


def verified() -> VerificationResult:
    """Both sinks right, with a hundred results in each second, a second late; none tells when it was delivered."""
    each = {START // US + n: Histogram() for n in range(30)}
    for histogram in each.values():
        histogram.add(np.full(100, US))
    latencies = SinkLatencies(LATENCIES, LatencyBySecond(each), 0, 9, {}, None)
    return VerificationResult(
        RIGHT, tuple(SinkDiff(sink, query, RIGHT, latencies, 9) for query, sink, *_ in (QUICK, SLOW))
    )


def evidence_of(resolved: ResolvedExperiment, record: TrialRecord) -> Evidence:
    return helpers_collect.evidence_of(resolved, record, verified())


def test_each_figure_is_of_the_query_that_it_must_be_of(resolved: ResolvedExperiment, make: Any) -> None:
    """Fewest batches, the soonest output, the longest gap between commits; samples of each by itself, named."""
    of = evidence_of(resolved, two_queries(make))
    assert (of.batches, of.batches_ever) == (15, 20)
    assert of.output_delay_s == pytest.approx(0.405)
    assert of.latency_drift_s == pytest.approx(2.0)
    assert of.backlog_max_s == pytest.approx(2.005, abs=0.002)
    assert [(each.about, each.value.size) for each in of.backlog] == [("quick", 30), ("slow", 15)]
    assert [each.about for each in of.output_lag] == [each.about for each in of.latency] == ["quick", "slow"]
    assert [float(each.value.max()) for each in of.output_lag_at_commits] == pytest.approx([0.405, 1.005])


def test_a_sink_that_nothing_came_to_has_a_lag_without_a_sample(resolved: ResolvedExperiment, make: Any) -> None:
    """And no batch: neither may be passed because the others hold."""
    of = evidence_of(resolved, two_queries(make, "mute"))
    assert [(each.about, each.value.size > 0) for each in of.output_lag] == [
        ("quick", True), ("slow", True), ("mute", False),
    ]  # fmt: skip
    assert (of.batches, of.batches_ever) == (0, 0)


@pytest.mark.parametrize(("profile", "sinks"), [("constant", 2), ("ramp:4k", 0)])
def test_latency_is_no_trend_where_the_rate_changes(
    resolved: ResolvedExperiment, make: Any, profile: str, sinks: int
) -> None:
    """More load makes longer batches, and their results later, while nothing waits."""
    assert len(evidence_of(changing_rate(resolved, profile), two_queries(make)).latency) == sinks


@pytest.mark.parametrize(("first_s", "last_s", "draining"), [(1.9, 0.9, False), (3.0, 0.9, True), (3.0, 1.6, False)])
def test_what_drains_at_the_start_is_a_second_or_more(first_s: float, last_s: float, draining: bool) -> None:
    """Of a backlog that is small anyway, twice as much is nothing; and so is a second of a large one."""
    assert collect_module._draining(Samples(np.arange(30.0), np.repeat([first_s, last_s], 15))) is draining


def test_what_was_offered_is_judged_though_it_was_not_due(resolved: ResolvedExperiment, make: Any) -> None:
    """A trial that ended 50 ms after the 20th second: that second was whole, and held though nothing more was owed."""
    record = cut_short(done_of(make), 20_050_000)
    record.early_stop = "the backlog grows"
    of = evidence_of(resolved, record)
    assert of.planned_per_s.tolist() == of.offered_per_s.tolist() == [1000] * 15


@pytest.mark.parametrize(
    ("kind", "has_batch_ids", "silent"), [("update", False, ("slow",)), ("update", True, ()), ("row", False, ())]
)
def test_updates_without_batches_must_come_in_the_span(
    resolved: ResolvedExperiment, make: Any, kind: Any, has_batch_ids: bool, silent: tuple[str, ...]
) -> None:
    """With batches, the value of each batch's end is owed, and a missing one is in the latencies."""
    record = two_queries(make)
    trial_log, end_us = record.trial_log, record.spans.measured_to_us
    trial_log.commits = [
        replace(one, rows=5 if one.sink == "quick" or one.committed_us > end_us else 0) for one in trial_log.commits
    ]
    engine = replace(resolved.engine, has_batch_ids=has_batch_ids)
    result = replace(verified(), sinks=tuple(replace(sink, kind=kind) for sink in verified().sinks))
    assert helpers_collect.evidence_of(replace(resolved, engine=engine), record, result).silent_sinks == silent


def test_the_busiest_query_says_how_much_time_is_left(make: Any, resolved: ResolvedExperiment) -> None:
    """Half a second in each, in every other."""
    record = two_queries(make)
    quick, slow = (work.estimated_share or 0 for work in evidence_of(resolved, record).work)
    assert collect_module.busy_share(resolved, record) == max(quick, slow) > min(quick, slow)
