"""Whether a trial sustained its load, by the criterion of the study.

`slope`: the verdict of the run, whose checks bound the slopes of backlog and output.
`ehrenstein`: the lag, averaged over partitions, grows by less than 100 records from the begin of the span to its end
(Ehrenstein 2020). Wrong answers and a dead system are not sustained by this criterion either.

A trial whose interval of the growth contains the limit is undecided: chance alone may have exceeded it."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.core.arrays import Floats
from streamgauge.results.codes import LagGrowth, WarningCode
from streamgauge.results.scalability import ScaleCell
from streamgauge.results.text.search import growth_sentence
from streamgauge.results.verdict import Remark, Verdict, VerdictValue
from streamgauge.stats.bootstrap import student
from streamgauge.studies.capacity.outcome import wrong_answers

CONFIDENCE = 0.95
COMMITS_MIN = 3
"""Commits of each end: fewer show no scatter."""
END_SHARE = 0.1
"""Length of each end, as a share of the span; up to half of it, if it has too few commits."""
ENDS_MIN = 4
"""Least length of a span, in lengths of its ends."""
END_S_MIN = 5
"""Least seconds of each end: at any one second the lag may be off by a chunk of events."""
_CORRELATION_MAX = 0.9
"""Greatest correlation of neighbours that is allowed for: beyond it, few commits count as one."""


class Growth(NamedTuple):
    """Records of lag by which a partition grew over the span, with the ends of the 95 % interval.

    `scatter`: the standard deviation of the lag right after commits, within an end; None without commits.
    """

    records: float
    low: float
    high: float
    scatter: float | None = None


def end_s(interval_s: float) -> int:
    """The least whole seconds of each end of the span, for batches with that interval."""
    return max(END_S_MIN, math.ceil(COMMITS_MIN * interval_s))


def lag_growth(series: pa.Table, span_s: float, end_s: int) -> Growth | Remark:
    """The growth of the lag, mean over partitions, or why it is unknown. Extensions of the span are left out.

    Without any commit in the span, each end is the least lag at the ends of its first or last `end_s` seconds.
    """
    seconds = math.floor(span_s)
    measured = series.filter(pc.field("phase") == "measured").slice(0, seconds)
    lags = measured.column("lag_events_mean").to_pylist()
    if len(lags) < seconds or None in lags:
        return Remark(LagGrowth.SPAN_INCOMPLETE)
    at_commits = measured.column("lag_at_commit_mean").to_pylist()
    commits = [(second, lag) for second, lag in enumerate(at_commits) if lag is not None]
    if not commits:
        growth = float(min(lags[-end_s:]) - min(lags[:end_s]))
        return Growth(growth, growth, growth)
    for window in range(max(end_s, math.ceil(END_SHARE * seconds)), seconds // 2 + 1):
        ends = [c for c in commits if c[0] < window], [c for c in commits if c[0] >= seconds - window]
        if min(map(len, ends)) >= COMMITS_MIN:
            return _between(*ends, seconds)
    return Remark(LagGrowth.TOO_FEW_COMMITS, {"least": COMMITS_MIN, "n": len(commits)})


def _between(begin: Sequence[tuple[int, float]], end: Sequence[tuple[int, float]], seconds: int) -> Growth:
    """The growth between two windows of (second, lag), extended to the span."""
    (begin_at, begin_lag), (end_at, end_lag) = (np.array(window, float).T for window in (begin, end))
    apart_s = float(end_at.mean() - begin_at.mean())
    slope = float(end_lag.mean() - begin_lag.mean()) / apart_s
    # A steady growth within an end is no scatter.
    rest = [lag - lag.mean() - slope * (at - at.mean()) for at, lag in ((begin_at, begin_lag), (end_at, end_lag))]
    freedom = len(begin) + len(end) - 2
    variance = sum(float(each @ each) for each in rest) / freedom
    error = math.sqrt(variance * _inflation(rest) * (1 / len(begin) + 1 / len(end)))
    growth = seconds * slope
    half = seconds / apart_s * error * student(freedom, CONFIDENCE)
    return Growth(growth, growth - half, growth + half, math.sqrt(variance))


def _inflation(rest: Sequence[Floats]) -> float:
    """By how much the variance of a mean grows because neighbours are alike: a long batch makes the next one long."""
    total = sum(float(each @ each) for each in rest)
    if not total:
        return 1.0
    # Taken about means of the same few values, a correlation comes out too low by about the last term.
    correlation = sum(float(each[1:] @ each[:-1]) for each in rest) / total + 1 / min(map(len, rest))
    correlation = min(max(correlation, 0.0), _CORRELATION_MAX)
    return (1 + correlation) / (1 - correlation)


EHRENSTEIN = "ehrenstein"
LAG_GROWTH_MAX = 100.0
"""Records of lag by which a partition may grow over the span."""
_REGARDLESS = ("connected", "answers")
"""Checks of a run that count under every criterion."""


def judge(cell: ScaleCell, criterion: str, run: Path, span_s: float, interval_s: float) -> ScaleCell:
    """The trial with its outcome by a criterion, from its run folder. The span is that of the plan."""
    if criterion == EHRENSTEIN and cell.outcome not in ("invalid", "interrupted"):
        folder = RunFolder.open(run)
        result = folder.read_result()
        growth: Growth | Remark = Remark(LagGrowth.LAG_UNKNOWN)
        if not result.warning(WarningCode.LAG_UNKNOWN):
            growth = lag_growth(folder.read_series(), span_s, end_s(interval_s))
        outcome, sentence = _by_growth(result.verdict, growth)
        cell = cell.model_copy(update={
            "outcome": outcome, "sentence": sentence, "decided_by": "",
            "lag_growth": growth.records if isinstance(growth, Growth) else None,
        })  # fmt: skip
    if cell.verdict == "not_sustained" and cell.faults:
        return cell.model_copy(update={"wrong_answers": wrong_answers(RunFolder.open(run).read_result())})
    return cell


def _by_growth(verdict: Verdict, growth: Growth | Remark) -> tuple[VerdictValue, str]:
    """(outcome, why). `growth`: the reason, if it is unknown. The run may still show that it was not sustained."""
    for check in verdict.checks:
        if check.name in _REGARDLESS and check.state != "ok":
            return "not_sustained" if check.state == "failed" else "undecided", check.sentence
    if not isinstance(growth, Growth):
        outcome: VerdictValue = "not_sustained" if verdict.value == "not_sustained" else "undecided"
        return outcome, f"{growth_sentence(growth)}; the run: {verdict.sentence}"
    facts = {**growth._asdict(), "half": (growth.high - growth.low) / 2, "limit": LAG_GROWTH_MAX}
    if growth.low < LAG_GROWTH_MAX <= growth.high:
        return "undecided", growth_sentence(Remark(LagGrowth.UNDECIDED, facts))
    outcome = "sustained" if growth.high < LAG_GROWTH_MAX else "not_sustained"
    return outcome, growth_sentence(Remark(LagGrowth.MEASURED, facts))
