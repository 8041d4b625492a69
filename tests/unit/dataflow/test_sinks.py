"""Flows of several sinks: shared operators, names, lineage of each, and what is refused."""

import pytest

from streamgauge.core.schema import Schema
from streamgauge.dataflow import builder, graph
from streamgauge.dataflow.builder import flow, source, tumble
from streamgauge.dataflow.lineage import needed_columns, with_lineage
from streamgauge.dataflow.nodes import Flow
from tests.unit.helpers_refusals import assert_refused

BOUGHT = source("purchases", Schema.from_types(user_id="int", pack="int", price="int", note="string"))
DEAR = BOUGHT.where("price > 90").sink("dear")
REVENUE = BOUGHT.window(tumble(2), keys="pack").aggregate(revenue="sum(price)").sink("revenue")
COUNTS = BOUGHT.running(keys="user_id", count="count(*)").sink("counts")
THREE = flow(DEAR, REVENUE, COUNTS)


def test_sinks_keep_their_order_and_modes() -> None:
    """One flow, three sinks; each alone is the flow that it was."""
    assert [(sink.name, sink.mode) for sink in THREE.sinks] == [
        ("dear", "append"),
        ("revenue", "append"),
        ("counts", "update"),
    ]
    assert THREE.each() == (DEAR, REVENUE, COUNTS)
    assert flow(flow(DEAR, REVENUE), COUNTS) == THREE


def test_the_sink_of_several_is_had_by_name_only() -> None:
    """`sink` is for flows that have one."""
    assert DEAR.sink.name == "dear"
    with pytest.raises(ValueError, match="3 sinks: dear, revenue, counts"):
        _ = THREE.sink


def test_equal_operators_are_one_and_others_get_names_of_their_own() -> None:
    """The condition that two sinks share stands once; another one is `where_2`."""
    shared = BOUGHT.where("price > 90")
    cheap = BOUGHT.where("price < 5")
    joined = flow(shared.sink("dear"), shared.select(pack="pack").sink("packs"), cheap.sink("cheap"))
    assert [node.name for node in graph.operators(joined)] == ["purchases", "where", "select", "where_2"]


def test_numbered_operators_of_several_flows_stay_apart() -> None:
    """Each flow has a `where` and a `where_2` of its own; an operator of both is still one."""

    def sides(name: str, limit: int) -> Flow:
        rows = BOUGHT.where("price > 1", name="shared")
        return rows.where(f"price > {limit}").union(rows.where(f"price < {limit}")).sink(name)

    names = [node.name for node in graph.operators(flow(sides("one", 10), sides("other", 20)))]
    assert len(names) == len(set(names))
    assert names.count("shared") == 1


@pytest.mark.parametrize("name", ["", "a b", "a,b", "../a", "a/b", ".hidden"])
def test_a_sink_is_named_as_a_file_can_be(name: str) -> None:
    """Results go to results-<sink>.parquet, and log lines are tagged with the sink."""
    assert_refused("must be a word", BOUGHT.sink, name)


def test_a_flow_without_a_sink_is_refused() -> None:
    """Nothing would be answered."""
    assert_refused("must have a sink", builder.check, Flow(()))


def test_a_stream_carries_what_any_sink_needs() -> None:
    """The union of the sinks' columns, in the order of the schema."""
    packs = BOUGHT.select(pack="pack").sink("packs")
    assert needed_columns(flow(packs, COUNTS)) == {"purchases": ("user_id", "pack")}
    assert needed_columns(with_lineage(flow(packs, COUNTS))) == {
        "purchases": ("user_id", "pack", "event_time", "ingest_time", "event_id")
    }
