"""Readings of sensors and machines: each device has its own level that walks slowly, with noise and planted spikes.

A random walk is sequential, but any slice of a stream must be made alone. So the walk is a sum of octaves. In each
octave a device has random levels at a fixed number of events, with straight lines in between. The sum resembles a
walk, stays within bounds, and needs only two levels per octave.

Machines report their processor and memory usage in turn. Whether one is overloaded is random for each phase of its
readings. All metrics of a machine are overloaded together, in every partition.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np

from streamgauge.core.arrays import Bools, Floats, Int32s, Int64s
from streamgauge.loadgen.fields import FieldSpec, Key
from streamgauge.loadgen.random import Lanes, PhiloxBits, empty

GRID = 1024
"""Readings are whole multiples of 1/1024, so that sums of them are exact in any order."""
SPREAD, DRIFT, NOISE = 0.1, 0.01, 0.005
"""The ranges of a device's level, walk and noise, as shares of the mean."""
SPIKE_LOW, SPIKE_HIGH = 0.05, 0.5
"""The range of a planted spike's deviation, as a share of the reading."""

_OCTAVES = ((14, 1 / 7), (17, 2 / 7), (20, 4 / 7))
"""(log2 of the events between two levels, share of the drift)."""
_OF_LEVELS = 2**14
"""Added to a field's number for the bits of its levels: one offset per octave, and one for the devices' levels."""


@dataclass(frozen=True)
class Reading(FieldSpec):
    """A reading around `mean` of the device in the stream's field `device` (number `device_place`).

    A share `spikes` of the readings (0 to 1) is a spike, 5 to 50 % up or down. All other readings of a device lie
    within 4 % of each other.
    """

    device: Key
    device_place: int
    mean: float
    spikes: float
    sql_type: ClassVar[str] = "double"

    def column(self, bits: PhiloxBits, first: int, last: int) -> Floats:
        devices = self.device.column(replace(bits, field=self.device_place), first, last)
        out = empty(last - first, np.float64)
        for part, lanes in bits.blocks(first, last, width=2):
            numbers = np.arange(first + part.start, first + part.stop)
            level = self._levels(bits, devices[part], numbers)
            values = level * (1 + NOISE * _signed(lanes[::2])) * self._spiked(lanes[::2], lanes[1::2])
            np.divide(np.rint(values * (self.mean * GRID)), GRID, out=out[part])
        return out

    def _levels(self, bits: PhiloxBits, devices: Int32s, numbers: Int64s) -> Floats:
        """Each device's level at these events, as a share of the mean."""
        own = _random_levels(_bits_of_levels(bits, len(_OCTAVES)), 0, self.device.domain)
        level = 1 + SPREAD * own[devices]
        for octave, (log_step, share) in enumerate(_OCTAVES):
            level += DRIFT * share * self._between(_bits_of_levels(bits, octave), devices, numbers, log_step)
        return level

    def _between(self, bits: PhiloxBits, devices: Int32s, numbers: Int64s, log_step: int) -> Floats:
        cells = numbers >> log_step
        low = int(cells[0])
        table = np.stack([
            _random_levels(bits, cell, self.device.domain) for cell in range(low, int(cells[-1]) + 2)
        ])  # fmt: skip
        fraction = (numbers - (cells << log_step)) / (1 << log_step)
        before, after = table[cells - low, devices], table[cells - low + 1, devices]
        return before + fraction * (after - before)

    def _spiked(self, coin: Lanes, lanes: Lanes) -> Floats:
        factor = np.ones(len(lanes))
        limit = self.spikes * 2.0**32
        at = np.flatnonzero(lanes < limit)
        size = SPIKE_LOW + (SPIKE_HIGH - SPIKE_LOW) * lanes[at] / max(limit, 1.0)
        factor[at] += np.where(coin[at] & 1, size, -size)
        return factor


def _bits_of_levels(bits: PhiloxBits, octave: int) -> PhiloxBits:
    """The bits of a device's walk, the same in all partitions."""
    return replace(bits, partition=0, field=bits.field + _OF_LEVELS * (octave + 1) // 4)


@lru_cache(maxsize=256)
def _random_levels(bits: PhiloxBits, cell: int, devices: int) -> Floats:
    return _signed(bits.lanes(cell * devices, (cell + 1) * devices))


def _signed(lanes: Lanes) -> Floats:
    """Lanes as numbers in [-1, 1)."""
    return lanes.astype(np.float64) * 2.0**-31 - 1.0


PHASE_READINGS = 64
"""The length of a phase in a machine's readings, per partition."""
FREE_SHARE = 0.1
"""The share of the usually free capacity that is free during overload."""
SPIKES = 0.01
"""The share of single outliers (`Reading`), which should not raise an alert."""

_OF_PHASES = 2**11
"""Added to the number of the machine's field for the bits of its phases. The walks use offsets from 2**12."""


@dataclass(frozen=True)
class Cluster(FieldSpec):
    """The cluster of the machine of the stream's field `machine` (number `machine_place`), one of 0..clusters-1."""

    machine: Key
    machine_place: int
    clusters: int
    sql_type: ClassVar[str] = "int"
    is_key: ClassVar[bool] = True

    def column(self, bits: PhiloxBits, first: int, last: int) -> Int32s:
        return self.machine.column(replace(bits, field=self.machine_place), first, last) % np.int32(self.clusters)


@dataclass(frozen=True)
class Usage(FieldSpec):
    """A machine's usage of one resource as a share (0 to 1), in multiples of 1/1024.

    The machine is that of the stream's field `machine` (number `machine_place`). Its usage is a random walk around
    `mean`, like readings of sensors. In a share `overloaded` of its phases (0 to 1) it uses nearly everything.
    """

    machine: Key
    machine_place: int
    mean: float
    overloaded: float
    sql_type: ClassVar[str] = "double"

    def column(self, bits: PhiloxBits, first: int, last: int) -> Floats:
        walk = Reading(self.name, self.machine, self.machine_place, self.mean, SPIKES)
        usage = np.minimum(walk.column(bits, first, last), 1.0)
        high = np.rint((1 - FREE_SHARE * (1 - usage)) * GRID) / GRID
        np.copyto(usage, high, where=self._is_overloaded(bits, first, last))
        return usage

    def _is_overloaded(self, bits: PhiloxBits, first: int, last: int) -> Bools:
        """Whether the machine of each event is overloaded, shape (last - first,)."""
        machines = self.machine.column(replace(bits, field=self.machine_place), first, last)
        every, phase_events = self.machine.domain, PHASE_READINGS * self.machine.domain
        low, high = first // phase_events, max(last - 1, first) // phase_events
        # One lane per phase and machine, from the machine's field, so that all metrics share it.
        of_phases = replace(bits, partition=0, field=self.machine_place + _OF_PHASES)
        drawn = of_phases.lanes(low * every, (high + 1) * every)
        phases = np.arange(first, last) // phase_events
        return drawn[(phases - low) * every + machines] < self.overloaded * 2.0**32
