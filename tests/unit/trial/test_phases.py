"""The conductor, on a test bed of words and a clock that moves only when the conductor sleeps."""

import signal
from functools import partial
from itertools import groupby, pairwise
from typing import Any
from unittest.mock import Mock

import pytest

from streamgauge.core.clock import US
from streamgauge.core.errors import DriverError
from streamgauge.core.trial import TrialSpans
from streamgauge.engines.spi import EngineStatus
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.trial.events import PhaseBegan
from streamgauge.trial.progress import snapshots
from tests.helpers_recording import append_and_return
from tests.unit.trial.helpers_phases import SPANS, START, FakeTestBed, conductor, extensions


def test_a_steady_trial_is_conducted_to_its_end(testbed: FakeTestBed) -> None:
    """Everything offered, read and committed; drained right after the plan's end; without a failure."""
    record = conductor(testbed).conduct()
    failures = (record.engine_failed, record.driver_failed, record.early_stop, record.interrupted)
    assert (failures, record.drained) == (("", "", "", False), True)
    assert record.trial_log.running.offered_events == record.trial_log.committed_events() == 20_000
    assert SPANS.end_us < record.deadline_us < SPANS.end_us + US
    assert testbed.requests_named("begin") == [("begin", SPANS.end_us, testbed.make.chunk_us, None)]
    assert len(testbed.requests_named("halt")) == 1
    assert (record.interim_analyses, record.spans, record.earlier_trials) == (1, SPANS, False)
    assert record.trial_log.background


def test_observers_see_phases(testbed: FakeTestBed) -> None:
    """Each phase begins once, also if the span is extended. Generators get the pace of an overload trial."""
    conductor(testbed, span_extension=extensions([2 * US]), pace_us=2 * US).conduct()
    assert testbed.requests_named("begin") == [("begin", SPANS.end_us, testbed.make.chunk_us, 2 * US)]
    began = [event.phase for event in testbed.events if isinstance(event, PhaseBegan)]
    assert began == ["warm-up", "measured", "tail", "drain"]


def test_progress_shows_a_phase_until_the_policy_ends_it(testbed: FakeTestBed) -> None:
    """At the planned end of an extended warm-up, progress does not show "measured" and then go back."""
    shown: list[tuple[str, int]] = []
    runner = conductor(testbed, warmup_extension=extensions([2 * US]))
    runner._observe = snapshots(lambda snapshot: shown.append((snapshot.phase, testbed.clock.now)))
    record = runner.conduct()
    assert [phase for phase, _ in groupby(phase for phase, _ in shown)] == ["warm-up", "measured", "tail", "drain"]
    last_us = max(now_us for phase, now_us in shown if phase == "warm-up")
    assert record.spans.measured_from_us <= last_us < record.spans.measured_from_us + US


def test_a_warm_up_goes_on_while_it_has_not_levelled_off(testbed: FakeTestBed) -> None:
    """Span, tail and end move along; generators are reported."""
    record = conductor(testbed, warmup_extension=extensions([2 * US, 2 * US])).conduct()
    assert (record.spans, record.drained) == (SPANS.later(4 * US), True)
    assert (record.prolonged_us, record.interim_analyses) == (4 * US, 1)
    assert record.prolonged_for == ("undecided", "undecided")
    assert testbed.requests_named("extend") == [("extend", SPANS.end_us + 2 * US), ("extend", SPANS.end_us + 4 * US)]


def test_a_warm_test_beds_trial_knows_that_it_is_not_the_first(testbed: FakeTestBed) -> None:
    """Results of the trial before may still come."""
    testbed.trials = 1
    assert conductor(testbed).conduct().earlier_trials


