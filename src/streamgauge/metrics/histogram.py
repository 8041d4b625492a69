"""Latency histograms with the slots of HdrHistogram: 1 us to 1 h at three significant digits, counted by NumPy.

The slots are those that the `hdrhistogram` package would use, value for value, so that its encoding, its log format and
every tool that reads them apply; only the counting is ours, because one call per value takes a microsecond.

Terms: a *slot* is an index into HdrHistogram's counts; a *fine slot* is the exponent and the first ten mantissa bits
of the value as a float64. From 1024 upwards the two differ by a constant, since HdrHistogram keeps eleven leading bits
of a value; below 1024 every integer has a slot of its own. So counting is: convert, shift, count; then one copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from streamgauge.artifacts import hlog
from streamgauge.artifacts.hlog import HALF, HIGHEST_OF_SLOT, LOWEST_OF_SLOT, MIDDLE_OF_SLOT, SLOTS, Counts
from streamgauge.core.arrays import Int64s
from streamgauge.core.clock import US

_BLOCK = 1 << 16
"""Values counted at a time: two buffers of half a MiB each stay in the second-level cache. Measured best. Fresh memory
for each block would cost more than the counting."""
_SHIFT = 42
_FINE_OF_ONE = 1023 << 10
_FINE_SLOTS = 64 << 10
_FINE_OF_SMALL = (np.arange(1, HALF).astype(np.float64).view(np.int64) >> _SHIFT) - _FINE_OF_ONE
_FINE_FIRST, _FINE_END = 10 * HALF, 32 * HALF
"""Fine slots from 1024 us to the end of the range: as they are, HdrHistogram's slots from 1024 on."""


def counts_of(values_us: ArrayLike) -> Counts:
    """HdrHistogram's counts (SLOTS,) of `values_us` (n,), whole microseconds.

    Negative values are left out, so `counts.sum()` falls short of n by their number; values beyond 71 minutes are in
    the last slot.
    """
    values = np.asarray(values_us, dtype=np.int64)
    total, zeros = np.zeros(_FINE_SLOTS, dtype=np.int64), 0
    size = min(values.size, _BLOCK)
    floats, slots = np.empty(size), np.empty(size, dtype=np.int64)
    for start in range(0, values.size, _BLOCK):
        block = values[start : start + _BLOCK]
        np.copyto(floats[: block.size], block)
        fine = np.right_shift(floats[: block.size].view(np.int64), _SHIFT, out=slots[: block.size])
        fine -= _FINE_OF_ONE
        # Zeros and negatives fall below the first fine slot; they are rare, so only blocks that have some pay for it.
        if fine.min() < 0:
            zeros += int(np.count_nonzero(block == 0))
            fine = fine[block > 0]
        found = np.bincount(fine)
        total[: found.size] += found
    counts = np.empty(SLOTS, dtype=np.int64)
    counts[0] = zeros
    counts[1:HALF] = total[_FINE_OF_SMALL]
    counts[HALF:] = total[_FINE_FIRST:_FINE_END]
    counts[-1] += total[_FINE_END:].sum()
    return counts


