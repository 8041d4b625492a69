"""GPS traces of taxis on the made map of `roads.py`: where they are, roughly, and how fast they go.

Each taxi drives up and down a street of its own, most taxis on the first streets (Zipf's frequencies); on a map of
one's own (`road_file.py`), up and down a road, each of its straight parts in the same time. It moves on with
the events of its generator, not with seconds, so that a place is a pure function of the event's number and the same
traces come at every rate. What goes wrong with such traces is planted in known shares: places outside of the map's box,
taxis that stand, speeds that cannot be, and roads on which all are slow for a while.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from streamgauge.core.errors import InputError, Problem
from streamgauge.loadgen.datasets.traffic.road_map import BOX, METRES_NORTH, STREETS_MAX, STREETS_MIN, VERTICES, roads
from streamgauge.loadgen.datasets.traffic.road_map_file import read_roads
from streamgauge.loadgen.fields import FieldSpec, Key
from streamgauge.loadgen.random.distributions import sampler
from streamgauge.loadgen.random.philox import Lanes, PhiloxBits, empty

SPEED_GRID = 64
"""Speeds are whole multiples of 1/64 km/h."""
USUAL_LOW, USUAL_HIGH = 20.0, 80.0
"""km/h: every road has a usual speed of its own between these."""
NOISE = 0.25
"""How far a speed lies from its road's at most, as a share of it."""
SLOW = 0.7
"""What is left of the speed where a road is slow."""
OUTLIER_LOW, OUTLIER_HIGH = 2.0, 4.0
"""A planted outlier is between so many times the road's usual speed."""
GPS_METRES = 15.0
"""How far a trace lies from the taxi at most, in each direction; half of that is far likelier."""
OUTSIDE_DEGREES = 1.0
"""How far to the north of the taxi a trace outside of the box lies."""
ROAD_LOG_EVENTS, SLOW_LOG_EVENTS = 14, 15
"""log2 of the events of a generator in which a taxi of middling pace passes a road, and for which a road is slow."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Routes = tuple[npt.NDArray[np.int32], Floats, Floats]
"""Of each taxi: its street, where on its way up and down it begins, and its pace in roads."""

# Fields of a stream that stand for no column of it: all partitions and columns see the same routes and roads.
_ROUTES, _USUAL, _SLOW = 2**15, 2**15 + 1, 2**15 + 2


@dataclass(frozen=True)
class Taxis:
    """The taxis that the stream's field `taxi` (number `taxi_place`) names, on a map of `streets` streets each way, or
    on that of a file.
    """

    taxi: Key
    taxi_place: int
    streets: int
    file: str = ""

    def __post_init__(self) -> None:
        if not STREETS_MIN <= self.streets <= STREETS_MAX:
            rule = f"must be {STREETS_MIN} to {STREETS_MAX}"
            raise InputError(Problem("streets", rule, self.streets, "50"))

    @property
    def streets_and_roads(self) -> tuple[int, int]:
        """How many streets there are, and how many roads each has."""
        if self.file:
            return len(read_roads(self.file).parts.first) - 1, 1
        return 2 * self.streets, self.streets - 1

    @property
    def origin(self) -> dict[str, tuple[float, float]]:
        """Of each axis: the degrees of the map's corner, and the metres of a degree."""
        box = read_roads(self.file).box if self.file else BOX
        return {"lat": (box.south, METRES_NORTH), "lon": (box.west, box.metres_east)}

    def places(self, road: Ints, along: Floats, axis: int) -> Floats:
        """Metres from the map's corner, to the east (0) or to the north (1)."""
        if self.file:
            parts = read_roads(self.file).parts
            first, many = parts.first[:-1][road], np.diff(parts.first)[road]
            part = np.minimum((along * many).astype(np.int64), many - 1)
            return parts.start[first + part, axis] + (along * many - part) * parts.way[first + part, axis]
        vertices = roads(self.streets)[:, :, axis]
        thirds = along * (VERTICES - 1)
        part = np.minimum(thirds.astype(np.int64), VERTICES - 2)
        before, after = vertices[road, part], vertices[road, part + 1]
        return before + (thirds - part) * (after - before)

    def on_roads(self, bits: PhiloxBits, first: int, last: int) -> tuple[Ints, Floats]:
        """The road on which the taxi of each event is, and how far along it: 0 to 1."""
        taxis = self.taxi.column(replace(bits, field=self.taxi_place), first, last)
        streets, longest = self.streets_and_roads
        street, start, pace = _routes(_everywhere(bits, _ROUTES), self.taxi.domain, streets, longest)
        way = start[taxis] + pace[taxis] * (np.arange(first, last) / 2**ROAD_LOG_EVENTS)
        way %= 2 * longest
        way = np.minimum(way, 2 * longest - way)
        place = np.minimum(way.astype(np.int64), longest - 1)
        return street[taxis] * np.int64(longest) + place, way - place


