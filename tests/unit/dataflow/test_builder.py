"""The fluent words are checked as they are spoken."""

from collections.abc import Callable

import pytest

from streamgauge.core.schema import Schema
from streamgauge.dataflow import graph
from streamgauge.dataflow.builder import hop, session, source, tumble
from streamgauge.dataflow.nodes import (
    Window,
)
from tests.unit.helpers_refusals import assert_refused

PURCHASES = Schema.from_types(user_id="int", gem_pack_id="int", price="int")
ADS = Schema.from_types(user_id="int", gem_pack_id="int")
BOUGHT = source("purchases", PURCHASES)


def test_sink_mode_follows_the_flow() -> None:
    """Updates after a running aggregate, rows otherwise; what does not fit is refused."""

    counts = BOUGHT.running(keys="user_id", n="count(*)")
    assert counts.sink("n").sink.mode == "update"
    assert BOUGHT.sink("all").sink.mode == "append"
    assert_refused("takes mode update", counts.sink, "n", mode="append")


def test_operators_of_both_sides_of_a_join_get_names_of_their_own() -> None:
    """Names that we gave are numbered apart, in one line of operators too; names that the author gave twice are
    refused; shared steps are one.
    """
    assert BOUGHT.where("price > 1").where("price > 2").where("price > 3").node.name == "where_3"
    left = source("purchases", PURCHASES).where("price > 1").select(user_id="user_id", p="price")
    right = source("ads", ADS).where("user_id > 1").select(user_id="user_id")
    flow = left.join(right, window=tumble(1), on="user_id").sink("out")
    names = [node.name for node in graph.walk(flow.sink.input)]
    assert names == ["purchases", "where", "select", "ads", "where_2", "select_2", "join"]
    shared = left.join(left.select(user_id="user_id", q="p"), window=tumble(1), on="user_id").sink("out")
    assert [node.name for node in graph.walk(shared.sink.input)][2:] == ["select", "select_2", "join"]
    twice = source("ads", ADS).select(user_id="user_id", name="mine")
    assert_refused(
        "two operators have one name",
        source("purchases", PURCHASES).where("price > 1", name="mine").join(twice, window=tumble(1), on="user_id").sink,
        "out",
    )


def test_columns_may_be_called_name_or_keys() -> None:
    """A dict takes the names that are words of the call."""

    assert BOUGHT.select({"name": "price"}, other="price").columns == {"name": "int", "other": "int"}
    assert BOUGHT.running({"keys": "count(*)"}, keys="user_id").columns == {"user_id": "int", "keys": "bigint"}
    assert BOUGHT.window(tumble(1), keys="user_id").aggregate({"name": "max(price)"}).columns["name"] == "int"


@pytest.mark.parametrize("wrong", [
    lambda: BOUGHT.where("prise > 1"),
    lambda: BOUGHT.select(x="nosuch(price)"),
    lambda: BOUGHT.window(tumble(1), keys="pack").aggregate(n="count(*)"),
    lambda: BOUGHT.running(keys="user_id", n="price"),
    lambda: BOUGHT.join(source("ads", ADS), window=tumble(1), on="user_id"),
    lambda: BOUGHT.select(x=1),
])  # fmt: skip
def test_wrong_words_are_refused_at_once(wrong: Callable[[], object]) -> None:
    """An error comes from the call that made it, not from the sink."""
    assert_refused("try: ", wrong)


@pytest.mark.parametrize(
    ("window", "message"),
    [
        (lambda: hop("8s", "9s"), "longer than its range"), (lambda: hop("8s", "x"), "must be a time"),
        (lambda: hop("8s", 0), "at least 1 us"), (lambda: hop("soon", "2s"), 'try: range="60s"'),
        (lambda: session("soon"), 'try: gap="60s"'),
    ],
)  # fmt: skip
def test_windows_that_cannot_be_are_refused(window: Callable[[], object], message: str) -> None:
    """A slide longer than the range, no time, or none at all; by the argument, as no option of the command line."""
    assert_refused(message, window)


def test_hop_reads_times() -> None:
    """Times are text or seconds, exact to the microsecond."""
    assert hop("500ms", 0.25) == Window(500_000, 250_000)
    assert tumble("2m") == Window(120_000_000, 120_000_000)
