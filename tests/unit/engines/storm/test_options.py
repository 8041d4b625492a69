"""What Storm's options set."""

from __future__ import annotations

import pytest

from streamgauge.core.plugin_options import IDIOMATIC
from streamgauge.engines.storm.options import CAPABILITIES, configuration
from streamgauge.engines.storm.plugin import StormPlugin


def test_times_are_passed_in_milliseconds() -> None:
    assert configuration({"flush_interval": "2s"})["topology.flush.tuple.freq.millis"] == "2000"
    assert configuration({"ackers": "0"})["topology.acker.executors"] == "0"


def test_idiomatic_has_the_values_of_storm() -> None:
    own = configuration(CAPABILITIES.profiles[IDIOMATIC].options)
    assert (own["topology.producer.batch.size"], own["topology.flush.tuple.freq.millis"]) == ("1", "1")


@pytest.mark.parametrize(
    ("name", "value"), [("flush_interval", "0"), ("ackers", "9"), ("pending", "many"), ("batch", "0")]
)
def test_what_cannot_be_read_is_refused(name: str, value: str) -> None:
    (problem,) = StormPlugin().option_problems({name: value})
    assert problem.setting == f"option {name}"
    assert list(StormPlugin().option_problems({})) == []
