"""An engine, killed and started again in the middle of a trial."""

from collections.abc import Callable

from streamgauge.core.trial import TrialSnapshot
from streamgauge.harness.start_processes import TestBed
from streamgauge.metrics.records import Tick
from streamgauge.trial.trial_result import TrialResult

RESTARTED_S = 240.0
"""So long may results be waited for: of a Spark that was killed in its first batches, on a slow machine."""


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
        reported = testbed.tick

        def tick() -> Tick:
            found = reported()
            self._recorded |= {commit.sink for commit in found.commits}
            if self._recorded >= set(testbed.sinks) and testbed.engine_can_restart():
                self._commits_since -= len(found.commits)
            return found

        def kill(_: TrialSnapshot) -> None:
            recorded = self._recorded >= set(testbed.sinks) and self._commits_since <= 0
            if not self.killed_us and recorded and testbed.engine_can_restart():
                self.killed_us = testbed.clock.now_us()
                testbed.restart_engine()

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
