"""Roads of one's own: what a file says, and one clear message where it says nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamgauge.core.errors import InputError
from streamgauge.loadgen.datasets.traffic.gps_traces import GPS_METRES, Coordinate, Taxis
from streamgauge.loadgen.datasets.traffic.road_map import METRES_NORTH
from streamgauge.loadgen.datasets.traffic.road_map_file import read_roads
from streamgauge.loadgen.fields import Key
from streamgauge.loadgen.random.philox import PhiloxBits


def written(folder: Path, *geometries: Any) -> str:
    """The path of a file with a feature of each geometry."""
    features = [{"type": "Feature", "properties": {}, "geometry": geometry} for geometry in geometries]
    path = folder / "roads.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return str(path)


def line(*points: Any) -> dict[str, Any]:
    return {"type": "LineString", "coordinates": points}


def test_a_file_by_hand(tmp_path: Path) -> None:
    """A road is a feature with all its lines; what is no line is no road, and a part that leads nowhere is none."""
    lines = {"type": "MultiLineString", "coordinates": [[[0, 0], [0, 0.5]], [[0.5, 0.5], [0.5, 0.5], [1, 0.5, 7]]]}
    path = written(tmp_path, {"type": "Point", "coordinates": [90, 9]}, line([0, -0.5], [1, 0.5]), None, lines)
    found = read_roads(path)
    assert (found.box.south, found.box.north, found.box.west, found.box.east) == (-0.5, 0.5, 0.0, 1.0)
    assert found.box.metres_east == METRES_NORTH  # the equator is in the middle
    assert found.parts.road.tolist() == [1, 3, 3]
    half = METRES_NORTH / 2
    assert found.parts.start.tolist() == [[0, 0], [0, half], [half, 2 * half]]
    assert found.parts.way.tolist() == [[2 * half, 2 * half], [0, half], [half, 0]]
    assert found.parts.first.tolist() == [0, 1, 3]


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
    with pytest.raises(InputError, match=rule) as refused:
        read_roads(str(path))
    (problem,) = refused.value.problems
    assert (problem.setting, problem.got) == ("set map_matcher_shapefile", str(path))
    assert "GeoJSON" in problem.way_out


@pytest.mark.parametrize("content", [None, b"\x00\x00\x27\x0a\xff\xfe", b""])
def test_what_is_no_geojson_is_refused(tmp_path: Path, content: bytes | None) -> None:
    """No file; the bytes of a shapefile, with what makes one of it; nothing."""
    path = tmp_path / "roads.shp"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=r"must be (GeoJSON|a file)") as refused:
        read_roads(str(path))
    assert "ogr2ogr" in refused.value.problems[0].way_out


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
