"""Roads, and GPS traces of taxis on them: approximate position and speed.

**Roads** come from a generated map in the bounding box of Beijing (Bordin 2017, section 3.3.3), or from a user's
GeoJSON file.

The generated map has streets, cut into roads at crossings. It replaces the OpenStreetMap extract of the thesis, which
its code does not include. Crossings deviate from a grid, and each road bends twice. All coordinates are whole metres
from the south-western corner, computed with whole numbers, so another language (SQL) can compute exactly the same map.

The plane has metres east and north of the corner. A degree of longitude has its length in the middle of the box
(cosine of the latitude), which differs by 0.3 % from that at the northern and southern edge.

A user's road is a feature of the file with all lines of its geometry, and its number is the feature's position from 0.
Other geometries are ignored. The plane is that of the box around all lines, with the degree of longitude of its middle.

**Traces:** each taxi drives up and down one street, most taxis on the first streets (Zipf's frequencies). On a user's
map it drives up and down one road, with equal times for its straight parts. Taxis move with the events of their
generator and not with time. So a position is a pure function of the event's number, and traces are the same at every
rate. Errors are planted in known shares: positions outside the map, standing taxis, impossible speeds, and
roads that are slow for a while.
"""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np

from streamgauge.core.arrays import Bools, Floats, Int32s, Int64s
from streamgauge.core.errors import InputError, Problem
from streamgauge.loadgen.fields import FieldSpec, Key
from streamgauge.loadgen.random import Lanes, PhiloxBits, empty, sampler

METRES_NORTH = 111_200
"""Metres per degree of latitude, as in Bordin 2017."""
SIDE = 48_128
"""Width and height of the box in metres, which differ by two metres."""
STREETS_MIN, STREETS_MAX = 2, 200
VERTICES = 4
"""The vertices of a road: two crossings, and two bends at its thirds."""
CROSSING_X, CROSSING_Y, BEND_X, BEND_Y = range(4)
"""The kinds of `mixed`."""
FACTORS, PRIME = (7_919, 104_729, 1_299_709, 12_345), 2**31 - 1
"""Constants of `mixed`. The square of a number below the prime fits into 64 bits."""

Number = TypeVar("Number", int, Int64s)


@dataclass(frozen=True)
class Box:
    """The bounds of a map, in degrees."""

    south: float
    north: float
    west: float
    east: float

    @property
    def metres_east(self) -> int:
        """Metres per degree of longitude; a whole number, so that other languages get the same."""
        return round(METRES_NORTH * math.cos(math.radians((self.south + self.north) / 2)))

    def to_plane(self, lat: Floats, lon: Floats) -> tuple[Floats, Floats]:
        """Metres east and north of the south-western corner."""
        return (lon - self.west) * self.metres_east, (lat - self.south) * METRES_NORTH


BOX = Box(39.689602, 40.122410, 116.105789, 116.670021)
"""The bounds of the generated map."""


def mixed(first: Number, second: Number, kind: int) -> Number:
    """A pseudo-random number of 0..PRIME-1 for two others."""
    seed = (first * FACTORS[0] + second * FACTORS[1] + (kind * FACTORS[2] + FACTORS[3])) % PRIME
    return seed * seed % PRIME


