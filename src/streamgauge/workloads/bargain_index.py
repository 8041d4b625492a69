"""Bargain Index (BI) [thesis §3.3.11]: quotes that ask for less than their stock was traded at lately.

The volume weighted average price (VWAP) is that of a stock's last `vwap_window` trades [eq. 3.2]; the index of a quote
that asks for less is exp(VWAP - ask) times what it offers [eq. 3.3]. The code of the thesis averages from the day's
beginning instead, and reads trades and quotes from two places that race each other; here both come in one stream, in
the order of their time. A quote before the stock's first trade has no index. Prices that are null, not above 0 or no
finite number, sizes below 1, and what is neither a trade (0) nor a quote (1), are malformed: they give no result and
enter no average.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from streamgauge.events import Schema
from streamgauge.flow.keyed import Codes, Recent, begins, by_key, load, save
from streamgauge.flow.process import ROW, Processor
from streamgauge.flow.stream import source
from streamgauge.load.fields import Integer, Key, StreamSpec
from streamgauge.load.market import Price
from streamgauge.load.sensors import Reading
from streamgauge.workloads.base import Job, Parameters, Workload

MEAN_PRICE, SIZE_MAX = 20.0, 1000
Floats = NDArray[np.float64]


class BargainIndexParameters(Parameters):
    """The thesis's parameters, and the market."""

    vwap_window: int = Field(15, ge=1, le=100_000, description="how many of a stock's last trades are averaged")
    bargainindex_threshold: float = Field(0.001, ge=0, description="quotes with a greater index are bargains")
    stocks: int = Field(1000, ge=1, le=100_000, description="how many stocks there are, traded with Zipf's frequencies")


class BargainIndex(Processor):
    """The index of each quote, by the last trades of its stock that came before it."""

    def __init__(self, window: int, threshold: float) -> None:
        self._threshold = threshold
        self._turnover, self._volume = Recent(window), Recent(window)
        self._vwap: Floats = np.empty(0)

    def open(self, schema: pa.Schema) -> None:
        self._stocks = Codes(schema.field("stock").type)

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        price = batch.column("price").to_numpy(zero_copy_only=False).astype(np.float64)
        size = batch.column("size").to_numpy(zero_copy_only=False).astype(np.float64)
        kind = batch.column("quote").to_numpy(zero_copy_only=False)
        rows = np.flatnonzero(np.isfinite(price) & (price > 0) & (size >= 1) & np.isin(kind, (0, 1)))
        price, size = price[rows], size[rows]
        stocks = batch.column("stock").take(pa.array(rows))
        quotes = batch.column("quote").to_numpy(zero_copy_only=False)[rows] == 1
        vwap = self._vwap_before(self._stocks.of(stocks), price, size, quotes)
        with np.errstate(over="ignore", invalid="ignore"):
            index = np.where(vwap > price, np.exp(vwap - price) * size, 0.0)
        found = np.flatnonzero(quotes & (index > self._threshold))
        columns = [stocks.take(pa.array(found)), *(pa.array(each[found]) for each in (price, size, index, rows))]
        columns[2] = columns[2].cast(pa.int32())
        return pa.RecordBatch.from_arrays(columns, names=["stock", "ask_price", "ask_size", "bargain_index", ROW])

    def _vwap_before(self, codes: NDArray[np.int64], price: Floats, size: Floats, quotes: NDArray[np.bool_]) -> Floats:
        """Of each row, the average at the last trade of its stock up to it; nan where there was none."""
        trades = np.flatnonzero(~quotes)
        turnover = self._turnover.add(codes[trades], price[trades] * size[trades]).sums
        known = np.full(len(codes), np.nan)
        known[trades] = turnover / self._volume.add(codes[trades], size[trades]).sums
        self._vwap = np.concatenate((self._vwap, np.full(len(self._stocks) - len(self._vwap), np.nan)))
        order = by_key(codes)
        sorted_codes, sorted_known = codes[order], known[order]
        new = begins(sorted_codes)
        # A stock's first row looks at what was known before the batch, any other one at the last trade in it.
        sorted_known = np.where(new & np.isnan(sorted_known), self._vwap[sorted_codes], sorted_known)
        last = np.maximum.accumulate(np.where(new | ~np.isnan(sorted_known), np.arange(len(order)), 0))
        found = np.empty(len(codes))
        found[order] = sorted_known[last]
        self._vwap[codes] = found  # rows are in order of time, so a stock's last one stays
        return found

    def snapshot(self) -> bytes:
        turnover, volume = self._turnover.state, self._volume.state
        return save(
            stocks=self._stocks.keys, vwap=self._vwap,
            codes=turnover["codes"], turnover=turnover["values"], volume=volume["values"],
        )  # fmt: skip

    def restore(self, state: bytes) -> None:
        saved = load(state)
        self._stocks.restore(saved["stocks"])
        self._vwap = saved["vwap"].to_numpy().copy()
        self._turnover.restore(saved["codes"], saved["turnover"])
        self._volume.restore(saved["codes"], saved["volume"])


def truth(window: int, threshold: float) -> str:
    """The index as DuckDB SQL: of a quote, the average that stood at the last row of its stock which has one."""
    lately = f"OVER (PARTITION BY stock ORDER BY _row ROWS BETWEEN {window - 1} PRECEDING AND CURRENT ROW)"
    return (
        "WITH sound AS (SELECT * FROM input WHERE isfinite(price) AND price > 0 AND size >= 1),"
        f" known AS (SELECT *, sum(price * size) {lately} / sum(size) {lately} AS average FROM sound WHERE quote = 0"
        " UNION ALL SELECT *, NULL FROM sound WHERE quote = 1),"
        " priced AS (SELECT *, last_value(average IGNORE NULLS) OVER (PARTITION BY stock ORDER BY _row) AS vwap"
        " FROM known)"
        " SELECT stock, price AS ask_price, size AS ask_size, exp(vwap - price) * size AS bargain_index, _row"
        f" FROM priced WHERE quote = 1 AND vwap > price AND exp(vwap - price) * size > {threshold!r}::DOUBLE"
    )


def build(parameters: BargainIndexParameters, rate_per_s: float) -> Job:
    stock, quote, size = Key("stock", parameters.stocks, "zipf"), Integer("quote", 0, 1), Integer("size", 1, SIZE_MAX)
    price = Price("price", Reading("price", stock, 0, MEAN_PRICE, 0.0), quote, 1)
    market = StreamSpec("market", (stock, quote, price, size))
    window, threshold = parameters.vwap_window, parameters.bargainindex_threshold
    bargains = source("market", market.schema).process(
        BargainIndex,
        keys="stock",
        gives=Schema.of(stock="int", ask_price="double", ask_size="int", bargain_index="double"),
        parameters={"window": window, "threshold": threshold},
        truth=truth(window, threshold),
        name="bargain_index",
    )
    return Job(bargains.sink("bargains"), (market,))


WORKLOAD = Workload(
    name="bargain_index",
    title="bargain index",
    summary="quotes that ask for less than the average price of their stock's last trades, weighted by volume",
    source="thesis §3.3.11",
    parameters=BargainIndexParameters,
    build=build,
    prefix="bi",
)
