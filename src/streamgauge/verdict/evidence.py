"""The evidence of a verdict: the numbers of one trial's measured span, and what else used the machine meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from streamgauge.config.limits import EXTENSIONS_MAX, ServiceLevelObjective
from streamgauge.core.arrays import Floats
from streamgauge.results.latency import Latencies
from streamgauge.results.run import SinkResult, Verification
from streamgauge.stats.bootstrap import Interval, fitted_interval, ratio_interval

CONFIDENCE, INTERIM_ANALYSES = 0.95, 1 + EXTENSIONS_MAX
TREND_CONFIDENCE = 1 - (1 - CONFIDENCE) / INTERIM_ANALYSES
"""Each of three interim analyses gets a third of the error (Bonferroni). Correlated observations err more often: see
docs/explanation/trust.md."""
SHARE_BATCHES_MIN, SHARE_CLOSING_MIN, _COSTS = 6, 4, 3
"""Fewer batches, or fewer that deliver windows, do not show how much they vary. With windows, three costs are fitted
(per batch, per second of events, per slide), so as many more batches are needed."""


@dataclass(frozen=True)
class Samples:
    """A quantity over the measured span: `time_s` (n,) ascending, `value` (n,).

    `about` names the sinks concerned, if not all.
    """

    time_s: Floats
    value: Floats
    about: str = ""


@dataclass(frozen=True)
class Work:
    """The batches of one query in the measured span, of an engine that commits all it read before it reads on.

    `busy_s`, `covered_s`, `closed` (n,): seconds from a batch's end in event time to its commit (to the next batch's
    end if that came late), the event time that it covers, and the number of slides whose windows it delivered.
    `slide_s`: seconds between the ends of windows, the longest of the flow; 0 without windows. `about` as in `Samples`.
    """

    busy_s: Floats
    covered_s: Floats
    closed: Floats
    slide_s: float = 0.0
    about: str = ""

    @cached_property
    def needed_share(self) -> Interval | None:
        """The share of the time that batches need; None with fewer than `SHARE_BATCHES_MIN` or `SHARE_CLOSING_MIN`.

        The batches that deliver windows are long, and a span has no whole number of them. So with windows, a batch's
        time is a fixed cost, a cost per second of events, and a cost per slide delivered, and slides count as often as
        they come in the long run.
        """
        batches, covered_s = self.busy_s.size, float(self.covered_s.sum())
        if not self.slide_s:
            return (
                ratio_interval(self.busy_s, self.covered_s, TREND_CONFIDENCE) if batches >= SHARE_BATCHES_MIN else None
            )
        if batches < SHARE_BATCHES_MIN + _COSTS or np.count_nonzero(self.closed) < SHARE_CLOSING_MIN or not covered_s:
            return None
        return fitted_interval(self._costs, self.busy_s, self._per_second, TREND_CONFIDENCE)

    @property
    def estimated_share(self) -> float | None:
        """The same without its interval, from as few batches as can be fitted; None without batches.

        The mean over the batches, if too few of them deliver windows, or noise makes a fit of few negative.
        """
        covered_s = float(self.covered_s.sum())
        if not covered_s:
            return None
        mean = float(self.busy_s.sum()) / covered_s
        if not self.slide_s or self.busy_s.size <= _COSTS or np.count_nonzero(self.closed) < 2:
            return mean
        fitted = float(self._per_second @ np.linalg.pinv(self._costs) @ self.busy_s)
        return fitted if fitted > 0 else mean

    def share_after(self, spans: float) -> float | None:
        """The share that batches would need `spans` spans later if it went on changing as in this one; None if unknown.

        The growth of their time beyond its fitted costs, by least squares. Long batches vary more: their variance is
        taken as proportional to their time.
        """
        share = self.needed_share
        if share is None:
            return None
        fitted_s = self._costs @ (np.linalg.pinv(self._costs) @ self.busy_s)
        until_s = np.cumsum(self.covered_s)
        from_middle_s = until_s - until_s.mean()
        weight = float(fitted_s @ from_middle_s**2)
        growth = float((self.busy_s - fitted_s) @ from_middle_s) / weight if weight > 0 else 0.0
        return share.estimate * (1 + growth * (0.5 + spans) * float(until_s[-1]))

    @property
    def _per_second(self) -> Floats:
        """(3,): batches, seconds of events and slides in a second, in the long run."""
        return np.array([self.busy_s.size / float(self.covered_s.sum()), 1.0, 1 / self.slide_s])

    @property
    def _costs(self) -> Floats:
        """(n, k): what each batch's time is fitted by."""
        if not self.slide_s:
            return self.covered_s[:, None]
        return np.stack([np.ones(self.busy_s.size), self.covered_s, self.closed], axis=1)


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The evidence of a verdict, of the measured span only.

    Attributes:
        planned_per_s: (seconds,) events due in each second of the plan.
        offered_per_s: (seconds,) those that the driver made available in time, binned by due time too, because chunks
            straddle seconds of the wall clock.
        backlog: for each query, seconds of event time due and not delivered, sampled at deliveries in one phase (all
            just before, or all just after). Every query must hold, since each reads at its own pace.
        output_lag: for each query, seconds of planned time minus output frontier; at deliveries if everything read
            before is committed by then, else at commits.
        output_lag_at_commits: the lag at commits, if `output_lag` is at deliveries.
        output_delay_s: median lag at commits of the fastest query; 0 without a commit.
        work: the batches of each query that reads on only after a commit.
        interval_s: the engine's batch interval; 0 without one.
        latency: for each sink, mean seconds from an event's delivery to its result, by second of event time, without
            seconds that have few results. Without delivery times in the results: seconds from event to result.
        steady: whether the rate does not vary by plan.
        latency_drift_s: growth of `latency` that windows and batches may cause while nothing is later.
        core_wait_us: mean wait of the worst driver process for a core at each wake-up; NaN if unknown.
        backlog_max_s, bound_s: largest backlog and bound of the queue, in seconds of event time.
        batches, windows_closed: of the sink with the fewest; `windows_closed` is None without windows.
        batches_ever: `batches` with warm-up and tail.
        sinks: latencies and verification of each sink; `latencies` are those of the slowest.
        silent_sinks: sinks of updates that gave no value in the span, of an engine that owes none before the end.
        window_gap_s: seconds between the ends of windows in the results; 0 if unknown.
        overflowed: whether the queue was full once.
        span_began: whether it was not full before the measured span.
        memory_full_s: seconds of event time that waited when the queue was full by its bytes; else None.
        ingested_share: events delivered for the first time over offered events, since the trial's start; 1 if the SUT
            had too little time.
        delivery_share, receive_share, disk_share: share of the span in which generators delivered events, the recorder
            processed results, and the recorder wrote to its disk. A slow SUT may have waited for these.
        recorder_stall_s: time beyond 100 ms each in which the recorder stood still while results may have arrived.
        span_s: length of the measured span.
        sut_disk_full, driver_disk_full, answers_disk_full: whether a full disk is the reason of a failure.
        driver_silent: whether `driver_reason` names a generator that offered nothing of its plan.
        limit_reached: whether `driver_reason` names a limit of this environment that ended a process.
        sut_rejected: whether the driver rejected the SUT: no result could be read, or its progress is unknown.
        sut_unobserved: whether it failed because nothing showed how far it had read.
        background_share: share of the machine's CPU used by neither driver, broker nor SUT. Not a check, but a slow SUT
            is not blamed beside it.
        background_burst_share: the largest such share over `BACKGROUND_BURST_S`.
        user_job: whether the user wrote the job, and not streamgauge.
    """

    planned_per_s: Floats
    offered_per_s: Floats
    schedule_delay_us_p99: float
    core_wait_us: float
    sut_alive: bool
    backlog: tuple[Samples, ...]
    output_lag: tuple[Samples, ...]
    output_lag_at_commits: tuple[Samples, ...] = ()
    work: tuple[Work, ...] = ()
    latency: tuple[Samples, ...] = ()
    steady: bool = True
    latency_drift_s: float = 0.0
    interval_s: float = 0.0
    backlog_max_s: float
    bound_s: float
    verification: Verification | None
    batches: int
    latencies: Latencies = field(default_factory=Latencies)
    sinks: tuple[SinkResult, ...] = ()
    silent_sinks: tuple[str, ...] = ()
    windows_closed: int | None = None
    window_gap_s: float = 0.0
    aborted_reads: int = 0
    retried_tasks: int = 0
    negative_latencies: int = 0
    bound_cut_by_memory: bool = False
    draining_at_start: bool = False
    interrupted: bool = False
    overflowed: bool = False
    memory_full_s: float | None = None
    span_began: bool = True
    batches_ever: int = 0
    ingested_share: float = 1.0
    background_share: float = 0.0
    background_burst_share: float = 0.0
    delivery_share: float = 0.0
    receive_share: float = 0.0
    disk_share: float = 0.0
    recorder_stall_s: float = 0.0
    span_s: float = 0.0
    output_delay_s: float = 0.0
    levels: tuple[ServiceLevelObjective, ...] = ()
    sut_reason: str = ""
    driver_reason: str = ""
    sut_disk_full: bool = False
    sut_rejected: bool = False
    sut_unobserved: bool = False
    driver_silent: bool = False
    driver_disk_full: bool = False
    limit_reached: bool = False
    answers_disk_full: bool = False
    user_job: bool = True
