"""Verdict and checks: as they are judged, in codes and numbers, and as they are written, with sentences."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from streamgauge.results.codes import Cause, ResultPart

VerdictValue = Literal["sustained", "not_sustained", "undecided", "invalid", "interrupted"]
CheckState = Literal["ok", "failed", "undecided", "invalid", "not_judged"]


@dataclass(frozen=True)
class Remark:
    """One thing to be said: its code, and the numbers and names of its sentence. `results.text` has the words."""

    code: StrEnum
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Finding:
    """What a check found. Its remarks give its sentence; `low` and `high` are the ends of its number's interval."""

    name: str
    state: CheckState
    code: Cause
    value: float | None
    limit: float | None
    unit: str
    remarks: tuple[Remark, ...] = ()
    low: float | None = None
    high: float | None = None

    @property
    def ok(self) -> bool | None:
        """Whether it holds; None if undecided."""
        return {"ok": True, "failed": False, "invalid": False}.get(self.state)


class BackgroundLoad(NamedTuple):
    """Share of the CPU that background processes used beyond its limit: the mean, or that of a burst of `burst_s`."""

    share: float
    limit: float
    burst_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """A verdict in codes and numbers.

    `died`: a failed check of an invalid trial that is worth reporting too. `load`: the background load, if beyond its
    limits; `load_may_explain`: whether it may be why the deciding checks are as they are. `span_needed_s`: the length
    of a span that is too short for its windows.
    """

    value: VerdictValue
    cause: Cause
    checks: tuple[Finding, ...]
    deciding: tuple[Finding, ...] = ()
    died: tuple[Finding, ...] = ()
    remarks: tuple[Remark, ...] = ()
    load: BackgroundLoad | None = None
    load_may_explain: bool = False
    span_needed_s: float | None = None
    draining_at_start: bool = False
    user_job: bool = True

    @property
    def decided_by(self) -> tuple[str, ...]:
        """Names of the checks that decided."""
        return ("interrupted",) if self.value == "interrupted" else tuple(one.name for one in self.deciding)


class Check(ResultPart):
    """One named check of a verdict."""

    name: str
    """The check's name; a latency limit has the name of its statistic."""
    code: Cause | None = None
    """Why it is in its state, as a code."""
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
    """The code of the first check that decided, or the verdict's own."""
    checks: tuple[Check, ...] = ()
    """Every check."""
    decided_by: tuple[str, ...] = ()
    """Names of the checks that decided."""
    sentence: str = ""
    """Why, in words."""
    advice: str = ""
    """What to do next."""
