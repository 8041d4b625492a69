"""What real-time mode cannot do is refused before anything is started, by its rule and with the way out."""

from __future__ import annotations

from typing import Any

import pytest

from streamgauge.config.options_and_settings import build
from streamgauge.core.errors import InputError
from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import source, tumble
from streamgauge.dataflow.nodes import Flow
from streamgauge.engines.spark import options_realtime
from streamgauge.engines.spark.options_realtime import master_for, slots, trigger
from streamgauge.engines.spark.plugin import SparkRealTimePlugin
from streamgauge.engines.spi import StartRequest
from streamgauge.preflight.validate import check

REAL_TIME = SparkRealTimePlugin()
BOUGHT = source("purchases", Schema.from_types(user_id="int", pack="int", price="int"))
PLAIN = BOUGHT.sink("all")
COUNTED = BOUGHT.running(keys="pack", count="count(*)").sink("count")
FIRSTS = BOUGHT.distinct(keys="pack", name="firsts").sink("out")
COUNTED_FIRSTS = BOUGHT.distinct(keys="pack").running(keys="price", n="count(*)").sink("out")
OF_WINDOWS = BOUGHT.distinct(keys="pack", window=tumble(1), name="firsts").sink("out")
FILTERED = BOUGHT.where("price > 5", name="dear").sink("dear")
TEXTS = source("texts", Schema.from_types(text="string"))
WORDS = TEXTS.explode(word="split(text, ' ')", name="each_word").running(keys="word", n="count(*)").sink("n")


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
    ("flow", "options", "master", "said"),
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
def test_what_it_would_choke_on_is_refused(flow: Flow, options: dict[str, str], master: str | None, said: str) -> None:
    """Spark's own rules, and what would be a wrong figure."""
    with pytest.raises(InputError, match=said):
        REAL_TIME.check(StartRequest(flow, options, master, "common", transport="kafka"))


def test_partitions_are_one() -> None:
    """Of several, what results show to be read would be that of one task alone."""
    with pytest.raises(InputError, match="partitions: must be 1 in real-time mode"):
        REAL_TIME.check(StartRequest(COUNTED, {}, None, "common", transport="kafka", partitions=2))


@pytest.mark.parametrize(("flow", "master"), [(COUNTED, "local[2]"), (COUNTED, "local[4, 3]"), (PLAIN, "local")])
def test_what_it_takes(flow: Flow, master: str) -> None:
    """Slots enough."""
    REAL_TIME.check(StartRequest(flow, {"trigger": "5 seconds"}, master, "common", transport="kafka"))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"workload": "windowed_join"}, "does not support WindowJoin: real-time mode joins no two streams"),
        ({"workload": "trending_topics"}, "does not support TopN: real-time mode has no aggregate of an aggregate"),
        ({"workload": "spike_detection"}, "does not support Process: real-time mode runs no Python"),
        ({"workload": "identity", "transport": "flight"}, "transport: must be one that spark-rtm can read"),
    ],
)
def test_flows_that_it_cannot_do_are_refused(changes: dict[str, Any], said: str) -> None:
    """By the rule, and with the engine to take."""
    with pytest.raises(InputError, match=said) as refused:
        check(build({"engine": "spark-rtm", "transport": "kafka", **changes}))
    if "transport" not in changes:
        assert "--engine spark" in str(refused.value)


def test_chunks_are_as_short_as_its_latencies() -> None:
    """Unless others are asked for."""
    asked = {"workload": "identity", "engine": "spark-rtm", "transport": "kafka"}
    assert check(build(asked)).chunk_for(20e3) == options_realtime.CHUNK_US
    assert check(build({**asked, "load": {"chunk": "10ms"}})).chunk_for(20e3) == 10_000
