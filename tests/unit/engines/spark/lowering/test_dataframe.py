"""Which way an operator goes on Spark, and which operators Spark's own nodes count. That they count right is seen in
`tests/real/spark/test_row_counts.py`.
"""

import pytest

from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import Stream, flow, hop, source, table, tumble
from streamgauge.dataflow.nodes import Flow, Window, WindowAggregate, WindowJoin
from streamgauge.engines.spark.lowering.row_counter import natively_counted
from streamgauge.engines.spark.lowering.windows import lowering_of

BOUGHT = source("purchases", Schema.from_types(user_id="int", pack="int", price="int"))
ADS = source("ads", Schema.from_types(user_id="int", pack="int"))


@pytest.mark.parametrize(
    ("aggregate", "requested", "way"),
    [
        ("sum(price)", {}, "panes"),
        ("sum(price)", {"aggregate": "auto"}, "panes"),
        ("avg(price)", {}, "window"),
        ("sum(price)", {"aggregate": "window"}, "window"),
        ("sum(price)", {"other": "window"}, "panes"),
        ("sum(price)", {"aggregate": "sliding"}, "sliding"),
    ],
)
def test_an_aggregate_goes_by_panes_where_it_can(aggregate: str, requested: dict[str, str], way: str) -> None:
    """Unless its own name was given another way."""
    node = BOUGHT.window(hop(2, 1), keys="pack").aggregate(found=aggregate).node
    assert isinstance(node, WindowAggregate)
    assert lowering_of(node, requested) == way


@pytest.mark.parametrize(
    ("window", "aggregate", "structured", "way"),
    [
        (hop(100, 1), "sum(price)", True, "sliding"),
        (hop(99, 1), "sum(price)", True, "panes"),
        (hop(100, 1), "sum(price * 2)", True, "panes"),
        (hop(100, 1), "avg(price)", True, "window"),
        (hop(100, 1), "sum(price)", False, "panes"),
        (tumble(1), "avg(price)", True, "panes"),
        (tumble(1), "avg(price)", False, "window"),
    ],
)
def test_the_best_way_depends_on_the_overlap(window: Window, aggregate: str, structured: bool, way: str) -> None:
    """A process from 100 windows of an event; tumbling windows are their only panes. DStreams have neither."""
    node = BOUGHT.window(window, keys="pack").aggregate(found=aggregate).node
    assert isinstance(node, WindowAggregate)
    assert lowering_of(node, {}, structured) == way


def test_a_join_is_sparks_own_by_default() -> None:
    """Whether it can be packed depends on the transport, so the job's settings decide."""
    node = (
        BOUGHT.select(pack="pack", price="price")
        .join(ADS.select(pack="pack", ad="user_id"), window=hop(2, 1), on="pack")
        .node
    )
    assert isinstance(node, WindowJoin)
    assert (lowering_of(node, {}), lowering_of(node, {"join": "packed"})) == ("stream_stream", "packed")


LINES = source("lines", Schema.from_types(k="int", text="string"))
WORDS = LINES.explode(word="split(text, ' ')", name="words")
KINDS = table("kinds", {"k": [1]}, Schema.from_types(k="int"))


def of(made: Flow) -> list[str]:
    return [node.name for node in natively_counted([sink.input for sink in made.sinks])]


@pytest.mark.parametrize(
    "rows",
    [
        WORDS,
        WORDS.select(low="lower(word)"),
        WORDS.select(low="lower(word)").running(keys="low", n="count(*)"),
        WORDS.window(tumble("2s"), keys="word").aggregate(n="count(*)").where("word > 'a'"),
    ],
)
def test_an_array_behind_which_all_rows_are_taken(rows: Stream) -> None:
    """Whatever is behind an aggregate: its own probe lets no condition through."""
    assert of(rows.sink("out")) == ["words"]


@pytest.mark.parametrize(
    "rows",
    [
        WORDS.where("k > 1"),
        WORDS.select(k="k").where("k > 1").running(keys="k", n="count(*)"),
        WORDS.lookup(KINDS, on="k"),
        WORDS.join(LINES.select(k="k", other="text"), window=tumble("2s"), on="k"),
    ],
)
def test_one_before_which_spark_may_move_a_condition(rows: Stream) -> None:
    """One that is written, or that keys are not null."""
    assert of(rows.sink("out")) == []


def test_one_on_two_ways_needs_both_to_take_all() -> None:
    """As does one that several sinks share."""
    assert of(WORDS.select(x="word").union(WORDS.select(x="text")).sink("out")) == []
    assert of(flow(WORDS.sink("all"), WORDS.where("k > 1").sink("some"))) == []