@pytest.mark.parametrize(("silent_from_s", "after_s"), [(9.0, 11.0), (-1.0, 20.0)])
@pytest.mark.parametrize("pace_us", [None, 2 * US])
def test_a_driver_that_offers_nothing_is_named_at_once(
    testbed: FakeTestBed, silent_from_s: float, after_s: float, pace_us: int | None
) -> None:
    """With and without a pace: two seconds after its last chunk, or twenty after the first one was due."""
    testbed.silent_from_us = START + round(silent_from_s * US)
    record = conductor(testbed, pace_us=pace_us).conduct()
    assert f"offered nothing to partition 0 since {max(silent_from_s, 0.0):.0f}." in record.driver_failed
    assert START + after_s * US - US < record.deadline_us < START + after_s * US + 2 * US
    assert (record.engine_failed, record.driver_silent) == ("", True)


@pytest.mark.parametrize("partition", [0, 1])
@pytest.mark.parametrize("pace_us", [None, 2 * US])
def test_one_silent_partition_is_named(testbed: FakeTestBed, partition: int, pace_us: int | None) -> None:
    """What waits in the other partition excuses nothing."""
    testbed.silent_from_us, testbed.silent = START + 9 * US, (partition,)
    testbed.waiting[1 - partition], testbed.waiting[partition] = 1, -1  # reads that were reported before their events
    assert f"to partition {partition} since 9." in conductor(testbed, pace_us=pace_us).conduct().driver_failed


def test_a_pace_waits_for_reads(testbed: FakeTestBed) -> None:
    """As long as so much of its events waits, a generator stands still for the engine; an open loop has no such excuse,
    and neither has one that waits for something else.
    """
    testbed.silent_from_us, testbed.waiting = START + 9 * US, [1, 1]
    record = conductor(testbed, pace_us=2 * US, drain_s=0.0).conduct()
    assert (record.driver_failed, record.held_back) == ("", True)
    for pace_us, testbed.paused in ((None, [True, True]), (2 * US, [False, True])):
        testbed.given_us, testbed.clock.now = 0, START - US // 2
        assert "to partition 0 since 9." in conductor(testbed, pace_us=pace_us, drain_s=0.0).conduct().driver_failed


def test_a_pace_leaves_the_generators_time_after_a_read(testbed: FakeTestBed) -> None:
    """A first batch may take long; the chunk after its read is offered only then."""
    testbed.silent_from_us, testbed.waiting = START + 9 * US, [1, 1]
    testbed.after(12, lambda: vars(testbed).update(waiting=[1, 0]))
    record = conductor(testbed, pace_us=2 * US, drain_s=0.0).conduct()
    assert START + 14 * US <= record.deadline_us < START + 15 * US
    assert "to partition 1 " in record.driver_failed


def test_progress_is_shown_twice_a_second(testbed: FakeTestBed) -> None:
    """Each look tells the view once; time moves on between."""
    seen: list[int] = []
    conductor(testbed, on_progress=lambda record: seen.append(testbed.clock.now)).conduct()
    assert 40 <= len(seen) <= 60
    assert all(b > a for a, b in pairwise(seen))


def test_an_undecided_trial_is_extended_and_measured_on(testbed: FakeTestBed) -> None:
    """The span and the plan's end move by what was requested, and the generators are reported."""
    record = conductor(testbed, span_extension=extensions([10 * US, 10 * US])).conduct()
    assert (record.interim_analyses, record.extended_for) == (3, ("undecided", "undecided"))
    assert record.spans == SPANS.longer(20 * US)
    assert testbed.requests_named("extend") == [("extend", SPANS.end_us + 10 * US), ("extend", SPANS.end_us + 20 * US)]
    assert (record.trial_log.running.offered_events, record.drained) == (40_000, True)


def test_the_policy_decides_on_an_extension_at_the_spans_end_not_before(testbed: FakeTestBed) -> None:
    """A look before the end would be one more chance to pass."""
    calls_us: list[int] = []
    conductor(testbed, span_extension=lambda record: calls_us.append(testbed.clock.now)).conduct()
    (call_us,) = calls_us
    assert SPANS.measured_to_us <= call_us < SPANS.measured_to_us + US


