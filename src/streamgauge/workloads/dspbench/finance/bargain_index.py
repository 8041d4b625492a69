"""Bargain Index (BI): quotes that ask for less than the recent average price of their stock.

VWAP is the volume weighted average price of a stock's last `vwap_window` trades. A quote below it has the index
exp(VWAP - ask) times its size. With `vwap_period`, the average runs from the start of a calendar period instead, as in
the thesis's code: in UTC, with weeks from Monday. Until the first trade of a new period, a quote sees the last average
of the old one.

Differences from the thesis's code:

- That code truncates times to days first, so that an hour or a minute is a day there.
- It reads trades and quotes from two racing sources. Here both come in one stream, in the order of event time.

Rules:

- A quote before the stock's first trade has no index.
- An ask within a billionth of the average (`TIE`) counts as equal. A stock always traded at 0.1 has no bargains at
  0.1, though its average is rounded.
- While a turnover exceeds the largest double, the average is unknown and there are no bargains. An index beyond it is
  infinite.
- Malformed: prices that are null, not above 0 or not finite, sizes below 1, and kinds other than trade (0) and quote
  (1). They give no result and enter no average.

Class and truth sum the last trades bit by bit alike. Sums of a period may be long and agree only within rounding. The
index depends on VWAP's absolute error, so prices above some 100,000 may differ by more than a billionth.

Source: Bordin 2017, section 3.3.11.
"""

import math
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from streamgauge.core.arrays import Floats, Int64s
from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import source
from streamgauge.dataflow.operators.api import ROW, TIME, StateInAttributes
from streamgauge.dataflow.operators.grouped_arrays import (
    KeyDictionary,
    Recent,
    group_by_key,
    group_starts,
    groups,
    last_sums_sql,
    sliding_reduce,
    valid_mask,
)
from streamgauge.loadgen.datasets.finance import Price, Size
from streamgauge.loadgen.datasets.sensors import Reading
from streamgauge.loadgen.fields import Integer, Key, StreamSpec, with_malformed
from streamgauge.workloads.registry import FINITE_MAX, TIE, Feature, Job, Parameters, Workload, double, unless

MEAN_PRICE, SIZE_MAX = 20.0, 1000

Period = Literal["", "minutely", "hourly", "daily", "weekly", "monthly"]
UNITS = {"minutely": "minute", "hourly": "hour", "daily": "day", "weekly": "week", "monthly": "month"}
"""Calendar units, by their SQL names."""
DAY_US = 86_400_000_000
LENGTHS_US = {"minutely": 60_000_000, "hourly": 3_600_000_000, "daily": DAY_US}
THURSDAY = 3
"""Days from Monday to the first of January 1970, a Thursday."""


class BargainIndexParameters(Parameters):
    """The thesis's parameters and the market's."""

    vwap_window: int = Field(15, ge=1, le=100_000, description="number of a stock's last trades that are averaged")
    vwap_period: Period = Field(
        "", description=f"average from the start of a period ({', '.join(UNITS)}) instead; empty: the last trades"
    )
    bargainindex_threshold: float = Field(
        0.001, ge=0, allow_inf_nan=False, description="quotes with a greater index are bargains"
    )
    stocks: int = Field(1000, ge=1, le=100_000, description="number of stocks, traded with Zipf's frequencies")
    malformed: float = Field(0.001, ge=0, le=1, description="share of the prices that are null, 0 or not finite")


class LastTrades:
    """The volume weighted average price of each stock's last `window` trades, trade by trade."""

    def __init__(self, window: int) -> None:
        self._turnover, self._volume = Recent(window), Recent(window)

    def add(self, codes: Int64s, times: Int64s, price: Floats, size: Floats) -> Floats:
        """Takes new trades in time order, with stocks as codes; returns the average at each."""
        return self._turnover.add(codes, price * size).sums / self._volume.add(codes, size).sums


