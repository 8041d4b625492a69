"""The whole path over a real broker and Spark in real-time mode: rows, updates, and windows so far, all verified."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.engines.over_a_broker import WINDOW, check_answers, require_jars, started, trial

from streamgauge.run.trial import Judged
from streamgauge.workloads.purchases import PRICE_MAX

ENGINE = "spark-rtm"


@pytest.fixture(scope="module")
def jars() -> None:
    require_jars(ENGINE)


def median_us(judged: Judged) -> float:
    latency = judged.result.latency.event_time_us
    assert latency is not None
    assert latency.p50 is not None
    return latency.p50


@pytest.mark.spark
@pytest.mark.broker
@pytest.mark.usefixtures("jars")
def test_rows_are_verified_trial_after_trial(tmp_path: Path) -> None:
    """On one query that never ends; rows come long before the moment at which it keeps how far it is."""
    with started(tmp_path, "identity", "5k", ENGINE) as (ready, rig, folder):
        for number in (1, 2):
            judged = trial(ready, rig, folder, number)
            check_answers(judged, 30_000)
            assert median_us(judged) < 5e6
    assert "linger.ms=2" in judged.result.settings["sink"]
    assert judged.result.settings["trigger"] == "1 minute (auto)"
    assert "Real-time Mode" in (folder.path / "engine" / "spark.log").read_text()
    assert {sink.kind for sink in judged.result.sinks} == {"row"}


@pytest.mark.spark
@pytest.mark.broker
@pytest.mark.usefixtures("jars")
@pytest.mark.parametrize(
    ("workload", "parameters", "rows_least"),
    [("count", {"packs": "20"}, 3000), ("windowed_aggregation", WINDOW, 3000)],
    ids=["updates", "windows so far"],
)
def test_updates_are_verified(tmp_path: Path, workload: str, parameters: dict[str, str], rows_least: int) -> None:
    """Each is the value after all events of its key, or window, up to the one that made it."""
    with started(tmp_path, workload, "2k", ENGINE, **parameters) as (ready, rig, folder):
        judged = trial(ready, rig, folder)
    check_answers(judged, rows_least)
    assert {sink.kind for sink in judged.result.sinks} == {"update"}


@pytest.mark.spark
@pytest.mark.broker
@pytest.mark.usefixtures("jars")
def test_rows_that_leave_nothing_are_known_to_be_read(tmp_path: Path) -> None:
    """A filter lets nothing through: how far it has read is known when it keeps it, long before the queue is full."""
    with started(tmp_path, "filter", "2k", ENGINE, bound="15s", above=str(PRICE_MAX)) as (ready, rig, folder):
        judged = trial(ready, rig, folder)
    assert judged.done.drained
    assert not judged.done.journal.overflowed
    assert judged.result.settings["trigger"] == "5 seconds (auto)"
