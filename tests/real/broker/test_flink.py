"""Flink over a real broker: right answers, and an end that is named. The conformance suite (long) has all its nodes."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest

from streamgauge.results.codes import Cause
from tests.helpers_broker_trials import WINDOW, InMidTrial, check_answers, require_jars, started, trial

pytestmark = [pytest.mark.broker, pytest.mark.process]


@pytest.fixture(autouse=True, scope="module")
def jars() -> None:
    require_jars("flink")


def test_windows_over_two_partitions_are_right(tmp_path: Path) -> None:
    """Every event is read once, by what its group has committed."""
    with started(tmp_path, "windowed_aggregation", "2k", "flink", partitions=2, **WINDOW) as (
        resolved,
        testbed,
        folder,
    ):
        judged = trial(resolved, testbed, folder)
        assert testbed.pids("sut")
    check_answers(judged, 1000)
    assert any("progress is that of the committed offsets" in note for note in judged.result.notes)


def test_a_jvm_that_is_killed_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    with started(tmp_path, "identity", "1k", "flink") as (resolved, testbed, folder):
        (pid,) = testbed.pids("sut")
        scratch = Path(psutil.Process(pid).cwd())
        judged = trial(resolved, testbed, folder, on_progress=InMidTrial(lambda: os.kill(pid, signal.SIGKILL)))
    assert Cause.SUT_DIED in {check.code for check in judged.result.verdict.checks}
    assert "the JVM of flink was killed by signal 9" in judged.result.verdict.sentence
    assert not scratch.exists()
    assert not psutil.pid_exists(pid)
