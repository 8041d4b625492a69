"""Over the measured span: rates, the backlog (due and not read), and the consumer lag (due and not committed).

The driver counts what is due, and the reads and commits are those that it saw. A broker's own figures are not asked.
"""

import numpy as np

from streamgauge.core.arrays import Floats, Int64s
from streamgauge.core.clock import US
from streamgauge.core.units import FAR_FUTURE_US
from streamgauge.metrics.live_figures import Moments
from streamgauge.metrics.trial_log import TrialLog
from streamgauge.metrics.trial_record import TrialRecord, within
from streamgauge.results.run import Backlog, Input, Lag, LagFigures, PartitionLag, RatePiece, Rates
from streamgauge.transports.spi import StreamPartition


def rates_of(record: TrialRecord, ceiling_per_s: float | None, schedule_delay_us_max: int) -> Rates:
    """Events per second over the measured span; offered are those that were at most `schedule_delay_us_max` late."""
    trial_log, spans = record.trial_log, record.spans
    low, high = spans.measured_from_us, record.measured_until
    if high <= low:
        return Rates(
            offered_per_s=0.0, achieved_per_s=0.0, ingested_per_s=0.0, generator_ceiling_per_s=ceiling_per_s,
            planned_per_s=trial_log.plan.profile.rate_at((low - spans.start_us) / US),
        )  # fmt: skip
    seconds = (high - low) / US
    planned, kept = trial_log.events_in_time(low, high, schedule_delay_us_max)
    by_second = np.diff(trial_log.running.delivered_by(np.arange(low, high + 1, US)))
    achieved_per_s = trial_log.running.committed_between(low, high) / seconds
    return Rates(
        offered_per_s=float(kept.sum()) / seconds,
        planned_per_s=float(planned.sum()) / seconds,
        achieved_per_s=achieved_per_s,
        maximum_per_s=achieved_per_s if record.hopeless else None,
        ingested_per_s=trial_log.running.delivered_between(low, high) / seconds,
        ingested_std_per_s=float(np.std(by_second, ddof=1)) if len(by_second) > 1 else None,
        generator_ceiling_per_s=ceiling_per_s,
        shares={stream.name: stream.share for stream in trial_log.plan.streams},
    )


def rows_per_s(record: TrialRecord) -> float | None:
    """Result rows per second over the measured span, of every sink in the record; None without a span."""
    low, high = record.spans.measured_from_us, record.measured_until
    return record.trial_log.rows_between(low, high) * US / (high - low) if high > low else None


def offered_input(record: TrialRecord, generators: int) -> Input:
    """The input as it was offered: what `studies.run.generate_input` makes again from it."""
    plan, spans = record.trial_log.plan, record.offered_spans
    return Input(
        start_us=plan.start_us,
        end_us=spans.end_us,
        generators=generators,
        partitions=plan.partitions,
        keyed=plan.keyed,
        profile=tuple(
            RatePiece(start_s=piece.start_s, rate_per_s=piece.rate_per_s, slope_per_s2=piece.slope_per_s2)
            for piece in plan.profile.pieces
        ),
    )


def due_events(record: TrialRecord, by_us: Moments) -> Int64s:
    """Events due before each moment, by the plan."""
    moments = np.minimum(by_us, record.spans.end_us)
    due = [record.trial_log.plan.planned_events(record.spans.start_us, int(when)) for when in moments.flat]
    return np.array(due, np.int64).reshape(moments.shape)


def backlog_events(record: TrialRecord, due_by_us: Moments, read_by_us: Moments = FAR_FUTURE_US) -> Int64s:
    """Events due before each moment of `due_by_us` that the slowest query had not read before that of `read_by_us`."""
    return np.maximum(due_events(record, due_by_us) - record.trial_log.running.taken_by(read_by_us), 0)


def backlog_of(record: TrialRecord) -> Backlog:
    """The backlog over the measured span: largest, at its end, and its slope through the samples of `backlog_peaks`.

    With several queries, each figure is that of the worst query.
    """
    parts, when = record.trial_log.by_query(), min(record.spans.measured_to_us, record.deadline_us)
    sampled = [within(part.backlog_peaks(), record.spans) for part in parts]
    slopes = (np.polyfit((times - times[0]) / US, events, 1)[0] for times, events in sampled if len(times) > 1)
    end = int(backlog_events(record, when, when + 1))
    waits = [wait for part in parts for wait in within(part.backlog_waits(), record.spans)[1]]
    return Backlog(
        max=max([end, *(int(events.max()) for _, events in sampled if len(events))]),
        end=end,
        slope_per_s=float(max(slopes, default=0.0)),
        # The most event time that waited, for any query.
        max_s=float(max([*waits, *(part.waiting_at(when + 1) for part in parts or (record.trial_log,))])),
    )


def lag_of(record: TrialRecord) -> Lag | None:
    """The lag at whole seconds of the measured span, at its begin and at its end; None without a span."""
    low, high = record.spans.measured_from_us, record.measured_until
    if high <= low:
        return None
    moments = np.unique(np.append(np.arange(low, high, US), high))
    places = lags(record.trial_log, moments, moments, record.spans.end_us)
    table = np.stack(list(places.values()))
    return Lag(
        sum=LagFigures(**_figures(table.sum(axis=0))),
        mean=LagFigures(**_figures(table.mean(axis=0))),
        partitions=tuple(
            PartitionLag(stream=stream, partition=partition, **_figures(of_place))
            for (stream, partition), of_place in places.items()
        ),
    )


def lags(trial_log: TrialLog, due_by_us: Int64s, committed_by_us: Int64s, end_us: int) -> dict[StreamPartition, Int64s]:
    """The lag of each partition of each stream, shape (moments,): events due before each moment of `due_by_us` and not
    committed before that of `committed_by_us`, which ascend. The plan ends at `end_us`.
    """
    plan, found = trial_log.plan, {}
    for number, stream in enumerate(plan.streams):
        for partition in range(plan.partitions):
            due = [plan.count_before(number, partition, min(int(when), end_us)) for when in due_by_us]
            committed = trial_log.running.committed_of(stream.name, partition, committed_by_us)
            found[stream.name, partition] = np.maximum(np.array(due, np.int64) - committed, 0)
    return found


def _figures(lag: Int64s | Floats) -> dict[str, float]:
    return {"begin": float(lag[0]), "end": float(lag[-1]), "max": float(lag.max())}
