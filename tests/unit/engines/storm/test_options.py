"""What Storm's options set."""

import pytest

from streamgauge.config.options_and_settings import build
from streamgauge.core.plugin_options import IDIOMATIC
from streamgauge.engines.storm.options import CAPABILITIES, configuration
from streamgauge.preflight.validate import check


def test_times_are_passed_in_milliseconds() -> None:
    assert configuration({"watermark_interval": "2s"})["streamgauge.watermark.ms"] == "2000"
    assert configuration({"ackers": "0"})["topology.acker.executors"] == "0"


def test_storms_own_windows_let_all_their_tuples_be_on_their_way() -> None:
    own, storms = configuration({}), configuration({"windows": "storm"})
    assert int(own["topology.max.spout.pending"]) < int(storms["topology.max.spout.pending"])
    # Storm compares a window's microseconds, as milliseconds, with it.
    assert int(storms["topology.message.timeout.secs"]) * 1000 < 2**31
    assert configuration({"windows": "storm", "pending": "5"})["topology.max.spout.pending"] == "5"


@pytest.mark.parametrize(
    ("options", "unseen_s"), [({}, 1.0), ({"commit_interval": "9s"}, 9.0), ({"windows": "storm"}, 13.0)]
)
def test_storms_own_windows_show_that_a_tuple_was_read_when_the_next_one_closes(
    options: dict[str, str], unseen_s: float
) -> None:
    """An overload trial that waited for three seconds of them drained nothing."""
    values = {"workload": "windowed_aggregation", "engine": "storm", "transport": "kafka", "options": options}
    assert check(build(values)).unseen_s == unseen_s
    longer = check(build(values | {"parameters": {"range": "30s", "slide": "10s"}}))
    assert longer.queue_s > longer.unseen_s  # or the queue would be full before the first tuple is acknowledged


def test_idiomatic_has_the_values_of_storm() -> None:
    own = configuration(CAPABILITIES.profiles[IDIOMATIC].options)
    assert own["topology.bolt.wait.progressive.level2.count"] == "1000"
