"""What a fresh engine gets before it is judged: load for as long as a JVM compiles, and then an empty queue.

A trial that begins on a cold engine begins with a backlog of its start, and near the engine's limit drains that for
minutes: what it shows then is the start. Only where trials can follow each other on one engine at all, so for flows of
finite reach.
"""

from __future__ import annotations

from collections.abc import Callable

from streamgauge.events import US
from streamgauge.progress import TrialSnapshot
from streamgauge.run import figures
from streamgauge.run.conduct import Conducted, Conductor, Spans
from streamgauge.run.criteria import far_behind
from streamgauge.run.evidence import INTERVALS_MIN
from streamgauge.run.ready import FRESH_WARMUP_S, Ready
from streamgauge.run.rig import Rig
from streamgauge.run.trial import next_start, snapshot
from streamgauge.studies.overload import PACE_S, pace_us
from streamgauge.system.machine import only_on


def warm(ready: Ready, rig: Rig, rate_per_s: float, on_progress: Callable[[TrialSnapshot], None]) -> Conducted:
    """A rate that rises to `rate_per_s`, for the warm-up of a fresh engine; nothing of it is judged.

    At most so much event time waits as in the overload trial, since the rate may be far too much.

    Raises:
        KeyboardInterrupt: somebody stopped it.
    """
    start_us = next_start(rig)
    end_us = start_us + round(ready.warmup_s(True, ready.experiment.load.duration) * US)
    spans = Spans(start_us, end_us, end_us, end_us)
    plan, chunk_us = ready.trial_plan(spans, rate_per_s, fresh=True), ready.chunk_for(rate_per_s)

    def show(done: Conducted) -> None:
        on_progress(snapshot(done, rig.clock.now_us()))

    with only_on(ready.driver_cpus):
        pace = pace_us(ready, rate_per_s, PACE_S)
        done = Conductor(rig, plan, spans, chunk_us, on_tick=show, drain_s=0.0, pace_us=pace).conduct()
    if done.interrupted:
        raise KeyboardInterrupt
    return done


def cold_s(rig: Rig, done: Conducted) -> float:
    """How long a fresh engine may still be cold after that warm-up, which may have been asked for shorter."""
    return max(0.0, FRESH_WARMUP_S - _since_start_s(rig, done))


def drained_where_far_behind(ready: Ready, rig: Rig, done: Conducted, rate_per_s: float) -> float | None:
    """Events a second that the engine has drained since the warm-up began, if that is next to nothing of the rate.

    None if it is more, or if the engine had too little time to show it.
    """
    drained_per_s = done.journal.running.taken_events() / _since_start_s(rig, done)
    early = cold_s(rig, done) > 0 or _since_start_s(rig, done) < INTERVALS_MIN * ready.interval_s
    if early or done.ended_early or not far_behind(drained_per_s / rate_per_s, figures.others_share(done)):
        return None
    return drained_per_s or None


def _since_start_s(rig: Rig, done: Conducted) -> float:
    return (rig.clock.now_us() - done.spans.start_us) / US
