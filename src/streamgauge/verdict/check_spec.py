"""What every named check is made of: its declaration, its conditions, and the worst of several."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

from streamgauge.results.codes import Cause
from streamgauge.results.verdict import CheckState, Finding, Remark
from streamgauge.verdict.evidence import Evidence

CheckFunction = Callable[[Evidence], Finding]


class CheckSpec(NamedTuple):
    """A named check and its function. `results.text` has its sentences, and what to do if it fails.

    `by_slowness`: whether a slow system can fail it. If so, background load or the driver may be the cause instead.
    `may_be_unjudged`: whether a rate can be sustained although the check was not judged.
    """

    name: str
    check: CheckFunction
    by_slowness: bool = True
    may_be_unjudged: bool = False


@dataclass(frozen=True)
class Condition:
    """One condition of a check.

    `facts` are those of its sentence, beside value and limit; `says` stands for the code there.
    """

    holds: bool
    code: Cause
    value: float | None
    limit: float | None
    unit: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    says: StrEnum | None = None

    @property
    def remark(self) -> Remark:
        return Remark(self.says or self.code, {"value": self.value, "limit": self.limit, **self.facts})

    def finding(self, name: str, state: CheckState) -> Finding:
        """The condition as a check of its own."""
        return Finding(
            name, state, Cause.OK if state == "ok" else self.code, self.value, self.limit, self.unit, (self.remark,)
        )


def combine(name: str, parts: list[Condition], bad_state: CheckState, shown: int) -> Finding:
    """Combines the parts of a check.

    The first failing part gives number and code, all failing parts the remarks. If none fails, part `shown` does.
    """
    bad = [part for part in parts if not part.holds]
    if not bad:
        return parts[shown].finding(name, "ok")
    return replace(bad[0].finding(name, bad_state), remarks=tuple(part.remark for part in bad))


def worst(checks: list[Finding]) -> Finding:
    """The worst of one check on several queries or sinks: failed before undecided before the largest number."""
    for state in ("failed", "undecided"):
        if bad := [check for check in checks if check.state == state]:
            return bad[0]
    return max(checks, key=lambda check: check.value if check.value is not None else -math.inf)
