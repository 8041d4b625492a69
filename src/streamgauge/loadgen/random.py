"""Random numbers of fields: bits with random access, and the distributions of keys 0..domain-1.

Any slice of an input can be made alone. A *lane* is 32 random bits. Every column of every partition has its own endless
sequence of lanes, numbered from 0. Lane n is a pure function of (seed, stream, partition, field, n) by NumPy's
Philox4x64-10.

A keyed topic has its rows where Kafka's default partitioner would have put them: by murmur2 of the key's UTF-8 text,
modulo the number of partitions.

Keys are drawn by inversion, from 32 bits per event. Every key's probability is exact to 2**-32. Rarer keys may never
come, but even a Zipf domain of 16 million keys has none. A *guide table* makes that fast: the upper 16 bits (for
domains above 4096: 20) choose a cell. Most cells lie within one key and store it. Cells that contain a border between
keys are marked, and only their events search the borders. A plain quantile table of 2**16 cells would round
probabilities to whole cells, and lose rare keys.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.arrays import Floats, Int32s, Int64s

Lanes = npt.NDArray[np.uint32]

BLOCK_EVENTS = 32_768
"""Events per block, so that a block's data fit in a core's second-level cache."""

_LANES_PER_COUNT = 8
"""One step of Philox's counter gives four words of 64 bits."""

_FIELD_BITS, _PARTITION_BITS = 16, 24

_thread = threading.local()


