"""The capacity of several instances of the synthetic engine, by a known law: a scalability study can be tried on it.

The Universal Scalability Law: n instances have n / (1 + contention (n - 1) + coherency n (n - 1)) times the capacity of
one. Both at 0 it is linear. Instances beyond a knee add nothing. With noise, each start has a capacity of its own.
"""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class ScalingOptions:
    """`knee` 0: none; `noise`: the standard deviation of a start's capacity, as a share of it."""

    contention: float = 0.0
    coherency: float = 0.0
    knee: int = 0
    noise: float = 0.0

    def capacity(self, of_one_per_s: float, instances: int, chance: random.Random | None = None) -> float:
        """Events per second of so many instances; `chance` draws the noise of this start."""
        n = min(instances, self.knee) if self.knee else instances
        capacity = of_one_per_s * n / (1 + self.contention * (n - 1) + self.coherency * n * (n - 1))
        noise = (chance or random.Random()).gauss(0.0, self.noise) if self.noise else 0.0
        return capacity * max(0.1, 1 + noise)
