"""What probes count of each operator on Spark against the oracle's rows, in one session, over the whole input in batch.

Both ways to read counts are tried: out of the plan that has run, as batches of updates do, and out of Spark's store.
"""

from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from streamgauge.core.clock import US
from streamgauge.core.schema import Schema, arrow_type
from streamgauge.dataflow import graph
from streamgauge.dataflow.builder import flow, source, table, tumble, union
from streamgauge.dataflow.lineage import added, needed_columns, with_lineage
from streamgauge.dataflow.nodes import Flow, Source
from streamgauge.engines.duckdb_oracle import lowering as lower
from streamgauge.engines.spark.io.event_batching import pack, packed_schema, unpack
from streamgauge.engines.spark.lowering.dataframe import Lowering
from streamgauge.engines.spark.lowering.queries import queries
from streamgauge.engines.spark.row_counts import WORKED, RowCounters

pytestmark = pytest.mark.spark

FIELDS = Schema.from_types(k="int", v="int", text="string")
A, B = source("a", FIELDS), source("b", FIELDS)
KINDS = table("kinds", {"k": [1, 2], "kind": ["odd", "even"]}, Schema.from_types(k="int", kind="string"))
WORDS = A.explode(word="split(text, ' ')", name="words")
SAID = ["the cat", "a", "no key here", "", None, "six words are in this line"]
ROWS = [(key, number, text) for number, (key, text) in enumerate(zip([1, 2, None, 3, 1, 2], SAID, strict=True))]
"""(k, v, text) of both streams, a second apart."""

FLOWS: dict[str, Flow] = {
    "rows": A.select(double="v * 2", text="text").sink("out"),
    "a condition": A.where("v > 1").select(v="v").where("v < 5").sink("out"),
    "windows": A.window(tumble("2s"), keys="k").aggregate(n="count(*)").sink("out"),
    "words": WORDS.select(low="lower(word)").sink("out"),
    "windows of words": (
        WORDS.select(low="lower(word)").window(tumble("2s"), keys="low").aggregate(n="count(*)").sink("out")
    ),
    "words of words": WORDS.explode(n="array(v, k, 7)", name="numbers").select(n="n").sink("out"),
    "a condition behind words": WORDS.where("v > 1").sink("out"),
    "one further behind": WORDS.explode(n="array(v, 7)", name="numbers").select(v="v").where("v > 1").sink("out"),
    "one on keys of windows of words": (
        WORDS.window(tumble("2s"), keys="v").aggregate(n="count(*)").where("v > 1").sink("out")
    ),
    "keys behind words, where one is null": WORDS.lookup(KINDS, on="k").sink("out"),
    "a join of words": (
        WORDS.select(k="k", word="word").join(B.select(k="k", v="v"), window=tumble("2s"), on="k").sink("out")
    ),
    "words beside words": union(WORDS.select(x="word"), B.select(x="text")).select(y="x").sink("out"),
    "several sinks": flow(WORDS.where("v > 1").sink("late"), WORDS.where("v < 1").sink("early")),
}


RUNS = count(1)


@pytest.mark.parametrize("name", FLOWS)
def test_every_operator_is_counted_as_the_oracle_has_it(spark: Any, name: str) -> None:
    """Whatever Spark could move: a condition, a key that must not be null. What several sinks do on their last steps
    is counted nowhere.
    """
    made = with_lineage(FLOWS[name])
    probes, run = RowCounters(spark, added(made)), f"{next(RUNS):x}"
    (query,) = queries(made)
    frame = Lowering(lambda node: opened(spark, made, node, probes), _never, {}, 1, counter=probes).output(query)
    expected = {node.name: rows_of(made, node) for node in graph.operators(made) if node.name not in added(made)}
    if len(made.sinks) > 1:
        expected = {operator: expected[operator] for operator in ("a", "words")}
    execution = frame._jdf.queryExecution()
    execution.toRdd().count()
    last = SimpleNamespace(streamingQuery=lambda: SimpleNamespace(lastExecution=lambda: execution))
    probes.count_in("q0", SimpleNamespace(_jsq=last), 0)
    assert row_counts(probes) == expected
    spark.sparkContext.setJobDescription(f"runId = {run}<br/>batch = 1")
    frame.write.format("noop").mode("append").save()
    probes.started("q0", query_that_told(run, batch=1))
    probes.read()
    assert row_counts(probes) == expected


def query_that_told(run: str, batch: int) -> Any:
    """One whose last batch this was."""
    progress = SimpleNamespace(batchId=lambda: batch, durationMs=lambda: {WORKED: 1})
    return SimpleNamespace(runId=run, _jsq=SimpleNamespace(recentProgress=lambda: [progress]))


def row_counts(probes: RowCounters) -> dict[str, int]:
    return {one.operator: one.rows for one in probes.take()}


def rows_of(made: Flow, node: Any) -> int:
    """How many rows the oracle has of an operator."""
    end = Flow((replace(made.sinks[0], input=node),))
    with duckdb.connect(config={"threads": 1}) as con:
        con.execute("SET TimeZone = 'UTC'")
        for each in graph.sources(end):
            con.register(f"rows_{each.name}", events(each))
        text = lower.sql(end, {each.name: f"rows_{each.name}" for each in graph.sources(end)})
        return len(con.execute(text).fetchall())


def events(node: Source) -> pa.Table:
    columns = {name: pa.array(values) for name, values in zip(("k", "v", "text"), zip(*ROWS, strict=True), strict=True)}
    times = pa.array([(number + 1) * US for number in range(len(ROWS))], pa.int64())
    ids = pa.array(range(len(ROWS)), pa.int64())
    kinds = {name: arrow_type(kind) for name, kind in (("k", "int"), ("v", "int"), ("text", "string"))}
    cast = {name: column.cast(kinds[name]) for name, column in columns.items()}
    return pa.table({**cast, "event_time": times, "ingest_time": times, "event_id": ids})


def opened(spark: Any, made: Flow, node: Source, probes: RowCounters) -> Any:
    """A source's rows as the adapter opens bundles of them."""
    from pyspark.sql.types import _parse_datatype_string

    given = needed_columns(made)[node.name]
    kinds = {**node.schema.types(), **dict.fromkeys(("event_time", "ingest_time", "event_id"), "bigint")}
    types = {name: _parse_datatype_string(kinds[name]) for name in given}
    rows = [row for batch in pack(events(node).select(list(given)).to_batches(), given) for row in batch.to_pylist()]
    bundles = spark.createDataFrame([tuple(row[name] for name in given) for row in rows], packed_schema(types, given))
    return unpack(bundles, probes.column(node.name))


def _never(*_: Any) -> Any:
    raise AssertionError("nothing here is read in packed blocks")
