"""The overload trial: measures the engine's drain rate while there is always a backlog.

It climbs from a low rate until the engine falls behind. Each step has eight times the rate of the one before, or twice
if the engine only nearly kept up.

- The first step is longer, because a fresh engine starts its workers there. If the engine falls behind, the step is
  repeated until it is warm.
- At most three seconds of event time may wait. That is more than an engine's trigger leaves waiting. Since the engine
  kept up with the step before, no batch then takes minutes.
- The drain rate of the last repetition counts. Its bound is three seconds of the rate drained before, so that batches
  are about as large as in a trial.
- If batches were far larger, one more repetition follows. (Spark's join drained 15 k/s in batches of 150,000. At
  13 k/s in smaller batches it was idle for two fifths of the time.)
- If the engine climbed a lower step and drains only little of the next, the lower step counts. Its batches were like
  those of a trial, whereas the next ones would have a hundred million events.

The result is only a guess for the search.

Batches that fill much of their interval predict the rate at which the engine is full, except in the first step, where
a cold engine is slow. The next step then offers one and a half times that rate, and is the last one if the engine falls
behind: its batches are hardly longer than those of a trial.

If the flow keeps rows until windows end, as a join does, every step lasts until windows end in both of its halves,
because the batches in which they end are the long ones. (In steps without them Spark's join drained 1.4 M/s. It
sustained 0.7 M/s.)
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from streamgauge.core.clock import US
from streamgauge.core.trial_spans import TrialSpans
from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import IntervalJoin, Node, Process, WindowJoin
from streamgauge.engines.registry import entry
from streamgauge.metrics.log.trial_log import TrialLog
from streamgauge.metrics.log.trial_record import TrialRecord
from streamgauge.metrics.summary import backlog
from streamgauge.preflight.resolved_experiment import FRESH_WARMUP_S, ResolvedExperiment
from streamgauge.studies.capacity.strategy import BUSY_FULL
from streamgauge.trial.conductor import TrialConductor, next_start
from streamgauge.trial.phases import PacedLoad

FIRST_RATE_PER_S = 100_000.0
STEP, STEP_WHERE_NEAR = 8.0, 2.0
FIRST_S = 20.0
STEP_S = 8.0
LAST_S = 20.0
PACE_S = 3.0
BATCHES_MIN = 3
FAR_SHARE, LARGER = 0.25, 1.5
"""If the engine drained less than this share of a step's rate, its batches were many times those of a trial. The step
is then repeated with smaller batches."""
BUSY_SHARE_MIN, OVERLOAD_FACTOR = 0.3, 1.5
"""Batches that fill this share of their interval predict the engine's limit; below it, fixed costs hide the cost per
event. The last step offers this many times the predicted limit."""
CLIMB_SHARE = 0.8
"""Share of the step's rate that counts as keeping up. A few batches measure no better; the next step corrects it."""
HEAP_SHARE = 1 / 8
"""Share of the heap that rows may take by their size in Arrow: state has two versions, and batches are copied. Spark
ran out of memory at 43 %, in a packed join at 6.4 M/s."""
CLOSING_S_MAX = 30.0
"""Longest wait for the ends of windows in a step."""
KEPT_UP_SHARE = 0.95
"""Share of the last step's rate, and of the generators' ceiling, that counts as keeping up."""


@dataclass
class SaturationResult:
    """The drain rate over the last seconds, and whether the engine kept up with the highest possible rate.

    `heap_limits`: the engine kept up with the highest rate that its heap allows, which is below the generators'.
    `engine_failed`, `driver_failed`: the reason of a failure; the drain rate is then from before it.
    """

    drained_per_s: float
    kept_up: bool
    trial_log: TrialLog
    engine_failed: str = ""
    driver_failed: str = ""
    heap_limits: bool = False


