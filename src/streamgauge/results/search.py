"""The result of a search."""

from __future__ import annotations

from typing import Any

from pydantic import model_validator

from streamgauge.results.base import Answer
from streamgauge.results.verdict import VerdictValue


class TrialSummary(Answer):
    """One line of a search; `verdict` is null for an overload trial, which is not judged.

    `others_cpu_percent`, `reference_work_us`: as in the trial's own result; null where it has none.
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


class SearchResult(Answer):
    """The highest sustained rate: `low` held, `high` did not (null where nothing was found).

    `high_verdict` is that of the trial that `high` rests on. Undecided is no proof that it fails: then the bracket is
    not tested at both ends, and has no `relative_width`. `refused_per_s` is the least rate above `low` that a trial has
    shown to fail: `high` itself, or one above it where `high` was undecided.
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
    sentence: str = ""
    limit: str = ""

    @model_validator(mode="before")
    @classmethod
    def _with_refused(cls, values: Any) -> Any:
        """Results of before this was kept: the upper end, where a trial has shown that it fails."""
        if not isinstance(values, dict) or "refused_per_s" in values or values.get("high_verdict") == "undecided":
            return values
        return {**values, "refused_per_s": values.get("high")}
