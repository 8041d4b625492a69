"""What DStreams and real-time mode cannot do is refused before a start, by its rule and with the way out."""

from typing import Any

import pytest

from streamgauge.config.experiment import build
from streamgauge.core.errors import InputError
from streamgauge.core.schema import Field, Schema
from streamgauge.dataflow.builder import source, tumble
from streamgauge.dataflow.nodes import Flow
from streamgauge.engines.spark import options_dstream, options_realtime
from streamgauge.engines.spark.options_realtime import master_for, slots, trigger
from streamgauge.engines.spark.plugin import SparkDStreamPlugin, SparkRealTimePlugin
from streamgauge.engines.spi import StartRequest
from streamgauge.preflight.settings_checks import check

DSTREAM, REAL_TIME = SparkDStreamPlugin(), SparkRealTimePlugin()
BOUGHT = source("purchases", Schema.from_types(user_id="int", pack="int", price="int"))
PLAIN = BOUGHT.sink("all")
BOUGHTS = source("others", Schema.from_types(user_id="int", pack="int", price="int"))
COUNTED = BOUGHT.running(keys="pack", n="count(*)").sink("n")
NULLS = source("logs", Schema((Field("line", "string", nullable=True),))).sink("all")
STAMPS = source("logs", Schema.from_types(at="timestamp")).sink("all")
MEANS = BOUGHT.running(keys="pack", mean="avg(price)").sink("means")
FIRSTS = BOUGHT.distinct(keys="pack", name="firsts").sink("out")
COUNTED_FIRSTS = BOUGHT.distinct(keys="pack").running(keys="price", n="count(*)").sink("out")
OF_WINDOWS = BOUGHT.distinct(keys="pack", window=tumble(1), name="firsts").sink("out")
FILTERED = BOUGHT.where("price > 5", name="dear").sink("dear")
TEXTS = source("texts", Schema.from_types(text="string"))
WORDS = TEXTS.explode(word="split(text, ' ')", name="each_word").running(keys="word", n="count(*)").sink("n")
OVER_KAFKA = {"engine": "spark-rtm", "transport": "kafka"}


def test_how_far_apart_batches_are() -> None:
    """As asked for, a second else."""
    requests = (StartRequest(PLAIN, options, None, "common") for options in ({}, {"batch_interval": "4s"}))
    assert [DSTREAM.interval(request).seconds for request in requests] == [1.0, 4.0]


@pytest.mark.parametrize(
    ("flow", "options", "message"),
    [
        (PLAIN, {"batch_interval": "soon"}, "batch_interval: must be a whole number of s or ms, at least 50ms"),
        (PLAIN, {"batch_interval": "0.5s"}, "batch_interval: must be a whole number"),
        (PLAIN, {"batch_interval": "10ms"}, "batch_interval: must be a whole number"),
        (PLAIN, {"block_interval": "2ms"}, "block_interval: is for receivers"),
        (PLAIN, {"back_pressure": "on"}, "back_pressure: is for receivers"),
        (PLAIN, {"spark.streaming.blockInterval": "2ms"}, "blockInterval: has its own option in streamgauge"),
        (PLAIN, {"spark.streaming.concurrentJobs": "2"}, "concurrentJobs: must be 1"),
        (PLAIN, {"trigger": "1 second"}, "option trigger: is not an option of spark-dstream"),
        (MEANS, {}, "mergeable running aggregates, and mean of running is not mergeable"),
    ],
)
def test_what_dstreams_would_choke_on_is_refused(flow: Flow, options: dict[str, str], message: str) -> None:
    """Also what it would do without a word."""
    with pytest.raises(InputError, match=message):
        DSTREAM.check(StartRequest(flow, options, None, "common"))


