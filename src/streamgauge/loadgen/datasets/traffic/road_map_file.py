"""Reads a user's roads from the lines of a GeoJSON file, in metres on a plane like the map of `road_map.py`.

A road is a feature of the file with all lines of its geometry, and its number is the feature's position from 0. Other
geometries are ignored. The plane is that of the box around all lines, with the degree of longitude of its middle.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from streamgauge.core.arrays import Floats, Int64s
from streamgauge.core.errors import InputError, Problem
from streamgauge.loadgen.datasets.traffic.road_map import Box

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
