"""The result of a search."""

from __future__ import annotations

from typing import Any

from pydantic import model_validator

from streamgauge.results.causes import SearchEnd
from streamgauge.results.result_part import ResultPart
from streamgauge.results.verdict import VerdictValue


class TrialSummary(ResultPart):
    """One trial of a search; `verdict` is null for an overload trial, which is not judged.

    `others_cpu_percent`, `reference_work_us`: from the trial's result; null if it has none.
    """

    number: int
    purpose: str
    offered_per_s: float | None
    verdict: VerdictValue | None
    event_time_p50_us: float | None = None
    event_time_p99_us: float | None = None
    until_counted_p50_us: float | None = None
    until_counted_p99_us: float | None = None
    backlog_slope_share: float | None = None
    why: str = ""
    seconds: float = 0.0
    folder: str = ""
    engine_start: int = 0
    others_cpu_percent: float | None = None
    reference_work_us: float | None = None


class SearchResult(ResultPart):
    """The highest sustained rate: `low` was sustained, `high` was not (null if unknown).

    `high_verdict` is the verdict of the trial at `high`. An undecided one does not prove failure, so the bracket then
    has no `relative_width`. `refused_per_s` is the least rate above `low` that was proven not sustained: `high` itself,
    or a higher rate if `high` was undecided. `ended_by` is null if the search came to its end, and in results older
    than this code.
    """

    sustained_per_s: float | None
    low: float | None
    high: float | None
    high_verdict: VerdictValue | None = None
    refused_per_s: float | None = None
    relative_width: float | None
    confirmed: bool
    at_90_percent: TrialSummary | None = None
    trials: tuple[TrialSummary, ...] = ()
    seconds: float = 0.0
    ended_by: SearchEnd | None = None
    sentence: str = ""
    limit: str = ""

    @model_validator(mode="before")
    @classmethod
    def _with_refused(cls, values: Any) -> Any:
        """Fills `refused_per_s` in older results: the upper end, unless it was undecided."""
        if not isinstance(values, dict) or "refused_per_s" in values or values.get("high_verdict") == "undecided":
            return values
        return {**values, "refused_per_s": values.get("high")}