@pytest.mark.parametrize(
    ("flow", "options", "master", "partitions", "message"),
    [
        (PLAIN, {"block_interval": "0ms"}, None, 1, "block_interval: must be a whole number of s or ms, at least 1ms"),
        (PLAIN, {"batch_interval": "1s", "block_interval": "300ms"}, None, 1, "batch_interval: must be a multiple of"),
        (PLAIN, {"back_pressure": "yes"}, None, 1, "back_pressure: must be one of on, off"),
        (PLAIN, {}, "local[2]", 2, "a slot for each receiver and at least one more: 3 here"),
        (PLAIN, {}, "local", 1, "a slot for each receiver"),
        (PLAIN, {}, "spark://here:7077", 1, "a slot for each receiver"),
        (COUNTED, {}, None, 2, "partitions: must be 1 for updates over sockets"),
        (BOUGHT.union(BOUGHTS).sink("both"), {}, None, 1, "carries one stream, and there are purchases, others"),
        (NULLS, {}, None, 1, "carries no nulls, and values of logs may be null"),
        (STAMPS, {}, None, 1, "boolean, string, and logs has others"),
    ],
)
def test_what_receivers_cannot_do_is_refused(
    flow: Flow, options: dict[str, str], master: str | None, partitions: int, message: str
) -> None:
    """Batches would wait for a slot without end, or rows would be others."""
    with pytest.raises(InputError, match=message):
        DSTREAM.check(StartRequest(flow, options, master, "common", transport="socket", partitions=partitions))


def test_what_receivers_take() -> None:
    """Slots enough, and as many blocks as there are in [L]."""
    options = {"batch_interval": "4s", "block_interval": "2ms", "back_pressure": "on"}
    DSTREAM.check(StartRequest(PLAIN, options, "local[3]", "common", transport="socket", partitions=2))
    assert options_dstream.master_for(2, "socket", 2) == "local[4]"
    assert options_dstream.master_for(2, "memory", 2) == "local[2]"
    assert options_dstream.receiving(options, "socket") == {
        "spark.streaming.blockInterval": "2ms",
        "spark.streaming.backpressure.enabled": "true",
    }
    assert options_dstream.receiving(options, "memory") == {}


def test_all_tasks_of_a_query_run_at_once() -> None:
    """One for the source, one behind the exchange of an aggregate, and of first rows; a master of our own has a slot
    for each.
    """
    assert (slots(PLAIN), slots(COUNTED), slots(FIRSTS), slots(COUNTED_FIRSTS)) == (1, 2, 2, 3)
    assert (master_for(COUNTED, 1), master_for(PLAIN, 4)) == ("local[2]", "local[4]")


def test_how_often_progress_is_kept() -> None:
    """Often where it alone shows that rows were read; as asked for where it was."""
    assert (trigger(COUNTED, "auto"), trigger(FILTERED, "auto")) == ("1 minute", "5 seconds")
    assert trigger(FIRSTS, "auto") == "5 seconds"
    assert trigger(FILTERED, "7 seconds") == "7 seconds"


@pytest.mark.parametrize(
    ("flow", "options", "master", "message"),
    [
        (COUNTED, {}, "local[1]", r"master: must be local\[N\] with a slot for each task, .*: 2 here"),
        (COUNTED, {}, "local", "master: must be local"),
        (COUNTED, {}, "local[*]", "master: must be local"),
        (COUNTED, {}, "spark://here:7077", "master: must be local"),
        (COUNTED, {"spark.sql.shuffle.partitions": "2"}, None, "partitions: must be 1 in real-time mode"),
        (COUNTED, {"trigger": "1 second"}, None, "option trigger: must be auto, or at least 5 seconds"),
        (COUNTED, {"trigger": "soon"}, None, "option trigger: must be auto, or at least 5 seconds"),
        (FILTERED, {"trigger": "1 minute"}, None, r"at most 10 seconds where rows may leave no result \(dear\)"),
        (FIRSTS, {"trigger": "1 minute"}, None, r"where rows may leave no result \(firsts\)"),
        (COUNTED_FIRSTS, {}, "local[2]", "a slot for each task, .*: 3 here"),
        (OF_WINDOWS, {}, None, "emits no results at a window's end, and firsts gives the first rows of windows"),
        (
            WORDS,
            {},
            None,
            "makes an update of every row, and each_word makes several indistinguishable ones of one event",
        ),
        (COUNTED, {"buckets": "8"}, None, "option buckets: is not an option of spark-rtm"),
        (COUNTED, {"spark.master": "local[4]"}, None, "spark.master: has its own option in streamgauge"),
    ],
)
def test_what_real_time_mode_would_choke_on_is_refused(
    flow: Flow, options: dict[str, str], master: str | None, message: str
) -> None:
    """Spark's own rules, and what would be a wrong figure."""
    with pytest.raises(InputError, match=message):
        REAL_TIME.check(StartRequest(flow, options, master, "common", transport="kafka"))


