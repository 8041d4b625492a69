"""Readings of smart plugs in houses, after the generator of Bordin 2017. Each reading depends only on its number.

A house has households, a household has plugs. Plugs are read in turn, first for the load, then for the work. A plug is
on or off for a phase. Its load varies around its peak while it is on, and is 0 while it is off.

In the original, a plug draws the length of its next phase when one ends. That is sequential, but any slice of a stream
must be made alone. So here all phases of a plug have the same length, and a coin decides for each phase whether the
plug is on. Adjacent phases with the same state form a longer one. Work assumes half of the peak; no flow reads it.

Plugs have their own clock, which advances with the events of each partition, as in `loadgen.datasets.web`.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streamgauge.core.arrays import Bools, Floats, Int32s, Int64s
from streamgauge.loadgen.fields import FieldSpec
from streamgauge.loadgen.random import Lanes, PhiloxBits, Uniform, partition_shares, partitions_of_numbers

HOUSES_MAX = 10_000
HOUSEHOLDS, PLUGS = (2, 10), (5, 20)
"""The ranges of households per house, and plugs per household. They and the values below are uniform."""
PEAKS_W = (25, 35, 50, 70, 150, 300, 600, 800, 900, 1200)
PHASES_S = (600, 900, 1800, 3600, 5400, 7200, 108_000)
SWING_W = 10
"""The largest deviation of a load from the plug's peak, whole watts."""
WORK, LOAD = 0, 1
"""The properties of DEBS 2014: kilowatt hours, or watts."""

_OF_GRID = 2**13
"""A field number that no stream has, for the bits of the plugs; the next few are used as well."""
_JOULES_PER_KWH = 3.6e6


class Grid(NamedTuple):
    """All plugs in the order of reading; every array has shape (plugs,)."""

    house: Int32s
    household: Int32s
    plug: Int32s
    peak_w: Int64s
    phase_s: Int64s
    shift_s: Int64s
    """The plug's position within its phase at the start."""


def grid(bits: PhiloxBits, houses: int) -> Grid:
    """The plugs of a stream, the same for all its fields. If it has a key, the house, a partition has some of them."""
    if bits.key_field < 0:
        return _grid(_own(bits), houses)
    return _grid_of_partition(_own(bits), houses, bits.partition, bits.partitions)


def _own(bits: PhiloxBits, place: int = 0) -> PhiloxBits:
    return replace(bits, partition=0, field=_OF_GRID + place, key_field=-1, partitions=1)


@lru_cache(maxsize=8)
def _grid(bits: PhiloxBits, houses: int) -> Grid:
    def drawn(place: int, count: int, low: int, high: int) -> Int32s:
        return Uniform(high - low + 1, low).drawn(_own(bits, place).lanes(0, count))

    households = drawn(0, houses, *HOUSEHOLDS)
    plugs = drawn(1, int(households.sum()), *PLUGS)
    house = np.repeat(np.arange(houses, dtype=np.int32), households)
    count = int(plugs.sum())
    phase_s = np.array(PHASES_S)[drawn(3, count, 0, len(PHASES_S) - 1)]
    return Grid(
        house=np.repeat(house, plugs),
        household=np.repeat(_numbers_within(households), plugs),
        plug=_numbers_within(plugs),
        peak_w=np.array(PEAKS_W)[drawn(2, count, 0, len(PEAKS_W) - 1)],
        phase_s=phase_s,
        shift_s=(_own(bits, 4).lanes(0, count).astype(np.int64) * phase_s) >> 32,
    )


@lru_cache(maxsize=64)
def _grid_of_partition(bits: PhiloxBits, houses: int, partition: int, partitions: int) -> Grid:
    """The plugs of the houses that hash to a partition."""
    whole = _grid(bits, houses)
    inside = partitions_of_numbers(houses, partitions)[whole.house] == partition
    return Grid(*(column[inside] for column in whole))


