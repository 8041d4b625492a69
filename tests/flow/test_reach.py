"""Reach: how far one event can be felt, by nodes on the longest path."""

import pytest

from streamgauge.events import Schema
from streamgauge.flow.lineage import with_lineage
from streamgauge.flow.nodes import Flow
from streamgauge.flow.reach import reach_us
from streamgauge.flow.stream import hop, source, tumble

A = source("a", Schema.of(k="int", v="int"))
B = source("b", Schema.of(k="int", w="int"))
SHORT = A.window(tumble(1), keys="k").aggregate(v="sum(v)").select(k="k", v="v")

CASES: dict[str, tuple[Flow, int | None]] = {
    "rows": (A.where("v > 1").select(x="v").sink("out"), 0),
    "tumbling": (A.window(tumble(8), keys="k").aggregate(n="count(*)").sink("out"), 16_000_000),
    "hopping": (A.window(hop(8, 4), keys="k").aggregate(n="count(*)").sink("out"), 12_000_000),
    "chained": (SHORT.window(hop(8, 4), keys="k").aggregate(n="count(*)").sink("out"), 14_000_000),
    "join takes the longer side": (SHORT.join(B, window=tumble(3), on="k").sink("out"), 8_000_000),
    "running": (A.running(keys="k", n="count(*)").sink("out"), None),
}


@pytest.mark.parametrize("case", CASES)
def test_reach(case: str) -> None:
    """Range and slide of each window on the longest path; none row by row; no end for running state."""
    flow, wanted = CASES[case]
    assert reach_us(flow) == wanted


def test_lineage_changes_no_reach() -> None:
    """The rewrite adds only row-wise steps."""
    for flow, wanted in CASES.values():
        assert reach_us(with_lineage(flow)) == wanted
