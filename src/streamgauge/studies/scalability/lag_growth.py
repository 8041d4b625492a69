"""How much the consumer lag of a partition grows over a span: at its end minus at its begin (Ehrenstein 2020).

Commits come in batches, so the lag is a saw-tooth. Both ends are taken in the same phase: right after commits. One
commit proves little, because the lag after it is what became due while the batch ran, and batches differ in length. So
each end is the mean over the commits of a window, and the growth has an interval.

The windows are shorter than the span, so the growth between their middles is extended to the whole span.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.special import stdtrit

from streamgauge.core.arrays import Floats

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


def lag_growth(series: pa.Table, span_s: float, end_s: int) -> Growth | str:
    """The growth of the lag, mean over partitions, or why it is unknown. Extensions of the span are left out.

    Without any commit in the span, each end is the least lag at the ends of its first or last `end_s` seconds.
    """
    seconds = math.floor(span_s)
    measured = series.filter(pc.equal(series.column("phase"), "measured")).slice(0, seconds)
    lags = measured.column("lag_events_mean").to_pylist()
    if len(lags) < seconds or None in lags:
        return "its span was not complete"
    # Run folders of older versions have no such column.
    known = "lag_at_commit_mean" in measured.column_names
    at_commits = measured.column("lag_at_commit_mean").to_pylist() if known else []
    commits = [(second, lag) for second, lag in enumerate(at_commits) if lag is not None]
    if not commits:
        growth = float(min(lags[-end_s:]) - min(lags[:end_s]))
        return Growth(growth, growth, growth)
    for window in range(max(end_s, math.ceil(END_SHARE * seconds)), seconds // 2 + 1):
        ends = [c for c in commits if c[0] < window], [c for c in commits if c[0] >= seconds - window]
        if min(map(len, ends)) >= COMMITS_MIN:
            return _between(*ends, seconds)
    needs = f"each end of its span needs {COMMITS_MIN} commits, and the span has {len(commits)}"
    return f"{needs}: use a longer --duration, or --criterion slope"


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
    half = seconds / apart_s * error * float(stdtrit(freedom, 0.5 + CONFIDENCE / 2))
    return Growth(growth, growth - half, growth + half, math.sqrt(variance))


def _inflation(rest: Sequence[Floats]) -> float:
    """By how much the variance of a mean grows because neighbours are alike: a long batch makes the next one long."""
    total = sum(float(each @ each) for each in rest)
    if not total:
        return 1.0
    correlation = sum(float(each[1:] @ each[:-1]) for each in rest) / total
    # Taken about means of the same few values, a correlation comes out too low by about this.
    correlation += 1 / min(map(len, rest))
    correlation = min(max(correlation, 0.0), _CORRELATION_MAX)
    return (1 + correlation) / (1 - correlation)