def _numbers_within(counts: Int32s) -> Int32s:
    """Numbers within each group: 2, 3 gives 0, 1, 0, 1, 2."""
    return (np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)).astype(np.int32)


def _places(numbers: Int64s, plugs: Grid) -> Int64s:
    """The plug of each event; two events per plug."""
    return (numbers >> 1) % max(len(plugs.plug), 1)


@dataclass(frozen=True)
class PlugId(FieldSpec):
    """The number of a plug within its household, of the household within its house, or of the house."""

    houses: int
    level: Literal["house", "household", "plug"]
    sql_type: ClassVar[str] = "int"
    is_key: ClassVar[bool] = True

    def partition_shares(self, partitions: int) -> Floats | None:
        """Only of houses; each counts the same, because how many plugs it has is not known without a seed."""
        return partition_shares("uniform", self.houses, partitions) if self.level == "house" else None

    def column(self, bits: PhiloxBits, first: int, last: int) -> Int32s:
        plugs = grid(bits, self.houses)
        return getattr(plugs, self.level)[_places(np.arange(first, last), plugs)]


@dataclass(frozen=True)
class PlugProperty(FieldSpec):
    """The property of a reading: `LOAD` and `WORK` in turn."""

    sql_type: ClassVar[str] = "int"

    def column(self, bits: PhiloxBits, first: int, last: int) -> Int32s:
        return np.where(_is_load(np.arange(first, last)), LOAD, WORK).astype(np.int32)


@dataclass(frozen=True)
class PlugValue(FieldSpec):
    """The load in watts, or the work in kilowatt hours.

    The plugs of the first houses, a share `heavy` of all (0 to 1), are planted heavy users and never off. The plugs'
    clock advances by `speed` seconds every `events_per_second` events of a partition. A share `malformed` of the
    readings (0 to 1) has no value or a negative one, equally often.
    """

    houses: int
    heavy: float
    malformed: float
    speed: int
    events_per_second: int
    sql_type: ClassVar[str] = "double"

    @property
    def nullable(self) -> bool:
        return self.malformed > 0

    def column(self, bits: PhiloxBits, first: int, last: int) -> pa.Array:
        plugs, seed = grid(bits, self.houses), _own(bits, 5).lanes(0, 2).view(np.uint64)
        return self.concatenated(
            [
                self._values(plugs, seed, np.arange(first + part.start, first + part.stop), lanes)
                for part, lanes in bits.blocks(first, last, 2)
            ]
        )

    def _values(self, plugs: Grid, seed: NDArray[np.uint64], numbers: Int64s, lanes: Lanes) -> pa.Array:
        places = _places(numbers, plugs)
        clock_s = numbers * self.speed // self.events_per_second
        peak_w = plugs.peak_w[places]
        on = _coins(seed, places, (clock_s + plugs.shift_s[places]) // plugs.phase_s[places])
        on |= plugs.house[places] < self.heavy * self.houses
        load_w = np.where(on, peak_w + Uniform(2 * SWING_W + 1, -SWING_W).drawn(lanes[::2]), 0)
        work_kwh = np.round(clock_s * peak_w / (2 * _JOULES_PER_KWH), 3)
        values = np.where(_is_load(numbers), load_w, work_kwh)
        wrong = lanes[1::2] < self.malformed * 2.0**32
        values[wrong] = -1 - values[wrong]
        return pa.array(values, mask=wrong & (lanes[1::2] % 2 == 0))


def _is_load(numbers: Int64s) -> Bools:
    return numbers % 2 == 0


def _coins(seed: NDArray[np.uint64], places: Int64s, phases: Int64s) -> Bools:
    """A fair coin per plug and phase, by the last steps of SplitMix64, which mix every bit."""
    mixed = places.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + phases.view(np.uint64)
    mixed = mixed * np.uint64(0xC2B2AE3D27D4EB4F) + seed
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (mixed >> np.uint64(63)).astype(np.bool_)
