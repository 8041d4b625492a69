"""A generated map in the bounding box of Beijing (Bordin 2017, section 3.3.3): streets, cut into roads at crossings.

It replaces the OpenStreetMap extract of the thesis, which its code does not include. Crossings deviate from a grid,
and each road bends twice. All coordinates are whole metres from the south-western corner, computed with whole numbers,
so another language (SQL) can compute exactly the same map.

The plane has metres east and north of the corner. A degree of longitude has its length in the middle of the box
(cosine of the latitude), which differs by 0.3 % from that at the northern and southern edge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import numpy as np

from streamgauge.core.arrays import Floats, Int64s

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
