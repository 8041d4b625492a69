"""The state of a search: its settings, the trials so far, and the bracket that they leave."""

import math
from dataclasses import dataclass, field
from typing import Any, Literal

from streamgauge.core.errors import require
from streamgauge.engines.spi import UNMEASURED, NearLimit
from streamgauge.results.codes import SearchEnd
from streamgauge.results.search import TrialSummary
from streamgauge.results.verdict import Remark, VerdictValue
from streamgauge.studies.capacity.bracket import Bracket
from streamgauge.studies.capacity.constants import (
    ABOUT_90_PERCENT,
    FAR_ABOVE,
    SHARE_BELOW,
    SLACK,
    TOLERANCE,
    TRIALS_MAX,
)

Purpose = Literal["overload", "bracket", "bisect", "confirm", "at 90 %"]


@dataclass(frozen=True)
class Settings:
    """Settings of a search. Rates in events per second; `tolerance` is the relative width of the bracket.

    `ceiling_per_s`: the generators' ceiling, which the overload trial offers and no trial exceeds. `floor_per_s`: the
    lowest rate to try. `start_per_s` replaces the overload trial as the first guess. `fresh_always`: for flows with
    unbounded state. `keeps_rows`: for flows that keep rows until windows end, such as joins. `near_limit`: the engine's
    own figures.
    """

    ceiling_per_s: float
    tolerance: float = TOLERANCE
    quick: bool = False
    start_per_s: float | None = None
    floor_per_s: float = 1.0
    trials_max: int = TRIALS_MAX
    fresh_always: bool = False
    keeps_rows: bool = False
    near_limit: NearLimit = UNMEASURED

    @property
    def full(self) -> float:
        """The busy share of an engine near its limit."""
        return self.near_limit.full_of(self.keeps_rows)

    @property
    def over(self) -> float:
        """The busy share that the next rate aims at after one that held."""
        return self.near_limit.keeping_rows if self.keeps_rows else self.near_limit.over

    def __post_init__(self) -> None:
        require(
            0 < self.floor_per_s <= self.ceiling_per_s < math.inf, "search.ceiling",
            f"must be a rate of at least {self.floor_per_s:g}/s", self.ceiling_per_s,
            "measure the generator's ceiling again on an idle machine",
        )  # fmt: skip


@dataclass(frozen=True)
class TrialRequest:
    """One requested trial: `fresh` on a newly started engine."""

    rate_per_s: float
    purpose: Purpose
    fresh: bool


@dataclass(frozen=True)
class TrialOutcome:
    """The outcome of a trial.

    `drained_per_s` is the ingested rate while there was a backlog, None if unknown. Of an invalid trial it is no proof,
    but the best guess. `limit_per_s`: the rate at which batches would need `Settings.full` of the time, of an overload
    trial that predicts it. `busy_share`: the share of the time that the engine's batches needed; None if unknown.
    `began_behind`: whether the span began while a backlog was draining. `starved`: whether it is invalid because an
    engine near its limit left the driver too little CPU. `wrong_answers`: faults in the results of a trial that
    otherwise kept up; else empty.

    An overload trial is not judged. Its verdict only says whether the engine kept up with the offered rate, or that the
    driver failed.
    """

    rate_per_s: float
    verdict: VerdictValue
    drained_per_s: float | None = None
    limit_per_s: float | None = None
    why: str = ""
    purpose: str = ""
    event_time_p50_us: float | None = None
    event_time_p99_us: float | None = None
    until_counted_p50_us: float | None = None
    until_counted_p99_us: float | None = None
    backlog_slope_share: float | None = None
    others_cpu_percent: float | None = None
    reference_work_us: float | None = None
    busy_share: float | None = None
    seconds: float = 0.0
    folder: str = ""
    engine_start: int = 0
    wrong_answers: str = ""
    began_behind: bool = False
    starved: bool = False

    @property
    def holds(self) -> bool:
        return self.verdict == "sustained"

    @property
    def unproven(self) -> bool:
        """Whether it counts as "does not hold" without a proof."""
        return self.verdict == "undecided" or self.starved


class SearchEnded(Exception):
    """The search cannot go on: what ended it, with the facts of its sentence."""

    def __init__(self, by: SearchEnd, **facts: Any) -> None:
        super().__init__(by)
        self.end = Remark(by, facts)


