"""Trades and quotes of a market, and states of card transactions.

Prices follow a random walk. A quote asks for a little more or less than the price, and offers a part of a trade's
volume.

States of card transactions are three letters (Bordin 2017, section 3.3.9): the amount (low, medium, high: L, M, H), the
price (normal, high: N, H), and the time since the last transaction (large, normal, small: L, N, S).
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa

from streamgauge.core.arrays import Floats, Int32s
from streamgauge.loadgen.datasets.sensors import GRID, Reading
from streamgauge.loadgen.fields import OFFSET_BYTES, FieldSpec, Integer, Key
from streamgauge.loadgen.random import PhiloxBits, Table, Uniform

ASK_LOW, ASK_HIGH = 0.9, 1.1
"""The range of an ask as a share of the price, uniformly distributed."""
OFFER_LOW, OFFER_HIGH = 0.1, 0.8
"""The range of a quote's offer as a share of a trade's volume, uniformly distributed."""


@dataclass(frozen=True)
class Price(FieldSpec):
    """The price of a trade, or a quote's ask, in multiples of 1/1024.

    `traded` is the random walk of prices. `quote` (number `quote_place` of the stream) is 1 for quotes.
    """

    traded: Reading
    quote: Integer
    quote_place: int
    sql_type: ClassVar[str] = "double"

    def column(self, bits: PhiloxBits, first: int, last: int) -> Floats:
        prices = self.traded.column(bits, first, last)
        quotes = self.quote.column(replace(bits, field=self.quote_place), first, last) == 1
        for part, lanes in replace(bits, field=bits.field + _OF_ASKS).blocks(first, last):
            ask = ASK_LOW + (ASK_HIGH - ASK_LOW) * 2.0**-32 * lanes
            price = prices[part]
            np.copyto(price, np.rint(price * ask * GRID) / GRID, where=quotes[part])
        return prices


@dataclass(frozen=True)
class Size(FieldSpec):
    """The number of shares that a trade has (`volume`), or a quote offers: a part of such a volume, at least one.

    `quote` (number `quote_place` of the stream) is 1 for quotes.
    """

    volume: Integer
    quote: Integer
    quote_place: int
    sql_type: ClassVar[str] = "int"

    def column(self, bits: PhiloxBits, first: int, last: int) -> Int32s:
        sizes = self.volume.column(bits, first, last)
        quotes = self.quote.column(replace(bits, field=self.quote_place), first, last) == 1
        for part, lanes in replace(bits, field=bits.field + _OF_ASKS).blocks(first, last):
            offer = OFFER_LOW + (OFFER_HIGH - OFFER_LOW) * 2.0**-32 * lanes
            size = sizes[part]
            np.copyto(size, np.maximum(np.rint(size * offer), 1).astype(np.int32), where=quotes[part])
        return sizes


_OF_ASKS = 2**11
"""Added to the field's number for the bits of asks and offers. The walk uses offsets from 2**12."""


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
    sql_type: ClassVar[str] = "string"

    @property
    def row_bytes(self) -> float:
        return OFFSET_BYTES + len(STATES[0])

    def column(self, bits: PhiloxBits, first: int, last: int) -> pa.Array:
        customers = self.customer.column(replace(bits, field=self.customer_place), first, last)
        planted = customers < self.frauds * self.customer.domain
        drawn = np.empty(last - first, np.int32)
        for part, lanes in bits.blocks(first, last):
            drawn[part] = np.where(planted[part], Uniform(len(STATES)).drawn(lanes), _USUAL.drawn(lanes))
        return pa.array(STATES).take(pa.array(drawn))


def shares() -> Floats:
    """The probability of each of the `STATES` for an ordinary customer, shape (18,)."""
    return np.array([AMOUNTS[state[0]] * PRICES[state[1]] * ELAPSED[state[2]] for state in STATES])


_USUAL = Table(shares())
