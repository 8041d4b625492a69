"""What DStreams cannot do is refused before anything is started, by its rule and with the way out."""

from __future__ import annotations

from typing import Any

import pytest

from streamgauge.config.options_and_settings import build
from streamgauge.core.errors import InputError
from streamgauge.core.schema import Field, Schema
from streamgauge.dataflow.builder import source
from streamgauge.dataflow.nodes import Flow
from streamgauge.engines.spark import options_dstream
from streamgauge.engines.spark.plugin import SparkDStreamPlugin
from streamgauge.engines.spi import StartRequest
from streamgauge.preflight.validate import check

DSTREAM = SparkDStreamPlugin()
BOUGHT = source("purchases", Schema.from_types(user_id="int", pack="int", price="int"))
PLAIN = BOUGHT.sink("all")
BOUGHTS = source("others", Schema.from_types(user_id="int", pack="int", price="int"))
COUNTED = BOUGHT.running(keys="pack", n="count(*)").sink("n")
NULLS = source("logs", Schema((Field("line", "string", nullable=True),))).sink("all")
STAMPS = source("logs", Schema.from_types(at="timestamp")).sink("all")
MEANS = BOUGHT.running(keys="pack", mean="avg(price)").sink("means")


def test_how_far_apart_batches_are() -> None:
    """As asked for, a second else."""
    requests = (StartRequest(PLAIN, options, None, "common") for options in ({}, {"batch_interval": "4s"}))
    assert [DSTREAM.interval(request).seconds for request in requests] == [1.0, 4.0]


@pytest.mark.parametrize(
    ("flow", "options", "said"),
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
def test_what_it_would_choke_on_is_refused(flow: Flow, options: dict[str, str], said: str) -> None:
    """Also what it would do without a word."""
    with pytest.raises(InputError, match=said):
        DSTREAM.check(StartRequest(flow, options, None, "common"))


@pytest.mark.parametrize(
    ("flow", "options", "master", "partitions", "said"),
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
    flow: Flow, options: dict[str, str], master: str | None, partitions: int, said: str
) -> None:
    """Batches would wait for a slot without end, or rows would be others."""
    with pytest.raises(InputError, match=said):
        DSTREAM.check(StartRequest(flow, options, master, "common", transport="socket", partitions=partitions))


def test_what_receivers_take() -> None:
    """Slots enough, and as many blocks as there are in [L]."""
    options = {"batch_interval": "4s", "block_interval": "2ms", "back_pressure": "on"}
    DSTREAM.check(StartRequest(PLAIN, options, "local[3]", "common", transport="socket", partitions=2))
    assert options_dstream.master_for(2, "socket", 2) == "local[4]"
    assert options_dstream.master_for(2, "flight", 2) == "local[2]"
    assert options_dstream.receiving(options, "socket") == {
        "spark.streaming.blockInterval": "2ms",
        "spark.streaming.backpressure.enabled": "true",
    }
    assert options_dstream.receiving(options, "flight") == {}


def test_batches_are_cut_at_one_event_time() -> None:
    """A window could not be known to be whole else."""
    with pytest.raises(InputError, match="frontier: must be common for DStreams"):
        DSTREAM.check(StartRequest(PLAIN, {}, None, "free"))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"workload": "spike_detection"},
            "does not support Process: keyed processes need Structured Streaming's state",
        ),
        ({"workload": "sentiment_analysis"}, "does not support IntervalJoin: DStreams join windows only"),
        ({"workload": "identity", "transport": "kafka"}, "transport: must be one that spark-dstream can read"),
        (
            {"workload": "windowed_join", "options": {"lowering.join": "packed"}},
            "lowering.join: must not be packed in DStreams",
        ),
        (
            {"workload": "windowed_aggregation", "options": {"lowering.aggregate": "sliding"}},
            "lowering.aggregate: must not be sliding in DStreams",
        ),
        ({"workload": "identity", "options": {"batch_interval": "20s"}}, "at least 3 times the engine's interval"),
    ],
)
def test_flows_that_it_cannot_do_are_refused(changes: dict[str, Any], said: str) -> None:
    """By the rule, and with the engine to take."""
    with pytest.raises(InputError, match=said):
        check(build({"engine": "spark-dstream", **changes}))
