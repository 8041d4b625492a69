"""Which sinks share a query on Spark, which columns a query reads, and how its rows are told apart."""

import pyarrow as pa
import pytest

from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import Stream, flow, hop, source, tumble
from streamgauge.dataflow.lineage import needed_columns, with_lineage
from streamgauge.dataflow.nodes import Flow, WindowAggregate
from streamgauge.dataflow.operators.api import Processor
from streamgauge.engines.spark.io.flight_source import _split_by_sink
from streamgauge.engines.spark.lowering.queries import operator_of, queries

BOUGHT = source("purchases", Schema.from_types(user_id="int", pack="int", price="int", note="string"))
ADS = source("ads", Schema.from_types(user_id="int", pack="int"))
DEAR = BOUGHT.where("price > 90")
REVENUE = BOUGHT.window(hop(2, 1), keys="pack").aggregate(revenue="sum(price)")
COUNTS = BOUGHT.running(keys="user_id", count="count(*)")


class Saying(Processor):
    """Never run here."""

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        raise NotImplementedError


def noted(name: str) -> Stream:
    return DEAR.process(
        Saying,
        reads="note",
        gives=Schema.from_types(said="string"),
        truth="SELECT note AS said, _row FROM input",
        name=name,
    )


CASES: dict[str, tuple[Flow, list[tuple[str, ...]]]] = {
    "one sink": (DEAR.sink("dear"), [("dear",)]),
    "row by row on one source": (
        flow(DEAR.sink("dear"), BOUGHT.sink("all"), DEAR.select(pack="pack").where("pack > 1").sink("packs")),
        [("dear", "all", "packs")],
    ),
    "of all kinds": (
        flow(DEAR.sink("dear"), REVENUE.sink("revenue"), COUNTS.sink("counts"), BOUGHT.sink("all")),
        [("dear", "all"), ("revenue",), ("counts",)],
    ),
    "row by row on one aggregate": (
        flow(REVENUE.where("revenue > 10").sink("high"), REVENUE.select(r="revenue").sink("bare")),
        [("high", "bare")],
    ),
    "on two sources": (flow(DEAR.sink("dear"), ADS.sink("ads")), [("dear",), ("ads",)]),
    "on two aggregates": (
        flow(
            REVENUE.sink("revenue"),
            BOUGHT.window(tumble(4), keys="pack").aggregate(n="count(*)").sink("packs"),
        ),
        [("revenue",), ("packs",)],
    ),
    "running aggregates on one source": (
        flow(
            COUNTS.sink("counts"),
            DEAR.running(keys="pack", count="count(*)", name="packs").sink("packs"),
            DEAR.sink("dear"),
            BOUGHT.distinct(keys="pack").running(keys="pack", n="count(*)", name="firsts").sink("firsts"),
        ),
        [("counts", "packs"), ("dear",), ("firsts",)],
    ),
    "running aggregates, a process beside rows": (
        flow(
            DEAR.running(keys="pack", n="count(*)", name="packs").sink("packs"),
            noted("upper").running(keys="said", n="count(*)", name="said").sink("said"),
            noted("upper").running(keys="said", there="count(said)", name="there").sink("there"),
        ),
        [("packs", "said", "there")],
    ),
    "steps between a process and its aggregate, beside rows": (
        flow(
            DEAR.running(keys="pack", n="count(*)", name="packs").sink("packs"),
            noted("upper").select(size="length(said)").running(keys="size", n="count(*)", name="sizes").sink("sizes"),
        ),
        [("packs",), ("sizes",)],
    ),
    "sums that parts would round, beside a process": (
        flow(
            DEAR.running(keys="pack", n="sum(price * 0.5e0)", name="packs").sink("packs"),
            noted("upper").running(keys="said", n="count(*)", name="said").sink("said"),
        ),
        [("packs",), ("said",)],
    ),
    "running aggregates that all have the process": (
        flow(
            noted("upper").running(keys="said", n="count(*)", name="said").sink("said"),
            noted("upper").select(size="length(said)").running(keys="size", n="count(*)", name="sizes").sink("sizes"),
        ),
        [("said", "sizes")],
    ),
    "running aggregates behind different processes": (
        flow(
            noted("upper").running(keys="said", n="count(*)", name="said").sink("said"),
            noted("lower").running(keys="said", n="count(*)", name="hushed").sink("hushed"),
        ),
        [("said",), ("hushed",)],
    ),
    "what is aggregated under one name has one type": (
        flow(
            BOUGHT.running(keys="user_id", most="max(price)").sink("numbers"),
            BOUGHT.select(pack="pack", price="note").running(keys="pack", most="max(price)", name="n").sink("texts"),
        ),
        [("numbers",), ("texts",)],
    ),
    "what is aggregated under one name has one spelling": (
        flow(
            BOUGHT.running(keys="user_id", most="max(price)").sink("numbers"),
            BOUGHT.select(pack="pack", Price="price").running(keys="pack", most="max(Price)", name="n").sink("others"),
        ),
        [("numbers",), ("others",)],
    ),
    "on one join": (
        flow(
            BOUGHT.join(ADS, window=tumble(2), on=("user_id", "pack")).sink("matches"),
            BOUGHT.join(ADS, window=tumble(2), on=("user_id", "pack")).where("price > 90").sink("dear"),
        ),
        [("matches", "dear")],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_sinks_on_one_operator_share_a_query(case: str) -> None:
    """With lineage as without it: the rewrite parts no sinks that were together."""
    made, wanted = CASES[case]
    for each in (made, with_lineage(made)):
        found = queries(each)
        assert [tuple(sink.name for sink in query.sinks) for query in found] == wanted
        assert [query.name for query in found] == [f"q{number}" for number in range(len(wanted))]


def test_a_query_reads_only_what_its_sinks_need_and_what_is_carried_unread() -> None:
    """Ids of the row-wise sink are not read for the aggregate; a payload that no sink uses goes to every query."""
    made = with_lineage(flow(DEAR.select(price="price").sink("dear"), COUNTS.sink("counts")))
    given = {"purchases": ("note", *needed_columns(made)["purchases"])}
    first, second = queries(made)
    assert first.columns(made, given) == {"purchases": ("note", "price", "event_time", "ingest_time", "event_id")}
    assert second.columns(made, given) == {"purchases": ("note", "user_id", "event_time", "ingest_time")}
    (alone,) = queries(with_lineage(COUNTS.sink("counts")))
    given = {"purchases": ("note", "user_id", "event_time", "ingest_time")}
    assert alone.columns(Flow(alone.sinks), given) == given


def test_rows_differ_by_what_is_not_null() -> None:
    """A row may be for one sink, for several, or for none; a null inside a row is a value like another."""
    dear = pa.array([{"price": 95, "note": None}, None, {"price": 99, "note": "x"}, None])
    even = pa.array([None, {"half": 2}, {"half": None}, None])
    first, second = _split_by_sink(pa.record_batch({"_sink_0": dear, "_sink_1": even}))
    assert first.to_pylist() == [{"price": 95, "note": None}, {"price": 99, "note": "x"}]
    assert second.to_pylist() == [{"half": 2}, {"half": None}]
    sliced, empty = _split_by_sink(pa.record_batch({"_sink_0": dear, "_sink_1": even}).slice(3))
    assert (sliced.num_rows, empty.num_rows, sliced.schema.names) == (0, 0, ["price", "note"])


def test_sinks_of_one_operator_share_it_though_each_reads_other_columns() -> None:
    """What only one of them reads is not taken from the operator, which would then be two."""
    both = BOUGHT.window(hop(2, 1), keys="pack").aggregate(low="min(price)", users="max(user_id)", unread="count(*)")
    whole = with_lineage(flow(both.select(low="low").sink("low"), both.select(users="users").sink("users")))
    (shared,) = queries(whole)
    operator = operator_of(shared.sinks[0].input)
    assert operator == operator_of(shared.sinks[1].input)
    assert isinstance(operator, WindowAggregate)
    assert [name for name, _ in operator.aggregates][:2] == ["low", "users"]
    assert "unread" not in dict(operator.aggregates)
