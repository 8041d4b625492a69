"""Whether a trial sustained its load, by the criterion of the study.

`slope`: the verdict of the run, whose checks bound the slopes of backlog and output.
`ehrenstein`: the lag, averaged over partitions, grows by less than 100 records from the begin of the span to its end
(Ehrenstein 2020). Wrong answers and a dead system are not sustained by this criterion either.

A trial whose interval of the growth contains the limit is undecided: chance alone may have exceeded it.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.core.formatting import format_digits
from streamgauge.results.codes import WarningCode
from streamgauge.results.matrix import CellFigures
from streamgauge.results.verdict import Verdict, VerdictValue
from streamgauge.studies.capacity.outcome import wrong_answers
from streamgauge.studies.scalability.lag_growth import Growth, end_s, lag_growth
from streamgauge.studies.scalability.monotone_search import Outcome

EHRENSTEIN = "ehrenstein"
LAG_GROWTH_MAX = 100.0
"""Records of lag by which a partition may grow over the span."""
OUTCOMES: dict[VerdictValue, Outcome] = {"sustained": "held", "not_sustained": "failed"}
"""Verdicts that decide a cell; every other one leaves it undecided."""
_REGARDLESS = ("connected", "answers")
"""Checks of a run that count under every criterion."""
_UNKNOWN = "the lag is unknown, because the program commits no offsets: use --criterion slope"


class Judged(NamedTuple):
    """How a trial ended by a criterion; `sentence`: why, in words.

    `wrong_answers`: the faults in the answers of a trial that otherwise kept up; else empty. `decided_by`: the checks
    of the run that decided; empty if another criterion did.
    """

    outcome: VerdictValue
    sentence: str
    lag_growth: float | None = None
    wrong_answers: str = ""
    decided_by: str = ""


def judge(criterion: str, figures: CellFigures, run: Path, span_s: float, interval_s: float) -> Judged:
    """The outcome of a trial with these figures, from its run folder. The span is that of the plan."""
    verdict = figures.verdict or "invalid"
    judged = Judged(verdict, figures.sentence, decided_by=figures.decided_by)
    if criterion == EHRENSTEIN and verdict not in ("invalid", "interrupted"):
        folder = RunFolder.open(run)
        result = folder.read_result()
        is_known = not result.warning(WarningCode.LAG_UNKNOWN)
        growth = lag_growth(folder.read_series(), span_s, end_s(interval_s)) if is_known else _UNKNOWN
        judged = _by_growth(result.verdict, growth)
    if verdict == "not_sustained" and figures.faults:
        wrong = wrong_answers(RunFolder.open(run).read_result())
        judged = judged._replace(wrong_answers=wrong)
    return judged


def _by_growth(verdict: Verdict, growth: Growth | str) -> Judged:
    """`growth`: the reason, if it is unknown. The verdict of the run may then still show that it was not sustained."""
    records = growth.records if isinstance(growth, Growth) else None
    for check in verdict.checks:
        if check.name in _REGARDLESS and check.state != "ok":
            outcome: VerdictValue = "not_sustained" if check.state == "failed" else "undecided"
            return Judged(outcome, check.sentence, records)
    if not isinstance(growth, Growth):
        ended: VerdictValue = verdict.value if verdict.value == "not_sustained" else "undecided"
        return Judged(ended, f"{growth}; the run: {verdict.sentence}")
    if growth.high < LAG_GROWTH_MAX:
        return Judged("sustained", _in_words(growth), growth.records)
    if growth.low >= LAG_GROWTH_MAX:
        return Judged("not_sustained", _in_words(growth), growth.records)
    advice = (
        f"its interval contains the limit, because the lag right after commits scatters by "
        f"{format_digits(growth.scatter)} records. Use a longer --duration, a lower rate or --criterion slope"
    )
    return Judged("undecided", f"{_in_words(growth)}: {advice}", growth.records)


def _in_words(growth: Growth) -> str:
    half = (growth.high - growth.low) / 2
    within = f" ± {format_digits(half)}" if half else ""
    grew = "grew by" if growth.records >= 0 else "fell by"
    amount = f"{format_digits(abs(growth.records))}{within}"
    return f"the lag {grew} {amount} records a partition (limit {LAG_GROWTH_MAX:g})"
