"""The times in messages of programs of the user's own: their units, and which of them can be those of a run."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from streamgauge.core.clock import US

UNITS = {"s": US, "ms": 1000, "us": 1}
"""Microseconds by the name of a unit."""
FAR_US = 86_400 * US
"""A time farther from now has another unit, or is of no result."""


def is_near(time_us: float, now_us: int) -> bool:
    """Whether a time can be that of a result, to a day."""
    return abs(time_us - now_us) <= FAR_US


def units_of(times: Iterable[float], now_us: int) -> list[str]:
    """The names of the units in which all these numbers are near."""
    numbers = list(times)
    return [unit for unit, unit_us in UNITS.items() if all(is_near(number * unit_us, now_us) for number in numbers)]


def in_year(time_us: float) -> str:
    """`in 1970`, or that there is no such year."""
    try:
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time_us)).strftime("in %Y")
    except OverflowError:
        return "out of range"