def probe_saturation(conductor: TrialConductor, most_per_s: float, to_the_end: bool = False) -> SaturationResult:
    """Climbs until the engine falls behind, repeats that step until a fresh engine is warm, and measures.

    `to_the_end`: measure that step even if its rate is far too high for a guess, because the caller compares it.
    """
    ladder = RateLadder(conductor)
    highest = min(most_per_s, most_within_heap(conductor.resolved))
    rate, seconds, climbed, sized = min(FIRST_RATE_PER_S, highest), FIRST_S, 0.0, False
    while True:
        if sized:
            record, drained, stayed = ladder.last_step(rate)
        else:
            record, drained, stayed = ladder.step(rate, seconds, 0.0 if to_the_end else climbed)
        enough = KEPT_UP_SHARE if stayed else CLIMB_SHARE
        if record.ended_early or drained < enough * rate or rate >= highest:
            break
        step = STEP if drained >= KEPT_UP_SHARE * rate else STEP_WHERE_NEAR
        following = rate * step
        # Three predictions in a row by a cold join were too low, and each cost a step of 24 s.
        predicted = None if to_the_end or not climbed else predicted_limit_per_s(record, rate)
        sized = predicted is not None and OVERLOAD_FACTOR * predicted < following
        if predicted is not None and sized:
            following = OVERLOAD_FACTOR * predicted
        rate, seconds, climbed = min(following, highest), STEP_S, drained
    if record.interrupted:
        raise KeyboardInterrupt
    kept_up = not record.ended_early and drained >= KEPT_UP_SHARE * most_per_s
    guess = drained if to_the_end else max(drained, climbed)
    heap_limits = highest < most_per_s and not record.ended_early and drained >= KEPT_UP_SHARE * highest
    return SaturationResult(guess, kept_up, record.trial_log, record.engine_failed, record.driver_failed, heap_limits)


def predicted_limit_per_s(record: TrialRecord, rate_per_s: float) -> float | None:
    """The rate at which batches would fill `BUSY_FULL` of the time; None if they fill too little of it."""
    share = backlog.busy_share(record)
    if share is None or not BUSY_SHARE_MIN <= share < BUSY_FULL:
        return None
    return rate_per_s * BUSY_FULL / share


def most_within_heap(resolved: ResolvedExperiment) -> float:
    """The highest rate whose rows fit the engine's heap; infinite if the heap is unknown or the flow keeps no rows.

    Event time advances at the plan's rate even if little is drained, so state holds rows at that rate.
    """
    heap = entry(resolved.engine.name).heap_bytes(resolved.experiment.options)
    if not heap or resolved.reach_us is None or not keeps_rows(resolved):
        return math.inf
    return heap * HEAP_SHARE / (resolved.event_bytes(FIRST_RATE_PER_S) * (PACE_S + resolved.reach_us / US))


def closing_s(resolved: ResolvedExperiment) -> float:
    """How long a step must be for windows to end in both of its halves; 0 if the flow keeps no rows until then."""
    reach_s = (resolved.reach_us or 0) / US
    return min(2 * reach_s, CLOSING_S_MAX) if keeps_rows(resolved) else 0.0


def keeps_rows(resolved: ResolvedExperiment) -> bool:
    """Whether an operator keeps rows until the watermark passes."""
    return any(map(_is_holding, graph.operators(resolved.flow)))


def _is_holding(node: Node) -> bool:
    return isinstance(node, WindowJoin | IntervalJoin) or (isinstance(node, Process) and bool(node.keys))


