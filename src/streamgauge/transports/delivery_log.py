"""Who read what of a stream and when: each event is stamped with its ingest time at its first delivery.

A job may read a stream several times: by several queries, or by branches of one query. An event is ingested at its
first delivery to any reader, and later deliveries carry that time. Redelivery to the same reader (retried task,
restarted query) is distinguished from the first delivery to another reader.
"""

import bisect
from itertools import pairwise

from streamgauge.transports.spi import Delivery

Reader = tuple[str, int]
"""(query, number of its reader of the stream)."""


class ReadLog:
    """The log of one stream."""

    def __init__(self, stream: str) -> None:
        self._stream = stream
        self._first: list[Delivery] = []
        self._had: dict[Reader, list[tuple[int, int]]] = {}
        self._reached: dict[Reader, int] = {}

    def note(self, from_us: int, to_us: int, batch: int, reader: Reader, now_us: int) -> list[Delivery]:
        """Splits one read into first deliveries, redeliveries and shared parts, in order; `events` is not set.

        First deliveries get `now_us` as ingest time, other parts that of their first delivery.
        """
        had = self._had.setdefault(reader, [])
        parts = []
        spans = [*((part.from_us, part.to_us) for part in self._first), *had]
        inside = {border for span in spans for border in span if from_us < border < to_us}
        for low, high in pairwise(sorted({from_us, to_us, *inside})):
            first_us = next((part.ingest_us for part in self._first if part.from_us <= low < part.to_us), None)
            is_redelivery = any(begin <= low < end for begin, end in had)
            shared = first_us is not None and not is_redelivery
            ingest_us = now_us if first_us is None else first_us
            parts.append(Delivery(self._stream, low, high, 0, ingest_us, batch, is_redelivery, *reader, shared, now_us))
        had += [(part.from_us, part.to_us) for part in parts if not part.again]
        self._first = sorted([*self._first, *(part for part in parts if part.first)], key=lambda part: part.from_us)
        self._reached[reader] = max(self._reached.get(reader, 0), to_us)
        return parts

    @property
    def reached_us(self) -> int:
        """The event time up to which every reader has read; 0 before the first read."""
        return min(self._reached.values(), default=0)

    def forget(self, before_us: int) -> None:
        """Drops entries before `before_us`."""
        del self._first[: bisect.bisect_right(self._first, before_us, key=lambda part: part.to_us)]
        for reader, had in self._had.items():
            self._had[reader] = [(begin, end) for begin, end in had if end > before_us]
