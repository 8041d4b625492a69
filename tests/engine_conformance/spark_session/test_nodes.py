"""Every node's lowering on Spark against the oracle, in one session: over the whole input in batch, and as a stream.

The stream is cut into batches between distinct event times, as the common frontier cuts it.
"""

import random
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F

from streamgauge.conformance.cases import with_totals
from streamgauge.core.clock import US
from streamgauge.core.schema import Schema
from streamgauge.dataflow import schema
from streamgauge.dataflow.builder import count, flow, hop, session, source, table, tumble, union
from streamgauge.dataflow.lineage import needed_columns, with_lineage
from streamgauge.dataflow.nodes import Flow, RunningAggregate, Source
from streamgauge.dataflow.operators.api import ROW, TIME, Processor
from streamgauge.engines.duckdb_oracle import lowering as lower
from streamgauge.engines.spark.lowering.arrow_blocks import Packing
from streamgauge.engines.spark.lowering.dataframe import Lowering
from streamgauge.engines.spark.lowering.queries import queries
from streamgauge.engines.spark.options import UNCHECKED_OPERATIONS, with_rocksdb
from tests.engine_conformance.spark_session.helpers_spark_session import cut, events, lowered, streamed
from tests.helpers_times import us_of

pytestmark = pytest.mark.spark

A_FIELDS = Schema.from_types(k="int", v="int", text="string")
B_FIELDS = Schema.from_types(k="int", w="int")
A, B = source("a", A_FIELDS), source("b", B_FIELDS)
KINDS = table(
    "kinds", {"k": [1, 2, 3, 9], "kind": ["odd", "even", None, "odd"]}, Schema.from_types(k="int", kind="string")
)
WORDS = A.explode(word="regexp_extract_all(lower(text), '[a-z]+', 0)")

FLOWS: dict[str, Flow] = {
    "select and where": A.where("v > 1").select(twice="v * 2", k="k").sink("out"),
    "explode": WORDS.sink("out"),
    "explode twice": A.explode(word="split(text, ' ')").explode(n="array(v, k)").sink("out"),
    "lookup, inner": A.lookup(KINDS, on="k").sink("out"),
    "lookup, left": A.lookup(KINDS, on="k", how="left").select(kind="kind", v="v").sink("out"),
    "union of two streams": union(A.select(k="k", n="v"), B.select(n="w", k="k").select(k="k", n="n")).sink("out"),
    "union of one stream": union(A.where("v > 1"), A.where("v < 3")).sink("out"),
    "union of unlike ids": union(WORDS.select(k="k", x="word"), A.select(k="k", x="text")).sink("out"),
    "union of windows and rows": union(
        A.window(tumble("2s"), keys="k").aggregate(n="count(*)").select(x="n"), A.select(x="try_cast(v as bigint)")
    ).sink("out"),
    "running": A.running(keys="k", n="count(*)", total="sum(v)", mean="avg(v)").sink("out"),
    "running of words": WORDS.running(keys="word", count="count(*)").sink("out"),
    "running of first rows": A.distinct(keys=("k", "v")).select(k="k").running(keys="k", n="count(*)").sink("out"),
    "running after all": union(WORDS.select(k="k", w="word"), A.select(k="k", w="text"))
    .lookup(KINDS, on="k", how="left")
    .where("w is not null")
    .select(kind="kind", long="length(w)", unread="w")
    .running(keys="kind", n="count(*)", most="max(long)")
    .sink("out"),
    "window after explode": WORDS.window(tumble("2s"), keys="word").aggregate(n="count(*)").sink("out"),
    "window of a union": union(A.select(k="k", n="v"), B.select(k="k", n="w"))
    .window(hop("4s", "2s"), keys="k")
    .aggregate(n="sum(n)")
    .sink("out"),
    "tumbling, any aggregate": A.window(tumble("2s"), keys="k").aggregate(mean="avg(v)", n="count(*)", most="max(v)")
    .sink("out"),
    "session": A.window(session("1s"), keys="k").aggregate(n="count(*)", most="max(v)").sink("out"),
    "distinct": A.distinct(keys=("k", "v")).sink("out"),
    "distinct of words": WORDS.distinct(keys="word").select(k="k", word="word").sink("out"),
    "distinct, tumbling": A.distinct(keys="k", window=tumble("4s")).sink("out"),
    "distinct, hopping": WORDS.distinct(keys=("k", "word"), window=hop("4s", "2s")).sink("out"),
    "interval join": A.interval_join(B, on="k", earliest="-1s", latest="0.5s").sink("out"),
    "interval join of exploded, after": WORDS.interval_join(B, on="k", earliest="0.1s", latest="1s").sink("out"),
    "top": WORDS.window(tumble("4s"), keys="word").aggregate(n="count(*)").top(2, by="n", ties="word").sink("out"),
    "top of each key": WORDS.window(hop("4s", "2s"), keys=("k", "word")).aggregate(n="avg(v)")
    .top(2, by="n", keys="k").sink("out"),
    "aggregate of aggregate": A.window(tumble("1s"), keys=("k", "v")).aggregate(n="count(*)")
    .window(tumble("4s"), keys="k").aggregate(most="max(n)", mean="avg(n)").sink("out"),
    "window after session": A.window(session("1s"), keys="k").aggregate(n="count(*)")
    .window(tumble("8s"), keys="k").aggregate(n="max(n)").sink("out"),
    "window after join": A.join(B, window=tumble("2s"), on="k").window(tumble("4s"), keys="k").aggregate(n="count(*)")
    .sink("out"),
    "window after interval join": A.interval_join(B, on="k", latest="1s").window(tumble("4s"), keys="k")
    .aggregate(n="count(*)", most="max(w)").sink("out"),
    "window after distinct": A.distinct(keys="k", window=tumble("2s")).window(tumble("4s"), keys="k")
    .aggregate(n="count(*)").sink("out"),
    "join of exploded": WORDS.select(k="k", word="word").join(B, window=tumble("2s"), on="k").sink("out"),
    "distinct of windows that are left out": A.window(tumble("1s"), keys="k").aggregate(n="count(*)").select(n="n")
    .distinct(keys="n", window=tumble("4s")).sink("out"),
}  # fmt: skip


