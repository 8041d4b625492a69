"""Lineage: what the rewrite adds to each node, what identifies a result, and which columns are needed at all."""

import pytest

from streamgauge.core.schema import Schema
from streamgauge.dataflow import builder, graph, schema
from streamgauge.dataflow.builder import hop, session, source, table, tumble, union
from streamgauge.dataflow.lineage import identity, needed_columns, with_lineage
from streamgauge.dataflow.nodes import Flow

PURCHASES = source("purchases", Schema.from_types(user_id="int", gem_pack_id="int", price="int"))
ADS = source("ads", Schema.from_types(user_id="int", gem_pack_id="int"))
TIMES = ["event_time", "ingest_time"]
BITS = PURCHASES.explode(bit="array(price, price + 1)")
NAMES = table("names", {"gem_pack_id": [1], "title": ["gems"]}, Schema.from_types(gem_pack_id="int", title="string"))
SPENT = PURCHASES.window(tumble(8), keys="user_id").aggregate(r="sum(price)")

FLOWS: dict[str, Flow] = {
    "identity": PURCHASES.sink("out"),
    "filter": PURCHASES.where("price > 5").sink("out"),
    "select": PURCHASES.select(p="price + 1").sink("out"),
    "aggregate": PURCHASES.window(hop(8, 4), keys="gem_pack_id").aggregate(revenue="sum(price)").sink("out"),
    "aggregate_select": (
        PURCHASES.window(tumble(8), keys="gem_pack_id")
        .aggregate(r="sum(price)")
        .select(x="r", pack="gem_pack_id")
        .sink("out")
    ),
    "clash_select": (
        PURCHASES.window(tumble(8), keys="user_id").aggregate(r="sum(price)").select(user_id="user_id % 2").sink("out")
    ),
    "running": PURCHASES.running(keys="gem_pack_id", n="count(*)").sink("out"),
    "join": PURCHASES.join(ADS, window=hop(8, 4), on=("user_id", "gem_pack_id")).sink("out"),
    "join_aggregate": (
        PURCHASES.join(ADS, window=tumble(8), on=("user_id", "gem_pack_id"))
        .select(user_id="user_id", price="price")
        .window(tumble(16), keys="user_id")
        .aggregate(spent="sum(price)")
        .sink("out")
    ),
    "self_join": (
        PURCHASES.join(PURCHASES.select(user_id="user_id", other="price"), window=tumble(1), on="user_id").sink("out")
    ),
    "chained": (
        PURCHASES.window(hop(8, 4), keys=("gem_pack_id", "user_id"))
        .aggregate(r="sum(price)")
        .window(tumble(16), keys="gem_pack_id")
        .aggregate(best="max(r)")
        .sink("out")
    ),
    "explode": BITS.sink("out"),
    "explode_twice": BITS.explode(other="array(bit)").select(other="other").sink("out"),
    "explode_running": BITS.running(keys="bit", n="count(*)").sink("out"),
    "lookup": PURCHASES.lookup(NAMES, on="gem_pack_id", how="left").sink("out"),
    "union_of_streams": union(PURCHASES.select(user_id="user_id", gem_pack_id="gem_pack_id"), ADS).sink("out"),
    "union_of_ways": union(PURCHASES, PURCHASES.where("price > 5")).sink("out"),
    "union_of_unlike": union(BITS.select(x="bit"), PURCHASES.select(x="price")).sink("out"),
    "union_of_windows": union(SPENT, SPENT.where("r > 5")).sink("out"),
    "union_of_window_and_rows": union(SPENT.select(x="user_id"), PURCHASES.select(x="price")).sink("out"),
    "session": PURCHASES.window(session(5), keys="user_id").aggregate(n="count(*)").sink("out"),
    "distinct": PURCHASES.distinct(keys="user_id").select(user_id="user_id").sink("out"),
    "distinct_window": PURCHASES.distinct(keys="user_id", window=hop(8, 4)).sink("out"),
    "interval_join": PURCHASES.interval_join(ADS, on=("user_id", "gem_pack_id"), latest=5).sink("out"),
    "top": SPENT.top(3, by="r", ties="user_id").sink("out"),
    "top_of_keys": SPENT.top(3, by="r", keys="user_id").select(r="r", user_id="user_id").sink("out"),
}

