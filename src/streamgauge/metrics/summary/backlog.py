"""The backlog: whether the SUT keeps up."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamgauge.core.clock import US
from streamgauge.metrics.log.trial_log import Ints
from streamgauge.metrics.log.trial_record import TrialRecord
from streamgauge.metrics.summary.spans import within
from streamgauge.results.run import Backlog


def backlog_of(record: TrialRecord) -> Backlog:
    """The backlog over the measured span: largest, at its end, and its slope through the samples of `backlog_peaks`.

    With several queries, each figure is that of the worst query.
    """
    sampled = [within(part.backlog_peaks(), record.spans) for part in record.trial_log.by_query()]
    slope = max((_slope(times, events) for times, events in sampled if len(times) > 1), default=0.0)
    peak = max((int(events.max()) for _, events in sampled if len(events)), default=_unread(record))
    end = max(_unread(record), 0)
    return Backlog(max=max(peak, end), end=end, slope_per_s=slope, max_s=_longest_wait_s(record))


def _longest_wait_s(record: TrialRecord) -> float:
    """The most event time that waited in the measured span, for any query, in seconds."""
    parts = record.trial_log.by_query() or (record.trial_log,)
    when = min(record.spans.measured_to_us, record.deadline_us)
    sampled = [wait for part in parts for wait in within(part.backlog_waits(), record.spans)[1]]
    return float(max([*sampled, *(part.waiting_at(when + 1) for part in parts)]))


def _slope(times: Ints, events: Any) -> float:
    return float(np.polyfit((times - times[0]) / US, events, 1)[0])


def _unread(record: TrialRecord) -> int:
    """Events due and not delivered at the end of the measured span, for the slowest query."""
    when = min(record.spans.measured_to_us, record.deadline_us)
    due = record.trial_log.plan.planned_events(record.spans.start_us, when)
    return due - int(record.trial_log.running.taken_by(when + 1))
