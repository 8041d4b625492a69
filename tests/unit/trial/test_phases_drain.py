"""How long the end of a trial, and the backlog between trials, is waited for."""

from dataclasses import replace
from typing import Any

import pytest

from streamgauge.core.clock import US
from streamgauge.engines.spi import EngineStatus
from streamgauge.metrics.trial_log import TrialLog
from streamgauge.trial import phases
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
    assert phases.drain_backlog(fake, trial_log, 30.0)
    assert testbed.requests[0][0] == "level"
    assert trial_log.committed_until() == START + 6 * US
    assert testbed.requests_named("commit")


def test_a_backlog_that_stays_is_given_up_on(testbed: FakeTestBed) -> None:
    """The caller takes a fresh test bed then."""
    testbed.until_us = START + 6 * US
    testbed.story.commit_after_us = 10**12
    begin = testbed.clock.now
    assert not phases.drain_backlog(testbed, TrialLog(testbed.story.plan), 30.0)
    assert 30 * US <= testbed.clock.now - begin <= 31 * US


LAST = 19


def closes_with(testbed: FakeTestBed, later_us: int, **more: Any) -> None:
    """The batch after the one that read the last input closes its windows, so much later; the drain ends with it."""
    testbed.replaced(
        lambda number, tick: (
            replace(tick, commits=[*tick.commits, closing(testbed, tick, later_us)]) if number == LAST else tick
        )
    )
    record = conductor(testbed, closes_late=("",), **more).conduct()
    assert (record.drained, record.trial_log.commits[-1].batch) == (True, LAST + 1)


def closing(testbed: FakeTestBed, tick: Any, later_us: int) -> Any:
    return testbed.make.commit(LAST + 1, tick.commits[-1].committed_us + later_us)


@pytest.mark.parametrize(("later_s", "interval_s"), [(2, 0.0), (10, 10.0)])
def test_windows_that_close_one_batch_late_are_waited_for(
    testbed: FakeTestBed, later_s: int, interval_s: float
) -> None:
    """One of a 10 s trigger is no less on its way than one of a short trigger."""
    closes_with(testbed, later_s * US, interval_s=interval_s)


def test_an_engine_that_closes_at_once_is_not_waited_for_long(testbed: FakeTestBed) -> None:
    """No batch follows the last input's: after a while that is taken for the end."""
    record = conductor(testbed, closes_late=("",)).conduct()
    assert record.drained
    assert SPANS.end_us + phases.CLOSING_US <= record.deadline_us <= SPANS.end_us + phases.CLOSING_US + 2 * US


def test_a_batch_that_closes_windows_may_take_as_long_as_others_took(testbed: FakeTestBed) -> None:
    """An engine whose batches took up to eight seconds is not given up on after five."""
    held_us = START + 19 * US

    def in_one_piece(number: int, tick: Any) -> Any:
        held = 10 <= number < LAST - 1
        return replace(tick, commits=[replace(one, committed_us=held_us) for one in tick.commits]) if held else tick

    testbed.replaced(in_one_piece)
    closes_with(testbed, 7 * US)


def test_a_batch_that_closes_windows_may_take_as_long_as_the_engine_works_on_it(testbed: FakeTestBed) -> None:
    """Longer than any before it, as beside the first batches of other queries."""
    held_us = START + 28 * US
    busy, idle = EngineStatus(True, busy=("other", "")), EngineStatus(True, busy=("other",))
    testbed.on_tick = lambda now_us: vars(testbed).update(status=busy if now_us < held_us else idle)
    closes_with(testbed, held_us - testbed.batch(LAST).commits[-1].committed_us)


def test_the_time_to_drain_grows_with_the_interval(testbed: FakeTestBed) -> None:
    """A trigger of 30 s reads the last input only then, and closes its windows as much later."""
    testbed.story.commit_after_us = 100 * US
    assert conductor(testbed, drain_s=60.0, interval_s=30.0).conduct().drained
    assert testbed.requests_named("all sent") == [("all sent", True)]


@pytest.mark.parametrize(("apart", "waited_s"), [(False, 0), (True, 7)])
def test_results_that_come_after_their_commit_are_waited_for(testbed: FakeTestBed, apart: bool, waited_s: int) -> None:
    """Those of the span were up to 8 s late, so its last ones may be 12 s late; the plan ends 5 s after the span."""
    testbed.replaced(
        lambda _, tick: replace(tick, commits=[replace(one, latency_us_p99=8.0 * US) for one in tick.commits])
    )
    record = conductor(testbed, results_apart=apart).conduct()
    assert record.drained
    assert SPANS.end_us + waited_s * US <= record.deadline_us <= SPANS.end_us + (waited_s + 1) * US
