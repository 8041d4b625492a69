"""Which kind of results a sink has, by what stands before it."""

from __future__ import annotations

import pytest

from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import flow, source, table, tumble
from streamgauge.dataflow.nodes import Flow
from streamgauge.metrics.latency.event_latency import Kind
from streamgauge.metrics.latency.result_kind import has_matches, kind_of, latencies_of

A = source("a", Schema.from_types(k="int", v="int"))
B = source("b", Schema.from_types(k="int", w="int"))
NAMES = table("names", {"k": [1, 2], "name": ["one", "two"]}, Schema.from_types(k="int", name="string"))
JOINED = A.join(B, window=tumble(3), on="k")
COUNTED = A.window(tumble(3), keys="k").aggregate(n="count(*)")
WINDOW = {"window_start": "window_start", "window_end": "window_end"}

CASES: dict[str, tuple[Flow, Kind, bool]] = {
    "rows": (A.where("v > 1").sink("out"), "row", False),
    "updates": (A.running(keys="k", n="count(*)").sink("out"), "update", False),
    "windows": (COUNTED.sink("out"), "window", False),
    "windows, looked up": (COUNTED.lookup(NAMES, on="k").sink("out"), "window", False),
    "matches": (JOINED.sink("out"), "join", True),
    "matches, filtered": (JOINED.where("v > w").sink("out"), "join", True),
    "matches, made into others": (JOINED.select(WINDOW, sum="v + w").sink("out"), "join", True),
    "matches, exploded": (JOINED.explode(x="array(v, w)").sink("out"), "join", True),
    "matches, looked up": (JOINED.lookup(NAMES, on="k").sink("out"), "join", True),
    "matches, in several steps": (
        JOINED.explode(x="array(v, w)").lookup(NAMES, on="k").where("x > 1").sink("out"), "join", True
    ),
    "windows of matches": (JOINED.window(tumble(6), keys="k").aggregate(n="count(*)").sink("out"), "window", False),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_kind_of_results(case: str) -> None:
    """Matches stay matches row by row; a window over them is a window."""
    asked, kind, matches = CASES[case]
    assert (kind_of(asked), has_matches(asked)) == (kind, matches)


def test_latencies_are_those_of_any_sink() -> None:
    """Closing delays where something closes, match times where something is matched, until counted of updates."""
    always = ("event_time", "processing_time")
    assert latencies_of(A.sink("rows")) == (*always, "uncorrected")
    assert latencies_of(flow(A.sink("rows"), COUNTED.sink("counts"))) == (*always, "closing_delay", "uncorrected")
    both = flow(JOINED.explode(x="array(v, w)").sink("parts"), A.sink("rows"))
    assert latencies_of(both) == (*always, "closing_delay", "match_time", "uncorrected")
    counts = A.running(keys="k", n="count(*)").sink("counts")
    assert latencies_of(counts) == ("event_time", "until_counted", "processing_time", "uncorrected")
