"""The made map: worked by hand, within its box, streets that cross and go on, and the plane.

Roads of one's own: what a file says, and one clear message where it says nothing.
"""

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamgauge.loadgen.datasets.gps_traces import (
    BOX,
    GPS_METRES,
    METRES_NORTH,
    SIDE,
    STREETS_MAX,
    STREETS_MIN,
    Coordinate,
    Taxis,
    mixed,
    read_roads,
    road_count,
    roads,
)
from streamgauge.loadgen.fields import Key
from streamgauge.loadgen.random import PhiloxBits
from tests.unit.helpers_refusals import problem_of
from tests.unit.loadgen.datasets.helpers_degrees import to_degrees

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
    assert 0 < vertices.min() < vertices.max() < SIDE
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


def test_the_plane_is_the_box() -> None:
    """Its corners, there and back; a degree of longitude is shorter by the cosine of the latitude."""
    lat, lon = np.array([BOX.south, BOX.north]), np.array([BOX.west, BOX.east])
    east, north = BOX.to_plane(lat, lon)
    assert (east[0], north[0]) == (0, 0)
    assert [east[1], north[1]] == pytest.approx([SIDE, SIDE], abs=2)
    assert np.allclose(to_degrees(east, north), (lat, lon), rtol=0, atol=1e-12)
    middle = math.radians((BOX.south + BOX.north) / 2)
    assert abs(METRES_NORTH * math.cos(middle) - BOX.metres_east) < 1


def written(folder: Path, *geometries: Any) -> str:
    """The path of a file with a feature of each geometry; a quotation mark in it is none of SQL's."""
    features = [{"type": "Feature", "properties": {}, "geometry": geometry} for geometry in geometries]
    path = folder / "somebody's roads.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return str(path)


def line(*points: Any) -> dict[str, Any]:
    return {"type": "LineString", "coordinates": points}


def test_a_file_by_hand(tmp_path: Path) -> None:
    """A road is a feature with all its lines; what is no line is no road, and a part that leads nowhere is none."""
    lines = {"type": "MultiLineString", "coordinates": [[[0, 0], [0, 0.5]], [[0.5, 0.5], [0.5, 0.5], [1, 0.5, 7]]]}
    path = written(tmp_path, {"type": "Point", "coordinates": [90, 9]}, line([0, -0.5], [1, 0.5]), None, lines)
    box, parts, half = read_roads(path).box, read_roads(path).parts, METRES_NORTH / 2
    assert (box.south, box.north, box.west, box.east) == (-0.5, 0.5, 0.0, 1.0)
    assert box.metres_east == METRES_NORTH  # the equator is in the middle
    assert parts.road.tolist() == [1, 3, 3]
    assert parts.start.tolist() == [[0, 0], [0, half], [half, 2 * half]]
    assert parts.way.tolist() == [[2 * half, 2 * half], [0, half], [half, 0]]
    assert parts.first.tolist() == [0, 1, 3]


BAD: dict[str, list[Any]] = {
    "must be GeoJSON with a list of features": [{"type": "LineString"}, [1], 1],
    "must have roads": [{"features": []}, {"features": [{"geometry": {"type": "Point", "coordinates": [1, 1]}}]}],
    r"longitude and latitude in degrees \(feature 0": [
        {"features": [{"geometry": line([181, 0], [0, 0])}]},
        {"features": [{"geometry": line([0, 91], [0, 0])}]},
        {"features": [{"geometry": line(["x", 0], [0, 0])}]},
        {"features": [{"geometry": line([0], [0, 0])}]},
        {"features": [{"geometry": line(["nan", 0], [0, 0])}]},
        {"features": [{"geometry": {"type": "LineString"}}]},
        {"features": [{"geometry": 1}]},
        {"features": [{}]},
        {"features": [1]},
    ],
    "within 2 degrees": [{"features": [{"geometry": line([0, 0], [2.1, 0])}]}],
    "leads somewhere": [{"features": [{"geometry": line([1, 1], [1, 1])}]}],
}


@pytest.mark.parametrize(("rule", "whole"), [(rule, whole) for rule, every in BAD.items() for whole in every])
def test_a_file_without_roads_is_refused(tmp_path: Path, rule: str, whole: Any) -> None:
    """With the rule, the path and what would do."""
    path = tmp_path / "roads.geojson"
    path.write_text(json.dumps(whole))
    problem = problem_of(read_roads, str(path))
    assert (problem.setting, problem.got) == ("set map_matcher_shapefile", str(path))
    assert re.search(rule, problem.rule)
    assert "GeoJSON" in problem.way_out


@pytest.mark.parametrize("content", [None, b"\x00\x00\x27\x0a\xff\xfe", b""])
def test_what_is_no_geojson_is_refused(tmp_path: Path, content: bytes | None) -> None:
    """No file; the bytes of a shapefile, with what makes one of it; nothing."""
    path = tmp_path / "roads.shp"
    if content is not None:
        path.write_bytes(content)
    assert "ogr2ogr" in problem_of(read_roads, str(path)).way_out


def test_taxis_drive_on_the_roads_of_a_file(tmp_path: Path) -> None:
    """Each within GPS's reach of its road, on all of it, and any slice alone is the same."""
    path = written(tmp_path, line([10, 50], [10.1, 50], [10.1, 50.1]), line([10, 50.2], [10.3, 50.2]))
    taxis = Taxis(Key("taxi", 50), 0, 50, path)
    box = read_roads(path).box
    lat, lon = (Coordinate(name, taxis, name) for name in ("lat", "lon"))
    places = [field.column(PhiloxBits(1, 0, 0, 1 + place), 0, 200_000) for place, field in enumerate((lat, lon))]
    assert lat.column(PhiloxBits(1, 0, 0, 1), 40_000, 40_010).tolist() == places[0][40_000:40_010].tolist()
    x, y = box.to_plane(*places)
    reach = GPS_METRES + 1e-6
    east, north = 0.1 * box.metres_east, 0.1 * METRES_NORTH
    first = (abs(y) <= reach) & (x >= -reach) & (x <= east + reach)
    second = (abs(x - east) <= reach) & (y >= -reach) & (y <= north + reach)
    third = (abs(y - 2 * north) <= reach) & (x >= -reach) & (x <= 3 * east + reach)
    assert np.all(first | second | third)
    assert min(np.mean(first), np.mean(second), np.mean(third)) > 0.1
    assert x[first].max() - x[first].min() > 0.9 * east