class RateLadder:
    """Runs steps, and repeats one that may only show the engine's slow start."""

    def __init__(self, conductor: TrialConductor) -> None:
        self._conductor = conductor
        self._closing_s = closing_s(conductor.resolved)
        self._began = time.monotonic()

    def step(self, rate_per_s: float, seconds: float, climbed_per_s: float) -> tuple[TrialRecord, float, bool]:
        """(the last trial of a step, events per second that it drained, whether the step was repeated).

        `climbed_per_s`: the rate that the step before drained, 0 for the first.
        """
        record, drained = self._made(rate_per_s, max(seconds, self._closing_s), 0.0)
        if climbed_per_s and drained < FAR_SHARE * rate_per_s:
            return record, drained, True
        # Only a warm engine that falls behind has reached its limit. One that keeps up climbs at once.
        if self._is_short(record, drained, rate_per_s) and self._cold_s > 0:
            record, drained = self._made(rate_per_s, max(STEP_S, self._closing_s), drained)
        if stayed := self._is_short(record, drained, rate_per_s):
            # At least half the rate, so that a cold engine's drain rate does not throttle a warm one.
            share = max(drained / rate_per_s, 0.5)
            seconds = max(LAST_S, self._cold_s, self._closing_s)
            record, drained = self._made(rate_per_s, seconds, drained, PACE_S * share)
            if not record.ended_early and drained < FAR_SHARE * rate_per_s:
                share = LARGER * drained / rate_per_s
                record, drained = self._made(rate_per_s, LAST_S, drained, PACE_S * share)
        return record, drained, stayed

    def last_step(self, rate_per_s: float) -> tuple[TrialRecord, float, bool]:
        """Like `step` for a rate little above the engine's limit: one trial, until it is warm and windows ended.

        If the engine falls behind in a trial that was shorter than `LAST_S`, another one follows: three batches are too
        few for a guess.
        """
        pace_s = PACE_S / OVERLOAD_FACTOR
        # Event time advances as slowly as the engine drains.
        seconds = max(STEP_S, self._cold_s, OVERLOAD_FACTOR * self._closing_s)
        record, drained = self._made(rate_per_s, seconds, 0.0, pace_s)
        if seconds < LAST_S and self._is_short(record, drained, rate_per_s, KEPT_UP_SHARE):
            record, drained = self._made(rate_per_s, LAST_S, drained, pace_s)
        return record, drained, True

    @property
    def _cold_s(self) -> float:
        """Remaining time until the engine is warm."""
        return FRESH_WARMUP_S - (time.monotonic() - self._began)

    def _made(
        self, rate_per_s: float, seconds: float, before: float, pace_s: float = PACE_S
    ) -> tuple[TrialRecord, float]:
        record = _step(self._conductor, rate_per_s, seconds, pace_s)
        # An engine that works on its first batch all the time reads nothing more, so that batch is the guess.
        return record, _drained(record) or before

    @staticmethod
    def _is_short(record: TrialRecord, drained: float, rate_per_s: float, share: float = CLIMB_SHARE) -> bool:
        return not record.ended_early and drained < share * rate_per_s


def _step(conductor: TrialConductor, rate_per_s: float, seconds: float, pace_s: float = PACE_S) -> TrialRecord:
    """Runs one step of fixed duration. At most `pace_s` of event time waits."""
    resolved, start = conductor.resolved, next_start(conductor.testbed)
    end = start + round(seconds * US)
    spans = TrialSpans(start, end - round(seconds * US / 2), end, end)
    policy = PacedLoad(pace_us(resolved, rate_per_s, pace_s))
    return conductor.conduct(resolved.plan(start, rate_per_s, seconds), spans, rate_per_s, policy)


def pace_us(resolved: ResolvedExperiment, rate_per_s: float, pace_s: float) -> int:
    """The event time that may wait: `pace_s`, or half of the queue's bound."""
    return round(min(pace_s, resolved.bound_s(rate_per_s)[0] / 2) * US)


def _drained(record: TrialRecord) -> float:
    """Events per second in the later half, by the times at which batches read."""
    queries = record.trial_log.queries()
    return min((_drained_by(record, record.trial_log.of_query(query)) for query in queries), default=0.0)


def _drained_by(record: TrialRecord, trial_log: TrialLog) -> float:
    """The drain rate of one query; the slowest query of a job decides."""
    batches: dict[int, tuple[int, int]] = {}
    for part in trial_log.all_deliveries():
        if not part.again and part.reader == 0 and part.events:
            when, events = batches.get(part.batch, (part.when_us, 0))
            batches[part.batch] = (min(when, part.when_us), events + part.events)
    ordered = sorted(batches.values())
    later = [one for one in ordered if one[0] >= record.spans.measured_from_us]
    chosen = later if len(later) >= BATCHES_MIN else ordered
    if len(chosen) < BATCHES_MIN:
        return sum(events for _, events in chosen) * US / max(1, record.deadline_us - record.spans.start_us)
    return sum(events for _, events in chosen[:-1]) * US / (chosen[-1][0] - chosen[0][0])
