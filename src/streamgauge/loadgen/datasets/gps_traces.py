"""GPS traces of taxis on the generated map of `road_map.py`: approximate position and speed.

Each taxi drives up and down one street, most taxis on the first streets (Zipf's frequencies). On a user's map
it drives up and down one road, with equal times for its straight parts. Taxis move with the events
of their generator and not with time. So a position is a pure function of the event's number, and traces are the same
at every rate. Errors are planted in known shares: positions outside the map, standing taxis, impossible speeds, and
roads that are slow for a while.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from streamgauge.core.arrays import Floats, Int64s
from streamgauge.loadgen.datasets.road_map import (
    BOX,
    METRES_NORTH,
    STREETS_MAX,
    STREETS_MIN,
    VERTICES,
    read_roads,
    roads,
)
from streamgauge.loadgen.fields import FieldSpec, Key, Limits, a_count, a_share
from streamgauge.loadgen.random import Lanes, PhiloxBits, empty, sampler

SPEED_GRID = 64
"""Speeds are whole multiples of 1/64 km/h."""
USUAL_LOW, USUAL_HIGH = 20.0, 80.0
"""The range of the roads' usual speeds, km/h."""
NOISE = 0.25
"""The largest deviation of a speed from its road's usual speed, as a share."""
SLOW = 0.7
"""The speed on slow roads as a share of the usual speed."""
OUTLIER_LOW, OUTLIER_HIGH = 2.0, 4.0
"""The range of planted outliers as multiples of the road's usual speed."""
GPS_METRES = 15.0
"""The largest GPS error in each direction; small errors are more likely."""
OUTSIDE_DEGREES = 1.0
"""The distance to the north of the taxi for positions outside the map."""
ROAD_LOG_EVENTS, SLOW_LOG_EVENTS = 14, 15
"""log2 of a generator's events in which an average taxi passes a road, and for which a road stays slow."""

Routes = tuple[npt.NDArray[np.int32], Floats, Floats]
"""For each taxi: its street, its start on the way up and down, and its speed in roads."""

# Field numbers without a column, so that all partitions and columns share the routes and roads.
_ROUTES, _USUAL, _SLOW = 2**15, 2**15 + 1, 2**15 + 2


@dataclass(frozen=True)
class Taxis:
    """The taxis of the stream's field `taxi` (number `taxi_place`), on a map of `streets` streets each way, or on a
    user's map.
    """

    taxi: Key
    taxi_place: int
    streets: int
    file: str = ""

    def __post_init__(self) -> None:
        a_count(STREETS_MAX, "50", least=STREETS_MIN).check("streets", self.streets)

    @property
    def streets_and_roads(self) -> tuple[int, int]:
        """The number of streets, and of roads per street."""
        if self.file:
            return len(read_roads(self.file).parts.first) - 1, 1
        return 2 * self.streets, self.streets - 1

    @property
    def origin(self) -> dict[str, tuple[float, float]]:
        """For each axis: the degrees of the map's corner, and the metres per degree."""
        box = read_roads(self.file).box if self.file else BOX
        return {"lat": (box.south, METRES_NORTH), "lon": (box.west, box.metres_east)}

    def places(self, road: Int64s, along: Floats, axis: int) -> Floats:
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

    def on_roads(self, bits: PhiloxBits, first: int, last: int) -> tuple[Int64s, Floats]:
        """The road of each event's taxi, and its position along the road from 0 to 1."""
        taxis = self.taxi.column(replace(bits, field=self.taxi_place), first, last)
        streets, longest = self.streets_and_roads
        street, start, pace = _routes(_everywhere(bits, _ROUTES), self.taxi.domain, streets, longest)
        distance = start[taxis] + pace[taxis] * (np.arange(first, last) / 2**ROAD_LOG_EVENTS)
        distance %= 2 * longest
        distance = np.minimum(distance, 2 * longest - distance)
        place = np.minimum(distance.astype(np.int64), longest - 1)
        return street[taxis] * np.int64(longest) + place, distance - place


@dataclass(frozen=True)
class Coordinate(FieldSpec):
    """GPS latitude or longitude of a taxi in degrees; a share `outside` (0 to 1) lies outside the map."""

    taxis: Taxis
    axis: Literal["lat", "lon"]
    outside: float = 0.0
    sql_type: ClassVar[str] = "double"
    limits: ClassVar[Mapping[str, Limits]] = {"outside": a_share("0.01")}

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
    """A taxi's speed in km/h, within a quarter of its road's usual speed.

    A share `slow_downs` of the roads is slow at a time. A share `stopped` of the events has speed 0, and a share
    `outliers` two to four times the usual speed (all from 0 to 1; `stopped` and `outliers` sum to at most 1).
    """

    taxis: Taxis
    slow_downs: float
    outliers: float
    stopped: float
    sql_type: ClassVar[str] = "double"
    limits: ClassVar[Mapping[str, Limits]] = dict.fromkeys(("slow_downs", "outliers", "stopped"), a_share("0.01"))

    def __post_init__(self) -> None:
        super().__post_init__()
        a_share("0.01").check(f"{self.name}.outliers + stopped", self.outliers + self.stopped)

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

    def _pace(self, bits: PhiloxBits, road: Int64s, first: int) -> Floats:
        """The share of the usual speed on each event's road, for events from `first`."""
        cells = np.arange(first, first + len(road)) >> SLOW_LOG_EVENTS
        low, high = int(cells[0]), int(cells[-1])
        lanes, count = _everywhere(bits, _SLOW), math.prod(self.taxis.streets_and_roads)
        slow = np.stack([_slow(lanes, cell, count, self.slow_downs) for cell in range(low, high + 1)])
        return np.where(slow[cells - low, road], SLOW, 1.0)


def _blocks(taxis: Taxis, bits: PhiloxBits, first: int, last: int) -> Iterator[tuple[slice, Lanes, Int64s, Floats]]:
    """The events in pieces: slice, two lanes per event, road and position along it."""
    for part, lanes in bits.blocks(first, last, width=2):
        yield part, lanes, *taxis.on_roads(bits, first + part.start, first + part.stop)


def _everywhere(bits: PhiloxBits, field: int) -> PhiloxBits:
    return replace(bits, partition=0, field=field)


def _peaked(lanes: Lanes) -> Floats:
    """Lanes as numbers in [-1, 1) with a triangular distribution: the sum of two uniform ones."""
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
