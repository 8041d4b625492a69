"""A bracket of loads: what verdicts leave open. `sustain` and `scale` both narrow one.

A load is an event rate, or its place in a list. *Holds* means that the verdict is sustained. Every other verdict counts
as "does not hold", but only `not_sustained` proves it.
"""

import math
from dataclasses import dataclass, field

from streamgauge.engines.spi import VARIABLE_SHARE_MIN, NearLimit
from streamgauge.results.verdict import VerdictValue


@dataclass(kw_only=True)
class Bracket:
    """The highest load that held, and the least above it that did not.

    `refused` are the loads that were shown to fail; `high` may be below them if its trial decided nothing. `shares`:
    the share of the time that batches needed at a load, if known. `within`: a load that is known to hold and one that
    is known to fail without a trial, by those of other levels of resources, whose shares do not count here.
    """

    held: set[float] = field(default_factory=set)
    high: float | None = None
    high_verdict: VerdictValue | None = None
    refused: set[float] = field(default_factory=set)
    shares: dict[float, float] = field(default_factory=dict)
    within: tuple[float, float] = (-math.inf, math.inf)

    @property
    def low(self) -> float | None:
        """The highest load that held and was not refuted since."""
        return max(self.held, default=None)

    @property
    def ends(self) -> tuple[float, float]:
        """The highest load known to hold and the least known to fail, from outside if no trial shows them."""
        low, high = self.within
        return low if self.low is None else self.low, high if self.high is None else self.high

    @property
    def high_is_proven(self) -> bool:
        """Whether a trial showed that `high` does not hold."""
        return self.high_verdict == "not_sustained"

    @property
    def refused_per_s(self) -> float | None:
        """The least load above `low` that was shown to fail. No search uses it."""
        low = self.low or 0.0
        return min((load for load in self.refused if load > low), default=None)

    @property
    def width(self) -> float | None:
        """The width as a share of the lower end; None if an end is unknown."""
        return None if self.low is None or self.high is None else self.high / self.low - 1

    def narrow(self, load: float, verdict: VerdictValue, busy_share: float | None = None) -> None:
        """Takes the verdict on a load; a refuted load also refutes those above it."""
        self.shares.pop(load, None)
        if busy_share is not None:
            self.shares[load] = busy_share
        if verdict == "sustained":
            self.held.add(load)
            return
        if verdict == "not_sustained":
            self.refused.add(load)
        if self.high is None or load <= self.high:
            self.high, self.high_verdict = load, verdict
            self.held = {each for each in self.held if each < load}

    def expected_limit(self, near: NearLimit, full: float) -> float | None:
        """The load at which batches would need the share `full` of the time; None if that is unknown.

        It lies on the line through the shares at both ends; without an upper end, through those at the two highest
        loads; without a lower one, through `near.fixed` at no load. It is the upper end if batches left a little time
        over even there, and the lower one if they were full there. Shares predict nothing if the upper end left much
        time over, or if they were full at each load.
        """
        known = {0.0: near.fixed, **self.shares}
        ends = sorted(known)[-2:] if self.high is None else [self.low or 0.0, self.high]
        below, above = known.get(ends[0]), known.get(ends[-1])
        if not self.shares or below is None or above is None or (self.high is not None and above <= near.sure):
            return None
        if (above if self.high is None else below) >= full:
            return self.low if min(self.shares.values()) < full else None
        if self.high is not None and above <= full:
            return self.high
        return ends[0] + (ends[1] - ends[0]) * (full - below) / max(above - below, VARIABLE_SHARE_MIN)
