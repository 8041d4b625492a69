"""What every named check is made of: its declaration, its conditions, and the worst of several."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from streamgauge.results.codes import Cause
from streamgauge.results.verdict import Check, CheckState
from streamgauge.stats.bootstrap import Interval
from streamgauge.verdict.evidence import Evidence

CheckFunction = Callable[[Evidence], Check]
ADVICE_OTHER = "lower the rate, or change a setting of the engine"


class CheckSpec(NamedTuple):
    """A named check: its function, and what to do if it fails or makes the trial invalid.

    `by_slowness`: whether a slow system can fail it. If so, background load or the driver may be the cause instead.
    `advice_by_code` goes before the others: the advice for one cause.
    `may_be_unjudged`: whether a rate can be sustained although the check was not judged.
    """

    name: str
    check: CheckFunction
    advice_failed: str = ADVICE_OTHER
    advice_invalid: str = ADVICE_OTHER
    by_slowness: bool = True
    advice_by_code: Mapping[Cause, str] = MappingProxyType({})
    may_be_unjudged: bool = False


def make_check(
    name: str,
    state: CheckState,
    code: Cause,
    value: float | None,
    limit: float | None,
    unit: str,
    sentence: str,
    interval: Interval | None = None,
) -> Check:
    ok = {"ok": True, "failed": False, "invalid": False}.get(state)
    low, high = (interval.low, interval.high) if interval is not None else (None, None)
    return Check(
        name=name,
        code=code,
        value=value,
        limit=limit,
        unit=unit,
        ok=ok,
        state=state,
        sentence=sentence,
        low=low,
        high=high,
    )


@dataclass(frozen=True)
class Condition:
    """One condition of a check that has several."""

    holds: bool
    code: Cause
    value: float
    limit: float
    unit: str
    sentence: str


def combine(name: str, parts: list[Condition], bad_state: CheckState, shown: int) -> Check:
    """Combines the parts of a check.

    The first failing part gives number and code, all failing parts the sentence. If none fails, part `shown` does.
    """
    bad = [part for part in parts if not part.holds]
    part = bad[0] if bad else parts[shown]
    sentence = "; ".join(one.sentence for one in bad) if bad else part.sentence
    state, code = (bad_state, part.code) if bad else ("ok", Cause.OK)
    return make_check(name, state, code, part.value, part.limit, part.unit, sentence)


def worst(checks: list[Check]) -> Check:
    """The worst of one check on several queries or sinks: failed before undecided before the largest number."""
    for state in ("failed", "undecided"):
        if bad := [check for check in checks if check.state == state]:
            return bad[0]
    return max(checks, key=lambda check: check.value if check.value is not None else -math.inf)
