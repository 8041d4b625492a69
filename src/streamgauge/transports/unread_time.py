"""The event time that waits to be read: one definition for every outlet.

Two plans of a test bed may lie apart in event time. What was never offered cannot wait, so a gap does not count: a
generator that waited for a read of it would wait for ever.
"""

from __future__ import annotations

from collections import deque


class UnreadTime:
    """The chunks of one partition that were offered and not read.

    A chunk without events counts only behind one with events. At the front nothing of it can be read.
    """

    def __init__(self) -> None:
        self._chunks: deque[tuple[int, int, int]] = deque()
        self._read_us = self._chunks_us = self.events = 0

    @property
    def read_us(self) -> int:
        """The event time up to which everything was read; 0 before the first read."""
        return self._read_us

    @property
    def us(self) -> int:
        """The event time of the chunks that wait, without the part of the first one that was read, microseconds."""
        if not self._chunks:
            return 0
        return self._chunks_us - max(0, self._read_us - self._chunks[0][0])

    def with_chunk(self, from_us: int, to_us: int) -> int:
        """The event time that would wait with one more chunk, microseconds."""
        return self.us + to_us - from_us

    def add(self, from_us: int, to_us: int, events: int) -> None:
        """A chunk was offered."""
        self._chunks.append((from_us, to_us, events))
        self._chunks_us += to_us - from_us
        self.events += events
        self._drop_read()

    def read(self, before_us: int) -> None:
        """Everything before `before_us` was read. Earlier times than before change nothing."""
        self._read_us = max(self._read_us, before_us)
        self._drop_read()

    def _drop_read(self) -> None:
        while self._chunks and (self._chunks[0][1] <= self._read_us or not self._chunks[0][2]):
            from_us, to_us, events = self._chunks.popleft()
            self._chunks_us -= to_us - from_us
            self.events -= events
