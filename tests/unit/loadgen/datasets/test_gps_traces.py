"""Traces of taxis: near the roads they drive on, planted shares."""

from dataclasses import replace

import numpy as np
import pytest

from streamgauge.loadgen.datasets.gps_traces import (
    BOX,
    GPS_METRES,
    NOISE,
    OUTLIER_HIGH,
    SLOW,
    SPEED_GRID,
    USUAL_HIGH,
    USUAL_LOW,
    Coordinate,
    Speed,
    Taxis,
    road_count,
    roads,
)
from streamgauge.loadgen.fields import Key
from streamgauge.loadgen.random import PhiloxBits

STREETS = 10
TAXI = Key("taxi", 40)
TAXIS = Taxis(TAXI, 0, STREETS)
LAT, LON = Coordinate("lat", TAXIS, "lat", 0.25), Coordinate("lon", TAXIS, "lon")


def bits(place: int, partition: int = 0) -> PhiloxBits:
    return PhiloxBits(seed=1, stream=0, partition=partition, field=place)


def plain(**shares: float) -> Speed:
    """Speeds without anything planted but `shares`."""
    return Speed("speed", TAXIS, **({"slow_downs": 0.0, "outliers": 0.0, "stopped": 0.0} | shares))


def where(last: int, partition: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The exact places of the taxis of the events before `last`, and their roads: (metres, shape (last, 2)), roads."""
    road, along = TAXIS.on_roads(bits(1, partition), 0, last)
    place = np.empty((last, 2))
    for number, (one, share) in enumerate(zip(road, along, strict=True)):
        part = min(int(share * 3), 2)
        start, end = roads(STREETS)[one, part], roads(STREETS)[one, part + 1]
        place[number] = start + (share * 3 - part) * (end - start)
    return place, road


def test_a_taxi_is_the_same_in_every_partition() -> None:
    """Two generators tell of one taxi: the same road at the same number, if both events are of that taxi."""
    ones, twos = (TAXI.column(bits(0, partition), 0, 20_000) for partition in (0, 1))
    same = np.flatnonzero(ones == twos)
    roads_of = [TAXIS.on_roads(bits(1, partition), 0, 20_000)[0] for partition in (0, 1)]
    assert len(same) > 300
    assert np.array_equal(roads_of[0][same], roads_of[1][same])


def test_a_taxi_drives_up_and_down_its_street() -> None:
    """One street for each; from one event to the next it hardly moves; in a million it has been on every road."""
    street_roads = STREETS - 1
    for first in (0, 10**12):
        taxis = TAXI.column(bits(0), first, first + 2**20)
        road, along = TAXIS.on_roads(bits(1), first, first + 2**20)
        assert ((along >= 0) & (along <= 1)).all()
        for taxi in range(0, 40, 10):
            mine = np.flatnonzero(taxis == taxi)
            assert len(np.unique(road[mine] // street_roads)) == 1
            assert len(np.unique(road[mine])) == street_roads
            way = road[mine] % street_roads + along[mine]
            assert np.abs(np.diff(way)).max() < 0.1
            assert np.diff(way).min() < 0 < np.diff(way).max()


def test_a_trace_lies_near_its_taxi() -> None:
    """Within 15 m east and north, half of them within about 4.4 m of each: the sum of two even numbers is peaked."""
    lat = replace(LAT, outside=0.0).column(bits(1), 0, 4000)
    metres = np.stack(BOX.to_plane(lat, LON.column(bits(2), 0, 4000)), axis=1)
    off = np.abs(metres - where(4000)[0])
    assert off.max() < GPS_METRES + 1e-6
    # Half of the area of a triangle lies within 1 - sqrt(1/2) of its height.
    assert np.median(off, axis=0) == pytest.approx(np.full(2, GPS_METRES * (1 - 0.5**0.5)), rel=0.1)
    assert np.corrcoef(off.T)[0, 1] == pytest.approx(0, abs=0.1)


def test_traces_outside_of_the_box_are_as_many_as_planted() -> None:
    """All others are inside."""
    lat, lon = LAT.column(bits(1), 0, 40_000), LON.column(bits(2), 0, 40_000)
    inside = (lat >= BOX.south) & (lat <= BOX.north)
    assert 1 - inside.mean() == pytest.approx(0.25, abs=0.01)
    assert ((lon >= BOX.west) & (lon <= BOX.east)).all()


def test_a_road_has_its_usual_speed() -> None:
    """Within a quarter; roads differ; all speeds lie on the grid."""
    speeds, road = plain().column(bits(3), 0, 60_000), where(60_000)[1]
    assert np.array_equal(speeds * SPEED_GRID, np.rint(speeds * SPEED_GRID))
    assert USUAL_LOW * (1 - NOISE) <= speeds.min() <= speeds.max() <= USUAL_HIGH * (1 + NOISE)
    often = [one for one in range(road_count(STREETS)) if (road == one).sum() > 300]
    means = np.array([speeds[road == one].mean() for one in often])
    assert np.ptp(means) > 20
    for one, mean in zip(often, means, strict=True):
        assert np.ptp(speeds[road == one]) == pytest.approx(2 * NOISE * mean, rel=0.1)


def test_a_slow_road_is_slow_for_all_for_a_while() -> None:
    """Against the same speeds without slow-downs: all of a road in one stretch of events, or none."""
    last = 2**16
    ratio = plain(slow_downs=0.5).column(bits(3), 0, last) / plain().column(bits(3), 0, last)
    road, stretch = where(last)[1], np.arange(last) >> 15
    is_slow = np.abs(ratio - SLOW) < 0.01
    assert (is_slow | (ratio == 1)).all()
    shares = np.array(
        [is_slow[(road == one) & (stretch == at)].mean() for at in range(2) for one in np.unique(road[stretch == at])]
    )
    assert set(shares) == {0.0, 1.0}
    assert shares.mean() == pytest.approx(0.5, abs=0.15)


def test_planted_speeds_are_as_many_as_declared() -> None:
    """A quarter stands, a tenth goes far faster than the rest on its road; both leave the other speeds alone."""
    usual, planted = plain().column(bits(3), 0, 40_000), plain(stopped=0.25, outliers=0.1).column(bits(3), 0, 40_000)
    assert (planted == 0).mean() == pytest.approx(0.25, abs=0.01)
    fast = planted > usual
    assert fast.mean() == pytest.approx(0.1, abs=0.01)
    # Both come of one number: the least is 2 instead of 0.75 times the usual speed, the greatest 4 instead of 1.25.
    ratio = planted[fast] / usual[fast]
    assert ratio.min() > 2.6
    assert ratio.max() < 3.3
    assert planted.max() <= USUAL_HIGH * OUTLIER_HIGH
    assert np.array_equal(planted[(planted > 0) & ~fast], usual[(planted > 0) & ~fast])