class Long(Processor):
    """The texts that are long enough, twice those that are very long."""

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        lengths = pc.fill_null(pc.utf8_length(batch.column("text")), 0).to_numpy()
        rows = pa.array(np.repeat(np.arange(len(lengths)), (lengths > 3).astype(int) + (lengths > 8)))
        return pa.RecordBatch.from_arrays([batch.column("text").take(rows), rows], ["long", ROW])


LONG = A.where("v < 3", name="small").process(
    Long, reads="text", gives=Schema.from_types(long="string"), several=True, name="long",
    truth="SELECT text AS long, _row FROM input, range(CASE WHEN length(text) > 8 THEN 2 WHEN length(text) > 3 THEN 1"
    " ELSE 0 END)",
)  # fmt: skip


class Moment(Processor):
    """The second in which a row was."""

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        seconds = pc.divide(batch.column(TIME), US)
        return pa.RecordBatch.from_arrays([seconds, pa.array(np.arange(batch.num_rows))], ["second", ROW])


SMALL = A.where("v < 3", name="small")
MOMENTS = SMALL.process(
    Moment, reads="text", gives=Schema.from_types(second="bigint"), name="moment",
    truth=f"SELECT _time // {US} AS second, _row FROM input",
)  # fmt: skip
TOGETHER: dict[str, Flow] = {
    "row by row": flow(
        SMALL.running(keys="k", n="count(*)", name="by_k").sink("by_k"),
        SMALL.where("v > 0").select(w="text", twice="v * 2").running(
            keys="w", total="sum(twice)", n="count(*)", name="by_w"
        ).sink("by_w"),
        SMALL.select(a="k", b="v").running(keys=("a", "b"), n="count(*)", name="by_both").sink("by_both"),
    ),
    "a process beside rows": flow(
        SMALL.running(keys="k", n="count(*)", most="max(v)", name="by_k").sink("by_k"),
        LONG.running(keys="long", n="count(*)", name="by_long").sink("by_long"),
        LONG.running(keys="long", there="count(long)", name="there").sink("there"),
    ),
    "a process beside conditions": flow(
        SMALL.where("v > 0").select(k="k").running(keys="k", n="count(*)", name="some").sink("some"),
        SMALL.running(keys="k", most="max(v)", least="min(v)", name="all").sink("all"),
        SMALL.where("v > 1").select(kept="v > 2", v_max="k", n="v").running(
            keys=("kept", "v_max"), m="max(n)", name="kept"
        ).sink("kept"),
        LONG.running(keys="long", n="count(*)", name="by_long").sink("by_long"),
    ),
    "a process that asks for times beside rows": flow(
        SMALL.select(k="k").running(keys="k", n="count(*)", name="by_k").sink("by_k"),
        MOMENTS.running(keys="second", n="count(*)", name="by_second").sink("by_second"),
    ),
    "a process before all": flow(
        LONG.running(keys="long", n="count(*)", name="by_long").sink("by_long"),
        LONG.select(size="length(long)").running(keys="size", n="count(*)", name="by_size").sink("by_size"),
    ),
}  # fmt: skip
"""Running aggregates that one query does for several sinks."""

