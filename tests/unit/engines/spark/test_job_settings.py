"""What a job's options mean: Spark's configuration, the settings in force, and which of them are Spark's own."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql import types

from streamgauge.core.plugin_options import IDIOMATIC
from streamgauge.core.schema import Field, Schema
from streamgauge.dataflow.builder import Stream, hop, source
from streamgauge.dataflow.graph import operators, sources
from streamgauge.dataflow.nodes import Flow
from streamgauge.engines.registry import entry, streaming_engines
from streamgauge.engines.spark import options, options_dstream, options_realtime
from streamgauge.engines.spark.io import flight
from streamgauge.engines.spark.io.kafka import REDACTION
from streamgauge.engines.spark.io.spi import TransportAdapter
from streamgauge.engines.spark.job_settings import SETTINGS_BY_MODE, JobSettings
from streamgauge.engines.spark.launch import SparkJob
from streamgauge.engines.spark.lowering.queries import Query, queries
from streamgauge.engines.spark.options import CAPABILITIES
from streamgauge.engines.spark.queries import StreamingQueries
from streamgauge.engines.spark.row_counts import RowCounting
from streamgauge.engines.spark.session import session
from streamgauge.engines.spark.session.environment import recorded
from streamgauge.engines.spark.tuning import BY_SPARK, OF_SPARK, PROFILES, is_own_default
from streamgauge.engines.spi import Edge, Edges, EnginePlugin
from streamgauge.workloads.registry import get

BOUGHT = source("purchases", Schema.from_types(user_id="int", pack="int", price="int"))
ADS = source("ads", Schema.from_types(user_id="int", pack="int"))
REVENUE = BOUGHT.window(hop(2, 1), keys="pack").aggregate(revenue="sum(price)")
MEAN = BOUGHT.window(hop(2, 1), keys="pack").aggregate(mean="avg(price)", name="means")
MATCHES = BOUGHT.select(pack="pack", price="price").join(ADS.select(pack="pack"), window=hop(2, 1), on="pack")
TEXTS = source("sent", Schema.from_types(word="string")).join(
    source("got", Schema.from_types(word="string")).select(word="word"), window=hop(2, 1), on="word"
)
COMPUTED = BOUGHT.select(pack="pack + 1", price="price").join(ADS.select(pack="pack"), window=hop(2, 1), on="pack")
PACKED = {"trigger": "1400 milliseconds (auto)", "lowering.join": "packed (auto)"}


def effective_settings(flow: Flow, edges: Edges | None = None, **options: str) -> dict[str, str]:
    settings = JobSettings(SparkJob(flow, edges or Edges((), Edge("", ""), {}), options, "local[1]", "", ""))
    return {
        name: value for name, value in settings.effective_settings().items() if name.startswith(("lowering", "trigger"))
    }


@pytest.mark.parametrize(("own", "users", "all_jars"), [
    (("kafka.jar",), {"spark.jars": "mine.jar"}, "kafka.jar,mine.jar"),
    (("kafka.jar",), {}, "kafka.jar"),
    ((), {"spark.jars": "mine.jar"}, "mine.jar"),
])  # fmt: skip
def test_jars_of_the_user_come_beside_those_of_the_transport(
    own: tuple[str, ...], users: dict[str, str], all_jars: str
) -> None:
    edges = Edges((), Edge("", ""), {})
    settings = JobSettings(SparkJob(BOUGHT.sink("out"), edges, users, "local[1]", "", "", jars=own))
    assert settings.configuration()["spark.jars"] == all_jars


def test_what_was_left_to_the_engine_stands_as_what_ran() -> None:
    """With a word that it was the engine's choice; only operators that the flow has are listed."""
    assert effective_settings(REVENUE.sink("out")) == {
        "trigger": "1400 milliseconds (auto)",
        "lowering.aggregate": "panes (auto)",
    }
    assert effective_settings(MEAN.sink("out")) == {
        "trigger": "1400 milliseconds (auto)",
        "lowering.means": "window (auto)",
    }
    assert effective_settings(MATCHES.sink("out")) == PACKED
    assert effective_settings(BOUGHT.sink("out")) == {"trigger": "0 seconds (auto)"}


@pytest.mark.parametrize(
    ("edges", "options", "join"),
    [
        ({"transport": "kafka"}, {}, MATCHES),
        ({"frontier": "free"}, {}, MATCHES),
        ({}, {"watermark_delay": "1 second"}, MATCHES),
        ({}, {}, TEXTS),
        ({}, {}, COMPUTED),
    ],
)
def test_a_join_is_sparks_own_where_it_cannot_be_packed(
    edges: dict[str, str], options: dict[str, str], join: Stream
) -> None:
    """Over a broker, without a common event time, with a delay, by keys that are texts, or of computed columns."""
    found = effective_settings(join.sink("out"), Edges((), Edge("", ""), {}, **edges), **options)
    assert found == {"trigger": "2 seconds (auto)", "lowering.join": "stream_stream (auto)"}


