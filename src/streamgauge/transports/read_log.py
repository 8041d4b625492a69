"""Who has read what of one stream of one partition, and when it was handed out first.

A job may read a stream more than once: several queries do, and one query does where its flow branches. An event counts
as ingested at its first hand-out of all, and every later one carries that stamp; what a reader asks for again (a task
was retried, a query started anew) is told from what another reader has had before.
"""

from __future__ import annotations

import bisect
from itertools import pairwise

from streamgauge.transports.spi import Delivery

Reader = tuple[str, int]
"""(query, which of its readers of the stream)."""


class ReadLog:
    """The log of one stream."""

    def __init__(self, stream: str) -> None:
        self._stream = stream
        self._first: list[Delivery] = []
        self._had: dict[Reader, list[tuple[int, int]]] = {}
        self._reached: dict[Reader, int] = {}

    def note(self, from_us: int, to_us: int, batch: int, reader: Reader, now_us: int) -> list[Delivery]:
        """One read as parts, in order, `events` not counted: each part new, read before by this reader, or by another.

        New parts are stamped `now_us`, the others as when they were handed out first.
        """
        had = self._had.setdefault(reader, [])
        parts = []
        for low, high in pairwise(self._borders(from_us, to_us, had)):
            stamp = next((part.ingest_us for part in self._first if part.from_us <= low < part.to_us), None)
            again = any(begin <= low < end for begin, end in had)
            shared = stamp is not None and not again
            ingest_us = now_us if stamp is None else stamp
            parts.append(Delivery(self._stream, low, high, 0, ingest_us, batch, again, *reader, shared, now_us))
        had += [(part.from_us, part.to_us) for part in parts if not part.again]
        self._first = sorted([*self._first, *(part for part in parts if part.first)], key=lambda part: part.from_us)
        self._reached[reader] = max(self._reached.get(reader, 0), to_us)
        return parts

    @property
    def reached_us(self) -> int:
        """The event time up to which every reader has read; 0 before the first one."""
        return min(self._reached.values(), default=0)

    def forget(self, before_us: int) -> None:
        """Nobody will ask for what lies before `before_us`."""
        del self._first[: bisect.bisect_right(self._first, before_us, key=lambda part: part.to_us)]
        for reader, had in self._had.items():
            self._had[reader] = [(begin, end) for begin, end in had if end > before_us]

    def _borders(self, from_us: int, to_us: int, had: list[tuple[int, int]]) -> list[int]:
        known = [(part.from_us, part.to_us) for part in self._first] + had
        inside = {border for pair in known for border in pair if from_us < border < to_us}
        return sorted({from_us, to_us} | inside)
