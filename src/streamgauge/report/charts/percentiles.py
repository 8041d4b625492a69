"""Percentile curves: from the histograms of a run's latency.hlog to the points that are drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamgauge.artifacts import hlog
from streamgauge.results.latency import PERCENTILES, Latency

_ENOUGH = 10
"""Independent results that must lie beyond a percentile for it to be drawn past the last printed one."""


@dataclass(frozen=True)
class Point:
    """`latency_us` is the latency that a share `percentile` (0 to 100) of the results does not exceed."""

    percentile: float
    latency_us: float

    @property
    def tail(self) -> float:
        """1 for the median's 50 %, 10 for 90 %, 1000 for 99.9 %: one over the share that is slower."""
        return 100.0 / (100.0 - self.percentile)


def histograms(log: str, sink: str = "") -> dict[str, hlog.Counts]:
    """All that was counted of each kind in a log's text, in the lines that are tagged with `sink`, or with none."""
    found: dict[str, hlog.Counts] = {}
    for interval in hlog.read(log):
        kind, _, of = (interval.tag or "event_time").partition("/")
        if of == sink:
            found[kind] = found.get(kind, 0) + interval.counts()
    return found


def points(latency: Latency, counts: hlog.Counts | None) -> list[Point]:
    """The curve of one latency, from the median of nothing (0 %) to the last percentile that its evidence carries.

    Without a histogram the percentiles of the result are all there is.
    """
    if counts is None or not counts.any():
        return [Point(percentile, getattr(latency, name)) for name, percentile in _carried(latency).items()]
    percentiles = _grid(_last_percentile(latency))
    return [Point(p, us) for p, us in zip(percentiles, _values_at(counts, percentiles), strict=True)]


def _values_at(counts: hlog.Counts, percentiles: list[float]) -> list[float]:
    """The end of the slot that each percentile lies in, as HdrHistogram reads it, in one pass over the slots."""
    total_up_to = np.cumsum(counts)
    ranks = np.maximum(1, np.floor(np.array(percentiles) / 100 * total_up_to[-1] + 0.5))
    return [float(us) for us in hlog.HIGHEST_OF_SLOT[np.searchsorted(total_up_to, ranks)]]


def _carried(latency: Latency) -> dict[str, float]:
    """The percentiles (0 to 100) that the result prints, by name."""
    return {name: 100 * share for name, share in PERCENTILES.items() if getattr(latency, name) is not None}


def _last_percentile(latency: Latency) -> float:
    last = max(_carried(latency).values(), default=0.0)
    if latency.p99_9 is not None and latency.effective_count > 0:
        last = max(last, 100.0 * (1.0 - _ENOUGH / latency.effective_count))
    return last


def _grid(last: float) -> list[float]:
    """Percentiles from 0 to `last`, evenly spaced on the logarithmic tail axis, ending exactly at `last`."""
    if last <= 0:
        return []
    tails = np.geomspace(1.0, 100.0 / (100.0 - last), 160)
    return [*(100.0 * (1.0 - 1.0 / tails[:-1])).tolist(), last]