@pytest.mark.parametrize(
    ("transport", "partitions", "uneven"), [("kafka", 1, [False, True]), ("kafka", 2, [True, True]), ("memory", 2, [])]
)
def test_a_query_reads_unevenly_by_its_own_streams(transport: str, partitions: int, uneven: list[bool]) -> None:
    """Over a broker, with several partitions or streams. The streams of other queries do not count."""
    flow = Flow((*BOUGHT.sink("rows").sinks, *MATCHES.sink("matches").sinks))
    edges = Edges((Edge("", ""),) * partitions, Edge("", ""), {}, transport=transport)
    settings = JobSettings(SparkJob(flow, edges, {}, "local[1]", "", ""))
    assert [settings.is_uneven(Query(sink.name, (sink,))) for sink in flow.sinks] == (uneven or [False, False])


def test_a_plain_join_is_sparks_own() -> None:
    """The idiomatic profile asks for it."""
    assert effective_settings(MATCHES.sink("out"), lowering="plain")["lowering.join"] == "stream_stream"


def test_a_request_stands_as_it_was_made() -> None:
    """Without that word."""
    requested = {"trigger": "2 seconds", "lowering.aggregate": "window"}
    assert effective_settings(REVENUE.sink("out"), **requested) == requested
    packed = {"trigger": "auto", "lowering.join": "packed"}
    assert effective_settings(MATCHES.sink("out"), **packed) == {
        "trigger": "1400 milliseconds (auto)",
        "lowering.join": "packed",
    }


@pytest.mark.parametrize(
    ("master", "options", "stands"),
    [
        ("local[2]", {}, "late -XX:Tier4InvocationThreshold="),
        ("local[2]", {"jit": "jvm"}, "jvm"),
        ("spark://host:7077", {}, "jvm (remote executors"),
    ],
)
def test_how_the_jvm_compiles_stands_with_its_options(master: str, options: dict[str, str], stands: str) -> None:
    """A result that hides a JVM's options cannot be made again."""
    settings = JobSettings(SparkJob(BOUGHT.sink("out"), Edges((), Edge("", ""), {}), options, master, "", ""))
    assert settings.effective_settings()["jit"].startswith(stands)


@pytest.mark.parametrize(
    ("master", "options", "host"),
    [
        ("local[2]", {}, "127.0.0.1"),
        ("spark://host:7077", {}, "10.0.0.5"),
        ("spark://host:7077", {"spark.driver.host": "me.example", "spark.driver.bindAddress": "0.0.0.0"}, "me.example"),
    ],
)
def test_sparks_driver_is_where_executors_find_ours(master: str, options: dict[str, str], host: str) -> None:
    """On loopback in local mode; else at the address that was bound, unless the user says where."""
    edges = Edges((), Edge("", ""), {}, bind="10.0.0.5")
    conf = JobSettings(SparkJob(BOUGHT.sink("out"), edges, options, master, "", "")).configuration()
    assert conf["spark.driver.host"] == host
    assert conf["spark.driver.bindAddress"] == options.get("spark.driver.bindAddress", host)


@pytest.mark.parametrize(("probed", "kept"), [({"probes": "on"}, "2000"), ({}, None)])
def test_where_counts_are_read_spark_keeps_more_executions(probed: dict[str, str], kept: str | None) -> None:
    """And no more where they are not, which is the default: they take heap."""
    settings = JobSettings(SparkJob(BOUGHT.sink("out"), Edges((), Edge("", ""), {}), probed, "local[1]", "", ""))
    assert settings.configuration().get("spark.sql.ui.retainedExecutions") == kept


@pytest.mark.parametrize(
    ("master", "parallelism", "options", "conf"),
    [
        ("local[2]", None, {}, {"spark.sql.shuffle.partitions": "3"}),
        ("local[1]", 1, {}, {"spark.sql.shuffle.partitions": "1"}),
        ("local[4]", 4, {"spark.sql.shuffle.partitions": "7"}, {"spark.sql.shuffle.partitions": "7"}),
        ("spark://host:7077", 4, {}, {"spark.sql.shuffle.partitions": "4", "spark.cores.max": "4"}),
        ("yarn", 4, {"spark.executor.cores": "2"}, {"spark.executor.instances": "2"}),
        ("yarn", None, {"spark.executor.cores": "2"}, {"spark.executor.instances": None}),
    ],
)
def test_the_parallelism_is_that_of_exchanges_and_executors(
    master: str, parallelism: int | None, options: dict[str, str], conf: dict[str, str | None]
) -> None:
    """Without one, exchanges have a task for each of three partitions."""
    edges = Edges((Edge("", ""),) * 3, Edge("", ""), {})
    made = JobSettings(SparkJob(BOUGHT.sink("out"), edges, options, master, "", "", (), parallelism)).configuration()
    assert {name: made.get(name) for name in conf} == conf


