"""Readings of sensors: each device has a level of its own that walks slowly, with noise on it and planted spikes.

A walk is a sequence, and any slice of a stream must be made alone. So it is a sum of octaves: in each, a device has a
random level at every so many events, and between two levels a straight line. Few long steps and many short ones look
like a walk, stay within bounds, and cost a look at two levels each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from streamgauge.core.errors import InputError, Problem
from streamgauge.loadgen.fields import FieldSpec, Key
from streamgauge.loadgen.random.philox import PhiloxBits, empty

Floats = npt.NDArray[np.float64]

GRID = 1024
"""Readings are whole multiples of 1/1024, so that sums of them are exact in any order."""
SPREAD, DRIFT, NOISE = 0.1, 0.01, 0.005
"""How far a device's own level, its walk and its noise reach, as shares of the mean."""
SPIKE_LOW, SPIKE_HIGH = 0.05, 0.5
"""How far a planted spike lies from where the reading would be, as shares of it."""

_OCTAVES = ((14, 1 / 7), (17, 2 / 7), (20, 4 / 7))
"""(log2 of the events between two levels, share of the drift)."""
_OF_LEVELS = 2**14
"""Added to a field's number for the bits of its levels; one more for each octave, and one for the devices' own."""


@dataclass(frozen=True)
class Reading(FieldSpec):
    """A reading of the device that the stream's field `device` (number `device_place`) names, around `mean`.

    A share `spikes` of the readings (0 to 1) is a spike, 5 to 50 % up or down; all others lie within 4 % of each other
    on one device.
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
        """Where each device's level is at the events of those numbers, as a share of the mean."""
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
        way = (numbers - (cells << log_step)) / (1 << log_step)
        before, after = table[cells - low, devices], table[cells - low + 1, devices]
        return before + way * (after - before)

    def _spiked(self, coin: npt.NDArray[np.uint32], lanes: npt.NDArray[np.uint32]) -> Floats:
        factor = np.ones(len(lanes))
        limit = self.spikes * 2.0**32
        at = np.flatnonzero(lanes < limit)
        size = SPIKE_LOW + (SPIKE_HIGH - SPIKE_LOW) * lanes[at] / max(limit, 1.0)
        factor[at] += np.where(coin[at] & 1, size, -size)
        return factor


def _bits_of_levels(bits: PhiloxBits, octave: int) -> PhiloxBits:
    """One walk for a device, whichever partition its readings come by."""
    return replace(bits, partition=0, field=bits.field + _OF_LEVELS * (octave + 1) // 4)


@lru_cache(maxsize=256)
def _random_levels(bits: PhiloxBits, cell: int, devices: int) -> Floats:
    return _signed(bits.lanes(cell * devices, (cell + 1) * devices))


def _signed(lanes: npt.NDArray[np.uint32]) -> Floats:
    """Lanes as numbers in [-1, 1)."""
    return lanes.astype(np.float64) * 2.0**-31 - 1.0