def empty(rows: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """An uninitialized array, shape (rows,), in Arrow's memory pool.

    The pool reuses the pages of freed batches. NumPy's allocator returns them to the system, and new pages cost more
    (8 ns per event) than the random numbers.
    """
    if rows == 0:
        return np.empty(0, dtype=dtype)
    return np.frombuffer(pa.allocate_buffer(rows * np.dtype(dtype).itemsize), dtype=dtype)


@dataclass(frozen=True)
class PhiloxBits:
    """The lanes of one column of one partition. A change of any of the first four values gives unrelated lanes.

    `key_field` is the number of the field by which the stream is split into `partitions`; -1 without one.
    """

    seed: int
    stream: int
    partition: int
    field: int
    key_field: int = -1
    partitions: int = 1

    @property
    def split(self) -> int:
        """The number of partitions by which this column's values are split; 1 unless it is the key."""
        return self.partitions if self.field == self.key_field else 1

    def lanes(self, first: int, last: int) -> Lanes:
        """Lanes [first, last), shape (last - first,)."""
        count, skip = divmod(first, _LANES_PER_COUNT)
        end = skip + last - first
        # Lanes are the little-endian halves of 64-bit words.
        return self._generator(count).random_raw(-(-end // 2)).astype("<u8", copy=False).view("<u4")[skip:end]

    def blocks(self, first: int, last: int, width: int = 1) -> Iterator[tuple[slice, Lanes]]:
        """The lanes of events [first, last), `width` lanes per event, in pieces of at most `BLOCK_EVENTS` events.

        Yields the slice of the piece in an array of last - first events, and its lanes, shape (events * width,).
        """
        for start in range(first, last, BLOCK_EVENTS):
            end = min(start + BLOCK_EVENTS, last)
            yield slice(start - first, end - first), self.lanes(start * width, end * width)

    def _generator(self, count: int) -> np.random.Philox:
        """This thread's Philox before lane `count * 8`. A new one would first read entropy from the system (16 us)."""
        if not hasattr(_thread, "philox"):
            _thread.philox = np.random.Philox(0)
        place = (self.stream << (_PARTITION_BITS + _FIELD_BITS)) | (self.partition << _FIELD_BITS) | self.field
        key, counter = np.array([self.seed, place], np.uint64), np.array([count, 0, 0, 0], np.uint64)
        _thread.philox.state = {
            "bit_generator": "Philox", "state": {"counter": counter, "key": key},
            "buffer": np.zeros(4, np.uint64), "buffer_pos": 4, "has_uint32": 0, "uinteger": 0,  # nothing is buffered
        }  # fmt: skip
        return _thread.philox


_SEED, _M, _R = np.uint32(0x9747B28C), np.uint32(0x5BD1E995), np.uint32(24)
_BLOCK = 2**18
"""Keys hashed at once, so that temporary arrays stay small."""
_POSITIVE = np.int32(0x7FFFFFFF)

Partitions = npt.NDArray[np.int16]


def murmur2(texts: pa.Array) -> Int32s:
    """The 32-bit murmur2 of each text, as Kafka's Java client computes it, shape (n,). Nulls give the hash of ""."""
    column = pc.fill_null(pc.cast(texts, pa.large_string()), "")
    hashes = np.empty(len(column), np.int32)
    for start in range(0, len(column), _BLOCK):
        block = column.slice(start, _BLOCK)
        hashes[start : start + len(block)] = _hashes(block)
    return hashes


def partitions_of(texts: pa.Array, partitions: int) -> Partitions:
    """The partition of each key by its text, shape (n,)."""
    # Kafka's toPositive clears the sign bit. It does not take the absolute value.
    return ((murmur2(texts) & _POSITIVE) % np.int32(partitions)).astype(np.int16)


def key_texts(values: npt.NDArray[np.generic] | pa.Array) -> pa.Array:
    """Keys as the text that a message carries; null for keys that are null."""
    return pc.cast(pa.array(values) if isinstance(values, np.ndarray) else values, pa.string())


@lru_cache(maxsize=4)
def partitions_of_numbers(domain: int, partitions: int) -> Partitions:
    """The partition of each key 0..domain-1, shape (domain,)."""
    found = np.empty(domain, np.int16)
    for start in range(0, domain, _BLOCK):
        end = min(start + _BLOCK, domain)
        found[start:end] = partitions_of(key_texts(np.arange(start, end)), partitions)
    return found


@lru_cache(maxsize=64)
def keys_of_partition(domain: int, partition: int, partitions: int) -> Int32s:
    """The keys of 0..domain-1 that hash to a partition, ascending."""
    return np.flatnonzero(partitions_of_numbers(domain, partitions) == partition).astype(np.int32)


def _hashes(block: pa.LargeStringArray) -> Int32s:
    _, ends_buffer, data_buffer = block.buffers()
    ends = np.frombuffer(ends_buffer, np.int64)[block.offset : block.offset + len(block) + 1]
    # Padded, so that the last word of a text can be read whole; its foreign bytes are masked.
    size = int(ends[-1]) if len(ends) else 0
    data = np.zeros(size + 4, np.uint8)
    if data_buffer is not None:
        data[:size] = np.frombuffer(data_buffer, np.uint8)[:size]
    starts, lengths = ends[:-1], np.diff(ends)
    with np.errstate(over="ignore"):
        hashes = _SEED ^ lengths.astype(np.uint32)
        for word in range(int(lengths.max(initial=0)) // 4):
            rows = np.flatnonzero(lengths >= 4 * (word + 1))
            mixed = _words(data, starts[rows] + 4 * word) * _M
            mixed = (mixed ^ (mixed >> _R)) * _M
            hashes[rows] = hashes[rows] * _M ^ mixed
        rest = (lengths % 4).astype(np.uint32)
        rows = np.flatnonzero(rest)
        masks = (np.uint32(1) << (np.uint32(8) * rest[rows])) - np.uint32(1)
        hashes[rows] = (hashes[rows] ^ (_words(data, starts[rows] + lengths[rows] // 4 * 4) & masks)) * _M
        hashes = (hashes ^ (hashes >> np.uint32(13))) * _M
        hashes ^= hashes >> np.uint32(15)
    return hashes.view(np.int32)


def _words(data: npt.NDArray[np.uint8], at: Int64s) -> Lanes:
    """The four bytes from each place as a little-endian word."""
    parts = [data[at + byte].astype(np.uint32) << np.uint32(8 * byte) for byte in range(4)]
    return parts[0] | parts[1] | parts[2] | parts[3]


Distribution = Literal["uniform", "normal", "zipf", "single"]
DISTRIBUTIONS: tuple[str, ...] = get_args(Distribution)

DOMAIN_MAX = 2**31 - 1
"""Keys are 32-bit integers."""
TABLE_DOMAIN_MAX = 2**24
"""The largest domain of a distribution that needs a border per key (64 MiB)."""

_MARK = -1
_NORMAL_SIGMAS = 6.0


class Sampler(ABC):
    """Turns random lanes into keys."""

    @abstractmethod
    def fill(self, lanes: Lanes, out: Int32s) -> None:
        """Writes one key per lane to `out` (same shape)."""

    def drawn(self, lanes: Lanes) -> Int32s:
        """One key per lane, in a new array; `lanes` need not be contiguous."""
        out = np.empty(len(lanes), np.int32)
        self.fill(np.ascontiguousarray(lanes), out)
        return out


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

    def __init__(self, probabilities: Floats) -> None:
        guide_bits = 16 if len(probabilities) <= 4096 else 20
        borders = np.floor(np.cumsum(probabilities)[:-1] * 2.0**32 + 0.5)
        self._borders = np.minimum(borders, 2**32 - 1).astype(np.uint32)
        self._shift = np.uint32(32 - guide_bits)
        ends = (np.arange(2**guide_bits, dtype=np.uint64) << self._shift).astype(np.uint32)
        keys = np.searchsorted(self._borders, ends, side="right").astype(np.int32)
        # The key at the lower end of each cell, followed by the last key.
        self._lowest: Int32s = np.append(keys, np.int32(len(self._borders)))
        # The key of each cell, or the mark if the cell contains a border.
        self._guide: Int32s = np.where(keys == self._lowest[1:], keys, np.int32(_MARK))

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

    def __init__(self, keys: Int32s, probabilities: Floats) -> None:
        self._keys = keys
        uniform = (probabilities == probabilities[:1]).all()
        self._place: Sampler = Uniform(len(keys)) if uniform else Table(probabilities / probabilities.sum())

    def fill(self, lanes: Lanes, out: Int32s) -> None:
        self._place.fill(lanes, out)
        out[...] = self._keys[out]


def probabilities(distribution: Distribution, domain: int, exponent: float = 1.0) -> Floats:
    """The probability of each key, shape (domain,).

    `normal` has its mean in the middle of the domain and a sixth of it as standard deviation. Values outside become
    the first or the last key. `zipf` gives key k a weight of 1 / (k + 1)**exponent.
    """
    if distribution == "uniform":
        return np.full(domain, 1.0 / domain)
    if distribution == "normal":
        from scipy.special import ndtr

        below = ndtr((np.arange(1, domain) - domain / 2) / (domain / _NORMAL_SIGMAS))
        return np.diff(below, prepend=0.0, append=1.0)
    if distribution == "zipf":
        weights = np.arange(1, domain + 1, dtype=np.float64) ** -exponent
        return weights / weights.sum()
    return np.concatenate(([1.0], np.zeros(domain - 1)))


@lru_cache(maxsize=64)
def sampler(distribution: Distribution, domain: int, exponent: float = 1.0) -> Sampler:
    """The sampler for keys of 0..domain-1, cached because large tables are slow to make."""
    if distribution == "uniform":
        return Uniform(domain)
    if distribution == "single" or domain == 1:  # key 0: the strongest skew (Karimov et al. 2018, section VI)
        return Uniform(1)
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


def subset_of_partition(chances: Floats, partition: int, partitions: int) -> Subset:
    """The sampler for those keys that hash to a partition; `chances` has the probability of each key."""
    keys = keys_of_partition(len(chances), partition, partitions)
    keys = keys[chances[keys] > 0]
    return Subset(keys, chances[keys])


@lru_cache(maxsize=64)
def partition_shares(distribution: Distribution, domain: int, partitions: int, exponent: float = 1.0) -> Floats | None:
    """The probability that a key hashes to each partition, shape (partitions,); None for domains without a table."""
    if domain > TABLE_DOMAIN_MAX:
        return None
    return shares_of_partitions(probabilities(distribution, domain, exponent), partitions)


def shares_of_partitions(chances: Floats, partitions: int) -> Floats:
    """The probability that a key hashes to each partition; `chances` has the probability of each key."""
    return np.bincount(partitions_of_numbers(len(chances), partitions), chances, partitions).astype(np.float64)
