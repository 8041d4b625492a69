"""What the tuning profiles leave to Spark, and which settings in force are Spark's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamgauge.core.plugin_options import IDIOMATIC, TUNED
from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import hop, source
from streamgauge.dataflow.graph import operators
from streamgauge.engines.spark import options
from streamgauge.engines.spark.lowering.queries import queries
from streamgauge.engines.spark.session import session
from streamgauge.engines.spark.session.environment import recorded
from streamgauge.engines.spark.structured.main import SparkJob, Sut
from streamgauge.engines.spark.tuning import BY_SPARK, PROFILES, is_own_default
from streamgauge.engines.spi import Edge, Edges

PLAIN = PROFILES[IDIOMATIC].options
BOUGHT = source("purchases", Schema.of(user_id="int", pack="int", price="int"))
ADS = source("ads", Schema.of(user_id="int", pack="int"))
REVENUE = BOUGHT.window(hop(2, 1), keys="pack").aggregate(revenue="sum(price)")
SUMS = BOUGHT.window(hop(2, 1), keys="pack").aggregate(total="sum(price)", name="sums").sink("sums")
MATCHES = BOUGHT.select(pack="pack", price="price").join(ADS.select(pack="pack"), window=hop(2, 1), on="pack")
ALL_PLAIN = {"aggregate": "window", "sums": "window", "join": "stream_stream"}
NEEDED = {
    "spark.sql.shuffle.partitions", "spark.sql.session.timeZone", "spark.ui.enabled", "spark.ui.showConsoleProgress",
    "spark.sql.streaming.numRecentProgressUpdates", "spark.driver.host", "spark.driver.bindAddress",
}  # fmt: skip
"""Without these nothing could be measured, or the answers would be others."""


def sut(flow: object = None, transport: str = "flight", **chosen: str) -> Sut:
    edges = Edges((Edge("", ""),), Edge("", ""), {}, transport=transport)
    made = Sut(SparkJob(flow or REVENUE.sink("out"), edges, chosen, "local[1]", "", ""))
    made._queries = dict.fromkeys(queries(made._job.flow))
    return made


def test_tuned_is_every_default() -> None:
    """So a profile that nobody asks for changes nothing."""
    assert PROFILES[TUNED].options == {}
    assert {name: value for name, value in options.split({})[0].items() if value in ("tuned", "late", "whole")} == {
        "jit": "late", "heap": "whole", **dict.fromkeys(
            ("spark_settings", "file_system", "python_workers", "kafka_clients"), "tuned"
        ),
    }  # fmt: skip


def test_spark_keeps_all_settings_but_those_that_measuring_needs() -> None:
    """By the profile; one that the user gives is set all the same."""
    conf = sut(**PLAIN)._configuration()
    assert conf.keys() == NEEDED | {"spark.driver.memory"}
    assert conf["spark.sql.shuffle.partitions"] == sut()._configuration()["spark.sql.shuffle.partitions"] == "2"
    assert conf["spark.driver.memory"] == sut()._configuration()["spark.driver.memory"]
    asked = {"spark.sql.adaptive.enabled": "true"}
    assert sut(**PLAIN, **asked)._configuration().items() >= asked.items()


@pytest.mark.parametrize(
    ("option", "left_out"),
    [
        ("spark_settings", options.TUNED_SETTINGS.keys()),
        ("file_system", options.LOCAL_CHECKPOINT.keys() | options.RAW_FILES.keys()),
    ],
)
def test_each_option_leaves_its_own_settings_to_spark(option: str, left_out: set[str]) -> None:
    assert sut()._configuration().keys() - sut(**{option: "spark"})._configuration().keys() == left_out


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


def test_what_is_in_force_says_what_ran() -> None:
    """Each operator has its own lowering there, so the option for all of them is left out."""
    found = sut(**PLAIN)._in_force()
    assert (found["lowering.aggregate"], found["trigger"], found["source"]) == ("window", "0 seconds", "rows")
    assert found["driver_memory"] == options.split({})[0]["driver_memory"]
    assert "lowering" not in found
    assert "kafka_clients" not in found
    over_kafka = sut(transport="kafka", **PLAIN)._in_force()
    assert over_kafka["source"] == "Spark's own for Kafka: startingOffsets=earliest failOnDataLoss=true"
    assert over_kafka["sink"] == "Spark's own for Kafka: Kafka's own defaults"
    assert "kafka.linger.ms=50" in sut(transport="kafka")._in_force()["sink"]


def test_settings_that_are_not_sparks_own_are_known() -> None:
    """Those of `tuned` are found as such, and those that `idiomatic` leaves to Spark are not."""
    assert not any(is_own_default(*item) for item in options.TUNED_SETTINGS.items())
    changed = {name for name, value in sut()._in_force().items() if not is_own_default(name, value)}
    left = {name for name, value in sut(**PLAIN)._in_force().items() if not is_own_default(name, value)}
    assert left == {"driver_memory", "watermark_delay"}
    assert changed - left == BY_SPARK.keys() - {"lowering", "kafka_clients"} | {"lowering.aggregate"}
    assert is_own_default("lowering.means", "window (auto)")
    assert is_own_default("buckets", "8")
    assert all(is_own_default(*item) for item in recorded({"STREAMGAUGE_SET_ASIDE": '{"JAVA_OPTS": "-Xmx1g"}'}).items())
    assert not is_own_default("buckets", "16")


def test_the_heap_grows_and_workers_are_spoken_with_as_spark_does(tmp_path: Path) -> None:
    told = session._jvm("local[2]", tmp_path, "2g", (), session.LocalSession(False, False))
    assert not any("Xms" in value for value in told.values())
    assert session._SOCKETS not in told
