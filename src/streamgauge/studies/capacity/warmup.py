"""Warms up a fresh engine: load for as long as a JVM compiles, then an empty queue.

A trial on a cold engine starts with a backlog, and near the engine's limit takes minutes to drain it, so it would
measure the start. Only for flows of finite reach, whose trials can follow each other on one engine.
"""

from __future__ import annotations

from streamgauge.core.clock import US
from streamgauge.core.trial import TrialSpans
from streamgauge.metrics import resources
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.preflight.resolved_experiment import FRESH_WARMUP_S
from streamgauge.studies.capacity.saturation_probe import PACE_S, pace_us
from streamgauge.trial.conductor import TrialConductor, next_start
from streamgauge.trial.phases import PacedLoad
from streamgauge.verdict.collect_evidence import INTERVALS_MIN
from streamgauge.verdict.trend_checks import far_behind


def warm_up(conductor: TrialConductor, rate_per_s: float) -> TrialRecord:
    """Offers a rate that rises to `rate_per_s`, for the warm-up of a fresh engine; nothing is judged.

    As in the overload trial, the waiting event time is bounded, because the rate may be far too high.

    Raises:
        KeyboardInterrupt: the user stopped it.
    """
    resolved, start_us = conductor.resolved, next_start(conductor.testbed)
    end_us = start_us + round(resolved.warmup_s(True, resolved.experiment.load.duration) * US)
    spans = TrialSpans(start_us, end_us, end_us, end_us)
    plan, policy = resolved.trial_plan(spans, rate_per_s, fresh=True), PacedLoad(pace_us(resolved, rate_per_s, PACE_S))
    record = conductor.conduct(plan, spans, rate_per_s, policy)
    if record.interrupted:
        raise KeyboardInterrupt
    return record


def cold_s(conductor: TrialConductor, record: TrialRecord) -> float:
    """Seconds for which a fresh engine may still be cold after the warm-up, which the user may have shortened."""
    return max(0.0, FRESH_WARMUP_S - _since_start_s(conductor, record))


def drained_where_far_behind(conductor: TrialConductor, record: TrialRecord, rate_per_s: float) -> float | None:
    """Events per second that the engine drained since the warm-up began, if that is almost nothing of the rate.

    None if it is more, or if the engine had too little time to show it.
    """
    drained_per_s = record.trial_log.running.taken_events() / _since_start_s(conductor, record)
    early = (
        cold_s(conductor, record) > 0
        or _since_start_s(conductor, record) < INTERVALS_MIN * conductor.resolved.interval_s
    )
    if early or record.ended_early or not far_behind(drained_per_s / rate_per_s, resources.background_share(record)):
        return None
    return drained_per_s or None


def _since_start_s(conductor: TrialConductor, record: TrialRecord) -> float:
    return (conductor.testbed.clock.now_us() - record.spans.start_us) / US
