"""The engine's own report of its batches, which may come after the commit that ended the trial."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from streamgauge.core.engine_reports import BatchProgress, OperatorCounts
from streamgauge.trial import conclusion
from streamgauge.trial.conclusion import engine_report
from tests.unit.helpers_trials import done_of


class SlowReports:
    """A test bed whose engine reports its last batch at the n-th request only."""

    def __init__(self, numbers: list[int], query: str, at: int) -> None:
        self._numbers, self._query, self._at, self.requests = numbers, query, at, 0
        self.engine = SimpleNamespace(
            batch_progress=self._progress, operator_row_counts=lambda timeout_s: OperatorCounts()
        )

    def _progress(self, timeout_s: float) -> list[BatchProgress]:
        self.requests += 1
        numbers = self._numbers if self.requests >= self._at else self._numbers[:-1]
        return [BatchProgress(query=self._query, batch=number, start_us=0, late_rows=number) for number in numbers]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conclusion, "LATE_POLL_S", 0.0)


@pytest.mark.parametrize(("drained", "requests"), [(True, 3), (False, 1)])
def test_the_report_of_the_last_batch_is_awaited(make: Any, drained: bool, requests: int) -> None:
    """Rows that it dropped as late would else be called missing without a reason."""
    record = done_of(make)
    record.drained = drained
    commits = record.trial_log.commits
    testbed: Any = SlowReports(sorted(commit.batch for commit in commits), commits[0].query, at=3)
    report = engine_report(testbed, record)
    assert testbed.requests == requests
    assert (report.progress[-1].batch == commits[-1].batch) is drained


def test_an_engine_without_reports_is_not_awaited(make: Any) -> None:
    record = done_of(make)
    record.drained = True
    testbed: Any = SlowReports([], "", at=1)
    assert engine_report(testbed, record).progress == []
    assert testbed.requests == 1


def test_a_report_that_never_comes_ends_the_wait(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conclusion, "LAST_BATCH_S", 0.0)
    record = done_of(make)
    record.drained = True
    commits = record.trial_log.commits
    testbed: Any = SlowReports(sorted(commit.batch for commit in commits), commits[0].query, at=1000)
    assert engine_report(testbed, record).progress[-1].batch == commits[-1].batch - 1