def edges(transport: str, **options: str) -> Edges:
    return Edges((), Edge("", ""), {}, transport=transport, transport_options=options)


def adapter(transport: str, mode: str = "micro-batch", **options: str) -> TransportAdapter:
    job = SparkJob(BOUGHT.sink("out"), edges(transport, **options), {}, "local[1]", "", "", mode=mode)
    return SETTINGS_BY_MODE[mode](job).adapter


@pytest.mark.parametrize(
    ("mode", "claimed"),
    [
        ("micro-batch", CAPABILITIES.transports),
        ("real-time", options_realtime.CAPABILITIES.transports),
        ("dstream", options_dstream.CAPABILITIES.transports),
    ],
)
def test_every_transport_that_a_mode_claims_has_an_adapter(mode: str, claimed: tuple[str, ...]) -> None:
    """Only a broker's partitions are not cut at one event time."""
    assert set(SETTINGS_BY_MODE[mode].adapters) == set(claimed)
    assert {each: adapter(each, mode).reads_evenly for each in claimed} == {each: each != "kafka" for each in claimed}


@pytest.mark.parametrize(
    ("transport", "options", "expected"),
    [("memory", {}, {}), ("kafka", {}, {}), ("kafka", {"client": "login.properties"}, REDACTION)],
)
def test_credentials_are_hidden_where_clients_log_in(
    transport: str, options: dict[str, str], expected: dict[str, str]
) -> None:
    assert adapter(transport, **options).configuration() == expected


PLAIN = PROFILES[IDIOMATIC].options
KAFKAS_OWN = "Kafka's own defaults"
SUMS = BOUGHT.window(hop(2, 1), keys="pack").aggregate(total="sum(price)", name="sums").sink("sums")
ALL_PLAIN = {"aggregate": "window", "sums": "window", "join": "stream_stream"}
NEEDED = {
    "spark.sql.shuffle.partitions", "spark.sql.session.timeZone", "spark.ui.enabled", "spark.ui.showConsoleProgress",
    "spark.sql.streaming.numRecentProgressUpdates", "spark.driver.host", "spark.driver.bindAddress",
}  # fmt: skip
"""Without these nothing could be measured, or the answers would be others."""


def tuned_settings(
    flow: Flow | None = None, transport: str = "memory", encoding: str = "compact", **chosen: str
) -> JobSettings:
    edges = Edges((Edge("", ""),), Edge("", ""), {}, transport=transport, transport_options={"encoding": encoding})
    return JobSettings(SparkJob(flow or REVENUE.sink("out"), edges, chosen, "local[1]", "", ""))


def test_spark_keeps_all_settings_but_those_that_measuring_needs() -> None:
    """By the profile; one that the user gives is set all the same."""
    conf = tuned_settings(**PLAIN).configuration()
    assert conf.keys() == NEEDED | {"spark.driver.memory"}
    assert (
        conf["spark.sql.shuffle.partitions"] == tuned_settings().configuration()["spark.sql.shuffle.partitions"] == "2"
    )
    assert conf["spark.driver.memory"] == tuned_settings().configuration()["spark.driver.memory"]
    option = {"spark.sql.adaptive.enabled": "true"}
    assert tuned_settings(**PLAIN, **option).configuration().items() >= option.items()


@pytest.mark.parametrize(
    ("option", "left_out"),
    [
        ("spark_settings", options.TUNED_SETTINGS.keys()),
        ("file_system", options.LOCAL_CHECKPOINT.keys() | options.RAW_FILES.keys()),
    ],
)
def test_each_option_leaves_its_own_settings_to_spark(option: str, left_out: set[str]) -> None:
    assert (
        tuned_settings().configuration().keys() - tuned_settings(**{option: "spark"}).configuration().keys() == left_out
    )


