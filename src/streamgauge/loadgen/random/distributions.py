"""Distributions of keys 0..domain-1, from 32 random bits per event by inversion.

Every key's probability is exact to 2**-32. Rarer keys may never come, but even a Zipf domain of 16 million keys has
none. A *guide table* makes that fast: the upper 16 bits (for domains above 4096: 20) choose a cell. Most cells lie
within one key and store it. Cells that contain a border between keys are marked, and only their events search the
borders. A plain quantile table of 2**16 cells would round probabilities to whole cells, and lose rare keys.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from streamgauge.core.arrays import Int32s
from streamgauge.loadgen.random.key_hash import keys_of_partition, partitions_of_numbers
from streamgauge.loadgen.random.philox import Lanes, PhiloxBits, empty

Distribution = Literal["uniform", "normal", "zipf", "single"]
DISTRIBUTIONS: tuple[str, ...] = get_args(Distribution)

DOMAIN_MAX = 2**31 - 1
"""Keys are 32-bit integers."""
TABLE_DOMAIN_MAX = 2**24
"""The largest domain of a distribution that needs a border per key (64 MiB)."""

_MARK = -1
_NORMAL_SIGMAS = 6.0


class Sampler(ABC):
    """Turns random lanes into keys; `lanes_per_event` is 0 if it needs no randomness."""

    lanes_per_event = 1

    @abstractmethod
    def fill(self, lanes: Lanes, out: Int32s) -> None:
        """Writes one key per lane to `out` (same shape)."""

    def drawn(self, lanes: Lanes) -> Int32s:
        """One key per lane, in a new array; `lanes` need not be contiguous."""
        out = np.empty(len(lanes), np.int32)
        self.fill(np.ascontiguousarray(lanes), out)
        return out


@dataclass(frozen=True)
class Single(Sampler):
    """Always key 0: the strongest skew (Karimov et al. 2018, section VI, single key)."""

    lanes_per_event = 0

    def fill(self, lanes: Lanes, out: Int32s) -> None:
        out.fill(0)


@dataclass(frozen=True)
class Uniform(Sampler):
    """`low` + one of `span` uniformly distributed values, by multiply-shift: the upper half of lane * span."""

    span: int
    low: int = 0

    def fill(self, lanes: Lanes, out: Int32s) -> None:
        product = empty(len(lanes), np.uint64)
        np.multiply(lanes, np.uint64(self.span), out=product)
        upper_half = product.view("<i4")[1::2]
        # The upper half may exceed 2**31 and look negative; the sum wraps around to the right value.
        np.add(upper_half, np.int32(self.low), out=out) if self.low else np.copyto(out, upper_half)


class Table(Sampler):
    """Any distribution over 0..n-1, by a guide table; `probabilities` has shape (n,) and sums to 1."""

    def __init__(self, probabilities: npt.NDArray[np.float64]) -> None:
        guide_bits = 16 if len(probabilities) <= 4096 else 20
        borders = np.floor(np.cumsum(probabilities)[:-1] * 2.0**32 + 0.5)
        self._borders = np.minimum(borders, 2**32 - 1).astype(np.uint32)
        self._shift = np.uint32(32 - guide_bits)
        self._lowest = self._lowest_keys(guide_bits)
        self._guide = self._marked()

    def _lowest_keys(self, guide_bits: int) -> Int32s:
        """The key at the lower end of each cell, followed by the last key: shape (2**guide_bits + 1,)."""
        ends = (np.arange(2**guide_bits, dtype=np.uint64) << self._shift).astype(np.uint32)
        keys = np.searchsorted(self._borders, ends, side="right").astype(np.int32)
        return np.append(keys, np.int32(len(self._borders)))

    def _marked(self) -> Int32s:
        """The key of each cell, or the mark if the cell contains a border: shape (2**guide_bits,)."""
        below, above = self._lowest[:-1], self._lowest[1:]
        return np.where(below == above, below, _MARK).astype(np.int32)

    def fill(self, lanes: Lanes, out: Int32s) -> None:
        cells = empty(len(lanes), np.intp)
        np.right_shift(lanes, self._shift, out=cells, dtype=np.uint32, casting="unsafe")
        # Nothing wraps around, but "wrap" avoids the copy of NumPy's checking mode.
        self._guide.take(cells, out=out, mode="wrap")
        marked = np.flatnonzero(out < 0)
        if marked.size:
            out[marked] = self._look_up(lanes[marked], cells[marked])

    def _look_up(self, lanes: Lanes, cells: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """The key of each lane by bisection within its cell, which takes few steps instead of twenty."""
        low = self._lowest[cells].astype(np.intp)
        high = self._lowest[cells + 1].astype(np.intp)
        for _ in range(int((high - low).max()).bit_length()):
            middle = (low + high) >> 1
            # If both ends are equal, they stay as they are, and the middle may be beyond the last border.
            above = (self._borders.take(middle, mode="clip") <= lanes) & (low < high)
            np.copyto(low, middle + 1, where=above)
            np.copyto(high, middle, where=~above)
        return low


class Subset(Sampler):
    """Some of the keys, with the ratios of their probabilities unchanged; `keys` ascend."""

    def __init__(self, keys: Int32s, probabilities: npt.NDArray[np.float64]) -> None:
        self._keys = keys
        uniform = len(keys) and bool((probabilities == probabilities[0]).all())
        self._place: Sampler = (
            Single() if len(keys) < 2 else Uniform(len(keys)) if uniform else Table(probabilities / probabilities.sum())
        )
        self.lanes_per_event = self._place.lanes_per_event

    def fill(self, lanes: Lanes, out: Int32s) -> None:
        if out.size:
            self._place.fill(lanes, out)
            out[...] = self._keys[out]


def probabilities(distribution: Distribution, domain: int, exponent: float = 1.0) -> npt.NDArray[np.float64]:
    """The probability of each key, shape (domain,).

    `normal` has its mean in the middle of the domain and a sixth of it as standard deviation. Values outside become
    the first or the last key. `zipf` gives key k a weight of 1 / (k + 1)**exponent.
    """
    if distribution == "uniform":
        return np.full(domain, 1.0 / domain)
    if distribution == "normal":
        return _normal(domain)
    if distribution == "zipf":
        weights = np.arange(1, domain + 1, dtype=np.float64) ** -exponent
        return weights / weights.sum()
    return np.concatenate(([1.0], np.zeros(domain - 1)))


def _normal(domain: int) -> npt.NDArray[np.float64]:
    from scipy.special import ndtr

    borders = np.arange(1, domain, dtype=np.float64)
    below = ndtr((borders - domain / 2) / (domain / _NORMAL_SIGMAS))
    return np.diff(below, prepend=0.0, append=1.0)


@lru_cache(maxsize=64)
def sampler(distribution: Distribution, domain: int, exponent: float = 1.0) -> Sampler:
    """The sampler for keys of 0..domain-1, cached because large tables are slow to make."""
    if distribution == "uniform":
        return Uniform(domain)
    if distribution == "single" or domain == 1:
        return Single()
    return Table(probabilities(distribution, domain, exponent))


def sampler_of_column(bits: PhiloxBits, distribution: Distribution, domain: int, exponent: float = 1.0) -> Sampler:
    """The sampler of a column of keys. If the keys decide partitions, it gives only those of the column's partition."""
    if bits.split == 1:
        return sampler(distribution, domain, exponent)
    return _sampler_of_partition(distribution, domain, exponent, bits.partition, bits.split)


