"""The whole path over a real broker and a real Spark: every answer verified, across a restart too; a dead broker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.engines.restarting import RESTARTED_S, Restart

from streamgauge.errors import InputError, MachineError
from streamgauge.events import Clock
from streamgauge.experiment import build
from streamgauge.report.store import RunFolder
from streamgauge.report.terminal import TrialSnapshot
from streamgauge.run.catalogue import require, start_of
from streamgauge.run.check import check
from streamgauge.run.ready import Ready
from streamgauge.run.rig import Rig
from streamgauge.run.trial import START_LEAD_US, Judged, TrialSettings, next_start, rig_settings, run_trial

DURATION_S = 6.0
WINDOW = {"range": "2s", "slide": "1s", "packs": "200"}


@pytest.fixture(scope="module")
def jars() -> None:
    """The broker's and Spark's own; without a repository, and where none are kept, nothing here can be tried."""
    try:
        require("spark", "kafka")
    except MachineError as error:
        pytest.skip(str(error))


def asked(workload: str, rate: str, **more: Any) -> Any:
    load = {"rate": rate, "warmup": "4s", "bound": "5m"}
    return build({"workload": workload, "transport": "kafka", "load": load, **more})


@contextmanager
def started(root: Path, workload: str, rate: str, **parameters: str) -> Iterator[tuple[Ready, Rig, RunFolder]]:
    ready = check(asked(workload, rate, parameters=parameters, out=str(root)))
    folder = RunFolder.create(root, workload, "spark", datetime.now(UTC))
    with Rig(rig_settings(ready), start_of("spark", None), folder.path, Clock.fixed_now()) as rig:
        rig.start(ready.plan(next_start(rig) - START_LEAD_US, ready.experiment.load.rate, 1.0))
        yield ready, rig, folder


def trial(ready: Ready, rig: Rig, folder: RunFolder, number: int = 1, on_progress: Any = lambda _: None) -> Judged:
    settings = TrialSettings(
        ready.experiment.load.rate, fresh=True, duration_s=DURATION_S, may_extend=False, drain_s=RESTARTED_S
    )
    return run_trial(ready, rig, folder.trial(number, datetime.now(UTC)), settings, on_progress=on_progress)


def check_answers(judged: Judged, rows_least: int) -> None:
    """Every result once, right, and every event read and committed once."""
    found = judged.result.verification
    assert found is not None
    assert judged.done.drained
    assert (found.judged, found.independent) == (True, True)
    assert (found.missing, found.extra, found.duplicate, found.wrong, found.late) == (0, 0, 0, 0, 0), found.examples
    assert found.matched == found.expected >= rows_least
    driver = judged.result.driver
    assert driver is not None
    assert driver.events_planned == driver.events_offered == driver.events_handed_out == driver.events_committed


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
        ({"load": {"rate": "1k", "generators": 2}}, r"load\.generators: must be 1 with the transport kafka"),
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
