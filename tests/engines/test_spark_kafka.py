"""The whole path over a real broker and a real Spark: every answer verified, across a restart too; a dead broker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.engines.over_a_broker import WINDOW, check_answers, require_jars, started, trial
from tests.engines.restarting import Restart

from streamgauge.errors import InputError
from streamgauge.experiment import build
from streamgauge.report.terminal import TrialSnapshot
from streamgauge.run.check import check


@pytest.fixture(scope="module")
def jars() -> None:
    require_jars("spark")


@pytest.mark.spark
@pytest.mark.broker
@pytest.mark.usefixtures("jars")
def test_rows_are_verified_trial_after_trial(tmp_path: Path) -> None:
    """On one Spark and one broker; no latency counts from a hand-out, which nobody saw."""
    with started(tmp_path, "identity", "10k") as (ready, rig, folder):
        for number in (1, 2):
            judged = trial(ready, rig, folder, number)
            check_answers(judged, 60_000)
            latency = judged.result.latency
            assert latency.event_time_us is not None
            assert latency.event_time_us.min > 0  # type: ignore[operator]
            assert latency.processing_time_us is None
    assert judged.result.settings["source"].startswith("Spark's own for Kafka: ")


@pytest.mark.spark
@pytest.mark.broker
@pytest.mark.usefixtures("jars")
@pytest.mark.parametrize(
    ("workload", "rate", "parameters", "rows_least"),
    [
        ("windowed_aggregation", "20k", WINDOW, 1500),
        ("log_processing", "3k", {"lines_per_second": "20"}, 100),
    ],
    ids=["windows", "updates of several sinks"],
)
def test_answers_are_right_across_a_restart(
    tmp_path: Path, restart: Restart, workload: str, rate: str, parameters: dict[str, str], rows_least: int
) -> None:
    """Spark is killed in mid-trial, and begins the batch that it was at anew: what it had sent of that counts once."""
    with started(tmp_path, workload, rate, **parameters) as (ready, rig, folder):
        judged = trial(ready, rig, folder, on_progress=restart.once(rig))
    restart.check(judged)
    check_answers(judged, rows_least)


@pytest.mark.spark
@pytest.mark.broker
@pytest.mark.usefixtures("jars")
@pytest.mark.parametrize(("workload", "rows_least"), [("identity", 60_000), ("windowed_aggregation", 1500)])
def test_two_partitions_are_verified(tmp_path: Path, workload: str, rows_least: int) -> None:
    """They are read at no common event time, and the watermark waits for the one that lags."""
    parameters = WINDOW if workload == "windowed_aggregation" else {}
    with started(tmp_path, workload, "20k", generators=2, **parameters) as (ready, rig, folder):
        judged = trial(ready, rig, folder)
    check_answers(judged, rows_least)
    assert judged.result.settings["watermark_delay"] == "1 second (auto)"
    assert judged.result.driver is not None
    assert judged.result.driver.read_skew_us_max < 1_000_000


@pytest.mark.spark
@pytest.mark.broker
@pytest.mark.usefixtures("jars")
def test_a_broker_that_dies_ends_the_trial(tmp_path: Path) -> None:
    """As what it is, the driver's failure, and at once; nothing hangs, and no process is left."""
    with started(tmp_path, "identity", "10k") as (ready, rig, folder):
        killed: list[float] = []

        def once(shown: TrialSnapshot) -> None:
            if shown.elapsed_s > 3 and not killed:
                killed.append(shown.elapsed_s)
                rig._carrier._broker.kill()  # type: ignore[union-attr, attr-defined]

        judged = trial(ready, rig, folder, on_progress=once)
        assert killed
        assert judged.result.verdict.value == "invalid"
        assert "the broker ended" in judged.done.driver_failed


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"workload": "count", "load": {"rate": "1k", "generators": 2}},
            r"load\.generators: must be 1 for updates and firsts over a broker",
        ),
        ({"options": {"watermark_delay": "soon"}}, "option watermark_delay: must be auto, or a number of"),
        ({"port": 9000}, "port: is not for the transport kafka"),
        ({"workload": "spike_detection"}, r"transport: carries no processes with keys yet \(moving_average\)"),
        (
            {"workload": "windowed_join", "options": {"lowering.join": "packed"}},
            r"lowering\.join: must not be packed with the transport kafka",
        ),
        ({"engine": "known"}, "transport: is none that known can read"),
    ],
)
def test_what_kafka_cannot_carry_yet_is_refused(changes: dict[str, Any], said: str) -> None:
    """Before anything is started, with the way out."""
    with pytest.raises(InputError, match=said):
        check(build({"workload": "identity", "transport": "kafka", **changes}))
