"""Processes on a real Spark: what the application there is does not show, each in a short trial that is verified.

The classes are here, and travel by value: a test is no module that Spark's workers could import.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pyarrow as pa
import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.experiment import build
from streamgauge.conformance.cases import with_totals
from streamgauge.core.clock import US
from streamgauge.core.schema import EVENT_TIME, INGEST_TIME, Schema
from streamgauge.dataflow.builder import flow as flow_of
from streamgauge.dataflow.builder import source, tumble
from streamgauge.dataflow.nodes import Flow
from streamgauge.dataflow.operators.api import INPUT, ROW, TIME, Processor
from streamgauge.dataflow.operators.grouped_arrays import KeyDictionary, load, save
from streamgauge.dataflow.reach import reach_us
from streamgauge.harness.start_processes import TestBed
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.preflight.settings_checks import check
from streamgauge.trial.trial_result import TrialResult
from tests.helpers_broker_trials import check_results, running, trial

pytestmark = [pytest.mark.spark, pytest.mark.long]

PURCHASES = source("purchases", Schema.from_types(user_id="int", gem_pack_id="int", price="int"))
ADS = source("ads", Schema.from_types(user_id="int", gem_pack_id="int"))
WARMUP = "16s"
"""A fresh engine's first batches take so long, and results that are held back twice need three after their events."""


@pytest.fixture(autouse=True)
def by_value() -> Iterator[None]:
    """The classes of the tests travel with the job."""
    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)
    yield
    cloudpickle.unregister_pickle_by_value(module)


class LastPrice(Processor):
    """Of each advertisement, the price of the pack's last purchase before it; -1 where there was none."""

    def open(self, schema: pa.Schema) -> None:
        self._packs, self._prices = KeyDictionary(schema.field("pack").type), np.empty(0, np.int64)

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        codes = self._packs.encode(batch.column("pack"))
        self._prices = np.append(self._prices, np.full(len(self._packs) - len(self._prices), -1))
        bought = batch.column(INPUT).to_numpy() == 0
        # The number of the last purchase of the same pack up to each row: rows by pack, then a running maximum.
        order = np.argsort(codes, kind="stable")
        last = np.maximum.accumulate(np.where(bought[order], np.arange(len(order)), -1))
        starts = np.searchsorted(codes[order], codes[order])
        prices = batch.column("price").fill_null(0).to_numpy()[order]
        found = np.where(last >= starts, prices[last], self._prices[codes[order]])
        shown = ~bought[order]
        ends = np.flatnonzero(np.diff(codes[order], append=-1))
        self._prices[codes[order][ends]] = found[ends]
        columns = {"pack": batch.column("pack").take(pa.array(order[shown])), "price": found[shown], ROW: order[shown]}
        return pa.RecordBatch.from_arrays([pa.array(column) for column in columns.values()], names=list(columns))

    def snapshot(self) -> bytes:
        return save(packs=self._packs.keys, prices=self._prices)

    def restore(self, state: bytes) -> None:
        saved = load(state)
        self._packs.restore(saved["packs"])
        self._prices = saved["prices"].to_numpy()


class PerSecond(Processor):
    """How many rows each pack had in each second, when the watermark says that the second is over."""

    def __init__(self) -> None:
        self._open = pa.table({name: pa.array([], pa.int64()) for name in ("pack", "second", *self.TIMES)})

    TIMES = (EVENT_TIME, INGEST_TIME)

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        seconds = pa.compute.divide(batch.column(TIME), US)
        new = [batch.column("gem_pack_id").cast(pa.int64()), seconds, *(batch.column(name) for name in self.TIMES)]
        self._open = pa.concat_tables([self._open, pa.table(new, names=self._open.column_names)])
        over = pa.compute.less_equal(pa.compute.multiply(pa.compute.add(self._open["second"], 1), US), watermark_us + 1)
        groups = self._open.filter(over).group_by(["pack", "second"])
        counted = groups.aggregate([([], "count_all"), *((name, "max") for name in self.TIMES)])
        self._open = self._open.filter(pa.compute.invert(over))
        due = pa.compute.subtract(pa.compute.multiply(pa.compute.add(counted["second"], 1), US), 1)
        columns = [counted["pack"], counted["second"], counted["count_all"], due,
                   *(counted[f"{name}_max"] for name in self.TIMES)]  # fmt: skip
        names = ["pack", "second", "n", TIME, *self.TIMES]
        return pa.RecordBatch.from_arrays([column.combine_chunks() for column in columns], names=names)

    def snapshot(self) -> bytes:
        return save(**{name: self._open[name].combine_chunks() for name in self._open.column_names})

    def restore(self, state: bytes) -> None:
        self._open = pa.table(load(state))


class Twice(Processor):
    """Every row two times: a stateless class with several results of a row."""

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        rows = np.repeat(np.arange(batch.num_rows), 2)
        columns = [batch.column("n").take(pa.array(rows)), pa.array(rows)]
        return pa.RecordBatch.from_arrays(columns, names=["n", ROW])


def last_price() -> Flow:
    """Two inputs with string keys, after row-by-row steps: packed by Spark's rows, not by the reader; no truth."""
    pack = "concat('pack ', try_cast(gem_pack_id as string))"
    bought = PURCHASES.where("price > 20").select(pack=pack, price="price")
    shown = ADS.select(pack=pack)
    gives = Schema.from_types(pack="string", price="bigint")
    return bought.process(LastPrice, shown, keys="pack", gives=gives).sink("prices")


