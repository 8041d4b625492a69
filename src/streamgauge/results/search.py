"""The result of a search."""

from collections.abc import Sequence
from typing import Any

from pydantic import model_validator

from streamgauge.results.codes import ResultPart, SearchEnd
from streamgauge.results.verdict import VerdictValue

_UNPROVEN = ("undecided", "invalid")
"""Verdicts of a rate that counts as "does not hold" without a proof."""


class TrialSummary(ResultPart):
    """One trial of a search."""

    number: int
    """Its number."""
    purpose: str
    """Why it was made."""
    offered_per_s: float | None
    """Its rate, events per second; null if unknown."""
    verdict: VerdictValue | None
    """Its verdict; null for the overload trial, which is not judged."""
    event_time_p50_us: float | None = None
    """Median event-time latency; null if the trial has none."""
    event_time_p99_us: float | None = None
    """99th percentile of it; null if the trial has none."""
    until_counted_p50_us: float | None = None
    """Updates only: median of the trial's `latency.until_counted_us`."""
    until_counted_p99_us: float | None = None
    """Updates only: 99th percentile of it."""
    backlog_slope_share: float | None = None
    """Growth of the backlog, as a share of the rate; null if unknown."""
    why: str = ""
    """How it ended, in a sentence."""
    seconds: float = 0.0
    """How long it took."""
    folder: str = ""
    """Its run folder."""
    engine_start: int = 0
    """On which start of the engine it ran."""
    starved: bool = False
    """Whether it is invalid because the engine, near its limit, left the driver too little CPU."""
    others_cpu_percent: float | None = None
    """CPU of all other processes. Null if its result has none."""
    reference_work_us: float | None = None
    """The machine's speed. Null if its result has none."""


def last_that_held(trials: Sequence[TrialSummary], rate_per_s: float | None) -> TrialSummary | None:
    """The last of a search's trials that held at a rate; None if none did."""
    held = [one for one in trials if one.verdict == "sustained" and one.offered_per_s == rate_per_s]
    return held[-1] if held else None


class SearchResult(ResultPart):
    """The highest sustained rate, and the trials that bound it."""

    sustained_per_s: float | None
    """The answer, events per second; null if no rate held."""
    low: float | None
    """A rate that held; null if none was found."""
    high: float | None
    """A rate that did not hold; null if none was found."""
    high_verdict: VerdictValue | None = None
    """The verdict of `high`: `not_sustained`, or `undecided` or `invalid`, which do not prove that the rate fails; null
    without `high`."""
    refused_per_s: float | None = None
    """The least rate above `low` that a trial showed to fail; null without one."""
    relative_width: float | None
    """High / low - 1; null if one end is not known or the upper one was not shown to fail."""
    confirmed: bool
    """Whether the answer held on a fresh engine."""
    at_90_percent: TrialSummary | None = None
    """The trial near 90 % of the answer; null without one."""
    trials: tuple[TrialSummary, ...] = ()
    """Every trial in order."""
    seconds: float = 0.0
    """How long the whole search took."""
    ended_by: SearchEnd | None = None
    """The code of what ended the search early; null if it came to its end."""
    sentence: str = ""
    """The answer in words."""
    limit: str = ""
    """What limits the rate, as far as the driver can see."""

    @property
    def high_is_unproven(self) -> bool:
        """Whether `high` is undecided or invalid, and so not shown to fail."""
        return self.high_verdict in _UNPROVEN

    @model_validator(mode="before")
    @classmethod
    def _with_refused(cls, values: Any) -> Any:
        """Fills `refused_per_s` in older results: the upper end, unless it was undecided."""
        if not isinstance(values, dict) or "refused_per_s" in values or values.get("high_verdict") in _UNPROVEN:
            return values
        return {**values, "refused_per_s": values.get("high")}
