"""Verdict and checks."""

from __future__ import annotations

from typing import Literal

from streamgauge.results.causes import Cause
from streamgauge.results.result_part import ResultPart

VerdictValue = Literal["sustained", "not_sustained", "undecided", "invalid", "interrupted"]
CheckState = Literal["ok", "failed", "undecided", "invalid", "not_judged"]


class Check(ResultPart):
    """One named check of a verdict: its number, its limit, and whether it holds (`ok` is null if undecided).

    `state`: `failed` counts against the SUT, `invalid` against the driver; `undecided` means too little evidence,
    `not_judged` that nothing could be compared. `code` is the cause; null in results older than the codes.
    """

    name: str
    code: Cause | None = None
    value: float | None
    limit: float | None
    unit: str
    ok: bool | None
    state: CheckState
    sentence: str
    low: float | None = None
    high: float | None = None


class Verdict(ResultPart):
    """The verdict on all checks. `decided_by` names the deciding checks; `cause` is the first one's code or the
    verdict's own, and null in results older than the codes.
    """

    value: VerdictValue
    cause: Cause | None = None
    checks: tuple[Check, ...] = ()
    decided_by: tuple[str, ...] = ()
    sentence: str = ""
    advice: str = ""
