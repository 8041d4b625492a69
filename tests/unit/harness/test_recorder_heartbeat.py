"""Standing still, by the beats of a made clock."""

from __future__ import annotations

from streamgauge.harness.recorder import BEAT_US, Heartbeat
from streamgauge.metrics.records import STILL_US_MIN


def woken(*at_us: int) -> Heartbeat:
    """A heart that began at 0 and beat at these times; whoever asks for its news does so at the last of them."""
    times = iter([0, *at_us, at_us[-1]])
    heart = Heartbeat(lambda: next(times))
    for _ in at_us:
        heart.beat()
    return heart


def test_a_process_that_runs_keeps_nothing_of_it() -> None:
    """Beats that are late by no more than a slip may be are forgotten, however many there are."""
    usual, latest = BEAT_US + 500, BEAT_US + STILL_US_MIN
    assert woken(*range(usual, 1000 * usual, usual)).news() == []
    assert woken(latest, 2 * latest).news() == []


def test_a_standstill_is_told_once_with_its_end_and_its_length() -> None:
    """What the beat itself takes is not part of it."""
    heart = woken(BEAT_US, 2_000_000 + 2 * BEAT_US, 2_000_000 + 3 * BEAT_US)
    assert heart.news() == [(2_000_000 + 2 * BEAT_US, 2_000_000)]
    assert heart._stood_still == []


def test_a_standstill_that_the_heart_has_not_noticed_yet_is_told() -> None:
    """After it the request may be answered first, and the last look of a trial asks no second time."""
    times = iter([0, 500_000, 500_100])
    heart = Heartbeat(lambda: next(times))
    assert heart.news() == [(500_000, 500_000 - BEAT_US)]
    heart.beat()
    assert heart._stood_still == []