class SinceBeginning:
    """The same average of all trades since the start of a calendar period."""

    def __init__(self, period: Period) -> None:
        self._period = period
        self._codes, self._periods = np.empty(0, np.int64), np.empty(0, np.int64)
        self._turnover, self._volume = np.empty(0), np.empty(0)

    def add(self, codes: Int64s, times: Int64s, price: Floats, size: Floats) -> Floats:
        old = len(self._codes)
        codes = np.concatenate((self._codes, codes))
        periods = np.concatenate((self._periods, numbered(times, self._period)))
        turnover, volume = np.concatenate((self._turnover, price * size)), np.concatenate((self._volume, size))
        order = group_by_key(codes)  # a stock's periods ascend with its times
        codes, periods = codes[order], periods[order]
        turnover, volume = (_running_sums(each[order], codes, periods) for each in (turnover, volume))
        last = np.append(codes[1:] != codes[:-1], True)[: len(codes)]
        self._codes, self._periods = codes[last], periods[last]
        self._turnover, self._volume = turnover[last], volume[last]
        average = np.empty(len(order))
        average[order] = turnover / volume
        return average[old:]


def numbered(times_us: Int64s, period: Period) -> Int64s:
    """The number of each time's period, in order."""
    if period == "monthly":
        return times_us.astype("datetime64[us]").astype("datetime64[M]").astype(np.int64)
    if period == "weekly":
        return (times_us // DAY_US + THURSDAY) // 7
    return times_us // LENGTHS_US[period]


def _running_sums(values: Floats, *groups_by: Int64s) -> Floats:
    """Running sums within each group."""
    first, group = groups(*groups_by)
    return sliding_reduce(np.add, values, first[group], np.arange(len(values)) + 1, 0.0)


class BargainIndex(StateInAttributes):
    """The index of each quote, by the earlier trades of its stock."""

    def __init__(self, window: int, threshold: float, period: Period) -> None:
        self._threshold = threshold
        self._averages: SinceBeginning | LastTrades = SinceBeginning(period) if period else LastTrades(window)
        self._vwap: Floats = np.empty(0)

    def open(self, schema: pa.Schema) -> None:
        self._stocks = KeyDictionary(schema.field("stock").type)

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        price, size, kind = (
            batch.column(name).to_numpy(zero_copy_only=False).astype(np.float64) for name in ("price", "size", "quote")
        )
        sound = np.isfinite(price) & (price > 0) & (size >= 1) & np.isin(kind, (0, 1))
        rows = np.flatnonzero(sound & valid_mask(batch.column("stock")))
        price, size = price[rows], size[rows]
        stocks = batch.column("stock").take(pa.array(rows))
        codes = self._stocks.encode(stocks)
        quotes = kind[rows] == 1
        trades = np.flatnonzero(~quotes)
        times = batch.column(TIME).to_numpy()[rows]
        averages = np.full(len(codes), np.nan)
        with np.errstate(over="ignore"):
            averages[trades] = self._averages.add(codes[trades], times[trades], price[trades], size[trades])
        vwap = self._vwap_before(codes, averages)
        with np.errstate(over="ignore", invalid="ignore"):
            asks_less = np.isfinite(vwap) & (vwap > price * (1 + TIE))
            index = np.where(asks_less, np.exp(vwap - price) * size, 0.0)
        bargains = np.flatnonzero(quotes & (index > self._threshold))
        return pa.RecordBatch.from_pydict(
            {
                "stock": stocks.take(pa.array(bargains)),
                "ask_price": price[bargains],
                "ask_size": size[bargains].astype(np.int32),
                "bargain_index": index[bargains],
                ROW: rows[bargains],
            }
        )

    def _vwap_before(self, codes: Int64s, averages: Floats) -> Floats:
        """The average at the last trade of each row's stock up to that row; nan before the first trade.

        `known` has the averages at trades, and nan at quotes.
        """
        self._vwap = np.concatenate((self._vwap, np.full(len(self._stocks) - len(self._vwap), np.nan)))
        order = group_by_key(codes)
        sorted_codes, sorted_known = codes[order], averages[order]
        new = group_starts(sorted_codes)
        # A stock's first row takes the average before the batch, any other row the last trade in the batch.
        sorted_known = np.where(new & np.isnan(sorted_known), self._vwap[sorted_codes], sorted_known)
        last = np.maximum.accumulate(np.where(new | ~np.isnan(sorted_known), np.arange(len(order)), 0))
        before = np.empty(len(codes))
        before[order] = sorted_known[last]
        self._vwap[codes] = before  # rows are in time order, so a stock's last value remains
        return before


def truth(window: int, threshold: float, period: Period) -> str:
    """The index as DuckDB SQL: a quote takes the last known average of its stock."""
    if period:
        begin = f"date_trunc('{UNITS[period]}', make_timestamp(_time))"
        since = f"OVER (PARTITION BY stock, {begin} ORDER BY _row ROWS UNBOUNDED PRECEDING)"
        summed = f"SELECT *, sum(price * size) {since} AS turnover, sum(size) {since} AS volume FROM trades"
    else:
        summed = last_sums_sql("trades", "stock", {"turnover": "price * size", "volume": "size"}, window)
    return (
        "WITH sound AS (SELECT * FROM input WHERE isfinite(price) AND price > 0 AND size >= 1"
        " AND stock IS NOT NULL),"
        " trades AS (SELECT * FROM sound WHERE quote = 0),"
        f" known AS (SELECT stock, price, size, quote, _row, turnover / volume AS average FROM ({summed})"
        " UNION ALL SELECT stock, price, size, quote, _row, NULL FROM sound WHERE quote = 1),"
        " priced AS (SELECT *, last_value(average IGNORE NULLS) OVER (PARTITION BY stock ORDER BY _row) AS vwap"
        " FROM known)"
        " SELECT stock, price AS ask_price, size AS ask_size, exp(vwap - price) * size AS bargain_index, _row"
        f" FROM priced WHERE quote = 1 AND isfinite(vwap) AND vwap > price * {double(1 + TIE)}"
        f" AND exp(vwap - price) * size > {threshold!r}::DOUBLE"
    )


def build(parameters: BargainIndexParameters, rate_per_s: float) -> Job:
    stock, quote = Key("stock", parameters.stocks, "zipf"), Integer("quote", 0, 1)
    size = Size("size", Integer("size", 1, SIZE_MAX), quote, 1)
    price = Price("price", Reading("price", stock, 0, MEAN_PRICE, 0.0), quote, 1)
    price_field = with_malformed(price, parameters.malformed, None, 0.0, math.nan, math.inf)
    market = StreamSpec("market", (stock, quote, price_field, size), key="stock")
    rule: dict[str, Any] = {
        "window": parameters.vwap_window,
        "threshold": parameters.bargainindex_threshold,
        "period": parameters.vwap_period,
    }
    bargains = source("market", market.schema).process(
        BargainIndex,
        keys="stock",
        gives=Schema.from_types(stock="int", ask_price="double", ask_size="int", bargain_index="double"),
        parameters=rule,
        truth=truth(**rule),
        name="bargain_index",
    )
    malformed = unless(f"stock IS NOT NULL AND price > 0 AND price <= {FINITE_MAX} AND size >= 1 AND quote IN (0, 1)")
    return Job(bargains.sink("bargains"), (market,), {"market": malformed})


WORKLOAD = Workload(
    name="bargain_index",
    title="bargain index",
    summary="quotes that ask for less than the average price of their stock's last trades, weighted by volume",
    source="Bordin 2017, section 3.3.11",
    parameters=BargainIndexParameters,
    build=build,
    features=(Feature.FILTER, Feature.COUNT_WINDOW, Feature.PYTHON),
    prefix="bi",
)
