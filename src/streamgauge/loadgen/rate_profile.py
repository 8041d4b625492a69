"""Rate profiles: the rate of a plan over time.

A profile is piecewise linear in time and always above zero, so its integral (events so far) has an inverse: the time
of the n-th event. Times are seconds since the plan's start, rates are events per second. After its last piece a
profile continues at its last rate, because the tail of a trial needs events too.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from streamgauge.core.arrays import Floats
from streamgauge.core.errors import nearest, require
from streamgauge.core.units import parse_duration, parse_rate

RISES_FROM, RISES_TO = 0.1, 0.7
RATE_MAX_PER_S = 1e9
"""Far above any machine's rate. Higher rates would overflow before validation could refuse them."""
FORMS = "constant, step:RATE@TIME,RATE@TIME, ramp:RATE or burst:FACTOR@TIME+LENGTH"


@dataclass(frozen=True)
class Piece:
    """A linear piece from `start_s` until the next one: `rate_per_s` at its start, and `slope_per_s2` per second."""

    start_s: float
    rate_per_s: float
    slope_per_s2: float = 0.0

    def events_after(self, seconds: float) -> float:
        """Events in the first `seconds` of the piece."""
        return (self.rate_per_s + 0.5 * self.slope_per_s2 * seconds) * seconds


