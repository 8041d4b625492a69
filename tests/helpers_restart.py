"""An engine, killed and started again in the middle of a trial."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from streamgauge.core.trial import TrialSnapshot
from streamgauge.engines.spark.engine import DSTREAM, MAIN, SparkEngine
from streamgauge.engines.spi import Engine
from streamgauge.harness.testbed import TestBed
from streamgauge.metrics.records import Tick
from streamgauge.system.child_processes import Child
from streamgauge.trial.trial_result import TrialResult

START_S = 120.0
RESTARTED_S = 240.0
"""So long may results be waited for: of a Spark that was killed in its first batches, on a slow machine."""


def to_be_restarted(make: Callable[[], Engine]) -> Callable[[], Engine]:
    """Engines that keep what they were started with."""

    def made() -> Engine:
        engine = make()
        begin = engine.start

        def start(*arguments: Any) -> None:
            engine.start_again = lambda: begin(*arguments)  # type: ignore[attr-defined]
            begin(*arguments)

        engine.start = start  # type: ignore[method-assign, assignment]
        return engine

    return made


class Restart:
    """Kills an engine in the middle of a trial, and starts it again; Spark's queries from the checkpoints they left.

    Not before every query has committed a batch, by its checkpoint and by the recorder, who may hear of it later:
    killed earlier, it would have no state to come back to, or nothing of before would be known. `commits_since`: so
    many commits the recorder has to tell of after it.
    """

    def __init__(self, commits_since: int = 0) -> None:
        self.killed_us = 0
        self._commits_since = commits_since
        self._recorded: set[str] = set()

    def once(self, testbed: TestBed) -> Callable[[TrialSnapshot], None]:
        """To be called at every look of a trial, whose commits are seen as the test bed tells of them."""
        told = testbed.tick

        def tick() -> Tick:
            found = told()
            self._recorded |= {commit.sink for commit in found.commits}
            if self._recorded >= set(testbed.sinks) and _every_query_has_committed(testbed):
                self._commits_since -= len(found.commits)
            return found

        def kill(_: TrialSnapshot) -> None:
            recorded = self._recorded >= set(testbed.sinks) and self._commits_since <= 0
            if not self.killed_us and recorded and _every_query_has_committed(testbed):
                self.killed_us = testbed.clock.now_us()
                if isinstance(testbed.engine, SparkEngine):
                    _kill_and_start(testbed.engine)
                else:
                    _start_anew(testbed)

        testbed.tick = tick  # type: ignore[method-assign]
        return kill

    def check(self, judged: TrialResult) -> None:
        """Every sink has batches of before, and those that had not had everything by then have batches of after: one of
        them at least, or Spark was killed when all was done.
        """
        assert self.killed_us
        assert judged.record.engine_failed == ""
        commits = judged.record.trial_log.commits
        before = {commit.sink for commit in commits if commit.committed_us <= self.killed_us}
        assert before == set(judged.record.trial_log.sinks)
        assert any(commit.committed_us > self.killed_us for commit in commits)


def _every_query_has_committed(testbed: TestBed) -> bool:
    """By what stands in their checkpoints, if the engine has any."""
    engine = testbed.engine
    if not isinstance(engine, SparkEngine) or engine._mode is DSTREAM:
        return True
    assert engine._scratch is not None
    queries = [path for path in (engine._scratch.path / "checkpoint").iterdir() if path.is_dir()]
    return bool(queries) and all(_batches(query / "commits") for query in queries)


def _start_anew(testbed: TestBed) -> None:
    """By the engine's own start, which is all that an engine without checkpoints has."""
    for pid in testbed.engine.pids():
        psutil.Process(pid).kill()
    testbed.engine.stop()
    testbed.engine.start_again()  # type: ignore[attr-defined]


def _batches(commits: Path) -> list[Path]:
    return [path for path in commits.glob("*") if path.name.isdigit()]


def _kill_and_start(engine: SparkEngine) -> None:
    assert engine._child is not None
    assert engine._scratch is not None
    engine._child.kill()
    private, log = engine._scratch.path, engine._child.log
    environment = {"SPARK_HOME": str(private / "spark-home")}
    engine._child = Child("spark", MAIN, [str(private / "job.pkl")], log, None, environment)
    engine._child.ask("start", START_S)