@pytest.mark.parametrize(
    ("chosen", "found"),
    [
        ({}, {}),
        ({"lowering": "plain"}, ALL_PLAIN),
        ({"lowering": "plain", "lowering.sums": "panes"}, {**ALL_PLAIN, "sums": "panes"}),
        ({"lowering": "plain", "lowering.join": "packed"}, {**ALL_PLAIN, "join": "packed"}),
        ({"lowering": "plain", "lowering.sums": "auto"}, ALL_PLAIN),
    ],
)
def test_plain_lowerings_are_for_operators_of_any_name(chosen: dict[str, str], found: dict[str, str]) -> None:
    """An option that names one of them goes before; `auto` leaves it to the profile."""
    nodes = [node for flow in (REVENUE.sink("out"), SUMS, MATCHES.sink("out")) for node in operators(flow)]
    assert options.chosen_lowerings(nodes, chosen) == found


def test_state_is_kept_as_spark_does_unless_an_operator_needs_rocksdb() -> None:
    """First rows of keys are in RocksDB only in `tuned`, keyed processes always; only `tuned` changes its settings."""
    spikes = get("spike_detection")
    keyed = spikes.build(spikes.parameters(), 1000.0).flow
    firsts = BOUGHT.distinct(keys="pack").sink("firsts")
    tuned = {**options.ROCKSDB, **options.TUNED_ROCKSDB}
    for flow, chosen, found in ((keyed, {}, tuned), (firsts, {}, tuned), (keyed, PLAIN, options.ROCKSDB)):
        conf = tuned_settings(flow, **chosen).configuration()
        assert {name: value for name, value in conf.items() if "stateStore" in name} == found
        assert "state_store" in tuned_settings(flow, **chosen).effective_settings()
    assert not any("stateStore" in name for name in tuned_settings(firsts, **PLAIN).configuration())
    assert is_own_default("state_store", tuned_settings(keyed, **PLAIN).effective_settings()["state_store"])
    assert not is_own_default("state_store", tuned_settings(keyed).effective_settings()["state_store"])
    assert "state_store" not in tuned_settings().effective_settings()


class FakeReader:
    """Spark's reader, which remembers its arguments."""

    def __init__(self) -> None:
        self.given: dict[str, Any] = {}

    def format(self, _: str) -> FakeReader:
        return self

    def options(self, **more: str) -> FakeReader:
        self.given |= more
        return self

    def schema(self, of: Any) -> FakeReader:
        self.given["schema"] = of
        return self

    def load(self) -> FakeReader:
        return self


READ, ALL = ["pack", "price", "event_time"], ["user_id", "pack", "price", "event_time"]


@pytest.mark.parametrize(
    ("chosen", "columns", "nullable"),
    [
        ({"source": "rows"}, READ, ["price"]),
        ({"source": "rows", "nullable": "all"}, READ, READ),
        ({"source": "rows", "columns": "all"}, ALL, ["price"]),
        (PLAIN, ALL, ALL),
    ],
)
def test_the_source_gives_the_requested_columns(
    monkeypatch: pytest.MonkeyPatch, chosen: dict[str, str], columns: list[str], nullable: list[str]
) -> None:
    """Several queries read a stream: by default each only its own columns, and by `idiomatic` every one of them."""
    monkeypatch.setattr(flight, "_parse_datatype_string", {"int": types.IntegerType(), "bigint": types.LongType()}.get)
    schema = Schema((Field("user_id", "int"), Field("pack", "int"), Field("price", "int", nullable=True)))
    stream = source("purchases", schema)
    by_pack = stream.window(hop(2, 1), keys="pack").aggregate(most="max(price)", name="by_pack").sink("by_pack")
    by_user = stream.window(hop(2, 1), keys="user_id").aggregate(n="count(*)", name="by_user").sink("by_user")
    flow = Flow(by_pack.sinks + by_user.sinks)
    edges = Edges((Edge("", ""),), Edge("", ""), {"purchases": tuple(ALL)})
    reader, first = FakeReader(), queries(flow)[0]
    made, session = JobSettings(SparkJob(flow, edges, chosen, "local[1]", "", "")), SimpleNamespace(readStream=reader)
    StreamingQueries(cast(Any, session), made, RowCounting()).reading(first)(sources(flow)[0])
    assert json.loads(reader.given["columns"]) == reader.given["schema"].names == columns
    assert [field.name for field in reader.given["schema"] if field.nullable] == nullable
    assert json.loads(reader.given["nullable"]) == nullable


