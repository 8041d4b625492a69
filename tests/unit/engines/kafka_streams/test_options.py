"""What the options of Kafka Streams set, and how long its results wait."""

from dataclasses import replace

import pytest

from streamgauge.conformance.cases import CASES
from streamgauge.core.plugin_options import IDIOMATIC
from streamgauge.dataflow.nodes import WindowAggregate
from streamgauge.engines.kafka_streams.options import CAPABILITIES, configuration
from streamgauge.engines.kafka_streams.plugin import KafkaStreamsPlugin
from streamgauge.engines.spi import StartRequest

ONE = StartRequest(CASES["hopping window"].flow, {}, None, "common", transport="kafka", partitions=1)


def test_idiomatic_has_the_values_of_kafka_streams_and_both_commit_each_second() -> None:
    own = configuration(CAPABILITIES.profiles[IDIOMATIC].options, 1)
    assert own["dsl.store.suppliers.class"].endswith("RocksDBDslStoreSuppliers")
    assert own["__emit.interval.ms.kstreams.windowed.aggregation__"] == "1000"
    assert own["commit.interval.ms"] == configuration({}, 1)["commit.interval.ms"] == "1000"


def test_windows_wait_for_late_rows_of_other_partitions() -> None:
    """Each operator that waits adds the delay, which is as long as the user says."""
    plugin, several = KafkaStreamsPlugin(), replace(ONE, partitions=4)
    assert plugin.watermark_delay_us(ONE) == 0
    assert plugin.watermark_delay_us(several) == 2_000_000
    assert plugin.watermark_delay_us(replace(several, flow=CASES["top"].flow)) == 4_000_000
    assert plugin.watermark_delay_us(replace(several, options={"watermark_delay": "300ms"})) == 300_000
    assert configuration({}, 4)["streamgauge.delay.us"] == "2000000"


def test_closed_windows_are_looked_for_at_least_each_second() -> None:
    """Later they would have left their store."""
    plugin = KafkaStreamsPlugin()
    assert list(plugin.option_problems({"emit_interval": "1s"})) == []
    (problem,) = plugin.option_problems({"emit_interval": "1.1s"})
    assert problem.setting == "option emit_interval"


def test_windows_of_windows_close_a_slide_later() -> None:
    """Only the next results of the inner ones show that no more come."""
    outer = CASES["aggregate of aggregate"].flow.sinks[0].input
    assert isinstance(outer, WindowAggregate)
    assert KafkaStreamsPlugin().closing_delay_us(outer) == 1_000_000
    assert KafkaStreamsPlugin().closing_delay_us(CASES["hopping window"].flow.sinks[0].input) == 0


@pytest.mark.parametrize(
    ("case", "commits"),
    [
        ("where", 1),
        ("hopping window", 2),
        ("running aggregate", 2),
        ("aggregate of aggregate", 3),
        ("interval join", 3),
    ],
)
def test_progress_is_seen_after_a_commit_for_each_topic(case: str, commits: int) -> None:
    """The input's, and those of the job's own."""
    request, plugin = replace(ONE, flow=CASES[case].flow), KafkaStreamsPlugin()
    assert plugin.unseen_us(request) == commits * 1_000_000
    assert plugin.unseen_us(replace(request, options={"commit_interval": "200ms"})) == commits * 200_000
