"""The made map: worked by hand, within its box, streets that cross and go on, and the plane."""

from __future__ import annotations

import math

import numpy as np
import pytest

from streamgauge.loadgen.datasets.traffic.road_map import (
    BOX,
    METRES_NORTH,
    PRIME,
    SIDE,
    STREETS_MAX,
    STREETS_MIN,
    mixed,
    road_count,
    roads,
)
from tests.unit.loadgen.datasets.traffic.helpers_degrees import to_degrees

EACH_SIZE = pytest.mark.parametrize("streets", [STREETS_MIN, 3, 50, STREETS_MAX])


def test_a_crossing_worked_by_hand() -> None:
    """Two streets each way are 24064 m apart, and a crossing lies up to 4812 m off its place (of 9625 possibilities).

    East: 12345**2 = 152399025, which is 6400 modulo 9625; 12032 + 6400 - 4812 = 13620.
    North: (1299709 + 12345)**2 modulo 2**31 - 1 = 1351297669, which is 5419 modulo 9625; 12032 + 5419 - 4812 = 12639.
    """
    assert mixed(0, 0, 0) == 152_399_025
    assert mixed(0, 0, 1) == 1_351_297_669
    assert roads(2)[0, 0].tolist() == [13_620, 12_639]


@EACH_SIZE
def test_the_map_is_whole_metres_within_the_box(streets: int) -> None:
    """So that sums of them are exact; and each part of a road has a length."""
    vertices = roads(streets)
    assert vertices.shape == (road_count(streets), 4, 2)
    assert np.array_equal(vertices, np.rint(vertices))
    assert vertices.min() > 0
    assert vertices.max() < SIDE
    assert np.hypot(*(np.diff(vertices, axis=1).reshape(-1, 2).T)).min() > 1


@EACH_SIZE
def test_a_street_goes_on_from_road_to_road(streets: int) -> None:
    """Its roads follow each other, from west to east or from south to north."""
    by_street = roads(streets).reshape(2 * streets, streets - 1, 4, 2)
    assert np.array_equal(by_street[:, :-1, -1], by_street[:, 1:, 0])
    assert (by_street[:streets, :, -1, 0] > by_street[:streets, :, 0, 0]).all()
    assert (by_street[streets:, :, -1, 1] > by_street[streets:, :, 0, 1]).all()


@EACH_SIZE
def test_streets_meet_at_their_crossings(streets: int) -> None:
    """The i-th road of the j-th street to the east begins where the j-th road of the i-th street to the north does."""
    east, north = roads(streets)[:, 0].reshape(2, streets, streets - 1, 2)
    inner = streets - 1
    assert np.array_equal(east[:inner], north[:inner].transpose(1, 0, 2))


def test_a_map_is_made_once_and_cannot_be_changed() -> None:
    """All that ask share it."""
    assert roads(5) is roads(5)
    with pytest.raises(ValueError, match="read-only"):
        roads(5)[0, 0, 0] = 1.0


def test_the_plane_is_the_box() -> None:
    """Its corners, there and back; a degree of longitude is shorter by the cosine of the latitude."""
    lat, lon = np.array([BOX.south, BOX.north]), np.array([BOX.west, BOX.east])
    east, north = BOX.to_plane(lat, lon)
    assert (east[0], north[0]) == (0, 0)
    assert [east[1], north[1]] == pytest.approx([SIDE, SIDE], abs=2)
    back = to_degrees(east, north)
    assert np.allclose(back, (lat, lon), rtol=0, atol=1e-12)
    middle = math.radians((BOX.south + BOX.north) / 2)
    assert abs(METRES_NORTH * math.cos(middle) - BOX.metres_east) < 1


def test_mixed_numbers_are_spread_evenly() -> None:
    """Over all that a crossing asks for: about as many in each tenth."""
    grid = np.arange(200)
    found = mixed(grid[:, None], grid[None, :], 1)
    assert found.min() >= 0
    assert found.max() < PRIME
    tenths = np.bincount((found.ravel() * 10 // PRIME), minlength=10)
    assert tenths == pytest.approx(np.full(10, 4000), rel=0.1)