STATEFUL: dict[str, Flow] = {
    "windows by count, packed by the reader": A.window(count(3, slide=1), keys="k")
    .aggregate(n="count(*)", total="sum(v)", mean="avg(v)", least="min(v)", now="last(text)").sink("out"),
    "windows by count, of words": WORDS.window(count(4, slide=3), keys=("word", "k"))
    .aggregate(n="count(*)", most="max(v)").sink("out"),
    "a broadcast edge, packed by the reader": with_totals(A.select(k="k", v="v"), B.select(w="w")).sink("out"),
    "a broadcast edge after conditions, string keys": with_totals(
        A.where("v > 0").select(k="text", v="v"), B.where("w > 0").select(w="w")
    ).sink("out"),
}  # fmt: skip
"""Keyed processes: their state is Python's own, which Spark has for streams alone."""

CUTS_S = (8, 9, 20, 40)
"""Event times at which the stream is cut into batches; events of the last seconds only close what is open."""
JUDGED_S = 20


def some_events() -> dict[str, pa.Table]:
    """Both streams: keys that are null, texts that are empty, several events of one key at one time, then a tail."""
    made = random.Random(7)
    texts = ["the cow jumped", "the the cow", "", None, "over. the moon", "  "]
    times = sorted(made.randrange(0, JUDGED_S * 20) * US // 20 for _ in range(120))
    a = [(made.choice([1, 2, 3, 4, None]), made.choice([0, 1, 2, 3, None]), made.choice(texts), t) for t in times]
    b = [(made.choice([1, 2, 3, 4, None]), made.randrange(4), made.choice(times)) for _ in range(60)]
    tail = [(JUDGED_S + n) * US for n in (4, 9, 15, 19)]
    a += [(5, 0, "tail", time) for time in tail]
    b = sorted(b, key=lambda row: row[-1]) + [(5, 0, time) for time in tail]
    return {"a": events(A_FIELDS, 0, a), "b": events(B_FIELDS, 1, b)}


EVENTS = some_events()


@pytest.fixture
def spark_with_state(spark: Any) -> Iterator[Any]:
    """The session, set to keep the state of processes in files with checksums, which RocksDB wants."""
    settings = with_rocksdb({}) | {"fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem"}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield spark
    for name in settings:
        spark.conf.unset(name)


def needed(flow: Flow) -> dict[str, pa.Table]:
    """What the transport would give: only the columns that the flow reads."""
    columns = needed_columns(flow)
    return {name: EVENTS[name].select(list(columns[name])) for name in columns}


def expected(flow: Flow, without: pa.Table | None = None) -> list[tuple[Any, ...]]:
    """The oracle's answer, of all events or `without` some of them."""
    return in_order(expected_in_all(flow, without), tuple(schema.columns(flow.sink.input)))


def in_order(rows: list[Any], names: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """Judged rows only, sorted, times as microseconds."""
    place = names.index("event_time")
    plain = [tuple(us_of(value) for value in row) for row in rows]
    judged = [row for row in plain if row[place] < JUDGED_S * US]
    return sorted(judged, key=lambda row: tuple((value is None, value) for value in row))


def in_batch(spark: Any, flow: Flow) -> list[tuple[Any, ...]]:
    inputs = needed(flow)
    frame = lowered(flow, lambda node: spark.createDataFrame(inputs[node.name]))
    return in_order([tuple(row) for row in frame.collect()], tuple(frame.columns))


def in_stream(spark: Any, flow: Flow, folder: Path, choices: Mapping[str, str] | None = None) -> list[list[Any]]:
    """The rows of each batch, as they leave the query."""
    parts = {name: cut(rows, CUTS_S) for name, rows in EVENTS.items()}
    found = streamed(spark, flow, folder, parts, choices)
    return [in_order(batch, tuple(found.types)) for batch in found.batches]


def check_stream(
    spark: Any, made: Flow, folder: Path, choices: Mapping[str, str] | None = None, several: bool = True
) -> None:
    """As a stream a flow gives the oracle's rows, in `several` batches."""
    flow = with_lineage(made)
    batches = in_stream(spark, flow, folder, choices)
    assert not several or len([batch for batch in batches if batch]) > 1, "one batch proves nothing"
    assert sorted((row for batch in batches for row in batch), key=repr) == sorted(expected(flow), key=repr)


@pytest.mark.long
@pytest.mark.parametrize("name", FLOWS)
def test_in_batch_it_is_the_oracles_answer(spark: Any, name: str) -> None:
    """The whole input at once: the rows that DuckDB computes, lineage included."""
    flow = with_lineage(FLOWS[name])
    wanted = expected(flow)
    if isinstance(flow.sink.input, RunningAggregate):
        last = {row[0]: row for row in sorted(expected_in_all(flow), key=lambda row: row[-2])}
        wanted = in_order(list(last.values()), tuple(schema.columns(flow.sink.input)))
    assert len(wanted) > 1
    assert in_batch(spark, flow) == wanted


@pytest.mark.parametrize("name", TOGETHER)
def test_aggregates_of_one_query_are_those_of_several(spark: Any, name: str) -> None:
    """Each sink's last values are the oracle's for a flow of that sink alone."""
    whole = with_lineage(TOGETHER[name])
    (query,) = queries(whole)
    given = needed(whole)

    def read(node: Source, packing: Packing | None = None) -> Any:
        assert packing is None
        return spark.createDataFrame(given[node.name])

    rows = Lowering(read, read, {}, 2).output(query).collect()
    for number, alone in enumerate(TOGETHER[name].each()):
        found = [tuple(row[number]) for row in rows if row[number] is not None]
        names = tuple(schema.columns(query.sinks[number].input))
        last = {row[:-2]: row for row in sorted(expected_in_all(with_lineage(alone)), key=lambda row: row[-2])}
        keys = len(alone.sink.input.keys)  # type: ignore[union-attr]
        wanted = {row[:keys]: row for row in last.values()}
        assert len(wanted) > 1
        assert in_order(found, names) == in_order(list(wanted.values()), names)


def expected_in_all(flow: Flow, without: pa.Table | None = None) -> list[tuple[Any, ...]]:
    """With the tail's rows."""
    inputs = needed(flow)
    with duckdb.connect(config={"threads": 1}) as con:
        con.execute("SET TimeZone = 'UTC'")
        for name in inputs:
            rows = EVENTS[name]
            if without is not None:
                rows = rows.filter(pc.invert(pc.is_in(rows["event_id"], without["event_id"])))
            con.register(f"rows_{name}", rows)
        return con.execute(lower.sql(flow, {name: f"rows_{name}" for name in inputs})).fetchall()


ALL_AT_ONCE = ("distinct of words",)
"""Every word comes in the first batch: what later ones must not give is what is tried."""
STREAMED = [name for name, flow in FLOWS.items() if flow.sink.mode == "append"]


@pytest.mark.parametrize("name", STREAMED)
def test_as_a_stream_it_is_the_oracles_answer(spark: Any, tmp_path: Path, name: str) -> None:
    """In batches: every row once, whichever batch it came in."""
    check_stream(spark, FLOWS[name], tmp_path, several=name not in ALL_AT_ONCE)


def test_first_rows_are_exchanged_once_however_many_keys(spark: Any, tmp_path: Path) -> None:
    """Spark takes the exchange for its own: another one behind the sort would mix what was put in order."""
    keys = [f"key_{number}" for number in range(6)]
    flow = with_lineage(
        source("many", Schema.from_types(**dict.fromkeys(keys, "int"))).distinct(keys=tuple(keys[::-1])).sink("out")
    )
    rows = spark.range(3).select(*[F.col("id").cast("int").alias(key) for key in keys], *[
        F.col("id").alias(name) for name in ("event_time", "ingest_time", "event_id")
    ])  # fmt: skip
    rows.write.parquet(str(tmp_path / "many"))
    for name, value in UNCHECKED_OPERATIONS.items():
        spark.conf.set(name, value)
    frame = lowered(flow, lambda node: spark.readStream.schema(rows.schema).parquet(str(tmp_path / "many")))
    query = frame.writeStream.trigger(availableNow=True).format("memory").queryName("exchanged_once")
    running = query.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    assert running.awaitTermination(120)
    assert spark.table("exchanged_once").count() == 3
    exchanges = re.findall(r"Exchange (?:hashpartitioning|SinglePartition)", running._jsq.explainInternal(False))
    assert len(exchanges) == 1


SLIDING: dict[str, Flow] = {
    "of a source": A.window(hop("4s", "2s"), keys="k").aggregate(n="count(*)", total="sum(v)", most="max(v)")
    .sink("out"),
    "of computed rows": WORDS.window(hop("4s", "0.5s"), keys=("k", "word")).aggregate(n="count(*)", least="min(v)")
    .sink("out"),
    "before a window": A.window(hop("2s", "1s"), keys=("k", "v")).aggregate(n="count(*)")
    .window(tumble("4s"), keys="k").aggregate(most="max(n)").sink("out"),
    "as auto does": A.window(hop("4s", "0.02s"), keys="k").aggregate(n="count(*)", total="sum(v)").sink("out"),
}  # fmt: skip


IN_LONG = ("windows by count, of words", "a broadcast edge after conditions, string keys", "of a source")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (name in IN_LONG)) for name in STATEFUL | SLIDING]
)
def test_a_keyed_process_goes_on_over_batches(spark_with_state: Any, tmp_path: Path, name: str) -> None:
    """As a stream it is the oracle's answer, though events of one key come in several batches and instances; windows of
    a process too, of rows that the source packs and of computed ones, and with a window after it.
    """
    choices = {} if name == "as auto does" else {"aggregate": "sliding"}
    check_stream(spark_with_state, (STATEFUL | SLIDING)[name], tmp_path, choices)


