"""Rates over the measured span, and the input as it was offered."""

from __future__ import annotations

from streamgauge.core.clock import US
from streamgauge.metrics.log.trial_record import TrialRecord
from streamgauge.results.run import Input, RatePiece, Rates


def rates_of(record: TrialRecord, ceiling_per_s: float | None, schedule_delay_us_max: int) -> Rates:
    """Events per second over the measured span; offered are those that were at most `schedule_delay_us_max` late."""
    trial_log, spans = record.trial_log, record.spans
    low, high = spans.measured_from_us, record.measured_until
    if high <= low:
        due_per_s = trial_log.plan.profile.rate_at((low - spans.start_us) / US)
        return Rates(
            offered_per_s=0.0, achieved_per_s=0.0, ingested_per_s=0.0, planned_per_s=due_per_s,
            generator_ceiling_per_s=ceiling_per_s,
        )  # fmt: skip
    seconds = (high - low) / US
    planned, kept = trial_log.events_in_time(low, high, schedule_delay_us_max)
    return Rates(
        offered_per_s=float(kept.sum()) / seconds,
        planned_per_s=float(planned.sum()) / seconds,
        achieved_per_s=trial_log.running.committed_between(low, high) / seconds,
        ingested_per_s=trial_log.running.delivered_between(low, high) / seconds,
        generator_ceiling_per_s=ceiling_per_s,
        shares={stream.name: stream.share for stream in trial_log.plan.streams},
    )


def offered_input(record: TrialRecord, generators: int) -> Input:
    """The input as it was offered: what `trial.generate_input` makes again from it."""
    plan, spans = record.trial_log.plan, record.offered_spans
    pieces = tuple(
        RatePiece(start_s=piece.start_s, rate_per_s=piece.rate_per_s, slope_per_s2=piece.slope_per_s2)
        for piece in plan.profile.pieces
    )
    return Input(
        start_us=plan.start_us,
        end_us=spans.end_us,
        generators=generators,
        partitions=plan.partitions,
        keyed=plan.keyed,
        profile=pieces,
    )
