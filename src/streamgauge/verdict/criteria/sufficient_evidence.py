"""The check `evidence`: enough batches and windows, and no backlog left from the start. Else undecided."""

from __future__ import annotations

from streamgauge.config.limits import BATCHES_MIN, WINDOWS_MIN
from streamgauge.results.causes import Cause
from streamgauge.results.verdict import Check
from streamgauge.verdict.criteria.check_spec import CheckSpec, Condition, combine
from streamgauge.verdict.evidence import Evidence


def _evidence(evidence: Evidence) -> Check:
    windows, draining = evidence.windows_closed, "the span began while start-up backlog was still draining"
    parts = [
        _enough(evidence.batches, Cause.TOO_FEW_BATCHES, BATCHES_MIN, "batches"),
        Condition(not evidence.draining_at_start, Cause.START_BACKLOG, 1, 0, "", draining),
        _heard(evidence.silent_sinks),
    ]
    if windows is not None:
        parts.insert(0 if span_too_short(evidence) else 1, _windows(windows, evidence))
    return combine("evidence", parts, "undecided", shown=0)


def _heard(silent_sinks: tuple[str, ...]) -> Condition:
    sentence = f"no value of {', '.join(silent_sinks)} came in the span, so how late values are is not known"
    return Condition(not silent_sinks, Cause.NO_LATENCY, len(silent_sinks), 0, "sinks", sentence)


def _windows(closed: int, evidence: Evidence) -> Condition:
    if not span_too_short(evidence):
        return _enough(closed, Cause.TOO_FEW_WINDOWS, WINDOWS_MIN, "windows closed")
    sentence = (
        f"{closed} windows closed (minimum {WINDOWS_MIN}); the results have windows that end "
        f"{evidence.window_gap_s:.3g} s apart, so the span must be at least {span_needed_s(evidence):.4g} s long"
    )
    return Condition(False, Cause.SPAN_TOO_SHORT, closed, WINDOWS_MIN, "windows closed", sentence)


def span_needed_s(evidence: Evidence) -> float:
    """Seconds of span in which enough windows end, by the distance of windows in the results."""
    return WINDOWS_MIN * evidence.window_gap_s


def span_too_short(evidence: Evidence) -> bool:
    """Whether the span itself is too short for enough windows, on any machine and system.

    Not if batches are too few as well: then the system was slow, and a longer span may not help.
    """
    too_few = evidence.windows_closed is not None and evidence.windows_closed < WINDOWS_MIN
    return too_few and evidence.batches >= BATCHES_MIN and 0 < evidence.span_s < span_needed_s(evidence)


def _enough(n: int, code: Cause, least: int, what: str) -> Condition:
    return Condition(n >= least, code, n, least, what, f"{n} {what} (minimum {least})")


CHECK = CheckSpec("evidence", _evidence)