@lru_cache(maxsize=4)
def roads(streets: int) -> Floats:
    """The vertices of each road in metres east and north, shape (roads, 4, 2), by number of the road.

    `streets` streets lead from west to east, southernmost first. As many lead from south to north, westernmost first.
    The p-th road of street q has the number q * (streets - 1) + p.
    """
    step = SIDE // streets
    street, place = np.divmod(np.arange(road_count(streets), dtype=np.int64), streets - 1)
    eastward = (street < streets).astype(np.int64)
    i, j = np.where(eastward, place, street - streets), np.where(eastward, street, place)
    start = _crossings(step, i, j)[:, None]
    end = _crossings(step, i + eastward, j + 1 - eastward)[:, None]
    part = np.arange(VERTICES, dtype=np.int64)
    number = np.arange(len(street), dtype=np.int64)[:, None]
    bends = np.stack([_off(number, part, kind, bend_most(step)) for kind in (BEND_X, BEND_Y)], axis=2)
    bends[:, [0, -1]] = 0
    along = part[:, None]
    vertices = (((VERTICES - 1 - along) * start + along * end) // (VERTICES - 1) + bends).astype(np.float64)
    vertices.flags.writeable = False
    return vertices


def road_count(streets: int) -> int:
    return 2 * streets * (streets - 1)


def crossing_most(step: int) -> int:
    """The largest deviation of a crossing from a grid of `step` metres."""
    return step // 5


def bend_most(step: int) -> int:
    """The largest deviation of a road's bend from the straight line."""
    return step // 20


def _crossings(step: int, i: Int64s, j: Int64s) -> Int64s:
    """The i-th crossing from the west and j-th from the south, shape (len(i), 2)."""
    axes = ((i, CROSSING_X), (j, CROSSING_Y))
    return np.stack([at * step + step // 2 + _off(i, j, kind, crossing_most(step)) for at, kind in axes], axis=1)


def _off(first: Int64s, second: Int64s, kind: int, most: int) -> Int64s:
    """A pseudo-random whole number of -most..most."""
    return mixed(first, second, kind) % (2 * most + 1) - most


DEGREES_MAX = 2.0
"""The largest extent of a box, because a plane cannot represent larger areas."""
SETTING = "set map_matcher_shapefile"
WAY_OUT = "a GeoJSON file of lines in degrees, such as ogr2ogr -f GeoJSON roads.geojson roads.shp writes"

Line = list[tuple[float, float]]


@dataclass(frozen=True, eq=False)
class Parts:
    """Straight parts of roads in order: start and vector of each, shape (n, 2), and its road, shape (n,)."""

    start: Floats
    way: Floats
    road: Int64s

    @cached_property
    def first(self) -> Int64s:
        """The index of each road's first part, followed by the number of parts. Roads without parts are left out."""
        return np.append(np.flatnonzero(np.diff(self.road, prepend=-1)), len(self.road))


@dataclass(frozen=True, eq=False)
class RoadFile:
    box: Box
    parts: Parts


@lru_cache(maxsize=4)
def read_roads(path: str) -> RoadFile:
    """The roads of a file. Raises InputError if it has none."""
    lines = list(_lines(_features(path), path))
    points = np.array([point for _, line in lines for point in line], np.float64).reshape(-1, 2)
    if not len(points):
        raise _refuse("must have roads: LineString or MultiLineString", path)
    (west, south), (east, north) = points.min(axis=0), points.max(axis=0)
    if north - south > DEGREES_MAX or east - west > DEGREES_MAX:
        raise _refuse(
            f"must lie within {DEGREES_MAX:g} degrees each way, and takes {north - south:g} by {east - west:g}", path
        )
    box = Box(float(south), float(north), float(west), float(east))
    metres = np.stack(box.to_plane(points[:, 1], points[:, 0]), axis=1)
    line = np.repeat(np.arange(len(lines)), [len(points) for _, points in lines])
    road = np.array([road for road, _ in lines], np.int64)[line]
    way = np.diff(metres, axis=0)
    parts = np.flatnonzero((line[1:] == line[:-1]) & way.any(axis=1))
    if not len(parts):
        raise _refuse("must have a road that leads somewhere", path)
    return RoadFile(box, Parts(metres[parts], way[parts], road[parts]))


def _features(path: str) -> list[Any]:
    try:
        whole = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise _refuse(f"must be a file that can be read ({error.strerror})", path) from None
    except ValueError:  # no UTF-8, or no JSON: a .shp file is neither
        raise _refuse("must be GeoJSON", path) from None
    features = whole.get("features") if isinstance(whole, dict) else None
    if not isinstance(features, list):
        raise _refuse("must be GeoJSON with a list of features", path)
    return features


def _lines(features: list[Any], path: str) -> Iterator[tuple[int, Line]]:
    """The position of each feature with each of its lines: points of (longitude, latitude)."""
    for place, feature in enumerate(features):
        try:
            geometry = feature["geometry"] or {}
            kind = geometry.get("type")
            if kind in ("LineString", "MultiLineString"):
                coordinates = geometry["coordinates"]
                for line in coordinates if kind == "MultiLineString" else [coordinates]:
                    yield place, [_point(point) for point in line]
        except (AttributeError, LookupError, TypeError, ValueError):
            raise _refuse(
                f"must have points of longitude and latitude in degrees (feature {place} of the file, from 0)", path
            ) from None


def _point(point: Any) -> tuple[float, float]:
    longitude, latitude = float(point[0]), float(point[1])
    if not (abs(longitude) <= 180 and abs(latitude) <= 90):
        raise ValueError(point)
    return longitude, latitude


def _refuse(rule: str, path: str) -> InputError:
    return InputError(Problem(SETTING, rule, path, WAY_OUT))


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

Routes = tuple[Int32s, Floats, Floats]
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
    return sampler("zipf", streets).drawn(lanes[::3]), shares[1::3] * (2 * longest), 0.5 + shares[2::3]


@lru_cache(maxsize=16)
def _usual(bits: PhiloxBits, count: int) -> Floats:
    return USUAL_LOW + (USUAL_HIGH - USUAL_LOW) * 2.0**-32 * bits.lanes(0, count).astype(np.float64)


@lru_cache(maxsize=64)
def _slow(bits: PhiloxBits, cell: int, count: int, share: float) -> Bools:
    return bits.lanes(cell * count, (cell + 1) * count) < share * 2.0**32
