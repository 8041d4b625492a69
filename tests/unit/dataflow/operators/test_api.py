"""A process in a flow: what it is refused for, its columns and lineage, its truth."""

from typing import Any

import pyarrow as pa
import pytest

from streamgauge.core.schema import Schema
from streamgauge.dataflow import builder, graph, schema
from streamgauge.dataflow.builder import Stream, source, tumble
from streamgauge.dataflow.describe import describe
from streamgauge.dataflow.lineage import identity, needed_columns, with_lineage
from streamgauge.dataflow.operators.api import Processor
from streamgauge.dataflow.reach import reach_us
from streamgauge.engines.duckdb_oracle.engine import Oracle
from tests.unit.helpers_duckdb import duckdb_session
from tests.unit.helpers_refusals import assert_refused

EVENTS = source("events", Schema.from_types(key="int", value="int", unused="string"))
OTHERS = source("others", Schema.from_types(key="int", name="string"))
GIVES = Schema.from_types(key="int", value="int")


class Stateless(Processor):
    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        return batch


class Keyed(Stateless):
    def __init__(self, size: int = 1) -> None:
        self.size = size

    def snapshot(self) -> bytes:
        return b""

    def restore(self, state: bytes) -> None:
        self.size = 1


class Abstract(Processor):
    pass


def keyed(stream: Stream = EVENTS, *others: Stream, **more: Any) -> Stream:
    return stream.process(Keyed, *others, **({"keys": "key", "reads": "value", "gives": GIVES} | more))


def test_columns_lineage_and_identity_come_from_the_row() -> None:
    """Its own columns, then the row's lineage; several results of a row have an ordinal."""
    flow = keyed().sink("out")
    assert schema.columns(flow.sink.input) == {"key": "int", "value": "int"}
    assert list(schema.columns(with_lineage(flow).sink.input)) == [
        "key", "value", "event_time", "ingest_time", "event_id",
    ]  # fmt: skip
    assert identity(flow) == ("event_id",)
    assert describe(keyed(parameters={"size": 5}).sink("out"))[1]["label"] == "Keyed(size=5) by key"
    times = ["event_time", "ingest_time"]
    for several, ids, added in (
        (keyed(several=True).sink("out"), ("event_id", "event_ordinal"), [*times, "event_id", "event_ordinal"]),
        (keyed(identity=("key", "value")).sink("out"), ("key", "value"), times),  # a class that states times
    ):
        assert identity(several) == ids
        assert list(schema.columns(with_lineage(several).sink.input)) == ["key", "value", *added]


def test_only_what_it_reads_is_needed() -> None:
    """And the event time, which orders rows; with lineage the id as well, which orders those of one time."""
    flow = keyed().sink("out")
    assert needed_columns(flow) == {"events": ("key", "value", "event_time")}
    assert needed_columns(with_lineage(flow)) == {"events": ("key", "value", "event_time", "ingest_time", "event_id")}
    windows = keyed().window(tumble(1), keys="key").aggregate(n="count(*)").sink("out")
    assert "event_id" in needed_columns(with_lineage(windows))["events"]


def test_without_keys_ids_are_needed_only_where_rows_are_identified_by_them() -> None:
    """There is nothing to order: before a window, no id is read."""
    rows = EVENTS.process(Stateless, reads=("key", "value"), gives=GIVES)
    assert "event_id" in needed_columns(with_lineage(rows.sink("out")))["events"]
    windows = rows.window(tumble(1), keys="key").aggregate(n="count(*)").sink("out")
    assert needed_columns(with_lineage(windows)) == {"events": ("key", "value", "event_time", "ingest_time")}


def test_after_a_window_its_rows_are_identified_by_it() -> None:
    """Ids are carried under names that are free."""
    flow = keyed(EVENTS.window(tumble(1), keys="key").aggregate(value="count(*)")).sink("out")
    assert identity(flow) == ("id_key", "window_start")
    actual = schema.columns(with_lineage(flow).sink.input)
    assert (actual["id_key"], actual["window_start"]) == ("int", "timestamp")


def test_reach_is_what_it_says() -> None:
    """Without end, unless stated; none without keys."""
    assert reach_us(keyed().sink("out")) is None
    windows = EVENTS.window(tumble(1), keys="key").aggregate(value="count(*)")
    assert reach_us(keyed(windows, reach="3s").sink("out")) == 4_000_000
    assert reach_us(EVENTS.process(Stateless, gives=GIVES).sink("out")) == 0


def test_two_inputs_take_numbers_where_names_clash() -> None:
    """The same operator on both sides is one; another one of its name gets a number."""
    both = keyed(EVENTS.where("value > 1"), OTHERS.where("name = 'a'"), reads=("value", "name"))
    assert [node.name for node in graph.walk(both.node)] == ["events", "where", "others", "where_2", "process"]
    builder.check(both.sink("out"))


