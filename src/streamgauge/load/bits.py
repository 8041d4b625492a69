"""Random bits that can be read from anywhere: counter-based, so that any slice of an input can be made alone.

A *lane* is 32 random bits. Every column of every partition has an endless row of lanes of its own, numbered from 0;
lane n is a pure function of (seed, stream, partition, field, n) through NumPy's Philox4x64-10.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Lanes = npt.NDArray[np.uint32]

BLOCK_EVENTS = 16_384
"""Events worked on at once, so that what they need stays in a core's second-level cache."""

_LANES_PER_COUNT = 8
"""One step of Philox's counter makes four words of 64 bits."""

_FIELD_BITS, _PARTITION_BITS = 16, 24


@dataclass(frozen=True)
class Bits:
    """The lanes of one column of one partition; another value of any of the four gives other, unrelated lanes."""

    seed: int
    stream: int
    partition: int
    field: int

    def lanes(self, first: int, last: int) -> Lanes:
        """Lanes [first, last), shape (last - first,)."""
        count, skip = divmod(first, _LANES_PER_COUNT)
        return _read(self._generator(count), skip, last - first)

    def blocks(self, first: int, last: int, width: int = 1) -> Iterator[tuple[slice, Lanes]]:
        """The lanes of events [first, last), `width` lanes an event, in pieces of at most `BLOCK_EVENTS` events.

        Yields where the piece lies in an array of last - first events, and its lanes, shape (events * width,).
        """
        count, skip = divmod(first * width, _LANES_PER_COUNT)
        generator = self._generator(count)
        start = first
        while start < last:
            # Pieces end at whole blocks, so that the generator then stands exactly where the next one begins.
            end = min(start - start % BLOCK_EVENTS + BLOCK_EVENTS, last)
            yield slice(start - first, end - first), _read(generator, skip, (end - start) * width)
            start, skip = end, 0

    def _generator(self, count: int) -> np.random.Philox:
        """Philox, standing before the lane `count * 8`."""
        place = (self.stream << (_PARTITION_BITS + _FIELD_BITS)) | (self.partition << _FIELD_BITS) | self.field
        key = np.array([self.seed, place], dtype=np.uint64)
        return np.random.Philox(key=key, counter=np.array([count, 0, 0, 0], dtype=np.uint64))


def _read(generator: np.random.Philox, skip: int, lanes: int) -> Lanes:
    """The `lanes` after the next `skip`, as little-endian halves of 64-bit words."""
    words = -(-(skip + lanes) // 2)
    return generator.random_raw(words).astype("<u8", copy=False).view("<u4")[skip : skip + lanes]