class Histogram:
    """Latencies in microseconds: HdrHistogram's `counts` (SLOTS,), and `n_negative` values, which are an error.

    A negative latency is in no slot and in no percentile; whoever reads the figures must look at `n_negative`.

    >>> histogram = Histogram()
    >>> histogram.add([100, 200, 300, -5])
    >>> histogram.percentile(0.5), histogram.count, histogram.n_negative
    (200, 3, 1)
    """

    __slots__ = ("counts", "n_negative")

    def __init__(self, counts: Counts | None = None, n_negative: int = 0) -> None:
        self.counts: Counts = np.zeros(SLOTS, dtype=np.int64) if counts is None else counts
        self.n_negative = n_negative

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Histogram):
            return NotImplemented
        return self.n_negative == other.n_negative and bool(np.array_equal(self.counts, other.counts))

    def add(self, values_us: ArrayLike) -> None:
        """Count `values_us` (n,), whole microseconds."""
        counts = counts_of(values_us)
        self.counts += counts
        self.n_negative += np.size(values_us) - int(counts.sum())

    def merge(self, other: Histogram) -> None:
        """Count everything that `other` counted."""
        self.counts += other.counts
        self.n_negative += other.n_negative

    @property
    def count(self) -> int:
        """Values in slots: all but the negative ones."""
        return int(self.counts.sum())

    @property
    def min(self) -> int | None:
        """The least value, rounded down to its slot; None if empty."""
        used = np.flatnonzero(self.counts)
        return int(LOWEST_OF_SLOT[used[0]]) if used.size else None

    @property
    def max(self) -> int | None:
        """The greatest value, rounded up to the end of its slot (0.1 % at most); None if empty."""
        used = np.flatnonzero(self.counts)
        return int(HIGHEST_OF_SLOT[used[-1]]) if used.size else None

    @property
    def mean(self) -> float | None:
        """The mean of the slots' middles; None where there is no value."""
        count = self.count
        return float(self.counts @ MIDDLE_OF_SLOT.astype(np.float64)) / count if count else None

    def percentile(self, q: float) -> int | None:
        """The q-quantile, q in [0, 1], as the `hdrhistogram` package reads it: the end of the slot it lies in."""
        cumulated = np.cumsum(self.counts)
        if cumulated[-1] == 0:
            return None
        rank = max(int(100 * q * int(cumulated[-1]) / 100 + 0.5), 1)
        slot = int(np.searchsorted(cumulated, rank))
        return int((HIGHEST_OF_SLOT if q else LOWEST_OF_SLOT)[slot])


class SecondHistograms:
    """Histograms by second, packed to the slots in use: an hour of dense ones would take 700 MB."""

    def __init__(self) -> None:
        self._packed: dict[int, tuple[Counts, Counts]] = {}
        self.total = Histogram()

    def add(self, event_time_us: Int64s, latency_us: Int64s) -> None:
        """Count `latency_us` (n,) under the seconds since the epoch of `event_time_us` (n,)."""
        if not latency_us.size:
            return
        second = event_time_us // US
        if not (second[1:] >= second[:-1]).all():
            order = np.argsort(second, kind="stable")
            second, latency_us = second[order], latency_us[order]
        borders = [0, *(np.flatnonzero(second[1:] != second[:-1]) + 1).tolist(), second.size]
        for start, end in pairwise(borders):
            key, counts = int(second[start]), counts_of(latency_us[start:end])
            self.total.merge(Histogram(counts, end - start - int(counts.sum())))
            if key in self._packed:
                slots, already = self._packed[key]
                counts[slots] += already
            used = np.flatnonzero(counts)
            self._packed[key] = (used, counts[used])

    def histograms(self) -> dict[int, Histogram]:
        """Second since the epoch to its histogram, ascending; negative values are in `total` alone."""
        unpacked = {second: Histogram() for second in sorted(self._packed)}
        for second, (slots, counts) in self._packed.items():
            unpacked[second].counts[slots] = counts
        return unpacked


def log_lines(per_second: Mapping[int, Histogram], tag: str) -> str:
    """latency.hlog's text: one line a second (key: seconds since the epoch), under `tag`; errors as of `hlog.write`."""
    return hlog.write({(second, second + 1): per_second[second].counts for second in sorted(per_second)}, tag)


def read_log(text: str) -> Iterator[tuple[str, int, Histogram]]:
    """The (tag, second it begins in, histogram) of each interval of a log; errors as of `hlog.Interval.counts`."""
    return ((one.tag, int(one.start_s), Histogram(one.counts())) for one in hlog.read(text))


def slots_of(histograms: Iterable[Histogram]) -> tuple[Counts, Counts]:
    """(counts (n, used), values_us (used,)): the slots that any of n histograms uses, and the end of each slot."""
    packed = [(slots := np.flatnonzero(histogram.counts), histogram.counts[slots]) for histogram in histograms]
    used = np.unique(np.concatenate([slots for slots, _ in packed])) if packed else np.empty(0, dtype=np.int64)
    counts = np.zeros((len(packed), used.size), dtype=np.int64)
    for row, (slots, values) in zip(counts, packed, strict=True):
        row[np.searchsorted(used, slots)] = values
    return counts, HIGHEST_OF_SLOT[used]