@dataclass
class State(Bracket):
    """The state of a search: its bracket, trials and answer.

    `drained_per_s` is the least drain rate of a failed trial. `fresh_bracket`: whether the bracket begins on a fresh
    engine. That needs a predicted limit, since without one it is often offered far too much.
    """

    settings: Settings
    trials: list[tuple[TrialRequest, TrialOutcome]] = field(default_factory=list)
    drained_per_s: float | None = None
    step_near_drained: float | None = None
    short_steps: int = 0
    fresh_bracket: bool = False
    confirmed_per_s: float | None = None
    ended: Remark | None = None

    @property
    def low(self) -> float | None:
        """The confirmed rate; before confirmation, the highest rate that held and was not refuted since."""
        return super().low if self.confirmed_per_s is None else self.confirmed_per_s

    @property
    def is_narrow(self) -> bool:
        """Whether the bracket is as narrow as requested."""
        return self.width is not None and self.width <= self.settings.tolerance * (1 + SLACK)

    @property
    def at_90_percent(self) -> TrialSummary | None:
        """The trial at 90 % of the confirmed rate: the last one that held near that rate, else the last one made."""
        if self.confirmed_per_s is None:
            return None
        rate = self.confirmed_per_s
        number = self.held_at_90_percent(rate) or max(self._made_at_90_percent(rate, "at 90 %"), default=0)
        return summary(number, *self.trials[number - 1]) if number else None

    def tried_at_90_percent(self, rate_per_s: float) -> bool:
        """Whether a trial held near 90 % of a rate, or was made at 90 % of it."""
        made = [request.rate_per_s for request, _ in self.trials if request.purpose == "at 90 %"]
        return self.held_at_90_percent(rate_per_s) > 0 or self.rate_at_90_percent(rate_per_s) in made

    def rate_at_90_percent(self, rate_per_s: float) -> float:
        """90 % of a rate, but not less than the lowest rate to try."""
        return max(SHARE_BELOW * rate_per_s, self.settings.floor_per_s)

    def tried_before(self, rate_per_s: float) -> float:
        """The rate of an earlier trial that differs from this one by rounding only; else this one."""
        rates = (request.rate_per_s for request, _ in self.trials)
        return next((rate for rate in rates if math.isclose(rate, rate_per_s)), rate_per_s)

    def times_held(self, rate_per_s: float) -> int:
        """How many trials held at a rate."""
        return sum(request.rate_per_s == rate_per_s and outcome.holds for request, outcome in self.trials)

    def held_undisturbed(self, rate_per_s: float) -> bool:
        """Whether the last trial at a rate held, on an engine that had not been offered far more since its start."""
        places = [place for place, (request, _) in enumerate(self.trials) if request.rate_per_s == rate_per_s]
        return (
            bool(places)
            and self.trials[places[-1]][1].holds
            and self._offered_until(places[-1]) <= FAR_ABOVE * rate_per_s
        )

    def offered_far_above(self, rate_per_s: float) -> bool:
        """Whether the engine of the last trial has been offered far more than a rate."""
        return self._offered_until(len(self.trials) - 1) > FAR_ABOVE * rate_per_s

    def _offered_until(self, place: int) -> float:
        """The highest rate offered up to a trial since its engine started; infinite after an overload trial."""
        highest, start = 0.0, None
        for request, outcome in self.trials[: place + 1]:
            if request.fresh if not outcome.engine_start else outcome.engine_start != start:
                highest, start = 0.0, outcome.engine_start
            highest = max(highest, math.inf if request.purpose == "overload" else request.rate_per_s)
        return highest

    def held_at_90_percent(self, rate_per_s: float) -> int:
        """The number of the last trial that held at `ABOUT_90_PERCENT`, confirmations excepted; 0 for none."""
        numbers = self._made_at_90_percent(rate_per_s, "bracket", "bisect", "at 90 %")
        return max((number for number in numbers if self.trials[number - 1][1].holds), default=0)

    def _made_at_90_percent(self, rate_per_s: float, *purposes: Purpose) -> list[int]:
        lowest, highest = (share * rate_per_s for share in ABOUT_90_PERCENT)
        return [
            number
            for number, (request, _) in enumerate(self.trials, start=1)
            if request.purpose in purposes and lowest <= request.rate_per_s <= highest
        ]

    def note(self, outcome: TrialOutcome, rate_per_s: float) -> None:
        """Records a trial's outcome."""
        self.narrow(rate_per_s, outcome.verdict, outcome.busy_share)
        if not outcome.holds and outcome.drained_per_s:
            self.drained_per_s = min(outcome.drained_per_s, self.drained_per_s or math.inf)


def summary(number: int, request: TrialRequest, outcome: TrialOutcome) -> TrialSummary:
    """One line of the search's table. An overload trial has a verdict only if it is invalid."""
    return TrialSummary(
        number=number,
        purpose=request.purpose,
        offered_per_s=outcome.rate_per_s,
        verdict=outcome.verdict if request.purpose != "overload" or outcome.verdict == "invalid" else None,
        event_time_p50_us=outcome.event_time_p50_us,
        event_time_p99_us=outcome.event_time_p99_us,
        until_counted_p50_us=outcome.until_counted_p50_us,
        until_counted_p99_us=outcome.until_counted_p99_us,
        backlog_slope_share=outcome.backlog_slope_share,
        why=outcome.why,
        seconds=outcome.seconds,
        folder=outcome.folder,
        engine_start=outcome.engine_start,
        starved=outcome.starved,
        others_cpu_percent=outcome.others_cpu_percent,
        reference_work_us=outcome.reference_work_us,
    )
