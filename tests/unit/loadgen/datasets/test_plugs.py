"""Readings of smart plugs: houses as they should be, loads around their peaks, planted and malformed
ones.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from streamgauge.loadgen.datasets.plugs import (
    HOUSEHOLDS,
    LOAD,
    PEAKS_W,
    PHASES_S,
    PLUGS,
    SWING_W,
    WORK,
    Grid,
    PlugId,
    PlugProperty,
    PlugValue,
    grid,
)
from streamgauge.loadgen.fields import FieldSpec
from streamgauge.loadgen.random import PhiloxBits

BITS = PhiloxBits(seed=1, stream=0, partition=0, field=0)
HOUSES = 10
SOUND = PlugValue("value", HOUSES, heavy=0.0, malformed=0.0, speed=600, events_per_second=1000)
FIELDS: list[FieldSpec] = [
    replace(SOUND, heavy=0.1, malformed=0.25),
    PlugProperty("property"),
    PlugId("plug_id", HOUSES, "plug"),
    PlugId("household_id", HOUSES, "household"),
    PlugId("house_id", HOUSES, "house"),
]


def values(field: FieldSpec, first: int, last: int, bits: PhiloxBits = BITS) -> Any:
    """As NumPy has them: a null is NaN."""
    made = field.column(bits, first, last)
    return made if isinstance(made, np.ndarray) else made.to_numpy(zero_copy_only=False)


def turns(rounds: int, **changed: Any) -> tuple[Grid, np.ndarray]:
    """The plugs, and the loads of each of them turn by turn: shape (rounds, plugs)."""
    plugs = grid(BITS, HOUSES)
    made = values(replace(SOUND, **changed), 0, 2 * len(plugs.plug) * rounds)
    return plugs, made[::2].reshape(rounds, len(plugs.plug))


def test_houses_have_households_and_those_have_plugs() -> None:
    """As many as there may be, each with a number of its own, from 0; every peak and phase comes."""
    plugs = grid(BITS, 100)
    assert plugs.house.tolist() == sorted(plugs.house)
    in_house = [len(set(plugs.household[plugs.house == house])) for house in range(100)]
    assert {min(in_house), max(in_house)} == set(HOUSEHOLDS)
    homes: dict[tuple[int, int], list[int]] = {}
    for house, household, plug in zip(plugs.house, plugs.household, plugs.plug, strict=True):
        homes.setdefault((int(house), int(household)), []).append(int(plug))
    assert all(numbers == list(range(len(numbers))) for numbers in homes.values())
    assert {len(numbers) for numbers in homes.values()} == set(range(PLUGS[0], PLUGS[1] + 1))
    assert set(plugs.peak_w.tolist()) == set(PEAKS_W)
    assert set(plugs.phase_s.tolist()) == set(PHASES_S)
    begun = plugs.shift_s / plugs.phase_s
    assert ((begun >= 0) & (begun < 1)).all()
    for phase_s in PHASES_S:  # at any place of a phase, however long it is
        assert np.ptp(begun[plugs.phase_s == phase_s]) > 0.9


def test_every_plug_is_read_in_its_turn() -> None:
    """First its load, then its work; then the next plug."""
    plugs = grid(BITS, HOUSES)
    once = 2 * len(plugs.plug)
    kinds, numbers, households, houses = (values(field, 0, 2 * once) for field in FIELDS[1:])
    assert kinds.tolist() == [LOAD, WORK] * once
    expected = np.stack([plugs.plug, plugs.household, plugs.house])
    assert np.array_equal(np.stack([numbers, households, houses])[:, :once:2], expected)
    assert np.array_equal(np.stack([numbers, households, houses])[:, once + 1 :: 2], expected)


def test_loads_swing_around_the_peak_or_are_nothing() -> None:
    """By ten whole watts at most, all of them; about half of the plugs are on at any time."""
    plugs, loads = turns(200)
    swing = (loads - plugs.peak_w)[loads > 0]
    assert set(swing.tolist()) == set(range(-SWING_W, SWING_W + 1))
    assert abs(swing.mean()) < 0.2
    assert 0.4 < (loads > 0).mean() < 0.6


def test_a_plug_stays_on_or_off_for_its_phase() -> None:
    """It changes only where its clock passes a border of its own phases, and at about half of those."""
    plugs, loads = turns(300)
    at = np.arange(300)[:, None] * 2 * len(plugs.plug) + 2 * np.arange(len(plugs.plug))  # the number of each event
    phases = (at * 600 // 1000 + plugs.shift_s) // plugs.phase_s
    changed = np.diff((loads > 0).astype(int), axis=0) != 0
    passed = np.diff(phases, axis=0) != 0
    assert not (changed & ~passed).any()
    assert 0.4 < changed.sum() / passed.sum() < 0.6


def test_plugs_are_the_same_in_every_partition_and_others_with_another_seed() -> None:
    """Two generators tell of the same plugs, on and off at the same time, with swings of their own."""
    once, twice = (values(SOUND, 0, 40_000, replace(BITS, partition=partition)) for partition in (0, 1))
    assert np.array_equal(once > 0, twice > 0)
    assert not np.array_equal(once, twice)
    ids = [values(FIELDS[3], 0, 40_000, replace(BITS, partition=partition)) for partition in (0, 1)]
    assert np.array_equal(*ids)
    assert grid(replace(BITS, seed=2), HOUSES).plug.tolist() != grid(BITS, HOUSES).plug.tolist()


def test_plugs_of_planted_houses_are_never_off() -> None:
    """Those of the first two houses of ten; all others are as they were."""
    plugs, loads = turns(200, heavy=0.2)
    planted = plugs.house < 2
    assert (loads[:, planted] > 0).all()
    assert np.array_equal(loads[:, ~planted], turns(200)[1][:, ~planted])


def test_the_malformed_are_as_many_as_declared() -> None:
    """Half of them have no value, the others one below 0; where there are none, no value is ever null."""
    made = values(FIELDS[0], 0, 40_000)
    assert np.isnan(made).sum() == pytest.approx(5000, abs=250)
    assert (made < 0).sum() == pytest.approx(5000, abs=250)
    sound = values(replace(SOUND, heavy=0.1), 0, 40_000)
    assert np.array_equal(made[made >= 0], sound[made >= 0])
    assert (sound >= 0).all()
    assert FIELDS[0].nullable
    assert not SOUND.nullable
