"""What the suite asks of every engine: flows as data, over streams of built-in workloads or of edge rows."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import get_args

import numpy as np
import pyarrow as pa

from streamgauge.conformance.edge_rows import EXACT, STREAM, every_aggregate, every_function, exact_rows, odd_keys
from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import Stream, count, flow, hop, session, source, table, tumble, union
from streamgauge.dataflow.graph import operators
from streamgauge.dataflow.nodes import Flow, InWindows, Node, UserJobNode
from streamgauge.dataflow.operators.api import INPUT, ROW, Processor
from streamgauge.dataflow.operators.grouped_arrays import load, save
from streamgauge.loadgen.fields import StreamSpec
from streamgauge.workloads.registry import Job, Parameters, Workload, get

KINDS = frozenset(get_args(Node)) - {InWindows, UserJobNode}
"""The node kinds that a flow of ours may have. `InWindows` is made of windows that never close."""

PURCHASES = source("purchases", Schema.from_types(user_id="int", gem_pack_id="int", price="int"))
ADS = source("ads", Schema.from_types(user_id="int", gem_pack_id="int"))
PACKS = table(
    "packs",
    {"gem_pack_id": [1, 2, 3], "kind": ["odd", None, "odd"]},
    Schema.from_types(gem_pack_id="int", kind="string"),
)
DEAR, CHEAP = PURCHASES.where("price > 90"), PURCHASES.where("price <= 10")
BY_PACK = PURCHASES.window(hop("2s", "1s"), keys="gem_pack_id")
TOTALS_TRUTH = (
    "SELECT k, v, total, _row FROM"
    " (SELECT *, coalesce(sum(w) OVER (ORDER BY _row ROWS UNBOUNDED PRECEDING), 0) AS total FROM input)"
    " WHERE _input = 0"
)


class Dear(Processor):
    """The prices above 90."""

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        rows = pa.array(np.flatnonzero(batch.column("price").to_numpy() > 90))
        return pa.RecordBatch.from_arrays([batch.column("price").take(rows), rows], ["high", ROW])


class Totals(Processor):
    """The sum of `w` over all rows of the broadcast input so far, on every row of the other."""

    def __init__(self) -> None:
        self._total = 0

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        totals = self._total + np.cumsum(batch.column("w").fill_null(0).to_numpy().astype(np.int64))
        self._total = int(totals[-1]) if len(totals) else self._total
        rows = np.flatnonzero(batch.column(INPUT).to_numpy() == 0)
        at = pa.array(rows)
        columns = [batch.column("k").take(at), batch.column("v").take(at), pa.array(totals[rows]), at]
        return pa.RecordBatch.from_arrays(columns, names=["k", "v", "total", ROW])

    def snapshot(self) -> bytes:
        return save(total=np.array([self._total]))

    def restore(self, state: bytes) -> None:
        self._total = load(state)["total"][0].as_py()


def with_totals(stream: Stream, everyones: Stream) -> Stream:
    """`stream` (k, v), by `k`, beside the sum of `w` over all of `everyones`."""
    return stream.process(
        Totals,
        keys="k",
        reads=("v", "w"),
        gives=Schema.from_types(k=stream.columns["k"], v="int", total="bigint"),
        broadcast=everyones,
        truth=TOTALS_TRUTH,
        name="totals",
    )


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
    "window after session": Case(
        PURCHASES.window(session("50ms"), keys="user_id").aggregate(n="count(*)")
        .window(tumble("1s"), keys="n").aggregate(sessions="count(*)").sink("out"),
        12,
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
    "interval join of earlier rows": Case(
        PURCHASES.interval_join(ADS, on=("user_id", "gem_pack_id"), earliest="-3s", latest="-1s").sink("out"),
        10, "windowed_join",
    ),
    "interval join of later rows": Case(
        PURCHASES.interval_join(ADS, on=("user_id", "gem_pack_id"), earliest="1s", latest="2s").sink("out"),
        10, "windowed_join",
    ),
    "interval join of equal times": Case(
        PURCHASES.select(user_id="user_id", pack="gem_pack_id")
        .interval_join(PURCHASES.select(user_id="user_id", price="price"), on="user_id").sink("out"),
        25_000,
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
    "edge rows": Case(exact_rows, 5_000, "exact_edges", "1k"),
    "every function": Case(every_function, 5_000, "edges", "1k"),
    "every aggregate": Case(every_aggregate, 40, "edges", "1k"),
    "null and odd keys": Case(odd_keys, 100, "edges", "1k"),
}  # fmt: skip


def kinds(of: Flow) -> set[type]:
    """The node kinds of a flow."""
    return {type(node) for node in operators(of)}


def together(names: Iterable[str]) -> Flow:
    """The flows of several cases as one, whose sinks are named after them."""
    return flow(
        *(
            Flow(tuple(replace(sink, name=sink_of(name, sink.name)) for sink in CASES[name].flow.sinks))
            for name in names
        )
    )


def sink_of(case: str, sink: str = "") -> str:
    """The name of a case's sink; without `sink`, what the names of all of them begin with."""
    return f"{case.replace(' ', '_')}.{sink}"


class Cases(Parameters):
    """`cases`: names of cases over the same streams, with commas between them."""

    cases: str = "source"


def _streams(of: str) -> tuple[StreamSpec, ...]:
    edges = [each for each in (STREAM, EXACT) if each.name == of]
    if edges:
        return tuple(edges)
    workload = get(of)
    return workload.build(workload.read({}), 1000.0).streams


def _build(parameters: Cases, _: float) -> Job:
    names = parameters.cases.split(",")
    made = together(names) if len(names) > 1 else CASES[names[0]].flow
    return Job(made, _streams(CASES[names[0]].streams))


WORKLOAD = Workload("conformance", "", "cases of the conformance suite", "", Cases, _build)
"""The cases as a workload, which trials of the suite run."""
