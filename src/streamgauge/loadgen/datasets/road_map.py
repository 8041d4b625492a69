"""A generated map in the bounding box of Beijing (Bordin 2017, section 3.3.3), or a user's roads from a GeoJSON file.

The generated map has streets, cut into roads at crossings. It replaces the OpenStreetMap extract of the thesis, which
its code does not include. Crossings deviate from a grid, and each road bends twice. All coordinates are whole metres
from the south-western corner, computed with whole numbers, so another language (SQL) can compute exactly the same map.

The plane has metres east and north of the corner. A degree of longitude has its length in the middle of the box
(cosine of the latitude), which differs by 0.3 % from that at the northern and southern edge.

A user's road is a feature of the file with all lines of its geometry, and its number is the feature's position from 0.
Other geometries are ignored. The plane is that of the box around all lines, with the degree of longitude of its middle.
"""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from streamgauge.core.arrays import Floats, Int64s
from streamgauge.core.errors import InputError, Problem

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
    east = i * step + step // 2 + _off(i, j, CROSSING_X, crossing_most(step))
    north = j * step + step // 2 + _off(i, j, CROSSING_Y, crossing_most(step))
    return np.stack([east, north], axis=1)


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
        rule = f"must lie within {DEGREES_MAX:g} degrees each way, and takes {north - south:g} by {east - west:g}"
        raise _refuse(rule, path)
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
            rule = f"must have points of longitude and latitude in degrees (feature {place} of the file, from 0)"
            raise _refuse(rule, path) from None


def _point(point: Any) -> tuple[float, float]:
    longitude, latitude = float(point[0]), float(point[1])
    if not (abs(longitude) <= 180 and abs(latitude) <= 90):
        raise ValueError(point)
    return longitude, latitude


def _refuse(rule: str, path: str) -> InputError:
    return InputError(Problem(SETTING, rule, path, WAY_OUT))
