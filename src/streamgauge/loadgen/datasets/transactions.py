"""States of card transactions as three letters (Bordin 2017, section 3.3.9).

The letters are the amount (low, medium, high: L, M, H), the price (normal, high: N, H), and the time since the last
transaction (large, normal, small: L, N, S).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamgauge.core.errors import InputError, Problem
from streamgauge.loadgen.fields import FieldSpec, Key
from streamgauge.loadgen.random.distributions import Table, Uniform
from streamgauge.loadgen.random.philox import PhiloxBits

AMOUNTS = {"L": 0.35, "M": 0.53, "H": 0.12}
PRICES = {"N": 0.85, "H": 0.15}
ELAPSED = {"L": 0.35, "N": 0.45, "S": 0.20}
"""Each letter and its share; the three letters are independent."""
STATES = tuple(amount + price + elapsed for amount in AMOUNTS for price in PRICES for elapsed in ELAPSED)


@dataclass(frozen=True)
class State(FieldSpec):
    """The state of a transaction of the stream's field `customer` (number `customer_place`).

    The first customers, a share `frauds` of all (0 to 1), are planted frauds with uniformly distributed states.
    """

    customer: Key
    customer_place: int
    frauds: float
    spark_type: ClassVar[str] = "string"

    def __post_init__(self) -> None:
        if not 0 <= self.frauds <= 1:
            raise InputError(Problem(f"{self.name}.frauds", "must be a share from 0 to 1", self.frauds, "0.001"))

    @property
    def row_bytes(self) -> float:
        offset = 4
        return offset + len(STATES[0])

    def column(self, bits: PhiloxBits, first: int, last: int) -> pa.Array:
        customers = self.customer.column(replace(bits, field=self.customer_place), first, last)
        planted = customers < self.frauds * self.customer.domain
        drawn = np.empty(last - first, np.int32)
        for part, lanes in bits.blocks(first, last):
            drawn[part] = np.where(planted[part], Uniform(len(STATES)).drawn(lanes), _usual().drawn(lanes))
        return pa.array(STATES).take(pa.array(drawn))


def shares() -> npt.NDArray[np.float64]:
    """The probability of each of the `STATES` for an ordinary customer, shape (18,)."""
    return np.array([AMOUNTS[state[0]] * PRICES[state[1]] * ELAPSED[state[2]] for state in STATES])


@lru_cache(maxsize=1)
def _usual() -> Table:
    return Table(shares())