def test_what_is_in_force_says_what_ran() -> None:
    """Each operator has its own lowering there, so the option for all of them is left out."""
    found = tuned_settings(**PLAIN).effective_settings()
    assert (found["lowering.aggregate"], found["trigger"], found["source"]) == ("window", "0 seconds", "rows")
    assert (found["columns"], found["nullable"], found["worker_start"]) == ("all", "all", "zip")
    assert found["driver_memory"] == options.split({})[0]["driver_memory"]
    assert "lowering" not in found
    assert "kafka_clients" not in found
    over_kafka = tuned_settings(transport="kafka", **PLAIN).effective_settings()
    assert over_kafka["columns"] == "all"
    assert "nullable" not in over_kafka
    assert over_kafka["source"] == "Spark's own for Kafka: startingOffsets=earliest failOnDataLoss=true"
    assert over_kafka["sink"] == "Spark's own for Kafka: kafka.max.request.size=94371840"
    assert "kafka.linger.ms=50" in tuned_settings(transport="kafka").effective_settings()["sink"]


def test_what_parses_json_is_in_force_where_messages_are_json() -> None:
    assert tuned_settings(transport="kafka", encoding="json").effective_settings()["json_parser"] == "arrow"
    assert (
        tuned_settings(transport="kafka", encoding="json", **PLAIN).effective_settings()["json_parser"] == "from_json"
    )
    for transport in ("memory", "kafka"):
        assert "json_parser" not in tuned_settings(transport=transport).effective_settings()


def test_settings_that_are_not_sparks_own_are_known() -> None:
    """Those of `tuned` are found as such, and those that `idiomatic` leaves to Spark are not."""
    assert not any(is_own_default(*item) for item in options.TUNED_SETTINGS.items())
    changed = {name for name, value in tuned_settings().effective_settings().items() if not is_own_default(name, value)}
    left = {
        name for name, value in tuned_settings(**PLAIN).effective_settings().items() if not is_own_default(name, value)
    }
    assert left == {"driver_memory", "watermark_delay"}
    elsewhere = {"lowering", "kafka_clients", "json_parser", "state_store"}
    assert changed - left == BY_SPARK.keys() - elsewhere | {"lowering.aggregate"}
    assert is_own_default("lowering.means", "window (auto)")
    assert is_own_default("buckets", "8")
    assert all(is_own_default(*item) for item in recorded({"STREAMGAUGE_SET_ASIDE": '{"JAVA_OPTS": "-Xmx1g"}'}).items())
    assert not is_own_default("buckets", "16")


@pytest.mark.parametrize(
    ("name", "default", "changed"),
    [
        ("spark.sql.shuffle.partitions", "200", "2"),
        ("spark.sql.adaptive.enabled", "true", "false"),
        ("driver_memory", "1g", "1g, full size from the start"),
        ("jit", "jvm (remote executors are started with their own options)", "late -XX:Tier3DelayOn=0"),
        ("sink", f"Spark's own for Kafka: {KAFKAS_OWN}", "Spark's own for Kafka: kafka.linger.ms=50"),
        ("receiver", "Spark's own for sockets, 2, blocks in memory and on disk, one copy", "queue"),
        ("block_interval", "200ms", "50ms"),
        ("back_pressure", "off", "on"),
        ("max_per_trigger", "none", "5"),
    ],
)
@pytest.mark.parametrize("engine", ["spark", "spark-rtm", "spark-dstream"])
def test_a_setting_that_has_sparks_own_value_is_not_called_changed(
    engine: str, name: str, default: str, changed: str
) -> None:
    """Whoever gave it, on each of Spark's engines."""
    is_own_default = entry(engine).is_own_default
    assert is_own_default(name, default)
    assert not is_own_default(name, changed)


def test_settings_that_streamgauge_makes_faster_have_a_known_default() -> None:
    """So that a user who sets Spark's own value again finds it unmarked; and none of ours is that value."""
    ours = options.TUNED_SETTINGS | options.TUNED_ROCKSDB
    assert ours.keys() <= OF_SPARK.keys()
    assert not [name for name, value in ours.items() if OF_SPARK.get(name) == value]


def test_every_engine_knows_its_own_defaults() -> None:
    """Otherwise each of its settings would be called changed."""
    # Settings in force are Spark's there, not the options' values.
    spark = [name for name in streaming_engines() if name.startswith("spark")]
    assert not [name for name in spark if type(entry(name)).is_own_default is EnginePlugin.is_own_default]
    assert all(entry("known").is_own_default(one.name, one.default) for one in entry("known").capabilities.settings)
    assert not entry("known").is_own_default("capacity", "20k")


def test_the_heap_grows_and_workers_are_spoken_with_as_spark_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(session.VARIABLE, session.UNCHANGED)
    options = session._jvm("local[2]", tmp_path, "2g", (), whole_heap=False)
    assert not any("Xms" in value for value in options.values())
    assert session._SOCKETS not in options