REFUSED: list[tuple[Any, str]] = [
    (lambda: EVENTS.process(dict, gives=GIVES), "takes a subclass of Processor"),
    (lambda: EVENTS.process(Abstract, gives=GIVES), r"needs a class that has process\(\)"),  # type: ignore[type-abstract]
    (lambda: EVENTS.process(Stateless, keys="key", gives=GIVES), "its class cannot save it"),
    (lambda: keyed(parameters={"sise": 2}), "cannot make Keyed .*unexpected keyword argument 'sise'"),
    (lambda: keyed(parameters={"size": [1]}), "parameter size must be an immutable value"),
    (lambda: keyed(keys="kei"), "column 'kei' must be one of its input"),
    (lambda: keyed(reads="valu"), "column 'valu' must be one of its input"),
    (lambda: keyed(EVENTS, OTHERS, keys="value"), "key 'value' must be in every input"),
    (lambda: keyed(EVENTS, OTHERS.select(key="key", value="name")), "must have one type in all inputs"),
    (lambda: keyed(gives=Schema.from_types()), "must give at least one column"),
    (lambda: keyed(gives=Schema.from_types(key="integer")), "column key has no type of a flow"),
    (lambda: keyed(gives=Schema.from_types(event_time="int")), "a column name that streamgauge reserves"),
    (lambda: keyed(gives=Schema.from_types(_row="int")), "a column name that streamgauge reserves"),
    (lambda: keyed(identity="other"), "identity 'other' must be a column it gives"),
    (lambda: keyed(identity="key", several=True), "so several does not apply"),
    (lambda: EVENTS.process(Keyed, gives=GIVES, identity="key"), "so it must have keys"),
    (lambda: keyed(truth="SELECT key FROM input"), "truth: cannot be bound"),
    (
        lambda: keyed(truth="SELECT key, value FROM input"),
        '(?s)cannot be bound.*"_row".*_row FROM|gives key, value, _row',
    ),
    (lambda: keyed(EVENTS.running(keys="key", value="count(*)")), "cannot follow a running aggregate"),
    (lambda: keyed().running(keys="key", n="count(*)"), "or keyed processes"),
    (
        lambda: keyed(EVENTS, OTHERS.window(tumble(1), keys="key").aggregate(n="count(*)"), reads="value"),
        "identified by the same columns",
    ),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_what_it_is_refused_for(make: Any, message: str) -> None:
    """One clear problem each, when the flow is built."""
    assert_refused(message, make)


def answered(flow: Any, **tables: pa.Table) -> list[dict[str, Any]]:
    actual = Oracle().answer(with_lineage(flow), tables, duckdb_session()).to_arrow_table()
    return actual.sort_by([(name, "ascending") for name in actual.column_names]).to_pylist()


def events(**columns: list[Any]) -> pa.Table:
    types = {"name": pa.string()}
    return pa.table({
        name: pa.array(values, types.get(name, pa.int64() if name.startswith(("event", "ingest")) else pa.int32()))
        for name, values in columns.items()
    })  # fmt: skip


def test_truth_over_a_tagged_union() -> None:
    """The last value of the key before each other event; rows of one time in the order of inputs, then of ids."""
    last = (
        "SELECT key, last_value(value IGNORE NULLS) OVER (PARTITION BY key ORDER BY _row) AS value, _input, _row"
        " FROM input QUALIFY _input = 1 ORDER BY _row"
    )
    flow = keyed(EVENTS, OTHERS, truth=last).sink("out")
    actual = answered(
        flow,
        events=events(key=[1, 1, 2], value=[10, 11, 20], event_time=[5, 7, 5], ingest_time=[6, 8, 6],
                      event_id=[1, 2, 3]),
        others=events(key=[1, 1, 2], name=["a", "b", "c"], event_time=[5, 6, 4], ingest_time=[9, 9, 9],
                      event_id=[4, 5, 6]),
    )  # fmt: skip
    assert [tuple(row.values()) for row in actual] == [(1, 10, 5, 9, 4), (1, 10, 6, 9, 5), (2, None, 4, 9, 6)]


def test_truth_states_times_and_chains_into_a_window() -> None:
    """Counts of each 10 us, due at its end, then summed over windows of 1 s by the time they were due."""
    counts = (
        "SELECT key, count(*) AS value, (_time // 10 + 1) * 10 - 1 AS _time, max(event_time) AS event_time,"
        " max(ingest_time) AS ingest_time FROM input GROUP BY key, _time // 10"
    )
    stated = keyed(identity="key", truth=counts)
    flow = stated.window(tumble("0.00002"), keys="key").aggregate(n="sum(value)").sink("out")
    rows = events(key=[1, 1, 1, 1], value=[0] * 4, event_time=[1, 2, 15, 25], ingest_time=[3, 4, 16, 26],
                  event_id=[1, 2, 3, 4])  # fmt: skip
    actual = answered(flow, events=rows)
    assert [(row["n"], row["event_time"], row["ingest_time"]) for row in actual] == [(3, 15, 16), (1, 25, 26)]