def test_a_hopeless_trial_ends_early(testbed: FakeTestBed) -> None:
    """With its reason, which observers see at once; the generators are halted, and nothing waits for results."""
    seen: list[str] = []
    early_stop = {"early_stop_reason": lambda _, now_us: "the queue is full" if now_us > START + 8 * US else None}
    record = conductor(testbed, on_progress=lambda record: seen.append(record.early_stop), **early_stop).conduct()
    assert (record.early_stop, record.drained) == ("the queue is full", False)
    assert seen[-2:] == ["", "the queue is full"]
    assert START + 8 * US < record.deadline_us < START + 9 * US
    assert len(testbed.requests_named("halt")) == 1


@pytest.mark.parametrize("full", [False, True])
def test_a_hopeless_trial_goes_on_if_it_may(testbed: FakeTestBed, full: bool) -> None:
    """To its end, with the reason. A full queue still ends it, since its generators offer nothing more."""

    def fill(record: Any) -> None:
        record.trial_log.overflowed = full and testbed.clock.now > START + 10 * US

    reason = {"early_stop_reason": lambda _, now_us: "it grows" if now_us > START + 8 * US else None}
    record = conductor(testbed, fill, stops_early=False, **reason).conduct()
    assert (record.hopeless, record.early_stop, record.drained) == ("it grows", "it grows" * full, not full)
    assert (record.deadline_us < START + 12 * US) is full


def test_the_tail_of_a_trial_that_failed_is_not_waited_for(testbed: FakeTestBed) -> None:
    """Decided once, at the span's end; a policy with nothing against the trial lets it go on."""
    calls_us: list[int] = []
    failed = {"tail_skip_reason": lambda _: append_and_return(calls_us, testbed.clock.now, "the backlog grew")}
    record = conductor(testbed, **failed).conduct()
    (call_us,) = calls_us
    assert record.early_stop == "the backlog grew"
    assert SPANS.measured_to_us <= call_us <= record.deadline_us < SPANS.end_us
    assert testbed.requests_named("halt")


def test_the_load_is_held_whenever_a_longer_trial_may_be_requested(testbed: FakeTestBed) -> None:
    """After the begin, a longer warm-up and an extension; where nothing more is requested the plan ends soon."""
    hold_us, longer = 30 * US, {"warmup_extension": extensions([2 * US]), "span_extension": extensions([10 * US])}
    conductor(testbed, hold_us=hold_us, **longer).conduct()
    assert testbed.requests_named("begin")[0][1] == SPANS.end_us + hold_us
    first, second, last = (end_us for _, end_us in testbed.requests_named("extend"))
    assert (first, second) == (SPANS.end_us + 2 * US + hold_us, SPANS.end_us + 12 * US + hold_us)
    assert last < second


def test_a_dead_engine_ends_the_trial_with_its_reason(testbed: FakeTestBed) -> None:
    """Seen within a few seconds; what was measured is kept."""
    ended = EngineStatus(False, "the Spark process ended (exit code -9)", disk_full=True)
    testbed.after(7, lambda: vars(testbed).update(status=ended))
    record = conductor(testbed).conduct()
    assert (record.engine_failed, record.engine_disk_full, record.driver_failed) == (ended.reason, True, "")
    assert START + 7 * US < record.deadline_us < START + 10 * US
    assert record.trial_log.committed_events() > 0


def test_an_engine_that_finds_nothing_to_read_is_not_to_blame(testbed: FakeTestBed) -> None:
    """What stands between it and the driver has lost what it should hold: that is the driver's failure."""
    lost = {"status": EngineStatus(False, "unknown topic"), "not_carried": "a topic is gone"}
    testbed.after(7, lambda: vars(testbed).update(lost))
    record = conductor(testbed).conduct()
    assert (record.engine_failed, record.driver_failed) == ("", "a topic is gone")


def test_events_that_a_broker_lost_are_the_drivers(testbed: FakeTestBed) -> None:
    """They are looked for at the end, when all was sent."""
    testbed.not_kept = "partition 0 ends too early"
    record = conductor(testbed).conduct()
    assert (record.drained, record.driver_failed) == (True, "partition 0 ends too early")


