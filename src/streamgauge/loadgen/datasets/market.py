"""Trades and quotes of a market in one stream (Bordin 2017, section 3.3.11).

Prices follow a random walk. A quote asks for a little more or less than the price, and offers a part of a trade's
volume.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from streamgauge.loadgen.datasets.sensors import GRID, Reading
from streamgauge.loadgen.fields import FieldSpec, Integer
from streamgauge.loadgen.random.philox import PhiloxBits

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
    spark_type: ClassVar[str] = "double"

    def column(self, bits: PhiloxBits, first: int, last: int) -> npt.NDArray[np.float64]:
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
    spark_type: ClassVar[str] = "int"

    def column(self, bits: PhiloxBits, first: int, last: int) -> npt.NDArray[np.int32]:
        sizes = self.volume.column(bits, first, last)
        quotes = self.quote.column(replace(bits, field=self.quote_place), first, last) == 1
        for part, lanes in replace(bits, field=bits.field + _OF_ASKS).blocks(first, last):
            offer = OFFER_LOW + (OFFER_HIGH - OFFER_LOW) * 2.0**-32 * lanes
            size = sizes[part]
            np.copyto(size, np.maximum(np.rint(size * offer), 1).astype(np.int32), where=quotes[part])
        return sizes


_OF_ASKS = 2**11
"""Added to the field's number for the bits of asks and offers. The walk uses offsets from 2**12."""
