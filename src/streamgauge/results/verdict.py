"""Verdict and checks."""

from __future__ import annotations

from typing import Literal

from streamgauge.results.codes import Cause, ResultPart

VerdictValue = Literal["sustained", "not_sustained", "undecided", "invalid", "interrupted"]
CheckState = Literal["ok", "failed", "undecided", "invalid", "not_judged"]


class Check(ResultPart):
    """One named check of a verdict."""

    name: str
    """The check's name; a latency limit has the name of its statistic."""
    code: Cause | None = None
    """Why it is in its state, as a code; null in results older than the codes."""
    value: float | None
    """Its number; null if unknown."""
    limit: float | None
    """The limit of the number; null if it has none."""
    unit: str
    """The unit of both."""
    ok: bool | None
    """Whether it holds; null if undecided."""
    state: CheckState
    """`ok`, `failed` (counts against the SUT), `invalid` (against the driver or the machine), `undecided` (too little
    evidence), `not_judged` (nothing could be compared)."""
    sentence: str
    """The same in words."""
    low: float | None = None
    """Lower end of the number's interval; null if it has none."""
    high: float | None = None
    """Upper end of the number's interval; null if it has none."""


class Verdict(ResultPart):
    """The verdict on all checks."""

    value: VerdictValue
    """`sustained`, `not_sustained`, `undecided`, `invalid` (the driver or the machine failed: do not use the figures)
    or `interrupted`."""
    cause: Cause | None = None
    """Its code: that of the first check that decided, or the verdict's own; null in results older than the codes."""
    checks: tuple[Check, ...] = ()
    """Every check."""
    decided_by: tuple[str, ...] = ()
    """Names of the checks that decided."""
    sentence: str = ""
    """Why, in words."""
    advice: str = ""
    """What to do next."""
