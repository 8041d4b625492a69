"""Counter-based random bits with random access, so that any slice of an input can be made alone.

A *lane* is 32 random bits. Every column of every partition has its own endless sequence of lanes, numbered from 0.
Lane n is a pure function of (seed, stream, partition, field, n) by NumPy's Philox4x64-10.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

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
        return _read(self._generator(count), skip, last - first)

    def blocks(self, first: int, last: int, width: int = 1) -> Iterator[tuple[slice, Lanes]]:
        """The lanes of events [first, last), `width` lanes per event, in pieces of at most `BLOCK_EVENTS` events.

        Yields the slice of the piece in an array of last - first events, and its lanes, shape (events * width,).
        """
        start = first
        while start < last:
            end = min(start + BLOCK_EVENTS, last)
            yield slice(start - first, end - first), self.lanes(start * width, end * width)
            start = end

    def _generator(self, count: int) -> np.random.Philox:
        """Philox, positioned before lane `count * 8`."""
        place = (self.stream << (_PARTITION_BITS + _FIELD_BITS)) | (self.partition << _FIELD_BITS) | self.field
        return _philox(np.array([self.seed, place], np.uint64), np.array([count, 0, 0, 0], np.uint64))


def _philox(key: npt.NDArray[np.uint64], counter: npt.NDArray[np.uint64]) -> np.random.Philox:
    """This thread's Philox at a key and counter. A new one would first read entropy from the system (16 us)."""
    if not hasattr(_thread, "philox"):
        _thread.philox = np.random.Philox(0)
    place = {"counter": counter, "key": key}
    nothing_buffered = {"buffer": np.zeros(4, np.uint64), "buffer_pos": 4, "has_uint32": 0, "uinteger": 0}
    _thread.philox.state = {"bit_generator": "Philox", "state": place, **nothing_buffered}
    return _thread.philox


def _read(generator: np.random.Philox, skip: int, lanes: int) -> Lanes:
    """The `lanes` after the next `skip`, as little-endian halves of 64-bit words."""
    words = -(-(skip + lanes) // 2)
    return generator.random_raw(words).astype("<u8", copy=False).view("<u4")[skip : skip + lanes]
