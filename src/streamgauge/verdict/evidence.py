"""What a verdict rests on: the numbers of one trial's measured span."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from streamgauge.config.slo import ServiceLevelObjective
from streamgauge.config.thresholds import BOUND_S_MIN
from streamgauge.core.formatting import share_above
from streamgauge.results.latency import Latencies
from streamgauge.results.run import SinkResult, Verification

Floats = NDArray[np.float64]

CONFIDENCE, INTERIM_ANALYSES = 0.95, 3
TREND_CONFIDENCE = 1 - (1 - CONFIDENCE) / INTERIM_ANALYSES
"""Every interim analysis has a third of the error: three together err no more than one at 95 % (Bonferroni), as far as
that one errs in 5 % of cases: where observations resemble their neighbours it errs more often
(docs/explanation/trust.md has figures).
"""
BACKGROUND_SHARE_MAX = 0.1
"""Where other processes use more of the machine than this, mean over the span, that something was too slow may be their
doing.
"""
MACHINE_SHARE_MAX = 0.15
"""Where the same small work takes longer by more than this, the machine is not the one that it was."""
BACKGROUND_BURST_S, BACKGROUND_BURST_SHARE_MAX = 5.0, 0.5
"""So is it where they use more than this of it for so many seconds, which may be little of a span: batches queue up
then. What a virtual machine is denied is theirs too, and comes to 8 % in such a time: it must not count."""


@dataclass(frozen=True)
class Samples:
    """A quantity at moments of the measured span: `time_s` (n,) ascending, `value` (n,).

    `about` names the sinks that it speaks of, where it does not speak of all.
    """

    time_s: Floats
    value: Floats
    about: str = ""

    @classmethod
    def of(cls, time_s: Iterable[float], value: Iterable[float]) -> Samples:
        return cls(np.asarray(list(time_s), dtype=np.float64), np.asarray(list(value), dtype=np.float64))


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """All that a verdict rests on, of the measured span only.

    `planned_per_s`, `offered_per_s` (seconds,): events whose *due* time lies in each second, and those of them that
    were made available in time; binned by plan on both sides, since chunks straddle seconds of the wall clock.
    `backlog`: seconds of event time due and not handed out, at hand-outs, every sample in the same phase (all just
    before, or all just after); at a constant rate that is the waiting events divided by the rate.
    `output_lag`: seconds of planned time - output frontier, at the same hand-outs where all that was read before is
    committed by then, else at commits. `output_lag_at_commits`: that at commits where `output_lag` is at hand-outs.
    `output_delay_s`: that at commits, the median of the query that is soonest.
    `interval_s`: of the engine's batches, 0 where it keeps none.
    `latency`: of each sink, seconds from the hand-out of an event to its result, the mean by second of event time;
    seconds with few results are left out. Where results carry no time of hand-out they are seconds from event to
    result, which may grow by `latency_drift_s` while nothing is later.
    `core_wait_us`: how long the worst driver process waited for a core each time it was ready, on average; NaN
    where that is not known.
    `backlog` and `output_lag` are there once for each query of the job, since each goes at a pace of its own; every one
    of them must hold.
    `backlog_max_s`, `bound_s`: in seconds of event time. `batches`, `windows_closed`: of the sink that has fewest; None
    where nothing is windowed. `batches_ever`: those of the warm-up and the tail too. `sinks`: each one's latencies
    and verification; `latencies` are those of the slowest.
    `window_gap_s`: how far apart windows end, as the results show; 0 where that is not known.
    `overflowed`: the queue was full once; `span_began`: it was not full before the measured span. `memory_full_s`: it
    was full by its bytes alone, while so many seconds of event time waited. `ingested_share`: events delivered to the
    system for the first time, over those offered since the trial's start; 1 where it had too little time to show it.
    `interim_analysis`: 0 for the first judgement of a trial, 1 and 2 after its extensions.
    `hand_out_share`, `receive_share`, `disk_share`: of the span, in which generators handed out events, the recorder
    worked on results, and the recorder wrote to its disk; what a slow system may have waited for.
    `stood_still_s`: how long the recorder stood still while results of the span may have come, beyond 100 ms each time.
    `span_s`: the measured span.
    `sut_disk_full`, `driver_disk_full`, `answers_disk_full`: a full disk is why one failed, or could not be compared.
    `background_share`: of the machine's CPU, used by what is neither driver nor SUT; no check of its own, but a system
    that was too slow beside that is not condemned for it. `background_burst_share`: the most of any
    `BACKGROUND_BURST_S`.
    """

    planned_per_s: Floats
    offered_per_s: Floats
    slip_us_p99: float
    core_wait_us: float
    sut_alive: bool
    backlog: tuple[Samples, ...]
    output_lag: tuple[Samples, ...]
    output_lag_at_commits: tuple[Samples, ...] = ()
    latency: tuple[Samples, ...] = ()
    latency_drift_s: float = 0.0
    interval_s: float = 0.0
    backlog_max_s: float
    bound_s: float
    verification: Verification | None
    batches: int
    latencies: Latencies = field(default_factory=Latencies)
    sinks: tuple[SinkResult, ...] = ()
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
    interim_analysis: int = 0
    background_share: float = 0.0
    background_burst_share: float = 0.0
    hand_out_share: float = 0.0
    receive_share: float = 0.0
    disk_share: float = 0.0
    stood_still_s: float = 0.0
    span_s: float = 0.0
    output_delay_s: float = 0.0
    levels: tuple[ServiceLevelObjective, ...] = ()
    sut_reason: str = ""
    driver_reason: str = ""
    sut_disk_full: bool = False
    driver_disk_full: bool = False
    answers_disk_full: bool = False

    @property
    def out_of_memory(self) -> bool:
        """Whether the queue was full by what is in flight or kept for a repeat, and not by what waited."""
        return self.memory_full_s is not None and self.memory_full_s < min(self.bound_s, BOUND_S_MIN)

    @property
    def confidence(self) -> float:
        """Of a trend's interval, the same at each interim analysis."""
        if not 0 <= self.interim_analysis < INTERIM_ANALYSES:
            raise ValueError(f"interim_analysis must be 0 to {INTERIM_ANALYSES - 1}, got {self.interim_analysis}")
        return TREND_CONFIDENCE


def machine_speed_differs(one_us: float, other_us: float) -> bool:
    """Whether the machine was another one where the same small work took `one_us` than where it took `other_us`."""
    fast_us, slow_us = sorted((one_us, other_us))
    return slow_us > fast_us * (1 + MACHINE_SHARE_MAX)


def background_load(share: float, burst_share: float) -> tuple[str, str] | None:
    """What other processes used of the machine, and what is allowed, in words; None where they used no more."""
    if share > BACKGROUND_SHARE_MAX:
        return f"{share_above(share, BACKGROUND_SHARE_MAX)} of the machine", f"{BACKGROUND_SHARE_MAX:.0%}"
    if burst_share > BACKGROUND_BURST_SHARE_MAX:
        used = share_above(burst_share, BACKGROUND_BURST_SHARE_MAX)
        return f"{used} of the machine for {BACKGROUND_BURST_S:.0f} s", f"{BACKGROUND_BURST_SHARE_MAX:.0%}"
    return None


def background_load_warning(used: str) -> str:
    """The warning of a result that was measured while others `used` a part of the machine."""
    return f"other processes used {used}: figures hold only beside such a load"
