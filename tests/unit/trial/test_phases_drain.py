"""How long the end of a trial, and the backlog between trials, is waited for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from streamgauge.core.clock import US
from streamgauge.engines.spi import EngineStatus
from streamgauge.metrics.trial_log import TrialLog
from streamgauge.trial import phases
from streamgauge.trial.phases import drain_backlog
from tests.unit.trial.helpers_phases import SPANS, START, FakeTestBed, conductor


def test_an_engine_that_never_finishes_is_waited_for_so_long(testbed: FakeTestBed) -> None:
    """After the deadline the trial ends undrained; the deadline is what missing results are measured against."""
    testbed.story.commit_after_us = 10**12
    record = conductor(testbed, drain_s=7.0).conduct()
    assert not record.drained
    assert testbed.requests_named("all sent") == [("all sent", False)]
    assert SPANS.end_us + 7 * US <= record.deadline_us <= SPANS.end_us + 8 * US


def test_between_trials_the_backlog_is_drained(testbed: FakeTestBed) -> None:
    """Generators reach equally far; then all that was offered is committed, and the queues forget it."""
    testbed.until_us = START + 6 * US
    trial_log, fake = TrialLog(testbed.story.plan), testbed
    testbed.clock.now = START + 6 * US
    assert drain_backlog(fake, trial_log, 30.0)
    assert testbed.requests[0][0] == "level"
    assert trial_log.committed_until() == START + 6 * US
    assert testbed.requests_named("commit")


def test_a_backlog_that_stays_is_given_up_on(testbed: FakeTestBed) -> None:
    """The caller takes a fresh test bed then."""
    testbed.until_us = START + 6 * US
    testbed.story.commit_after_us = 10**12
    begin = testbed.clock.now
    assert not drain_backlog(testbed, TrialLog(testbed.story.plan), 30.0)
    assert 30 * US <= testbed.clock.now - begin <= 31 * US


@pytest.mark.parametrize(("later_s", "interval_s"), [(2, 0.0), (10, 10.0)])
def test_windows_that_close_one_batch_late_are_waited_for(
    testbed: FakeTestBed, later_s: int, interval_s: float
) -> None:
    """The batch after the one that read the last input closes its windows: the drain ends with that one. One of a 10 s
    trigger is no less on its way than one of a short trigger.
    """
    plain, last = testbed.batch, 19

    def with_closing(number: int) -> Any:
        tick = plain(number)
        if number != last:
            return tick
        closing = testbed.make.commit(last + 1, tick.commits[-1].committed_us + later_s * US)
        return replace(tick, commits=[*tick.commits, closing])

    testbed.batch = with_closing  # type: ignore[method-assign]
    record = conductor(testbed, closes_late=("",), interval_s=interval_s).conduct()
    assert record.drained
    assert record.trial_log.commits[-1].batch == last + 1


def test_an_engine_that_closes_at_once_is_not_waited_for_long(testbed: FakeTestBed) -> None:
    """No batch follows the last input's: after a while that is taken for the end."""
    record = conductor(testbed, closes_late=("",)).conduct()
    assert record.drained
    assert SPANS.end_us + phases.CLOSING_US <= record.deadline_us <= SPANS.end_us + phases.CLOSING_US + 2 * US


def test_a_batch_that_closes_windows_may_take_as_long_as_others_took(testbed: FakeTestBed) -> None:
    """An engine whose batches took up to eight seconds is not given up on after five."""
    plain, last, held_us = testbed.batch, 19, START + 19 * US

    def with_closing(number: int) -> Any:
        tick = plain(number)
        if 10 <= number < last - 1:  # what these batches read comes in one piece
            return replace(tick, commits=[replace(commit, committed_us=held_us) for commit in tick.commits])
        if number != last:
            return tick
        closing = testbed.make.commit(last + 1, tick.commits[-1].committed_us + 7 * US)
        return replace(tick, commits=[*tick.commits, closing])

    testbed.batch = with_closing  # type: ignore[method-assign]
    record = conductor(testbed, closes_late=("",)).conduct()
    assert record.drained
    assert record.trial_log.commits[-1].batch == last + 1


def test_a_batch_that_closes_windows_may_take_as_long_as_the_engine_works_on_it(testbed: FakeTestBed) -> None:
    """Longer than any before it, as beside the first batches of other queries."""
    plain, last, held_us = testbed.batch, 19, START + 28 * US

    def with_closing(number: int) -> Any:
        tick = plain(number)
        if number != last:
            return tick
        return replace(tick, commits=[*tick.commits, testbed.make.commit(last + 1, held_us)])

    def working(now_us: int) -> None:
        testbed.status = EngineStatus(True, busy=("other", "") if now_us < held_us else ("other",))

    testbed.batch, testbed.on_tick = with_closing, working  # type: ignore[method-assign]
    record = conductor(testbed, closes_late=("",)).conduct()
    assert record.drained
    assert record.trial_log.commits[-1].batch == last + 1


def test_the_time_to_drain_grows_with_the_interval(testbed: FakeTestBed) -> None:
    """A trigger of 30 s reads the last input only then, and closes its windows as much later."""
    testbed.story.commit_after_us = 100 * US
    assert conductor(testbed, drain_s=60.0, interval_s=30.0).conduct().drained
    assert testbed.requests_named("all sent") == [("all sent", True)]


@pytest.mark.parametrize(("apart", "waited_s"), [(False, 0), (True, 7)])
def test_results_that_come_after_their_commit_are_waited_for(testbed: FakeTestBed, apart: bool, waited_s: int) -> None:
    """Those of the span were up to 8 s late, so its last ones may be 12 s late; the plan ends 5 s after the span."""
    plain = testbed.batch

    def late(number: int) -> Any:
        tick = plain(number)
        return replace(tick, commits=[replace(commit, latency_us_p99=8.0 * US) for commit in tick.commits])

    testbed.batch = late  # type: ignore[method-assign]
    record = conductor(testbed, results_apart=apart).conduct()
    assert record.drained
    assert SPANS.end_us + waited_s * US <= record.deadline_us <= SPANS.end_us + (waited_s + 1) * US
