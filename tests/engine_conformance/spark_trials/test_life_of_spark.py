"""Trials on a Spark that stays, the death of Spark, and starts that fail."""

import json
import signal
from collections import Counter
from pathlib import Path

import psutil
import pytest

from streamgauge.core.errors import EngineError
from streamgauge.core.trial import TrialSnapshot
from streamgauge.metrics.records import RUNNER
from streamgauge.system.child_processes import is_running, send_signal, wait_until
from tests.engine_conformance.spark_trials.helpers_spark_trials import check_path, lost_by_count, started
from tests.helpers_broker_trials import check_results
from tests.helpers_verdicts import sentence_against

pytestmark = pytest.mark.spark


def test_a_warm_rig_carries_trials_until_spark_is_killed(tmp_path: Path) -> None:
    """A verified trial, whose batches read at most so many events; in the second on the same Spark it is killed:
    `connected` fails, and nothing is left.
    """
    with started(tmp_path, "identity", "20k", {}, {"max_per_trigger": "20000"}) as running:
        judged = running.trial(1)
        events: Counter[int] = Counter()
        for part in judged.record.trial_log.all_deliveries():
            events[part.batch] += part.events
        assert 0 < max(events.values()) <= 20_000
        assert lost_by_count(running, judged) == {0}
        check_results(judged, 90_000)
        check_path(judged)
        pids = running.testbed.pids("sut")
        assert len(pids) >= 2

        def kill(shown: TrialSnapshot) -> None:
            if shown.elapsed_s > 5:
                send_signal(signal.SIGKILL, pids[:1])

        judged = running.trial(2, kill)
        verdict = judged.result.verdict
        assert "-9" in sentence_against(verdict, "connected")
        trial = running.folder.trials()[1]
        assert trial.read_result() == judged.result
        assert json.loads((trial.path / "result.json").read_text())["verdict"]["value"] == verdict.value
        driver = [pid for name, role, pid in running.testbed.processes() if role == "driver" and name != RUNNER]
        assert len(driver) == 3
    assert wait_until(lambda: not any(map(is_running, [*pids, *driver])), 20)


def test_a_start_that_fails_gives_sparks_own_reason(tmp_path: Path) -> None:
    """A few lines that name the cause, the file with the rest, and no process left behind."""
    options, reason = {"spark.serializer": "no.such.Serializer"}, "no.such.Serializer"
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    with pytest.raises(EngineError) as caught, started(tmp_path, "identity", "20k", {}, options):
        pass
    lines = str(caught.value).splitlines()
    assert reason in str(caught.value)
    assert len(lines) <= 4
    assert "whole log:" in lines[-1]
    assert caught.value.log is not None
    assert Path(caught.value.log).exists()
    assert "Traceback" not in str(caught.value)

    def left() -> set[int]:
        return {child.pid for child in psutil.Process().children(recursive=True)} - before

    assert wait_until(lambda: not any(map(is_running, left())), 20)
