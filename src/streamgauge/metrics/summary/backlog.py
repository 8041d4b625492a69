"""The backlog, events due and not delivered: whether the SUT keeps up."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamgauge.core.arrays import Int64s
from streamgauge.core.clock import US
from streamgauge.core.units import FAR_FUTURE_US
from streamgauge.metrics.log.live_figures import Moments
from streamgauge.metrics.log.trial_record import TrialRecord
from streamgauge.metrics.summary.spans import within
from streamgauge.results.run import Backlog


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
    sampled = [within(part.backlog_peaks(), record.spans) for part in record.trial_log.by_query()]
    slope = max((_slope(times, events) for times, events in sampled if len(times) > 1), default=0.0)
    when = min(record.spans.measured_to_us, record.deadline_us)
    end = int(backlog_events(record, when, when + 1))
    peak = max((int(events.max()) for _, events in sampled if len(events)), default=end)
    return Backlog(max=max(peak, end), end=end, slope_per_s=slope, max_s=_longest_wait_s(record))


def _longest_wait_s(record: TrialRecord) -> float:
    """The most event time that waited in the measured span, for any query, in seconds."""
    parts = record.trial_log.by_query() or (record.trial_log,)
    when = min(record.spans.measured_to_us, record.deadline_us)
    sampled = [wait for part in parts for wait in within(part.backlog_waits(), record.spans)[1]]
    return float(max([*sampled, *(part.waiting_at(when + 1) for part in parts)]))


def _slope(times: Int64s, events: Any) -> float:
    return float(np.polyfit((times - times[0]) / US, events, 1)[0])