def test_a_window_follows_a_packed_join(spark: Any, tmp_path: Path) -> None:
    """The packed lowering of a join gives the time that a window after it needs."""
    check_stream(spark, FLOWS["window after join"], tmp_path, {"join": "packed"}, several=False)


@pytest.mark.parametrize("name", [name for name, flow in FLOWS.items() if flow.sink.mode == "update"])
def test_as_a_stream_every_update_is_a_value_of_the_oracle(spark: Any, tmp_path: Path, name: str) -> None:
    """Every update is the key's value at its event time, and the last of each key the last one."""
    flow = with_lineage(FLOWS[name])
    batches = in_stream(spark, flow, tmp_path)
    values = expected(flow)
    assert len([batch for batch in batches if batch]) > 1
    assert all(row in values for batch in batches for row in batch)
    last = {row[0]: row for row in sorted(values, key=lambda row: row[-2])}
    came = {row[0]: row for batch in batches for row in batch}
    assert came == last


def test_late_rows_are_dropped_and_counted_or_kept_by_a_delay(spark: Any, tmp_path: Path) -> None:
    """A row of a window that closed batches ago: missing without a delay, and reported; counted with one."""
    flow = with_lineage(A.window(tumble("2s"), keys="k").aggregate(n="count(*)", total="sum(v)").sink("out"))
    early = EVENTS["a"].filter(pc.less(EVENTS["a"]["event_time"], 2 * US))
    late = early.slice(0, 3)
    others = cut(EVENTS["a"].filter(pc.greater_equal(EVENTS["a"]["event_time"], 2 * US)), CUTS_S)
    first, third = (pa.concat_tables(two) for two in ((early.slice(3), others[0]), (late, others[2])))
    parts = {"a": [first, others[1], third, others[3]]}
    names = tuple(schema.columns(flow.sink.input))
    kept, dropped = expected(flow), expected(flow, without=late)
    assert kept != dropped
    for delay, wanted, late_rows in (("0 seconds", dropped, True), ("8 seconds", kept, False)):
        found = streamed(spark, flow, tmp_path / delay[0], parts, delay=delay)
        assert in_order([row for batch in found.batches for row in batch], names) == wanted
        assert bool(found.late_rows) == late_rows
