"""Readings of sensors: near their device's level, spikes as planted, sums exact.

Readings of machines: in turn, of one cluster each, and overloaded as long and as often as said.
"""

import numpy as np
import pytest

from streamgauge.loadgen.datasets.sensors import (
    DRIFT,
    FREE_SHARE,
    GRID,
    NOISE,
    PHASE_READINGS,
    SPIKE_LOW,
    SPREAD,
    Cluster,
    Reading,
    Usage,
)
from streamgauge.loadgen.fields import FieldSpec, InTurn, Key
from streamgauge.loadgen.random import PhiloxBits

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
    assert np.abs(values / means[devices] - 1).max() < 3 * DRIFT + 2 * NOISE
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


MACHINE = InTurn("machine", 50)
FIELDS: list[FieldSpec] = [
    Cluster("cluster", MACHINE, 1, 8), MACHINE,
    Usage("cpu", MACHINE, 1, 0.4, 0.2), Usage("memory", MACHINE, 1, 0.5, 0.2),
]  # fmt: skip
PHASE_EVENTS = PHASE_READINGS * 50


def column(number: int, first: int, last: int, partition: int = 0, field: FieldSpec | None = None) -> np.ndarray:
    return (field or FIELDS[number]).column(PhiloxBits(1, 0, partition, number), first, last)


def overloaded(number: int, first: int, last: int, partition: int = 0) -> np.ndarray:
    """Which readings differ from those of the same machines when none is ever overloaded."""
    usage = FIELDS[number]
    assert isinstance(usage, Usage)
    calm = Usage(usage.name, MACHINE, 1, usage.mean, 0.0)
    return column(number, first, last, partition) != column(number, first, last, partition, calm)


def test_machines_report_in_turn_and_stay_in_their_cluster() -> None:
    """Each once before any comes again, wherever one begins; clusters have them in turn as well."""
    machines, clusters = column(1, 120, 220), column(0, 120, 220)
    assert machines[:50].tolist() == [*range(20, 50), *range(20)]
    assert machines[50:].tolist() == machines[:50].tolist()
    assert clusters.tolist() == (machines % 8).tolist()
    assert (machines.dtype, clusters.dtype) == (np.int32, np.int32)


@pytest.mark.parametrize("number", [2, 3])
def test_usage_is_a_share_on_a_grid(number: int) -> None:
    """So that sums are exact in any order."""
    usage = column(number, 0, 50_000)
    assert usage.min() > 0
    assert usage.max() < 1
    assert np.array_equal(usage * GRID, np.rint(usage * GRID))


def test_usage_never_passes_the_whole() -> None:
    """A spike of a machine that is nearly full ends there."""
    usage = column(3, 0, 50_000, field=Usage("memory", MACHINE, 1, 0.9, 0.0))
    assert usage.max() == 1
    assert (usage == 1).mean() < 0.1


def test_an_overloaded_machine_uses_nearly_all() -> None:
    """Of what an ordinary one has free, a tenth is left; ordinary ones lie around the mean, but for their spikes."""
    usage, high = column(2, 0, 50_000), overloaded(2, 0, 50_000)
    free = FREE_SHARE * (1 - 0.4)
    near = 0.4 * (SPREAD + DRIFT + NOISE) * 1.1
    assert abs(np.median(usage[high]) - (1 - free)) < FREE_SHARE * near
    assert (usage[high] > 0.9).all()
    assert np.quantile(np.abs(usage[~high] - 0.4), 0.98) < near


def test_phases_are_of_a_machine_whole_and_as_many_as_declared() -> None:
    """All its readings of a phase or none, in both metrics and in every partition; a fifth of machines and phases."""
    cpu = overloaded(2, 0, 200 * PHASE_EVENTS).reshape(200, PHASE_READINGS, 50)
    assert (cpu.all(axis=1) | ~cpu.any(axis=1)).all()
    assert cpu.mean() == pytest.approx(0.2, abs=0.02)
    assert 0 < cpu[:, :, 7].any(axis=1).sum() < 200
    assert (overloaded(3, 0, PHASE_EVENTS * 3) == overloaded(2, 0, PHASE_EVENTS * 3)).all()
    assert (overloaded(2, 0, PHASE_EVENTS * 3, partition=1) == overloaded(2, 0, PHASE_EVENTS * 3)).all()
    assert column(2, 0, 100, partition=1).tolist() != column(2, 0, 100).tolist()