IDENTITIES = {
    "identity": ("event_id",),
    "filter": ("event_id",),
    "select": ("event_id",),
    "aggregate": ("gem_pack_id", "window_start"),
    "aggregate_select": ("pack", "window_start"),
    "clash_select": ("id_user_id", "window_start"),
    "running": ("gem_pack_id", "event_time"),
    "join": ("purchases_event_id", "ads_event_id", "window_start"),
    "join_aggregate": ("user_id", "window_start"),
    "self_join": ("purchases_event_id", "right_purchases_event_id", "window_start"),
    "chained": ("gem_pack_id", "window_start"),
    "explode": ("event_id", "event_ordinal"),
    "explode_twice": ("event_id", "event_ordinal", "event_ordinal_2"),
    "explode_running": ("bit", "event_time"),
    "lookup": ("event_id",),
    "union_of_streams": ("event_id",),
    "union_of_ways": ("event_id", "event_branch"),
    "union_of_unlike": ("event_id", "event_ordinal", "event_branch"),
    "union_of_windows": ("user_id", "window_start", "event_branch"),
    "union_of_window_and_rows": ("x", "window_start", "event_id", "event_branch"),
    "session": ("user_id", "window_start"),
    "distinct": ("event_id",),
    "distinct_window": ("event_id", "window_start"),
    "interval_join": ("purchases_event_id", "ads_event_id"),
    "top": ("window_start", "rank"),
    "top_of_keys": ("user_id", "window_start", "rank"),
}
ADDED_IDS = {
    "identity": ["event_id"],
    "filter": ["event_id"],
    "select": ["event_id"],
    "aggregate_select": ["window_start"],
    "clash_select": ["id_user_id", "window_start"],
    "join": ["purchases_event_id", "ads_event_id"],
    "self_join": ["purchases_event_id", "right_purchases_event_id"],
    "explode": ["event_id", "event_ordinal"],
    "explode_twice": ["event_id", "event_ordinal", "event_ordinal_2"],
    "lookup": ["event_id"],
    "union_of_streams": ["event_id"],
    "union_of_ways": ["event_id", "event_branch"],
    "union_of_unlike": ["event_id", "event_ordinal", "event_branch"],
    "union_of_windows": ["event_branch"],
    "union_of_window_and_rows": ["window_start", "event_id", "event_branch"],
    "distinct": ["event_id"],
    "distinct_window": ["event_id"],
    "interval_join": ["purchases_event_id", "ads_event_id"],
    "top_of_keys": ["window_start", "rank"],
}


@pytest.mark.parametrize("name", FLOWS)
def test_results_are_own_columns_then_times_then_ids(name: str) -> None:
    """The rewrite changes none of the flow's own columns and appends lineage in a fixed order."""
    own = schema.columns(FLOWS[name].sink.input)
    lineaged = with_lineage(FLOWS[name])
    builder.check(lineaged)
    actual = schema.columns(lineaged.sink.input)
    assert list(actual) == [*own, *TIMES, *ADDED_IDS.get(name, [])]
    assert {column: actual[column] for column in own} == own
    assert [actual[time] for time in TIMES] == ["bigint", "bigint"]
    without = schema.columns(with_lineage(FLOWS[name], ingest_time=False).sink.input)
    assert [time in without for time in TIMES] == [True, False]  # a reference knows no deliveries


@pytest.mark.parametrize("name", FLOWS)
def test_identity(name: str) -> None:
    """What identifies a result is known by node, and is among the columns that arrive."""
    assert identity(FLOWS[name]) == IDENTITIES[name]
    assert set(IDENTITIES[name]) <= set(schema.columns(with_lineage(FLOWS[name]).sink.input))


