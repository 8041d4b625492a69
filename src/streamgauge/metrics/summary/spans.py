"""The phases of a trial, and the samples of its measured span."""

from __future__ import annotations

from typing import Any

from streamgauge.core.arrays import Int64s
from streamgauge.core.trial import TrialSpans
from streamgauge.metrics.log.trial_record import TrialRecord
from streamgauge.results.run import Phase


def phases(spans: TrialSpans, deadline_us: int) -> tuple[Phase, ...]:
    """Warm-up, measured span, tail and drain by planned time, until the deadline; empty ones are left out.

    Of a trial that ended early, the spans are those of what was offered.
    """
    borders = (
        ("warm-up", spans.start_us, spans.measured_from_us),
        ("measured", spans.measured_from_us, spans.measured_to_us),
        ("tail", spans.measured_to_us, spans.end_us),
        ("drain", spans.end_us, max(spans.end_us, deadline_us)),
    )
    ended = ((name, low, min(high, deadline_us)) for name, low, high in borders)
    return tuple(Phase(name=name, start_us=low, end_us=high) for name, low, high in ended if high > low)


def phase_at(spans: TrialSpans, when_us: int) -> str:
    """The phase that a moment of planned time lies in."""
    if when_us < spans.start_us:
        return "start"
    found = [phase.name for phase in phases(spans, when_us + 1) if phase.start_us <= when_us < phase.end_us]
    return found[-1] if found else "drain"


def within(samples: tuple[Int64s, Any], spans: TrialSpans) -> tuple[Int64s, Any]:
    """The samples of the measured span."""
    times, values = samples
    inside = (times >= spans.measured_from_us) & (times < spans.measured_to_us)
    return times[inside], values[..., inside]


def is_measured(record: TrialRecord, when_us: int) -> bool:
    """Whether a moment lies in the measured span."""
    return record.spans.measured_from_us <= when_us < record.spans.measured_to_us
