"""Logs for trials of many hours, which store records as columns of numbers.

A trial adds about a hundred records per second. An object takes 200 to 700 bytes, most of them for its numbers. A
column takes eight bytes per number. Records are created again on access.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, TypeVar, overload

from streamgauge.metrics.records import Usage
from streamgauge.transports.spi import BusyInterval, Chunk

T = TypeVar("T")

TEXT = "s"
"""The code of text columns with few different values, in addition to the type codes of `array`."""


class ColumnarLog(Sequence[T]):
    """An append-only log: the sequence of its records.

    Args:
        make: creates a record from its values.
        values: returns the values of a record, in that order.
        codes: the code of each column: a type code of `array`, or `TEXT`.
    """

    def __init__(self, make: Callable[..., T], values: Callable[[T], Iterable[Any]], codes: str) -> None:
        self._make, self._values = make, values
        self._columns: list[Any] = [_Texts() if code == TEXT else array(code) for code in codes]

    def append(self, record: T) -> None:
        for column, value in zip(self._columns, self._values(record), strict=True):
            column.append(value)

    def extend(self, records: Iterable[T]) -> None:
        for record in records:
            self.append(record)

    def __len__(self) -> int:
        return len(self._columns[0])

    def __iter__(self) -> Iterator[T]:
        return map(self._make, *self._columns)

    def __reversed__(self) -> Iterator[T]:
        return map(self._make, *map(reversed, self._columns))

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> list[T]: ...
    def __getitem__(self, place: int | slice) -> T | list[T]:
        values = [column[place] for column in self._columns]
        return list(map(self._make, *values)) if isinstance(place, slice) else self._make(*values)


Log = ColumnarLog[T] | list[T]
"""Tests may use a list."""


class _Texts(Sequence[str]):
    """A text column that stores each text once, and its number at every place."""

    def __init__(self) -> None:
        self._places = array("i")
        self._texts: list[str] = []
        self._numbers: dict[str, int] = {}

    def append(self, text: str) -> None:
        if text not in self._numbers:
            self._numbers[text] = len(self._texts)
            self._texts.append(text)
        self._places.append(self._numbers[text])

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        numbers = self._places[place]
        return self._texts[numbers] if isinstance(numbers, int) else [self._texts[number] for number in numbers]


def _pair(since_us: int, until_us: int) -> BusyInterval:
    return since_us, until_us


def chunk_log() -> ColumnarLog[Chunk]:
    """The log of one generator's chunks."""
    return ColumnarLog(Chunk, attrgetter("from_us", "to_us", "events", "published_us"), "qqqq")


def spent_log() -> ColumnarLog[BusyInterval]:
    return ColumnarLog(_pair, iter, "qq")


def usage_log() -> ColumnarLog[Usage]:
    names = ("time_us", "name", "role", "cpu_percent", "memory_bytes", "core_wait_us", "kind")
    return ColumnarLog(Usage, attrgetter(*names), "qssdqds")
