"""Whatever the builder accepts, lineage can be carried through, and the oracle can answer."""

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given

from streamgauge.core.schema import Schema
from streamgauge.dataflow import builder, graph, schema
from streamgauge.dataflow.builder import Stream, flow, session, source, table, tumble, union
from streamgauge.dataflow.lineage import identity, with_lineage
from streamgauge.dataflow.nodes import Flow, Process
from streamgauge.engines.duckdb_oracle import lowering as lower
from tests.unit.dataflow.helpers_random_flows import flows
from tests.unit.helpers_refusals import assert_refused

A = source("a", Schema.from_types(k="int", v="int", text="string", bits="binary"))
B = source("b", Schema.from_types(k="string", w="int"))
BY_K = A.window(tumble(8), keys="k").aggregate(n="count(*)")
COUNTS = BY_K.select(n="n")
"""Rows that keys and a window identify, neither of which they show."""
RANKS = table("ranks", {"n": [1], "k": ["x"]}, Schema.from_types(n="bigint", k="string"))
CLASHES: dict[str, Stream] = {
    "first rows of windows of windows": COUNTS.distinct(keys="n", window=tumble(16)),
    "first rows of first rows": A.distinct(keys="k", window=tumble(8)).select(v="v").distinct(
        keys="v", window=tumble(16)
    ),
    "an array's column": COUNTS.explode(k="array(n, n)"),
    "a table's column": COUNTS.lookup(RANKS, on="n"),
    "ranks of ranks": BY_K.top(2, by="n").select(
        n="n", window_start="window_start", window_end="window_end"
    ).distinct(keys="n").top(1, by="n"),
    "names in another case": COUNTS.select(Window_Start="n"),
    "two ids of one name": A.select(k="k", id_k="v").window(tumble(8), keys=("k", "id_k")).aggregate(n="count(*)")
    .select(k="n"),
    "keys of unlike types": union(COUNTS, B.window(tumble(8), keys="k").aggregate(n="count(*)").select(n="n")),
    "a key of an odd name": A.select({"Odd name": "k"}).window(session(1), keys="Odd name").aggregate(n="count(*)")
    .select(n="n"),
    "columns named as a join's": A.select(k="k", left_event_time="v").join(
        A.select(k="k", right_event_time="v"), window=tumble(1), on="k"
    ),
    "a column named as a second place": A.select(event_ordinal_2="v").explode(a="array(1)").explode(b="array(2)"),
    "a stream of an odd name": source("a b", Schema.from_types(k="int")).join(A, window=tumble(1), on="k"),
}  # fmt: skip


def check(flow_: Flow) -> None:
    """Own columns first, ids among those that arrive, and a text that DuckDB binds."""
    for one in flow_.each():
        for carried in (with_lineage(one), with_lineage(one, ingest_time=False)):
            builder.check(carried)
            own, came = list(schema.columns(one.sink.input)), list(schema.columns(carried.sink.input))
            assert came[: len(own)] == own
            assert set(identity(one)) <= set(came)
            check_bound(carried)
    with_lineage(flow_)


def check_bound(carried: Flow) -> None:
    """Without a process that has no truth: its rows come from its class."""
    if any(isinstance(node, Process) and node.truth is None for node in graph.operators(carried)):
        return
    sources = {each.name: each for each in graph.sources(carried)}
    with duckdb.connect(config={"threads": 1}) as connection:
        for number, each in enumerate(sources.values()):
            times = [pa.field(name, pa.int64()) for name in {"event_time", *each.lineage}]
            connection.register(f"rows_{number}", pa.schema([*each.schema.to_arrow(), *times]).empty_table())
        relations = {name: f"rows_{number}" for number, name in enumerate(sources)}
        assert connection.execute(lower.sql(carried, relations)).fetchall() == []


@pytest.mark.parametrize("name", CLASHES)
def test_no_id_takes_the_name_of_a_column(name: str) -> None:
    """Of the row that it identifies, or of one that an operator adds to that row later."""
    check(CLASHES[name].sink("out"))


@given(flows())
def test_the_builder_accepts_nothing_that_has_no_lineage(drawn: Flow) -> None:
    """Every kind of node in any order, with columns named as the rewrite names its own."""
    check(drawn)


def test_a_null_id_of_a_type_without_nulls_is_refused_by_the_builder() -> None:
    """At the union that would need it, with a way out."""
    by_bits = A.window(tumble(8), keys="bits").aggregate(n="count(*)")
    assert_refused(
        r"union .union.: cannot leave bits out(?s:.*)keep bits as a column",
        union,
        by_bits.select(n="n"),
        BY_K.select(n="n"),
    )
    check(union(by_bits.select(n="n"), by_bits.select(n="n + 1")).sink("out"))


def renamed(stream: Stream) -> list[str]:
    """The ids that had to give way."""
    return [name for name in schema.columns(with_lineage(stream.sink("out")).sink.input) if name.startswith("id_")]


def test_names_stay_as_they_are_where_none_clashes() -> None:
    """Results and stored files of existing flows keep their columns."""
    assert renamed(COUNTS) == renamed(COUNTS.distinct(keys="n")) == []
    assert renamed(CLASHES["first rows of windows of windows"]) == ["id_window_start"]
    assert renamed(CLASHES["an array's column"]) == ["id_k"]


def test_several_sinks_each_carry_their_own() -> None:
    """One whose ids had to give way beside one whose ids had not."""
    check(flow(COUNTS.sink("counts"), CLASHES["an array's column"].sink("exploded")))
