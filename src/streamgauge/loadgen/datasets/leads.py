"""Sessions for which learners choose a page, and the pages' rewards (Bordin 2017, section 3.3.12).

The loop is open: rewards are planned, for uniformly distributed actions, and do not depend on a learner's choice. In a
closed loop the input would depend on the engine's results and their times. No two runs would have the same input, and
slow engines would get less load.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa

from streamgauge.core.arrays import Floats, Int32s, Int64s
from streamgauge.loadgen.fields import OFFSET_BYTES, FieldSpec, sampled
from streamgauge.loadgen.random import (
    PhiloxBits,
    Uniform,
    keys_of_partition,
    partition_shares,
    sampler_of_column,
)

DRAWS, DRAW_LOW, DRAW_HIGH = 12, 1, 99
"""A reward is a sum of `DRAWS` uniform numbers from low to high, so it is nearly normal."""
SUM_MEAN, SUM_UNIT = DRAWS * (DRAW_LOW + DRAW_HIGH) // 2, 100
"""The mean of such sums, and the standard deviation that the published generator assumes (it is 99)."""
MEAN_MAX, DEVIATION_MAX = 10_000, 1_000


@dataclass(frozen=True)
class Round(FieldSpec):
    """The number of times that a learner, of `InTurn`, had to choose, including this one: 1, 2, ...

    Each partition counts its own events. If the stream has a key, it is the learner, so that a partition has few.
    """

    learners: int
    sql_type: ClassVar[str] = "bigint"

    def column(self, bits: PhiloxBits, first: int, last: int) -> Int64s:
        learners = self.learners
        if bits.key_field >= 0:
            learners = max(len(keys_of_partition(self.learners, bits.partition, bits.partitions)), 1)
        return np.arange(first, last, dtype=np.int64) // learners + 1


@dataclass(frozen=True)
class Owner(FieldSpec):
    """The learner of a reward, uniformly distributed. A share `malformed` of the rewards (0 to 1) has none."""

    learners: int
    malformed: float
    sql_type: ClassVar[str] = "int"
    is_key: ClassVar[bool] = True

    @property
    def nullable(self) -> bool:
        return self.malformed > 0

    def column(self, bits: PhiloxBits, first: int, last: int) -> pa.Array:
        by = sampler_of_column(bits, "uniform", self.learners)
        limit = self.malformed * 2.0**32
        return self.concatenated(
            [pa.array(by.drawn(lanes[::2]), mask=lanes[1::2] < limit) for _, lanes in bits.blocks(first, last, 2)]
        )

    def partition_shares(self, partitions: int) -> Floats | None:
        return partition_shares("uniform", self.learners, partitions)


@dataclass(frozen=True)
class Action(FieldSpec):
    """The rewarded action, one of `actions`, uniformly distributed."""

    actions: tuple[str, ...]
    sql_type: ClassVar[str] = "string"

    @property
    def row_bytes(self) -> float:
        return OFFSET_BYTES + sum(len(action.encode()) for action in self.actions) / len(self.actions)

    def places(self, bits: PhiloxBits, first: int, last: int) -> Int32s:
        """The index of each event's action."""
        return sampled(Uniform(len(self.actions)), bits, first, last)

    def column(self, bits: PhiloxBits, first: int, last: int) -> pa.Array:
        return pa.array(self.actions).take(pa.array(self.places(bits, first, last)))


@dataclass(frozen=True)
class Reward(FieldSpec):
    """The reward of the stream's field `action` (number `action_place`), a whole number of at least 0.

    `earned` has mean and standard deviation for each action: max(0, int(z * deviation + mean)) with
    z = (sum - 600) / 100. The computation uses whole numbers, so it is exact on every machine.
    """

    action: Action
    action_place: int
    earned: tuple[tuple[int, int], ...]
    sql_type: ClassVar[str] = "int"

    def column(self, bits: PhiloxBits, first: int, last: int) -> Int32s:
        places = self.action.places(replace(bits, field=self.action_place), first, last)
        mean, deviation = np.array(self.earned, np.int64).T
        out = np.empty(last - first, np.int32)
        for part, lanes in bits.blocks(first, last, DRAWS):
            drawn = Uniform(DRAW_HIGH - DRAW_LOW + 1, DRAW_LOW).drawn(lanes).reshape(-1, DRAWS)
            deviations = (drawn.sum(axis=1, dtype=np.int64) - SUM_MEAN) * deviation[places[part]]
            # Negative values become 0, so the floor equals int().
            out[part] = np.maximum((deviations + SUM_UNIT * mean[places[part]]) // SUM_UNIT, 0)
        return out
