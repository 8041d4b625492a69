"""The overload trial: how much does the engine drain when there is always more?

A staircase from a low rate, four times as much each step, until the engine does not keep up. The first stair is
longer, since a fresh engine starts its workers there, and the last one lasts until a fresh engine is warm. At most a
second or two of event time may wait, so that a slow engine is not handed a batch it chews on for minutes. What it
drains flatters (large batches), so it is a guess for the search and nothing more.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from streamgauge.events import US
from streamgauge.report.terminal import TrialSnapshot
from streamgauge.run.check import FRESH_WARMUP_S, Ready
from streamgauge.run.conduct import Conducted, Conductor, Spans
from streamgauge.run.journal import Journal
from streamgauge.run.rig import Rig
from streamgauge.run.trial import next_start, snapshot

FIRST_RATE_PER_S = 100_000.0
STEP = 4.0
FIRST_S = 20.0
STEP_S = 8.0
LAST_S = 12.0
PACE_US = 2 * US
KEPT_UP_SHARE = 0.93


@dataclass
class Overloaded:
    """The drain rate over the last seconds, and whether the engine kept up with all that could be offered."""

    drained_per_s: float
    kept_up: bool
    journal: Journal


def overload(ready: Ready, rig: Rig, most_per_s: float, on_progress: Callable[[TrialSnapshot], None]) -> Overloaded:
    """Climb until the engine does not keep up, stay there until a fresh engine is warm, and measure."""
    began = time.monotonic()
    rate, seconds = min(FIRST_RATE_PER_S, most_per_s), FIRST_S
    while True:
        done = _step(ready, rig, rate, seconds, on_progress)
        drained = _drained(done)
        if drained < KEPT_UP_SHARE * rate or done.engine_failed or done.driver_failed or done.interrupted:
            break
        if rate >= most_per_s:
            return Overloaded(drained, True, done.journal)
        rate, seconds = min(rate * STEP, most_per_s), STEP_S
    if done.interrupted:
        raise KeyboardInterrupt
    rest = FRESH_WARMUP_S - (time.monotonic() - began)
    if not (done.engine_failed or done.driver_failed):
        done = _step(ready, rig, rate, max(LAST_S, rest), on_progress)
    return Overloaded(_drained(done), False, done.journal)


def _step(
    ready: Ready, rig: Rig, rate_per_s: float, seconds: float, on_progress: Callable[[TrialSnapshot], None]
) -> Conducted:
    """One stair; it ends with its time, not with its events."""
    start = next_start(rig)
    end = start + round(seconds * US)
    spans = Spans(start, end - round(seconds * US / 2), end, end)

    def show(done: Conducted) -> None:
        on_progress(snapshot(done, rig.clock.now_us()))

    conductor = Conductor(
        rig, ready.plan(start, rate_per_s, seconds), spans, on_tick=show, drain_s=0.0, pace_us=PACE_US
    )
    return conductor.conduct()


def _drained(done: Conducted) -> float:
    """Events a second from the first hand-out of the later half to the last one: whole batches only."""
    parts = sorted(
        (part.ingest_us, part.events) for part in done.journal.all_hand_outs() if not part.again and part.events
    )
    later = [part for part in parts if part[0] >= done.spans.measured_from_us] or parts
    span_us = later[-1][0] - later[0][0] if later else 0
    if span_us <= 0:
        whole_us = max(1, done.deadline_us - done.spans.start_us)
        return sum(events for _, events in parts) * US / whole_us
    first = later[0][0]
    return sum(events for when, events in later if when > first) * US / span_us
