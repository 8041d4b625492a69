"""Percentile curves: from a run's HdrHistogram log to the points that are drawn.

`latency.hlog` holds histograms of the measured span, in microseconds, of each second or of all of it; the tag of a line
names the kind of latency: `event_time`, `processing_time` and so on, with `/<sink>` after it where there are several
sinks. An untagged line is event time.
Intervals of one tag are added up, never averaged [method 1].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hdrh.histogram import HdrHistogram

from streamgauge.result import PERCENTILES, Latency
from streamgauge.stats.hlog import intervals

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


def histograms(log: str, sink: str = "") -> dict[str, HdrHistogram]:
    """The whole histogram of each kind in a log's text, of the lines that are tagged with `sink`, or with none.

    Lines that are no histogram are passed over.
    """
    found: dict[str, HdrHistogram] = {}
    for interval in intervals(log):
        kind, _, of = (interval.tag or "event_time").partition("/")
        if of != sink:
            continue
        if kind in found:
            found[kind].decode_and_add(interval.encoded)
        else:
            found[kind] = HdrHistogram.decode(interval.encoded)
    return found


def points(latency: Latency, histogram: HdrHistogram | None) -> list[Point]:
    """The curve of one latency, from the median of nothing (0 %) to the last percentile that its evidence carries.

    Without a histogram the percentiles of the result are all there is.
    """
    if histogram is None or histogram.get_total_count() == 0:
        return [Point(percentile, getattr(latency, name)) for name, percentile in _carried(latency).items()]
    percentiles = _grid(_last_percentile(latency))
    return [Point(p, us) for p, us in zip(percentiles, _values_at(histogram, percentiles), strict=True)]


def _values_at(histogram: HdrHistogram, percentiles: list[float]) -> list[float]:
    """What `get_value_at_percentile` gives for each, in one pass over the slots instead of one for each."""
    total_up_to = np.cumsum(np.array(histogram.counts[: histogram.counts_len], dtype=np.int64))
    wanted = np.maximum(1, np.floor(np.array(percentiles) / 100 * histogram.get_total_count() + 0.5))
    slots = np.searchsorted(total_up_to, wanted)
    return [float(histogram.get_highest_equivalent_value(histogram.get_value_from_index(int(n)))) for n in slots]


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