@lru_cache(maxsize=64)
def _sampler_of_partition(
    distribution: Distribution, domain: int, exponent: float, partition: int, partitions: int
) -> Sampler:
    return subset_of_partition(probabilities(distribution, domain, exponent), partition, partitions)


def subset_of_partition(chances: npt.NDArray[np.float64], partition: int, partitions: int) -> Subset:
    """The sampler for those keys that hash to a partition; `chances` has the probability of each key."""
    keys = keys_of_partition(len(chances), partition, partitions)
    keys = keys[chances[keys] > 0]
    return Subset(keys, chances[keys])


def keys_in_turn(bits: PhiloxBits, domain: int, first: int, last: int) -> Int32s:
    """Keys 0..domain-1 in turn, for events [first, last). If they decide partitions, only those of the partition."""
    turns = np.arange(first, last)
    if bits.split == 1:
        return (turns % domain).astype(np.int32)
    keys = keys_of_partition(domain, bits.partition, bits.split)
    return keys[turns % max(len(keys), 1)]


@lru_cache(maxsize=64)
def partition_shares(
    distribution: Distribution, domain: int, partitions: int, exponent: float = 1.0
) -> npt.NDArray[np.float64] | None:
    """The probability that a key hashes to each partition, shape (partitions,); None for domains without a table."""
    if domain > TABLE_DOMAIN_MAX:
        return None
    return shares_of_partitions(probabilities(distribution, domain, exponent), partitions)


def shares_of_partitions(chances: npt.NDArray[np.float64], partitions: int) -> npt.NDArray[np.float64]:
    """The probability that a key hashes to each partition; `chances` has the probability of each key."""
    return np.bincount(partitions_of_numbers(len(chances), partitions), chances, partitions).astype(np.float64)
