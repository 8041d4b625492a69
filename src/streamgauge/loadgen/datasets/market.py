"""Trades and quotes of a market in one stream: prices walk, and who asks for one asks for a little more or less, and
offers a part of what is traded at once [thesis §3.3.11].
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
"""An ask lies between these shares of the price, every one of them equally likely."""
OFFER_LOW, OFFER_HIGH = 0.1, 0.8
"""So is what a quote offers, between these shares of a trade's volume."""


@dataclass(frozen=True)
class Price(FieldSpec):
    """The price of a trade, or what a quote asks for: `traded` walks, and `quote` (number `quote_place` of the stream)
    is 1 where the event is a quote. Whole multiples of 1/1024, as `traded` is.
    """

    traded: Reading
    quote: Integer
    quote_place: int
    spark_type: ClassVar[str] = "double"

    def column(self, bits: PhiloxBits, first: int, last: int) -> npt.NDArray[np.float64]:
        prices = self.traded.column(bits, first, last)
        quotes = self.quote.column(replace(bits, field=self.quote_place), first, last) == 1
        for part, lanes in replace(bits, field=bits.field + _OF_ASKS).blocks(first, last):
            asked = ASK_LOW + (ASK_HIGH - ASK_LOW) * 2.0**-32 * lanes
            price = prices[part]
            np.copyto(price, np.rint(price * asked * GRID) / GRID, where=quotes[part])
        return prices


@dataclass(frozen=True)
class Size(FieldSpec):
    """How many shares are traded, as `volume` says, or offered: a part of such a volume, one share at least. `quote`
    (number `quote_place` of the stream) is 1 where the event is a quote.
    """

    volume: Integer
    quote: Integer
    quote_place: int
    spark_type: ClassVar[str] = "int"

    def column(self, bits: PhiloxBits, first: int, last: int) -> npt.NDArray[np.int32]:
        sizes = self.volume.column(bits, first, last)
        quotes = self.quote.column(replace(bits, field=self.quote_place), first, last) == 1
        for part, lanes in replace(bits, field=bits.field + _OF_ASKS).blocks(first, last):
            offered = OFFER_LOW + (OFFER_HIGH - OFFER_LOW) * 2.0**-32 * lanes
            size = sizes[part]
            np.copyto(size, np.maximum(np.rint(size * offered), 1).astype(np.int32), where=quotes[part])
        return sizes


_OF_ASKS = 2**11
"""Added to the field's number for the bits of what is asked and offered; the walk has those of 2**12 and more."""
