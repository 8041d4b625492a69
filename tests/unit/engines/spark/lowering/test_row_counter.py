"""Which operators Spark's own nodes count; that they count right is seen in `tests/real/spark/test_row_counts.py`."""

from __future__ import annotations

import pytest

from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import Stream, flow, source, table, tumble
from streamgauge.dataflow.nodes import Flow
from streamgauge.engines.spark.lowering.row_counter import natively_counted

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
    both = WORDS.select(x="word").union(WORDS.select(x="text"))
    assert of(both.sink("out")) == []
    assert of(flow(WORDS.sink("all"), WORDS.where("k > 1").sink("some"))) == []
