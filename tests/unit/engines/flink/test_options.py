"""What Flink's options set, and where a restart goes on."""

from pathlib import Path

import pytest

from streamgauge.config.experiment import build
from streamgauge.core.plugin_options import IDIOMATIC
from streamgauge.engines.flink.engine import FlinkEngine
from streamgauge.engines.flink.options import CAPABILITIES, configuration
from streamgauge.preflight.settings_checks import check


def test_times_are_passed_with_their_unit() -> None:
    """A bare number is seconds here, and milliseconds in Flink's own settings."""
    assert configuration({"checkpoint_interval": "2"})["execution.checkpointing.interval"] == "2000 ms"
    assert configuration({"buffer_timeout": "0.5s"})["execution.buffer-timeout.interval"] == "500 ms"


@pytest.mark.parametrize(("options", "unseen_s"), [({}, 1.0), ({"checkpoint_interval": "7s"}, 7.0)])
def test_a_checkpoint_shows_what_was_read(options: dict[str, str], unseen_s: float) -> None:
    values = {"workload": "filter", "engine": "flink", "transport": "kafka", "options": options}
    assert check(build(values)).unseen_s == unseen_s


def test_idiomatic_has_the_values_of_flink() -> None:
    settings = configuration(CAPABILITIES.profiles[IDIOMATIC].options)
    assert settings["execution.buffer-timeout.interval"] == "100 ms"
    assert settings["pipeline.auto-watermark-interval"] == "200 ms"
    assert settings["pipeline.object-reuse"] == "false"


def test_everything_listens_on_loopback() -> None:
    hosts = {name: value for name, value in configuration({}).items() if "host" in name or "address" in name}
    assert len(hosts) == 4
    assert set(hosts.values()) == {"127.0.0.1"}


def test_the_latest_whole_checkpoint_is_where_a_restart_goes_on(tmp_path: Path) -> None:
    assert FlinkEngine().latest_state(tmp_path) is None
    for number in (1, 2):
        (tmp_path / "checkpoints" / "job" / f"chk-{number}").mkdir(parents=True)
    (tmp_path / "checkpoints" / "job" / "chk-1" / "_metadata").touch()
    assert FlinkEngine().latest_state(tmp_path) == (tmp_path / "checkpoints" / "job" / "chk-1").as_uri()
