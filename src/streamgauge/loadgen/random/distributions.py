"""Keys: which of 0..domain-1 an event carries, made from 32 random bits an event by inverting the distribution.

Every key's probability is right to within 2**-32: a key rarer than that may never come (a Zipf domain of 16 million
keys has none so rare), and no key comes too often. That is exact, and cheap, by a *guide table*: the bits' upper 16
(domains above 4096: 20) choose a cell; nearly every cell lies within one key and holds that key; the few cells that a
border between two keys crosses are marked, and only their events look the key up among all borders. A plain quantile
table of 2**16 cells would round every key to whole cells, and keys rarer than half a cell would be lost.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from streamgauge.loadgen.random.philox import Lanes, empty

Distribution = Literal["uniform", "normal", "zipf", "single"]
DISTRIBUTIONS: tuple[str, ...] = get_args(Distribution)

DOMAIN_MAX = 2**31 - 1
"""Keys are 32-bit integers."""
TABLE_DOMAIN_MAX = 2**24
"""Largest domain of a distribution that needs a border per key (64 MiB of them)."""

Ints = npt.NDArray[np.int32]
_MARK = -1
_NORMAL_SIGMAS = 6.0


class Sampler(ABC):
    """Turns random lanes into keys; `lanes_per_event` is 0 where no randomness is needed."""

    lanes_per_event = 1

    @abstractmethod
    def fill(self, lanes: Lanes, out: Ints) -> None:
        """Write one key for each lane to `out` (same shape)."""

    def drawn(self, lanes: Lanes) -> Ints:
        """One key for each lane, in an array of its own; `lanes` may be every n-th of an array."""
        out = np.empty(len(lanes), np.int32)
        self.fill(np.ascontiguousarray(lanes), out)
        return out


@dataclass(frozen=True)
class Single(Sampler):
    """Always key 0: the hardest skew there is [K §VI, single key]."""

    lanes_per_event = 0

    def fill(self, lanes: Lanes, out: Ints) -> None:
        out.fill(0)


@dataclass(frozen=True)
class Uniform(Sampler):
    """`low` + one of `span` equally likely values, by multiply-shift: the upper half of lane * span."""

    span: int
    low: int = 0

    def fill(self, lanes: Lanes, out: Ints) -> None:
        product = empty(len(lanes), np.uint64)
        np.multiply(lanes, np.uint64(self.span), out=product)
        upper_half = product.view("<i4")[1::2]
        # The upper half may pass 2**31 and so look negative; the sum wraps back to the right value.
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

    def _lowest_keys(self, guide_bits: int) -> Ints:
        """The key at the lower end of each cell, and the last key after them: shape (2**guide_bits + 1,)."""
        ends = (np.arange(2**guide_bits, dtype=np.uint64) << self._shift).astype(np.uint32)
        keys = np.searchsorted(self._borders, ends, side="right").astype(np.int32)
        return np.append(keys, np.int32(len(self._borders)))

    def _marked(self) -> Ints:
        """The key of each cell, or the mark where a border lies in the cell: shape (2**guide_bits,)."""
        below, above = self._lowest[:-1], self._lowest[1:]
        return np.where(below == above, below, _MARK).astype(np.int32)

    def fill(self, lanes: Lanes, out: Ints) -> None:
        cells = empty(len(lanes), np.intp)
        np.right_shift(lanes, self._shift, out=cells, dtype=np.uint32, casting="unsafe")
        # "wrap" is never needed; it spares NumPy the copy that its checking mode makes.
        self._guide.take(cells, out=out, mode="wrap")
        marked = np.flatnonzero(out < 0)
        if marked.size:
            out[marked] = self._look_up(lanes[marked], cells[marked])

    def _look_up(self, lanes: Lanes, cells: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """The key of each lane by bisection between its cell's ends: few steps where a search of all takes twenty."""
        low = self._lowest[cells].astype(np.intp)
        high = self._lowest[cells + 1].astype(np.intp)
        for _ in range(int((high - low).max()).bit_length()):
            middle = (low + high) >> 1
            # Where both ends have met, the middle may be past the last border; both stay as they are.
            above = (self._borders.take(middle, mode="clip") <= lanes) & (low < high)
            np.copyto(low, middle + 1, where=above)
            np.copyto(high, middle, where=~above)
        return low


def probabilities(distribution: Distribution, domain: int, exponent: float = 1.0) -> npt.NDArray[np.float64]:
    """The probability of each key, shape (domain,).

    `normal` has its mean in the middle of the domain and a sixth of it as standard deviation; what falls outside is
    clipped, so it lands on the first or the last key. `zipf` gives key k a weight of 1 / (k + 1)**exponent.
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
    """What turns lanes into keys of 0..domain-1; kept, because a large table takes a moment to make."""
    if distribution == "uniform":
        return Uniform(domain)
    if distribution == "single" or domain == 1:
        return Single()
    return Table(probabilities(distribution, domain, exponent))
