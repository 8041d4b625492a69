"""Whether a trial sustained its load, by the criterion of the study.

`slope`: the verdict of the run, whose checks bound the slopes of backlog and output.
`ehrenstein`: the lag, averaged over partitions, grows by less than 100 records from the begin of the span to its end
(Ehrenstein 2020). Wrong answers and a dead system are not sustained by this criterion either.

Events come in chunks and commits in batches, so the lag is a saw-tooth. Both of its ends are taken in the same phase:
the least lag, right after a commit, within one batch interval, and at least 5 s.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.core.formatting import format_digits
from streamgauge.results.matrix import CellFigures
from streamgauge.results.verdict import Verdict, VerdictValue
from streamgauge.studies.capacity.outcome import wrong_answers
from streamgauge.studies.scalability.monotone_search import Outcome

EHRENSTEIN = "ehrenstein"
LAG_GROWTH_MAX = 100.0
"""Records of lag by which a partition may grow over the span."""
END_S_MIN = 5
"""Seconds of each end: at any one second the lag may be off by a chunk of events."""
ENDS_MIN = 4
"""Least length of a span, in lengths of its ends."""
OUTCOMES: dict[VerdictValue, Outcome] = {"sustained": "held", "not_sustained": "failed"}
"""Verdicts that decide a cell; every other one leaves it undecided."""
_REGARDLESS = ("connected", "answers")
"""Checks of a run that count under every criterion."""


class Judged(NamedTuple):
    """How a trial ended by a criterion; `sentence`: why, in words.

    `wrong_answers`: the faults in the answers of a trial that otherwise kept up; else empty.
    """

    outcome: VerdictValue
    sentence: str
    lag_growth: float | None = None
    wrong_answers: str = ""


def judge(criterion: str, figures: CellFigures, run: Path, span_s: float, interval_s: float) -> Judged:
    """The outcome of a trial with these figures, from its run folder. The span is that of the plan."""
    verdict = figures.verdict or "invalid"
    judged = Judged(verdict, figures.sentence)
    if criterion == EHRENSTEIN and verdict not in ("invalid", "interrupted"):
        folder = RunFolder.open(run)
        growth = lag_growth(folder.read_series(), span_s, end_s(interval_s))
        judged = _by_growth(folder.read_result().verdict, growth)
    if verdict == "not_sustained" and figures.faults:
        wrong = wrong_answers(RunFolder.open(run).read_result())
        judged = judged._replace(wrong_answers=wrong)
    return judged


def _by_growth(verdict: Verdict, growth: float | None) -> Judged:
    for check in verdict.checks:
        if check.name in _REGARDLESS and check.state != "ok":
            outcome: VerdictValue = "not_sustained" if check.state == "failed" else "undecided"
            return Judged(outcome, check.sentence, growth)
    if growth is None:
        ended: VerdictValue = verdict.value if verdict.value == "not_sustained" else "undecided"
        return Judged(ended, f"its span was not complete: {verdict.sentence}")
    held = growth < LAG_GROWTH_MAX
    grew = f"grew by {format_digits(growth)}" if growth >= 0 else f"fell by {format_digits(-growth)}"
    sentence = f"the lag {grew} records a partition (limit {LAG_GROWTH_MAX:g})"
    return Judged("sustained" if held else "not_sustained", sentence, growth)


def end_s(interval_s: float) -> int:
    """Whole seconds at each end of the span, in which the least lag is taken."""
    return max(END_S_MIN, math.ceil(interval_s))


def lag_growth(series: pa.Table, span_s: float, end_s: int) -> float | None:
    """Mean lag of a partition at the end minus that at the begin; None if the span was not measured to its end.

    Extensions of the span are left out.
    """
    measured = series.filter(pc.equal(series.column("phase"), "measured"))
    lags = measured.column("lag_events_mean").to_pylist()[: math.floor(span_s)]
    if len(lags) < math.floor(span_s) or len(lags) < 2 * end_s or None in lags:
        return None
    return float(min(lags[-end_s:]) - min(lags[:end_s]))
