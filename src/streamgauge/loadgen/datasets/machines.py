"""Readings of machines, which report their processor and memory usage in turn. Some are overloaded.

Whether a machine is overloaded is random for each phase of its readings. All metrics of a machine are overloaded
together, in every partition.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from streamgauge.core.errors import InputError, Problem
from streamgauge.loadgen.datasets.sensors import GRID, Reading
from streamgauge.loadgen.fields import FieldSpec, Key
from streamgauge.loadgen.random.distributions import keys_in_turn, partition_shares
from streamgauge.loadgen.random.philox import PhiloxBits

PHASE_READINGS = 64
"""The length of a phase in a machine's readings, per partition."""
FREE_SHARE = 0.1
"""The share of the usually free capacity that is free during overload."""
SPIKES = 0.01
"""The share of single outliers (`sensors.Reading`), which should not raise an alert."""

_OF_PHASES = 2**11
"""Added to the number of the machine's field for the bits of its phases. The walks use offsets from 2**12."""


@dataclass(frozen=True)
class InTurn(Key):
    """A key of 0..domain-1, round robin in every partition."""

    def column(self, bits: PhiloxBits, first: int, last: int) -> npt.NDArray[np.int32]:
        return keys_in_turn(bits, self.domain, first, last)

    def partition_shares(self, partitions: int) -> npt.NDArray[np.float64] | None:
        return partition_shares("uniform", self.domain, partitions)


@dataclass(frozen=True)
class Cluster(FieldSpec):
    """The cluster of the machine of the stream's field `machine` (number `machine_place`), one of 0..clusters-1."""

    machine: Key
    machine_place: int
    clusters: int
    spark_type: ClassVar[str] = "int"

    def __post_init__(self) -> None:
        if self.clusters < 1:
            raise InputError(Problem(f"{self.name}.clusters", "must be at least 1", self.clusters, "8"))

    @property
    def key_kind(self) -> str:
        return self.name

    def column(self, bits: PhiloxBits, first: int, last: int) -> npt.NDArray[np.int32]:
        machines = self.machine.column(replace(bits, field=self.machine_place), first, last)
        return machines % np.int32(self.clusters)


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
    spark_type: ClassVar[str] = "double"

    def __post_init__(self) -> None:
        if not 0 <= self.overloaded <= 1:
            rule = "must be a share from 0 to 1"
            raise InputError(Problem(f"{self.name}.overloaded", rule, self.overloaded, "0.01"))

    def column(self, bits: PhiloxBits, first: int, last: int) -> npt.NDArray[np.float64]:
        walk = Reading(self.name, self.machine, self.machine_place, self.mean, SPIKES)
        usage = np.minimum(walk.column(bits, first, last), 1.0)
        high = np.rint((1 - FREE_SHARE * (1 - usage)) * GRID) / GRID
        np.copyto(usage, high, where=self._is_overloaded(bits, first, last))
        return usage

    def _is_overloaded(self, bits: PhiloxBits, first: int, last: int) -> npt.NDArray[np.bool_]:
        """Whether the machine of each event is overloaded, shape (last - first,)."""
        machines = self.machine.column(replace(bits, field=self.machine_place), first, last)
        every, phase_events = self.machine.domain, PHASE_READINGS * self.machine.domain
        low, high = first // phase_events, max(last - 1, first) // phase_events
        # One lane per phase and machine, from the machine's field, so that all metrics share it.
        of_phases = replace(bits, partition=0, field=self.machine_place + _OF_PHASES)
        drawn = of_phases.lanes(low * every, (high + 1) * every)
        phases = np.arange(first, last) // phase_events
        return drawn[(phases - low) * every + machines] < self.overloaded * 2.0**32
