"""A made map in the bounding box of Beijing [thesis §3.3.3]: streets that cross, cut into roads at their crossings.

It stands for the thesis's map of OpenStreetMap, which its code does not ship. Crossings lie off their places, and roads
bend twice on their way. All of it is whole metres from the box's south-western corner, made with whole numbers alone,
so that a statement in another language (SQL) comes to the same map to the last bit.

The plane: metres east and north of the corner. A degree of longitude is taken as long as it is in the middle of the
box (cosine of the latitude), where it is 0.3 % shorter than at the southern edge and as much longer than at the
northern one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt

METRES_NORTH = 111_200
"""Of a degree of latitude, as the thesis has it."""
SIDE = 48_128
"""Metres: the box is as wide as it is high, but for two metres."""
STREETS_MIN, STREETS_MAX = 2, 200
VERTICES = 4
"""Of a road: two crossings, and two bends a third of the way from each."""
CROSSING_X, CROSSING_Y, BEND_X, BEND_Y = range(4)
"""What `mixed` is asked for."""
FACTORS, PRIME = (7_919, 104_729, 1_299_709, 12_345), 2**31 - 1
"""Of `mixed`; the square of a number below the prime still fits into 64 bits."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Number = TypeVar("Number", int, Ints)


@dataclass(frozen=True)
class Box:
    """The bounds of a map, in degrees."""

    south: float
    north: float
    west: float
    east: float

    @property
    def metres_east(self) -> int:
        """Of a degree of longitude: whole, so that a statement in another language has the same."""
        return round(METRES_NORTH * math.cos(math.radians((self.south + self.north) / 2)))

    def to_plane(self, lat: Floats, lon: Floats) -> tuple[Floats, Floats]:
        """Metres east and north of the south-western corner."""
        return (lon - self.west) * self.metres_east, (lat - self.south) * METRES_NORTH


BOX = Box(39.689602, 40.122410, 116.105789, 116.670021)
"""Of the made map."""


def mixed(first: Number, second: Number, kind: int) -> Number:
    """A number of 0..PRIME-1 for each two others, that looks like chance."""
    seed = (first * FACTORS[0] + second * FACTORS[1] + (kind * FACTORS[2] + FACTORS[3])) % PRIME
    return seed * seed % PRIME


@lru_cache(maxsize=4)
def roads(streets: int) -> Floats:
    """The vertices of each road in metres east and north, shape (roads, 4, 2); a road's place is its number.

    `streets` of them lead from west to east, the southernmost first, then as many from south to north, the westernmost
    first. The roads of a street follow each other: the p-th of street q has the number q * (streets - 1) + p.
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
    found = (((VERTICES - 1 - along) * start + along * end) // (VERTICES - 1) + bends).astype(np.float64)
    found.flags.writeable = False
    return found


def road_count(streets: int) -> int:
    return 2 * streets * (streets - 1)


def crossing_most(step: int) -> int:
    """How far off its place a crossing lies at most, where places are `step` metres apart."""
    return step // 5


def bend_most(step: int) -> int:
    """How far a road bends from its straight way at most."""
    return step // 20


def _crossings(step: int, i: Ints, j: Ints) -> Ints:
    """The i-th crossing from the west and j-th from the south, shape (len(i), 2)."""
    east = i * step + step // 2 + _off(i, j, CROSSING_X, crossing_most(step))
    north = j * step + step // 2 + _off(i, j, CROSSING_Y, crossing_most(step))
    return np.stack([east, north], axis=1)


def _off(first: Ints, second: Ints, kind: int, most: int) -> Ints:
    """A whole number of -most..most."""
    return mixed(first, second, kind) % (2 * most + 1) - most
