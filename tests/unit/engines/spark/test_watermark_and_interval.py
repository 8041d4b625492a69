"""How far behind the watermark stays: what was asked for, or what the way of the events needs."""

from typing import Any

import pytest

from streamgauge.config.experiment import build
from streamgauge.core.errors import InputError
from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import source, tumble
from streamgauge.engines.spark.plugin import SparkPlugin
from streamgauge.engines.spark.watermark_and_interval import PROCESS_DELAY_US, delay_of
from streamgauge.engines.spi import EnginePlugin, StartRequest
from streamgauge.preflight.settings_checks import check as checked


@pytest.mark.parametrize(
    ("option", "transport", "partitions", "delay", "seconds"),
    [
        ("auto", "memory", 4, "0 seconds", 0.0),
        ("auto", "kafka", 1, "0 seconds", 0.0),
        ("auto", "kafka", 2, "1 second", 1.0),
        ("1500 milliseconds", "memory", 1, "1500 milliseconds", 1.5),
        ("0 seconds", "kafka", 2, "0 seconds", 0.0),
    ],
)
def test_it_waits_where_partitions_come_apart(
    option: str, transport: str, partitions: int, delay: str, seconds: float
) -> None:
    """Only there, unless it is told otherwise."""
    assert delay_of(option, transport, partitions) == delay
    request = StartRequest(
        None, {"watermark_delay": option}, None, "common", transport=transport, partitions=partitions
    )
    assert SparkPlugin().watermark_delay_us(request) == round(seconds * 1e6)


def test_it_waits_for_streams_that_a_union_brings_together() -> None:
    """Of one partition each. A join has a watermark for each of its streams, and waits for the least."""
    (one, other), window = (source(name, Schema.from_types(k="int")) for name in ("one", "other")), tumble("2s")
    united = one.union(other).window(window, keys="k").aggregate(n="count(*)").sink("n")
    joined = one.join(other, window=window, on="k").sink("pairs")
    alone = one.union(one.select(k="k + 1")).window(window, keys="k").aggregate(n="count(*)").sink("n")
    assert [delay_of("auto", "kafka", 1, flow) for flow in (united, joined, alone)] == ["1 second", *["0 seconds"] * 2]
    assert delay_of("auto", "memory", 1, united) == "0 seconds"


def test_the_tail_is_longer_by_it() -> None:
    """Or the last windows of the span would not close."""
    load = {"rate": "1k"}
    plain, late = (
        checked(build({"workload": "windowed_aggregation", "load": load, "options": options}))
        for options in ({}, {"watermark_delay": "3 seconds"})
    )
    assert late.tail_us - plain.tail_us == late.watermark_delay_us == 3_000_000


def test_the_tail_is_longer_where_a_process_gives_results_a_batch_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two that follow each other, of 1 s; the core asks the plugin for each node. By the default of other engines the
    tail is the shortest.
    """
    values = {"workload": "machine_outlier", "load": {"rate": "1k"}}
    assert checked(build(values)).tail_us == 2_000_000 + 2 * PROCESS_DELAY_US
    monkeypatch.setattr(SparkPlugin, "closing_delay_us", EnginePlugin.closing_delay_us)
    assert checked(build(values)).tail_us == 3_000_000


@pytest.mark.parametrize(
    ("workload", "options", "named"),
    [("spike_detection", {}, "moving_average"), ("windowed_join", {"lowering.join": "packed"}, "join")],
)
def test_it_is_refused_where_it_would_do_nothing(workload: str, options: dict[str, Any], named: str) -> None:
    """Operators that keep to a watermark of their own."""
    values = {"workload": workload, "options": {**options, "watermark_delay": "3 seconds"}}
    with pytest.raises(InputError, match=f"option watermark_delay: does not apply to {named}"):
        checked(build(values))


def test_none_is_requested_of_an_unknown_flow() -> None:
    """Where the workload itself is refused."""
    SparkPlugin().check(StartRequest(None, {"watermark_delay": "3 seconds"}, None, "common"))
