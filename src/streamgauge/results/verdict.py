"""Verdict and checks."""

from __future__ import annotations

from typing import Literal

from streamgauge.results.base import Answer
from streamgauge.results.causes import Cause

VerdictValue = Literal["sustained", "not_sustained", "undecided", "invalid", "interrupted"]
CheckState = Literal["ok", "failed", "undecided", "invalid", "not_judged"]


class Check(Answer):
    """One named reason for a verdict: its number, its limit, and whether it holds (`ok` is null where undecided).

    `state` says what a check that is not ok means: `failed` speaks against the SUT, `invalid` against the driver,
    `undecided` that the evidence does not carry a decision, `not_judged` that nothing could be compared. `code` says
    why; null in results of before there were codes.
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


class Verdict(Answer):
    """What the checks say together; `decided_by` names the checks that decided it, `cause` is the first one's code, or
    the verdict's own. Null in results of before there were codes.
    """

    value: VerdictValue
    cause: Cause | None = None
    checks: tuple[Check, ...] = ()
    decided_by: tuple[str, ...] = ()
    sentence: str = ""
    advice: str = ""
