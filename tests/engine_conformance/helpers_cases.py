"""What the conformance suite asks of every engine, and the gaps that are known.

A gap is one of three kinds, as a strict xfail: it fails as soon as the engine closes it.

- `notimpl`: the engine could, and its plug-in does not.
- `notyet`: the engine itself cannot yet.
- `never`: the engine is not made for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pytest

from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import count, flow, hop, session, source, table, tumble, union
from streamgauge.dataflow.nodes import Flow
from streamgauge.dataflow.operators.api import ROW, Processor
from streamgauge.engines.registry import streaming_engines
from tests.engine_conformance.helpers_expressions import every_aggregate, every_function, odd_keys
from tests.helpers_engine_plugin import ENGINE
from tests.unit.dataflow.helpers_totals import with_totals

ENGINES = (*streaming_engines(), ENGINE)
"""Those that are registered, and the example of another distribution."""

PURCHASES = source("purchases", Schema.from_types(user_id="int", gem_pack_id="int", price="int"))
ADS = source("ads", Schema.from_types(user_id="int", gem_pack_id="int"))
PACKS = table(
    "packs",
    {"gem_pack_id": [1, 2, 3], "kind": ["odd", None, "odd"]},
    Schema.from_types(gem_pack_id="int", kind="string"),
)
DEAR, CHEAP = PURCHASES.where("price > 90"), PURCHASES.where("price <= 10")
BY_PACK = PURCHASES.window(hop("2s", "1s"), keys="gem_pack_id")


class Dear(Processor):
    """The prices above 90."""

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        prices = batch.column("price").to_numpy()
        rows = pa.array([row for row, price in enumerate(prices) if price > 90], pa.int64())
        return pa.RecordBatch.from_arrays([batch.column("price").take(rows), rows], ["high", ROW])


@dataclass(frozen=True)
class Case:
    """A flow, the workload whose streams it reads, and the fewest results of a trial of 6 s at `rate`."""

    made: Flow | Callable[[], Flow]
    least: int
    streams: str = "identity"
    rate: str = "5k"

    @cached_property
    def flow(self) -> Flow:
        """Made at first use where that takes time."""
        return self.made() if callable(self.made) else self.made


CASES: dict[str, Case] = {
    "source": Case(PURCHASES.sink("out"), 25_000),
    "select": Case(PURCHASES.select(pack="gem_pack_id", half="try_divide(price, 2)").sink("out"), 25_000),
    "null and edge values": Case(
        PURCHASES.select(
            n="nullif(price % 3, 0)",
            text="nullif(try_cast(price as string), '7')",
            third="try_divide(price, price - 50)",
        ).sink("out"),
        25_000,
    ),
    "where": Case(DEAR.sink("out"), 2_000),
    "explode": Case(PURCHASES.explode(n="array(user_id, price)").sink("out"), 50_000),
    "lookup": Case(PURCHASES.lookup(PACKS, on="gem_pack_id", how="left").select(kind="kind").sink("out"), 25_000),
    "union": Case(union(DEAR, CHEAP).sink("out"), 4_000),
    "tumbling window": Case(
        PURCHASES.window(tumble("1s"), keys="gem_pack_id").aggregate(revenue="sum(price)", n="count(*)").sink("out"),
        300,
    ),
    "hopping window": Case(BY_PACK.aggregate(revenue="sum(price)", most="max(price)").sink("out"), 300),
    "session window": Case(
        PURCHASES.window(session("50ms"), keys="user_id").aggregate(n="count(*)").sink("out"),
        1_000,
    ),
    "window by count": Case(
        PURCHASES.window(count(10, slide=5), keys="gem_pack_id").aggregate(revenue="sum(price)").sink("out"), 1_000
    ),
    "running aggregate": Case(PURCHASES.running(keys="gem_pack_id", n="count(*)").sink("out"), 100),
    "distinct": Case(PURCHASES.distinct(keys=("gem_pack_id", "price")).sink("out"), 100),
    "distinct in a window": Case(PURCHASES.distinct(keys="gem_pack_id", window=tumble("1s")).sink("out"), 300),
    "top": Case(BY_PACK.aggregate(n="count(*)").top(3, by="n", ties="gem_pack_id").sink("out"), 12),
    "aggregate of aggregate": Case(
        PURCHASES.window(tumble("1s"), keys=("gem_pack_id", "price")).aggregate(n="count(*)")
        .window(tumble("2s"), keys="gem_pack_id").aggregate(most="max(n)").sink("out"),
        100,
    ),
    "windowed join": Case(
        PURCHASES.join(ADS, window=tumble("1s"), on=("user_id", "gem_pack_id")).sink("out"), 10, "windowed_join"
    ),
    "interval join": Case(
        PURCHASES.interval_join(ADS, on=("user_id", "gem_pack_id"), latest="1s").sink("out"), 10, "windowed_join"
    ),
    "stateless process": Case(
        PURCHASES.process(
            Dear, reads="price", gives=Schema.from_types(high="int"), name="dear",
            truth="SELECT price AS high, _row FROM input WHERE price > 90",
        ).sink("out"),
        2_000,
    ),
    "keyed process": Case(
        with_totals(PURCHASES.select(k="gem_pack_id", v="price"), ADS.select(w="gem_pack_id")).sink("out"),
        5_000, "windowed_join",
    ),
    "several sinks": Case(flow(DEAR.sink("dear"), CHEAP.sink("cheap")), 4_000),
    "sinks of several modes": Case(
        flow(DEAR.sink("dear"), PURCHASES.running(keys="gem_pack_id", n="count(*)").sink("counts")), 2_000
    ),
    "every function": Case(every_function, 5_000, "edges", "1k"),
    "every aggregate": Case(every_aggregate, 40, "edges", "1k"),
    "null and odd keys": Case(odd_keys, 100, "edges", "1k"),
}  # fmt: skip

GAPS: dict[str, dict[str, tuple[str, ...]]] = {
    "spark": {},
    "spark-rtm": {
        "notyet": (
            "lookup", "union", "session window", "window by count", "distinct in a window", "top",
            "aggregate of aggregate", "windowed join", "interval join", "stateless process", "keyed process",
        ),
        "notimpl": ("several sinks", "sinks of several modes"),
    },
    "spark-dstream": {
        "never": (
            "session window", "window by count", "distinct", "distinct in a window", "interval join",
            "stateless process", "keyed process",
        ),
        "notimpl": ("several sinks", "sinks of several modes"),
    },
    "external": {"never": tuple(CASES)},
    "known": {
        "never": (
            "lookup", "union", "session window", "window by count", "running aggregate", "distinct",
            "distinct in a window", "top", "windowed join", "interval join", "stateless process", "keyed process",
            "several sinks", "sinks of several modes",
        ),
    },
    ENGINE: {"notimpl": tuple(case for case in CASES if case not in ("source", "where"))},
}  # fmt: skip
"""Engine to the cases that it refuses, by the kind of the gap."""


RESTART_GAPS = {"spark-dstream": "never", "known": "never", ENGINE: "notimpl"}
"""Engine to why it does not go on where it was when it is killed and started again."""


def gap(engine: str, case: str) -> str:
    """The kind of a gap; empty if the engine must run the case."""
    return next((kind for kind, cases in GAPS[engine].items() if case in cases), "")


def every_pair() -> Iterator[object]:
    """(engine, case), gaps marked."""
    for engine in ENGINES:
        for case in CASES:
            kind = gap(engine, case)
            marks = [pytest.mark.xfail(reason=f"{kind}: {engine} refuses it", strict=True)] if kind else []
            yield pytest.param(engine, case, marks=marks, id=f"{engine}-{case.replace(' ', '_')}")