@pytest.mark.parametrize(
    ("plugin", "request_", "message"),
    [
        (DSTREAM, StartRequest(PLAIN, {}, None, "free"), "frontier: must be common for DStreams"),
        (
            REAL_TIME,
            StartRequest(COUNTED, {}, None, "common", transport="kafka", partitions=2),
            "partitions: must be 1 in real-time mode",
        ),
    ],
)
def test_each_cuts_its_input_in_its_one_way(plugin: Any, request_: StartRequest, message: str) -> None:
    """A window of DStreams could not be known to be whole else; of several partitions, what results show to be read
    would be that of one task alone.
    """
    with pytest.raises(InputError, match=message):
        plugin.check(request_)


@pytest.mark.parametrize(("flow", "master"), [(COUNTED, "local[2]"), (COUNTED, "local[4, 3]"), (PLAIN, "local")])
def test_what_real_time_mode_takes(flow: Flow, master: str) -> None:
    """Slots enough."""
    REAL_TIME.check(StartRequest(flow, {"trigger": "5 seconds"}, master, "common", transport="kafka"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"engine": "spark-dstream", "workload": "spike_detection"},
            "does not support Process: keyed processes need Structured Streaming's state",
        ),
        (
            {"engine": "spark-dstream", "workload": "sentiment_analysis"},
            "does not support IntervalJoin: DStreams join windows only",
        ),
        (
            {"engine": "spark-dstream", "workload": "identity", "transport": "kafka"},
            "transport: must be one that spark-dstream can read",
        ),
        (
            {"engine": "spark-dstream", "workload": "windowed_join", "options": {"lowering.join": "packed"}},
            "lowering.join: must not be packed in DStreams",
        ),
        (
            {
                "engine": "spark-dstream",
                "workload": "windowed_aggregation",
                "options": {"lowering.aggregate": "sliding"},
            },
            "lowering.aggregate: must not be sliding in DStreams",
        ),
        (
            {"engine": "spark-dstream", "workload": "identity", "options": {"batch_interval": "20s"}},
            "at least 3 times the engine's interval",
        ),
        (
            {**OVER_KAFKA, "workload": "windowed_join"},
            "does not support WindowJoin: real-time mode joins no two streams",
        ),
        (
            {**OVER_KAFKA, "workload": "trending_topics"},
            "does not support TopN: real-time mode has no aggregate of an aggregate",
        ),
        ({**OVER_KAFKA, "workload": "spike_detection"}, "does not support Process: real-time mode runs no Python"),
        (
            {**OVER_KAFKA, "workload": "identity", "transport": "memory"},
            "transport: must be one that spark-rtm can read",
        ),
    ],
)
def test_flows_that_a_mode_cannot_do_are_refused(changes: dict[str, Any], message: str) -> None:
    """By the rule, and with the engine to take."""
    with pytest.raises(InputError, match=message) as refused:
        check(build(changes))
    if "does not support" in message:
        assert "--engine spark" in str(refused.value)


def test_chunks_are_as_short_as_its_latencies() -> None:
    """Unless others are asked for."""
    requested = {"workload": "identity", "engine": "spark-rtm", "transport": "kafka"}
    assert check(build(requested)).chunk_for(20e3) == options_realtime.CHUNK_US
    assert check(build({**requested, "load": {"chunk": "10ms"}})).chunk_for(20e3) == 10_000
