"""What a job's options mean: Spark's configuration, and the settings in force."""

from __future__ import annotations

import pytest

from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import Stream, hop, source
from streamgauge.dataflow.nodes import Flow
from streamgauge.engines.spark import options_dstream, options_realtime
from streamgauge.engines.spark.io.kafka import REDACTION
from streamgauge.engines.spark.io.spi import TransportAdapter
from streamgauge.engines.spark.job_settings import SETTINGS_BY_MODE, JobSettings
from streamgauge.engines.spark.launch import SparkJob
from streamgauge.engines.spark.lowering.queries import Query
from streamgauge.engines.spark.options import CAPABILITIES
from streamgauge.engines.spi import Edge, Edges

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
    ("transport", "partitions", "uneven"), [("kafka", 1, [False, True]), ("kafka", 2, [True, True]), ("flight", 2, [])]
)
def test_a_query_reads_unevenly_by_its_own_streams(transport: str, partitions: int, uneven: list[bool]) -> None:
    """Over a broker, with several partitions or streams. The streams of other queries do not count."""
    flow = Flow((*BOUGHT.sink("rows").sinks, *MATCHES.sink("matches").sinks))
    edges = Edges((Edge("", ""),) * partitions, Edge("", ""), {}, transport=transport)
    settings = JobSettings(SparkJob(flow, edges, {}, "local[1]", "", ""))
    found = [settings.is_uneven(Query(sink.name, (sink,))) for sink in flow.sinks]
    assert found == (uneven or [False, False])


def test_a_plain_join_is_sparks_own() -> None:
    """The idiomatic profile asks for it."""
    assert effective_settings(MATCHES.sink("out"), lowering="plain")["lowering.join"] == "stream_stream"


def test_what_was_asked_for_stands_as_it_was_asked() -> None:
    """Without that word."""
    asked = {"trigger": "2 seconds", "lowering.aggregate": "window"}
    assert effective_settings(REVENUE.sink("out"), **asked) == asked
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
def test_how_the_jvm_compiles_stands_with_what_it_was_told(master: str, options: dict[str, str], stands: str) -> None:
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
    [("flight", {}, {}), ("kafka", {}, {}), ("kafka", {"client": "login.properties"}, REDACTION)],
)
def test_credentials_are_hidden_where_clients_log_in(
    transport: str, options: dict[str, str], expected: dict[str, str]
) -> None:
    assert adapter(transport, **options).configuration() == expected
