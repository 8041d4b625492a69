"""Readings of sensors: any slice alone, near their device's level, spikes as planted, sums exact."""

from __future__ import annotations

import numpy as np
import pytest

from streamgauge.core.errors import InputError
from streamgauge.loadgen.datasets.sensors import DRIFT, GRID, NOISE, SPIKE_LOW, SPREAD, Reading
from streamgauge.loadgen.fields import Key
from streamgauge.loadgen.random.philox import PhiloxBits

DEVICE = Key("device", 20)
BITS = PhiloxBits(seed=1, stream=0, partition=0, field=1)


def readings(spikes: float, first: int, last: int, bits: PhiloxBits = BITS) -> tuple[np.ndarray, np.ndarray]:
    """(devices, values)."""
    field = Reading("temp", DEVICE, 0, 22.0, spikes)
    return DEVICE.column(PhiloxBits(bits.seed, bits.stream, bits.partition, 0), first, last), field.column(
        bits, first, last
    )


def test_a_device_stays_near_its_own_level() -> None:
    """Devices differ; one device's readings lie within drift and noise, and change slowly."""
    devices, values = readings(0.0, 0, 200_000)
    means = np.array([values[devices == device].mean() for device in range(20)])
    assert np.ptp(means) > 22.0 * SPREAD / 2
    assert np.abs(means / 22.0 - 1).max() <= SPREAD + DRIFT
    ratio = values / means[devices]
    assert np.abs(ratio - 1).max() < 3 * DRIFT + 2 * NOISE
    assert np.abs(values[devices == 3][:100].mean() / means[3] - 1) < DRIFT


def test_a_device_is_the_same_in_every_partition() -> None:
    """Two generators tell of one sensor: the same level, other noise."""
    ones, twos = (readings(0.0, 0, 50_000, PhiloxBits(1, 0, partition, 1)) for partition in (0, 1))
    means = [values[devices == 7].mean() for devices, values in (ones, twos)]
    assert means[0] == pytest.approx(means[1], rel=1e-3)
    assert ones[1].tolist() != twos[1].tolist()


def test_spikes_are_as_many_and_as_far_as_planted() -> None:
    """A reading with spikes differs from the one without in just the planted share, by 5 to 50 %."""
    plain, spiked = readings(0.0, 0, 100_000)[1], readings(0.02, 0, 100_000)[1]
    changed = np.abs(spiked / plain - 1)
    far = changed > SPIKE_LOW - 1e-3
    assert (changed[~far] == 0).all()
    assert far.sum() == pytest.approx(2000, rel=0.1)
    assert changed.max() < 0.501
    assert 0.4 < (spiked[far] > plain[far]).mean() < 0.6


def test_readings_lie_on_a_grid() -> None:
    """So that sums are exact in any order."""
    values = readings(0.01, 0, 10_000)[1] * GRID
    assert (values == np.rint(values)).all()


def test_a_share_above_one_is_refused() -> None:
    """Before anything is made."""
    with pytest.raises(InputError, match=r"temp\.spikes"):
        Reading("temp", DEVICE, 0, 22.0, 1.5)