PER_SECOND = (
    f"SELECT gem_pack_id AS pack, _time // {US} AS second, count(*) AS n, (_time // {US} + 1) * {US} - 1 AS _time,"
    " max(event_time) AS event_time, max(ingest_time) AS ingest_time FROM input GROUP BY pack, _time // 1000000"
)


def per_second(keys: str = "gem_pack_id") -> Any:
    """Results of the watermark."""
    return PURCHASES.process(
        PerSecond, keys=keys, gives=Schema.from_types(pack="int", second="bigint", n="bigint"),
        identity=("pack", "second"), reach="1s", truth=PER_SECOND,
    )  # fmt: skip


def only_watermark_flow() -> Flow:
    """Results of the watermark, to the sink."""
    return per_second().sink("seconds")


def chained() -> Flow:
    """Its results in a window, and windows in a stateless process: the watermark survives every crossing."""
    windows = per_second().window(tumble(2), keys="pack").aggregate(n="sum(n)")
    truth = "SELECT n, _row, 0 AS _ordinal FROM input UNION ALL SELECT n, _row, 1 AS _ordinal FROM input"
    return windows.process(Twice, reads="n", gives=Schema.from_types(n="bigint"), several=True, truth=truth).sink(
        "twice"
    )


class Held(Processor):
    """The number of windows of each pack so far."""

    def __init__(self) -> None:
        self._packs = KeyDictionary(pa.int32())
        self._counts = np.empty(0, np.int64)

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        codes = self._packs.encode(batch.column("gem_pack_id"))
        self._counts = np.append(self._counts, np.zeros(len(self._packs) - len(self._counts), np.int64))
        order = np.argsort(codes, kind="stable")
        grouped = codes[order]
        rank = np.arange(len(order)) - np.searchsorted(grouped, grouped) + 1
        columns = [batch.column("gem_pack_id").take(pa.array(order)), pa.array(self._counts[grouped] + rank), order]
        self._counts += np.bincount(codes, minlength=len(self._counts))
        return pa.RecordBatch.from_arrays([pa.array(each) for each in columns], names=["pack", "windows", ROW])

    def snapshot(self) -> bytes:
        return save(packs=self._packs.keys, counts=self._counts)

    def restore(self, state: bytes) -> None:
        saved = load(state)
        self._packs.restore(saved["packs"])
        self._counts = saved["counts"].to_numpy()


def after_windows() -> Flow:
    """A keyed class over results of windows, whose ids are keys and window start."""
    windows = PURCHASES.window(tumble(1), keys="gem_pack_id").aggregate(n="count(*)")
    truth = (
        "SELECT gem_pack_id AS pack, row_number() OVER (PARTITION BY gem_pack_id ORDER BY _row) AS windows, _row"
        " FROM input"
    )
    return windows.process(
        Held, keys="gem_pack_id", reads=(), gives=Schema.from_types(pack="int", windows="bigint"), truth=truth
    ).sink("windows")


@contextmanager
def started(root: Path, workload: str, flow: Flow | None) -> Iterator[tuple[ResolvedExperiment, TestBed, RunFolder]]:
    """A test bed with the streams of a workload and a flow of this module over them (None: the workload's own)."""
    # No duration: one as short as these trials is refused, since it could not be judged.
    # While Spark is restarted nothing is read, however long that takes: the queue must not fill meanwhile.
    load_ = {"rate": "10k", "warmup": WARMUP, "generators": 2, "bound": "5m"}
    packs = {"packs": "50"} if flow is not None else {}
    resolved = check(build({"workload": workload, "parameters": packs, "load": load_, "out": str(root)}))
    if flow is not None:
        reach = reach_us(flow)
        resolved = replace(resolved, flow=flow, reach_us=reach, tail_us=round(US * 3 + (reach or 0)))
    folder = RunFolder.create(root, workload, "spark", datetime.now(UTC))
    with running(resolved, folder.path) as testbed:
        yield resolved, testbed, folder


def check_each_sink(judged: TrialResult, independent: bool, rows_least: int) -> None:
    check_results(judged, rows_least, independent)
    assert judged.verified is not None
    assert min(sink.verification.matched for sink in judged.verified.sinks) >= rows_least


def broadcast() -> Flow:
    """Each purchase, by pack, beside a sum over all advertisements."""
    bought, shown = PURCHASES.select(k="gem_pack_id", v="price"), ADS.select(w="gem_pack_id")
    return with_totals(bought, shown).sink("totals")


CASES = {
    "two inputs, string keys": ("windowed_join", last_price(), False, 16_000),
    "a broadcast edge": ("windowed_join", broadcast(), True, 16_000),
    "results of the watermark, chained, after windows": (
        "windowed_aggregation",
        flow_of(only_watermark_flow(), chained(), after_windows()),
        True,
        300,
    ),
}


@pytest.mark.parametrize(("workload", "flow", "independent", "rows_least"), CASES.values(), ids=CASES)
def test_every_answer_is_verified(
    tmp_path: Path, workload: str, flow: Flow, independent: bool, rows_least: int
) -> None:
    """Every result once, with the right values and lineage; by the class itself where there is no truth."""
    with started(tmp_path, workload, flow) as (resolved, testbed, folder):
        judged = trial(resolved, testbed, folder)
    check_each_sink(judged, independent, rows_least)
