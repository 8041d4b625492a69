"""The backlog of a trial made by rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from streamgauge.core.clock import US
from streamgauge.metrics.summary.backlog import backlog_of

START = 1_700_000_000 * US


def test_the_backlog_of_a_steady_trial(make: Any) -> None:
    """Peaks of a second of the rate, no slope; at the span's end what came since the last read."""
    backlog = backlog_of(make.story(read_after_us=5000).record())
    assert (backlog.max, backlog.max_s) == (1005, pytest.approx(1.005))
    assert backlog.slope_per_s == pytest.approx(0, abs=1e-6)
    assert backlog.end == 1000


def test_a_growing_backlog_has_a_slope(make: Any) -> None:
    """5 % slower than the plan: a sample each 1.05 s, higher by 50 events."""
    backlog = backlog_of(make.story(growth_us=50_000).record())
    assert backlog.slope_per_s == pytest.approx(50 / 1.05, rel=1e-3)


def test_an_engine_that_never_read_has_everything_as_backlog(make: Any) -> None:
    """No delivery, no sample; what was due is the backlog."""
    record = make.story().record()
    record.trial_log.deliveries = [[], []]
    backlog = backlog_of(record)
    assert (backlog.max, backlog.end, backlog.slope_per_s) == (15_000, 15_000, 0.0)


def test_the_backlog_of_an_engine_that_stopped_is_largest_at_the_end(make: Any) -> None:
    """Peaks are sampled at deliveries, and the last of those came long before: what waits at the end is more."""
    record = make.story().record()
    record.trial_log.deliveries = [
        [part for part in log if part.to_us <= START + 8 * US] for log in record.trial_log.deliveries
    ]
    backlog = backlog_of(record)
    assert (backlog.max, backlog.end) == (backlog.end, 7000)


def test_slides_are_counted_where_their_windows_were_delivered(make: Any) -> None:
    """By the results, not by what was read: windows of 4 s whose results come a batch later."""
    record = make.story().record()
    commits = record.trial_log.commits
    record.trial_log.commits = [
        replace(commit, frontier_us=(commit.frontier_us - US) // (4 * US) * 4 * US) for commit in commits
    ]
    (log,) = record.trial_log.by_query()
    work = log.batch_work(4 * US)
    assert work.slides.tolist() == [float(end > START + 2 * US and end % (4 * US) == 2 * US) for end in work.end_us]
    assert not log.batch_work().slides.any()