def test_lineage_is_not_carried_twice() -> None:
    """A flow that carries lineage already is a mistake of the caller."""
    with pytest.raises(ValueError, match="already"):
        with_lineage(with_lineage(FLOWS["identity"]))


NEEDED = {
    "identity": {"purchases": ("user_id", "gem_pack_id", "price", "event_time", "ingest_time", "event_id")},
    "select": {"purchases": ("price", "event_time", "ingest_time", "event_id")},
    "aggregate": {"purchases": ("gem_pack_id", "price", "event_time", "ingest_time")},
    "running": {"purchases": ("gem_pack_id", "event_time", "ingest_time")},
    "join": {
        "purchases": ("user_id", "gem_pack_id", "price", "event_time", "ingest_time", "event_id"),
        "ads": ("user_id", "gem_pack_id", "event_time", "ingest_time", "event_id"),
    },
    "join_aggregate": {
        "purchases": ("user_id", "gem_pack_id", "price", "event_time", "ingest_time"),
        "ads": ("user_id", "gem_pack_id", "event_time", "ingest_time"),
    },
    "clash_select": {"purchases": ("user_id", "event_time", "ingest_time")},
    "explode_running": {"purchases": ("price", "event_time", "ingest_time")},
    "explode_twice": {"purchases": ("price", "event_time", "ingest_time", "event_id")},
    "union_of_unlike": {"purchases": ("price", "event_time", "ingest_time", "event_id")},
    "distinct": {"purchases": ("user_id", "event_time", "ingest_time", "event_id")},
    "session": {"purchases": ("user_id", "event_time", "ingest_time")},
    "top": {"purchases": ("user_id", "price", "event_time", "ingest_time")},
}


@pytest.mark.parametrize("name", NEEDED)
def test_only_needed_columns_of_each_stream(name: str) -> None:
    """Fields that nothing reads are left out, and lineage that nothing carries."""
    assert needed_columns(with_lineage(FLOWS[name])) == NEEDED[name]


def test_a_predicate_needs_its_columns_only_to_decide() -> None:
    """Columns of a where are read, whether they are in the result or not."""
    flow = PURCHASES.where("user_id > 5").select(p="price").sink("out")
    assert needed_columns(flow) == {"purchases": ("user_id", "price")}


def test_columns_with_odd_names_pass_a_join() -> None:
    """Names that Spark SQL must quote are quoted by the rewrite."""
    left = PURCHASES.select({"user_id": "user_id", "Odd name": "price"})
    flow = left.join(ADS.select(user_id="user_id"), window=tumble(1), on="user_id").sink("out")
    assert "Odd name" in schema.columns(with_lineage(flow).sink.input)


def test_what_nothing_reads_is_computed_nowhere() -> None:
    """A select before an aggregate keeps what the aggregate reads, so that the source need not give the rest."""
    chosen = PURCHASES.select(user_id="user_id", unread="price", pack="gem_pack_id")
    lineaged = with_lineage(chosen.running(keys="pack", n="count(*)").sink("out"))
    assert needed_columns(lineaged) == {"purchases": ("gem_pack_id", "event_time", "ingest_time")}
    select = next(node for node in graph.walk(lineaged.sink.input) if node.name == "select")
    assert list(schema.columns(select)) == ["pack", "event_time", "ingest_time"]


def test_unread_aggregates_are_left_out_and_shared_nodes_stay_one() -> None:
    """A stream on two ways is pruned once, to what both read."""
    both = PURCHASES.window(tumble(8), keys="user_id").aggregate(r="sum(price)", n="count(*)", most="max(price)")
    flow = union(both.select(x="r"), both.where("n > 1").select(x="r")).sink("out")
    retained = [node for node in graph.walk(with_lineage(flow).sink.input) if node.name == "aggregate"]
    assert len(retained) == 1
    assert [name for name, _ in retained[0].aggregates] == ["r", "n", *TIMES]  # type: ignore[union-attr]