@dataclass(frozen=True)
class Coordinate(FieldSpec):
    """Latitude or longitude of a taxi in degrees, as GPS has it; a share `outside` (0 to 1) lies outside of the box."""

    taxis: Taxis
    axis: Literal["lat", "lon"]
    outside: float = 0.0
    spark_type: ClassVar[str] = "double"

    def __post_init__(self) -> None:
        _check_share(f"{self.name}.outside", self.outside)

    def column(self, bits: PhiloxBits, first: int, last: int) -> Floats:
        out = empty(last - first, np.float64)
        origin, metres = self.taxis.origin[self.axis]
        for part, lanes, road, along in _blocks(self.taxis, bits, first, last):
            exact = self.taxis.places(road, along, 1 if self.axis == "lat" else 0) + GPS_METRES * _peaked(lanes[::2])
            degrees = origin + exact / metres
            out[part] = np.where(lanes[1::2] < self.outside * 2.0**32, degrees + OUTSIDE_DEGREES, degrees)
        return out


@dataclass(frozen=True)
class Speed(FieldSpec):
    """How fast a taxi goes, in km/h: as usual on its road, give or take a quarter.

    A share `slow_downs` of the roads is slow at a time. Of the events, a share `stopped` has speed 0, and a share
    `outliers` twice to four times the usual speed (all from 0 to 1, the last two together too).
    """

    taxis: Taxis
    slow_downs: float
    outliers: float
    stopped: float
    spark_type: ClassVar[str] = "double"

    def __post_init__(self) -> None:
        for share in ("slow_downs", "outliers", "stopped"):
            _check_share(f"{self.name}.{share}", getattr(self, share))
        _check_share(f"{self.name}.outliers + stopped", self.outliers + self.stopped)

    def column(self, bits: PhiloxBits, first: int, last: int) -> Floats:
        out = empty(last - first, np.float64)
        usual = _usual(_everywhere(bits, _USUAL), math.prod(self.taxis.streets_and_roads))
        for part, lanes, road, _ in _blocks(self.taxis, bits, first, last):
            size, kind = lanes[::2] * 2.0**-32, lanes[1::2] * 2.0**-32
            ordinary = (1 + NOISE * (2 * size - 1)) * self._pace(bits, road, first + part.start)
            far = OUTLIER_LOW + (OUTLIER_HIGH - OUTLIER_LOW) * size
            share = np.where(kind < self.stopped + self.outliers, far, ordinary)
            share[kind < self.stopped] = 0.0
            np.divide(np.rint(usual[road] * share * SPEED_GRID), SPEED_GRID, out=out[part])
        return out

    def _pace(self, bits: PhiloxBits, road: Ints, first: int) -> Floats:
        """What is left of the usual speed on each road, at the events from `first` on."""
        cells = np.arange(first, first + len(road)) >> SLOW_LOG_EVENTS
        low, high = int(cells[0]), int(cells[-1])
        lanes, count = _everywhere(bits, _SLOW), math.prod(self.taxis.streets_and_roads)
        slow = np.stack([_slow(lanes, cell, count, self.slow_downs) for cell in range(low, high + 1)])
        return np.where(slow[cells - low, road], SLOW, 1.0)


def _blocks(taxis: Taxis, bits: PhiloxBits, first: int, last: int) -> Iterator[tuple[slice, Lanes, Ints, Floats]]:
    """The events in pieces: where each lies, two lanes an event, the road and how far along it."""
    for part, lanes in bits.blocks(first, last, width=2):
        yield part, lanes, *taxis.on_roads(bits, first + part.start, first + part.stop)


def _check_share(setting: str, share: float) -> None:
    if not 0 <= share <= 1:
        raise InputError(Problem(setting, "must be a share from 0 to 1", share, "0.01"))


def _everywhere(bits: PhiloxBits, field: int) -> PhiloxBits:
    return replace(bits, partition=0, field=field)


def _peaked(lanes: Lanes) -> Floats:
    """Lanes as numbers of [-1, 1), those in the middle the likeliest: the sum of two even ones."""
    return ((lanes & np.uint32(0xFFFF)) + (lanes >> np.uint32(16))) * 2.0**-16 - 1.0


@lru_cache(maxsize=16)
def _routes(bits: PhiloxBits, taxis: int, streets: int, longest: int) -> Routes:
    lanes = bits.lanes(0, 3 * taxis)
    shares = lanes.astype(np.float64) * 2.0**-32
    start = shares[1::3] * (2 * longest)
    return sampler("zipf", streets).drawn(lanes[::3]), start, 0.5 + shares[2::3]


@lru_cache(maxsize=16)
def _usual(bits: PhiloxBits, count: int) -> Floats:
    return USUAL_LOW + (USUAL_HIGH - USUAL_LOW) * 2.0**-32 * bits.lanes(0, count).astype(np.float64)


@lru_cache(maxsize=64)
def _slow(bits: PhiloxBits, cell: int, count: int, share: float) -> npt.NDArray[np.bool_]:
    return bits.lanes(cell * count, (cell + 1) * count) < share * 2.0**32
