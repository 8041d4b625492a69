"""Prices of a market: trades that walk, and what quotes ask for."""

import numpy as np

from streamgauge.loadgen.datasets.finance import ASK_HIGH, ASK_LOW, OFFER_HIGH, OFFER_LOW, Price, Size
from streamgauge.loadgen.datasets.sensors import GRID, Reading
from streamgauge.loadgen.fields import Integer, Key
from streamgauge.loadgen.random import PhiloxBits

STOCK, QUOTE = Key("stock", 20), Integer("quote", 0, 1)
TRADED = Reading("price", STOCK, 0, 20.0, 0.0)
PRICE = Price("price", TRADED, QUOTE, 1)
VOLUME = Integer("size", 1, 1000)
SIZE = Size("size", VOLUME, QUOTE, 1)
BITS = PhiloxBits(seed=1, stream=0, partition=0, field=2)


def test_a_trade_has_the_price_and_a_quote_asks_for_more_or_less() -> None:
    """Of quotes as many ask for more as for less, within a tenth; every price is on the grid."""
    prices, walk = PRICE.column(BITS, 0, 40_000), TRADED.column(BITS, 0, 40_000)
    quotes = QUOTE.column(PhiloxBits(1, 0, 0, 1), 0, 40_000) == 1
    assert prices[~quotes].tolist() == walk[~quotes].tolist()
    ratio = prices[quotes] / walk[quotes]
    assert np.all((ratio > ASK_LOW - 1 / GRID) & (ratio < ASK_HIGH + 1 / GRID))
    assert abs(np.mean(ratio < 1) - 0.5) < 0.02
    assert np.array_equal(prices * GRID, np.rint(prices * GRID))


def test_a_quote_offers_a_part_of_a_trades_size() -> None:
    """From a tenth to eight, every part as often as any other, and one share at least."""
    sizes, volumes = SIZE.column(BITS, 0, 40_000), VOLUME.column(BITS, 0, 40_000)
    quotes = QUOTE.column(PhiloxBits(1, 0, 0, 1), 0, 40_000) == 1
    assert sizes[~quotes].tolist() == volumes[~quotes].tolist()
    assert sizes.min() == 1
    part = (sizes / volumes)[quotes & (volumes > 100)]
    assert np.all((part > OFFER_LOW - 0.01) & (part < OFFER_HIGH + 0.01))
    assert abs(np.mean(part) - (OFFER_LOW + OFFER_HIGH) / 2) < 0.01
    assert abs(np.mean(part < 0.45) - 0.5) < 0.02
