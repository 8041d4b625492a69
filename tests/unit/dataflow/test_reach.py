"""Reach: how far one event can be felt, by nodes on the longest path."""

import pyarrow as pa
import pytest

from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import flow, hop, session, source, tumble, union
from streamgauge.dataflow.lineage import with_lineage
from streamgauge.dataflow.nodes import Flow, Node, WindowAggregate
from streamgauge.dataflow.operators.api import Processor
from streamgauge.dataflow.reach import reach_us, slide_us, tail_us

A = source("a", Schema.from_types(k="int", v="int"))
B = source("b", Schema.from_types(k="int", w="int"))
SHORT_ROWS = A.window(tumble(1), keys="k").aggregate(v="max(v)")
SHORT = SHORT_ROWS.select(k="k", v="v")


def at_once(_: Node) -> int:
    return 0


LONG = A.window(hop(8, 4), keys="k").aggregate(n="count(*)")

CASES: dict[str, tuple[Flow, int | None]] = {
    "rows": (A.where("v > 1").select(x="v").sink("out"), 0),
    "tumbling": (A.window(tumble(8), keys="k").aggregate(n="count(*)").sink("out"), 8_000_000),
    "hopping": (A.window(hop(8, 4), keys="k").aggregate(n="count(*)").sink("out"), 8_000_000),
    "chained": (SHORT.window(hop(8, 4), keys="k").aggregate(n="count(*)").sink("out"), 9_000_000),
    "join takes the longer side": (SHORT.join(B, window=tumble(3), on="k").sink("out"), 4_000_000),
    "session": (A.window(session(30), keys="k").aggregate(n="count(*)").sink("out"), 30_000_000),
    "interval takes its farther end": (A.interval_join(B, on="k", earliest=-9, latest=5).sink("out"), 9_000_000),
    "interval that ends later": (A.interval_join(B, on="k", earliest=-2, latest=5).sink("out"), 5_000_000),
    "sinks, the longest first": (flow(LONG.sink("long"), A.sink("rows")), 8_000_000),
    "sinks, the longest last": (flow(A.sink("rows"), LONG.sink("long")), 8_000_000),
    "distinct": (A.distinct(keys="k").sink("out"), None),
    "distinct of a window": (A.distinct(keys="k", window=hop(8, 4)).sink("out"), 8_000_000),
    "top adds nothing": (SHORT_ROWS.top(3, by="v").sink("out"), 1_000_000),
    "union takes the longest way": (union(SHORT, A).sink("out"), 1_000_000),
    "explode": (A.explode(x="array(k, v)").sink("out"), 0),
    "running": (A.running(keys="k", n="count(*)").sink("out"), None),
}


@pytest.mark.parametrize("case", CASES)
def test_reach(case: str) -> None:
    """The range of each window on the longest path; none row by row; no end for running state. Lineage adds only
    row-wise steps. The tail of what closes is its reach, over all sinks, where no process waits for the watermark.
    """
    flow_, reach = CASES[case]
    assert reach_us(flow_) == reach_us(with_lineage(flow_)) == reach
    assert reach is None or tail_us(flow_, at_once) == reach


SLIDES = {
    "rows": None, "tumbling": 8_000_000, "hopping": 4_000_000, "chained": 4_000_000, "session": None,
    "join takes the longer side": 3_000_000, "distinct of a window": 4_000_000, "top adds nothing": 1_000_000,
    "union takes the longest way": None,
}  # fmt: skip


@pytest.mark.parametrize("case", SLIDES)
def test_slide(case: str) -> None:
    """The longest of the windows that rows come through; none where they are of no window, or of sessions."""
    assert slide_us(CASES[case][0].sinks[0].input) == SLIDES[case]


class PassThrough(Processor):
    """Without end, or of the watermark; what it gives is of no concern here."""

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        return batch

    def snapshot(self) -> bytes:
        return b""

    def restore(self, state: bytes) -> None:
        pass


def test_what_closes_before_and_behind_something_without_end_is_waited_for() -> None:
    """Windows of 8 s, a process that never forgets, windows of 60 s: 3 s of tail would leave those open."""
    counts = A.window(tumble("8s"), keys="k").aggregate(n="count(*)")
    retained = counts.process(PassThrough, keys="k", gives=Schema.from_types(k="int", n="bigint"))
    sums = retained.window(tumble("60s"), keys="k").aggregate(n="sum(n)").sink("sums")
    assert (reach_us(sums), tail_us(sums, at_once)) == (None, 68_000_000)
    held = A.process(PassThrough, keys="k", gives=Schema.from_types(k="int", v="int"), identity="k", reach="2s").sink(
        "held"
    )
    assert reach_us(held) == tail_us(held, at_once) == 2_000_000


def test_the_tail_is_longer_by_what_an_engine_gives_later() -> None:
    """Each node on the way adds its delay; the reach is that of the flow alone."""

    def a_slide_later(node: Node) -> int:
        return node.window.slide_us if isinstance(node, WindowAggregate) else 0

    chained, _ = CASES["chained"]
    assert tail_us(chained, a_slide_later) - tail_us(chained, at_once) == 5_000_000
    assert reach_us(chained) == 9_000_000
