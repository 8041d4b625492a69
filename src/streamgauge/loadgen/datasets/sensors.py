"""Readings of sensors: each device has its own level that walks slowly, with noise and planted spikes.

A random walk is sequential, but any slice of a stream must be made alone. So the walk is a sum of octaves. In each
octave a device has random levels at a fixed number of events, with straight lines in between. The sum resembles a
walk, stays within bounds, and needs only two levels per octave.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from streamgauge.core.arrays import Floats
from streamgauge.core.errors import InputError, Problem
from streamgauge.loadgen.fields import FieldSpec, Key
from streamgauge.loadgen.random.philox import PhiloxBits, empty

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
    spark_type: ClassVar[str] = "double"

    def __post_init__(self) -> None:
        if not 0 <= self.spikes <= 1:
            raise InputError(Problem(f"{self.name}.spikes", "must be a share from 0 to 1", self.spikes, "0.001"))

    def column(self, bits: PhiloxBits, first: int, last: int) -> Floats:
        devices = self.device.column(replace(bits, field=self.device_place), first, last)
        out = empty(last - first, np.float64)
        for part, lanes in bits.blocks(first, last, width=2):
            numbers = np.arange(first + part.start, first + part.stop)
            level = self._levels(bits, devices[part], numbers)
            values = level * (1 + NOISE * _signed(lanes[::2])) * self._spiked(lanes[::2], lanes[1::2])
            np.divide(np.rint(values * (self.mean * GRID)), GRID, out=out[part])
        return out

    def _levels(self, bits: PhiloxBits, devices: npt.NDArray[np.int32], numbers: npt.NDArray[np.int64]) -> Floats:
        """Each device's level at these events, as a share of the mean."""
        own = _random_levels(_bits_of_levels(bits, len(_OCTAVES)), 0, self.device.domain)
        level = 1 + SPREAD * own[devices]
        for octave, (log_step, share) in enumerate(_OCTAVES):
            level += DRIFT * share * self._between(_bits_of_levels(bits, octave), devices, numbers, log_step)
        return level

    def _between(
        self, bits: PhiloxBits, devices: npt.NDArray[np.int32], numbers: npt.NDArray[np.int64], log_step: int
    ) -> Floats:
        cells = numbers >> log_step
        low = int(cells[0])
        table = np.stack([
            _random_levels(bits, cell, self.device.domain) for cell in range(low, int(cells[-1]) + 2)
        ])  # fmt: skip
        fraction = (numbers - (cells << log_step)) / (1 << log_step)
        before, after = table[cells - low, devices], table[cells - low + 1, devices]
        return before + fraction * (after - before)

    def _spiked(self, coin: npt.NDArray[np.uint32], lanes: npt.NDArray[np.uint32]) -> Floats:
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


def _signed(lanes: npt.NDArray[np.uint32]) -> Floats:
    """Lanes as numbers in [-1, 1)."""
    return lanes.astype(np.float64) * 2.0**-31 - 1.0