def test_an_engine_that_dies_while_draining_is_noticed(testbed: FakeTestBed) -> None:
    """The drain watches too."""
    testbed.story.commit_after_us = 6 * US
    testbed.after(20, lambda: vars(testbed).update(status=EngineStatus(False)) or dead())
    dead = partial(setattr, testbed.story, "commit_after_us", 10**12)
    record = conductor(testbed).conduct()
    assert (record.engine_failed, record.drained) == ("the engine ended", False)


def test_the_status_is_not_read_at_every_look(testbed: FakeTestBed) -> None:
    """Reading it costs the system under test; every two seconds is enough."""
    conductor(testbed).conduct()
    assert 5 <= testbed.statuses <= 12


def test_a_driver_that_fails_is_reported_and_ends_the_trial(testbed: FakeTestBed) -> None:
    """A generator that is gone makes the trial the driver's failure; winding up fails too and hides nothing."""
    testbed.after(6, Mock(side_effect=DriverError("generator 0 ended (exit code 1)")))
    record = conductor(testbed).conduct()
    assert (record.driver_failed, record.engine_failed) == ("generator 0 ended (exit code 1)", "")
    assert record.trial_log.running.offered_events > 0


def test_ctrl_c_keeps_what_was_measured(testbed: FakeTestBed) -> None:
    """The trial is interrupted, halted and looked at a last time."""

    def interrupt(record: TrialRecord) -> None:
        if testbed.clock.now > START + 6 * US:
            raise KeyboardInterrupt

    record = conductor(testbed, on_progress=interrupt).conduct()
    assert (record.interrupted, len(testbed.requests_named("halt"))) == (True, 1)
    assert record.trial_log.committed_events() > 0


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda sign: sign.name)
def test_ctrl_c_in_the_middle_of_a_look_loses_nothing_of_it(
    testbed: FakeTestBed, sign: signal.Signals, request: pytest.FixtureRequest
) -> None:
    """Processes tell of everything once: what was on its way would never have happened."""
    before = signal.signal(sign, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(sign, before))
    real_tick, pressed = testbed.tick, iter([True])

    def tick() -> Any:
        ticked = real_tick()
        if testbed.clock.now > START + 6 * US and next(pressed, False):
            signal.raise_signal(sign)
        return ticked

    testbed.tick = tick  # type: ignore[method-assign]
    record = conductor(testbed).conduct()
    assert record.interrupted
    assert all(record.deadline_us - log[-1].to_us < 2 * testbed.make.chunk_us for log in record.trial_log.chunks)


def test_committed_input_is_forgotten_but_for_the_last_batch(testbed: FakeTestBed) -> None:
    """A query that dies between the sink's commit and its own reads its last batch again: that one is kept."""
    record = conductor(testbed).conduct()
    forgotten = [before_us for _, before_us in testbed.requests_named("commit")]
    assert forgotten == sorted(forgotten)
    assert forgotten[-1] == sorted(record.trial_log.batch_ends().values())[-2]


def test_offered_until_is_the_slowest_generators(make: Any) -> None:
    """The event time up to which every generator offered; the plan's end at most, its start where nothing came."""
    record = make.story().record()
    assert record.offered_until() == START + 20 * US
    record.trial_log.chunks[1] = record.trial_log.chunks[1][:30]
    assert record.offered_until() == START + 3 * US
    record.trial_log.chunks[1] = []
    assert record.offered_until() == START


def test_a_driver_that_failed_before_the_first_look_offered_nothing(testbed: FakeTestBed) -> None:
    """There is not even a log then: the trial measured no second."""
    testbed.on_tick = Mock(side_effect=DriverError("generator 0 ended (exit code 1)"))
    record = conductor(testbed).conduct()
    assert record.driver_failed
    assert (record.offered_until(), record.offered_spans) == (START, TrialSpans(START, START, START, START))