@dataclass(frozen=True)
class RateProfile:
    """The rate over time (see `parse_profile`). The first piece starts at 0, the last has no end and no slope."""

    pieces: tuple[Piece, ...]

    @cached_property
    def _starts(self) -> list[float]:
        return [piece.start_s for piece in self.pieces]

    @cached_property
    def _events(self) -> Floats:
        """Events before each piece: shape (pieces,)."""
        # The last piece has no length.
        each = [piece.events_after(length) for piece, length in zip(self.pieces, np.diff(self._starts), strict=False)]
        return np.concatenate(([0.0], np.cumsum(each)))

    @cached_property
    def _columns(self) -> Floats:
        """Start, rate and slope of each piece: shape (3, pieces)."""
        return np.array([(piece.start_s, piece.rate_per_s, piece.slope_per_s2) for piece in self.pieces]).T

    def _piece_at(self, t_s: float) -> int:
        return max(bisect_right(self._starts, t_s) - 1, 0)

    def rate_at(self, t_s: float) -> float:
        """The rate at `t_s`; at a step, the rate after it."""
        piece = self.pieces[self._piece_at(t_s)]
        return piece.rate_per_s + piece.slope_per_s2 * max(t_s - piece.start_s, 0.0)

    @cached_property
    def _rises_first(self) -> bool:
        """Whether the first piece is the rise of a warm-up, which ends below the rate that follows."""
        first, *others = self.pieces
        if not (first.slope_per_s2 and others):
            return False
        reached = first.rate_per_s + first.slope_per_s2 * others[0].start_s
        return not math.isclose(reached, others[0].rate_per_s)

    @property
    def changes(self) -> bool:
        """Whether the rate changes after the rise of a warm-up."""
        shape = self.pieces[self._rises_first :]
        return any(piece.slope_per_s2 or piece.rate_per_s != shape[0].rate_per_s for piece in shape)

    def shape_at(self, t_s: Floats) -> Floats:
        """The rates at these times, shape of `t_s`; in the rise of a warm-up, the rate after it."""
        starts, rates, slopes = self._columns
        index = np.maximum(np.searchsorted(starts, t_s, side="right") - 1, int(self._rises_first))
        return rates[index] + slopes[index] * np.maximum(t_s - starts[index], 0.0)

    def events_by(self, t_s: float) -> float:
        """Events from the start to `t_s`: the integral of the rate, 0 before the start."""
        if t_s <= 0:
            return 0.0
        index = self._piece_at(t_s)
        piece = self.pieces[index]
        return float(self._events[index]) + piece.events_after(t_s - piece.start_s)

    def time_of(self, n: npt.NDArray[Any]) -> Floats:
        """The times at which `n` events have passed, seconds: the elementwise inverse of `events_by`, shape of `n`.

        Each value depends only on its own element. Values are monotone for elements at least one event apart in plans
        of fewer than 1e14 events, because rounding errors are then far below one event.
        """
        if len(self.pieces) == 1:
            return n / self.pieces[0].rate_per_s
        first, last = self._pieces_of(np.array([n.min(), n.max()] if n.size else [0, 0]))
        index = first if first == last else self._pieces_of(n)
        starts, rates, slopes = self._columns
        inside = n - self._events[index]
        if first == last and slopes[first] == 0.0:
            # Equal to `_solve` to the last bit: in binary floating point sqrt(r * r) is r, and 2m / 2r is m / r.
            return starts[first] + inside / rates[first]
        return starts[index] + _solve(inside, rates[index], slopes[index])

    def _pieces_of(self, n: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
        """The pieces in which these numbers of events have passed, shape of `n`."""
        return np.maximum(np.searchsorted(self._events, n, side="right") - 1, 0)

    def delayed(self, lead_s: float, rise_s: float = 0.0) -> RateProfile:
        """The profile with `lead_s` of its first rate before it, such as a warm-up.

        In the first `rise_s` the rate rises linearly from a tenth to seven tenths of that rate.
        """
        first, *others = self.pieces
        later = [replace(piece, start_s=piece.start_s + lead_s) for piece in others]
        if first.slope_per_s2:
            later = [replace(first, start_s=lead_s), *later]
        least, most = RISES_FROM * first.rate_per_s, RISES_TO * first.rate_per_s
        rise = [Piece(0.0, least, (most - least) / rise_s)] if rise_s > 0 else []
        return RateProfile((*rise, Piece(rise_s, first.rate_per_s), *later))


def _solve(events: Floats, rate: Floats | float, slope: Floats | float) -> Floats:
    """The time t with rate * t + slope * t**2 / 2 = events, in a form that stays exact for small slopes."""
    return 2.0 * events / (rate + np.sqrt(rate * rate + 2.0 * slope * events))


def parse_profile(text: str, rate_per_s: float, duration_s: float) -> RateProfile:
    """Parses a profile that begins at `rate_per_s` and lasts `duration_s` seconds.

    `constant` | `step:RATE@TIME,RATE@TIME` | `ramp:RATE` (linearly from the rate to RATE over the duration) |
    `burst:FACTOR@TIME+LENGTH` (the rate times FACTOR for LENGTH). Raises `InputError` with the setting's name.
    """
    for setting, value, unit, way_out in (
        ("rate", rate_per_s, "events per second", "--rate 100k"),
        ("duration", duration_s, "seconds", "--duration 60s"),
    ):
        require(0 < value < math.inf, setting, f"must be a number of {unit} above 0", value, way_out)
    kind, _, rest = text.strip().partition(":")
    if kind == "constant" and not rest:
        return RateProfile((Piece(0.0, rate_per_s),))
    meant = nearest(kind, ("constant", *_FORMS))
    shape = _Shape(text, meant, duration_s)
    shape.require(kind in _FORMS, f"must be one of {FORMS}")
    return RateProfile(_FORMS[kind](shape, rest, rate_per_s))


class _Shape(NamedTuple):
    """A profile as typed, its kind or the most similar one, and the seconds that it lasts."""

    text: str
    kind: str
    duration_s: float

    def require(self, holds: object, rule: str) -> None:
        require(holds, "load.profile", rule, self.text, f"--load-shape {self._example}")

    @property
    def _example(self) -> str:
        """A profile of the kind, which fits the duration."""
        half, later, sixth = (f"{share * self.duration_s:.6g}s" for share in (1 / 2, 3 / 4, 1 / 6))
        examples = {
            "step": f"step:200k@{half},50k@{later}", "ramp": "ramp:200k", "burst": f"burst:1.5@{half}+{sixth}",
        }  # fmt: skip
        return examples.get(self.kind, self.kind)


def _steps(shape: _Shape, rest: str, rate_per_s: float) -> tuple[Piece, ...]:
    pieces = [Piece(0.0, rate_per_s)]
    for part in rest.split(","):
        rate, _, time = part.partition("@")
        piece = Piece(_time(shape, time), _rate(shape, rate))
        rises = pieces[-1].start_s < piece.start_s < shape.duration_s
        shape.require(rises, f"times must rise, above 0 and below the duration of {shape.duration_s:g} s")
        pieces.append(piece)
    return tuple(pieces)


def _ramp(shape: _Shape, rest: str, rate_per_s: float) -> tuple[Piece, ...]:
    last = _rate(shape, rest)
    return Piece(0.0, rate_per_s, (last - rate_per_s) / shape.duration_s), Piece(shape.duration_s, last)


def _burst(shape: _Shape, rest: str, rate_per_s: float) -> tuple[Piece, ...]:
    factor, _, span = rest.partition("@")
    time, _, length = span.partition("+")
    highest = _within(shape, rate_per_s * _number(shape, factor, float, "a factor above 0 such as 1.5", above=0.0))
    start, end = _time(shape, time), _time(shape, time) + _time(shape, length)
    rule = f"the burst must begin after 0 and end within the duration of {shape.duration_s:g} s"
    shape.require(0 < start < end <= shape.duration_s, rule)
    return Piece(0.0, rate_per_s), Piece(start, highest), Piece(end, rate_per_s)


def _rate(shape: _Shape, part: str) -> float:
    return _within(shape, _number(shape, part, parse_rate, "a rate above 0 such as 100k"))


def _within(shape: _Shape, rate_per_s: float) -> float:
    rule = f"its rates must be at most 1G events/s, and one is {rate_per_s:g}"
    shape.require(rate_per_s <= RATE_MAX_PER_S, rule)
    return rate_per_s


def _time(shape: _Shape, part: str) -> float:
    return _number(shape, part, parse_duration, "a time such as 500ms, 30s or 2m; a number alone is seconds")


def _number(shape: _Shape, part: str, parse: Callable[[str], float], kind: str, above: float = -math.inf) -> float:
    """A part of a profile as a finite number; InputError if it is not of this kind."""
    try:
        number = parse(part)
    except ValueError:  # InputError too
        number = math.nan
    shape.require(above < number < math.inf, f"{part!r} must be {kind}")
    return number


_FORMS = {"step": _steps, "ramp": _ramp, "burst": _burst}
