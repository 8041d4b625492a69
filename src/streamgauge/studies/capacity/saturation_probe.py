"""The overload trial: measures how much the engine drains while there is always a backlog.

A staircase from a low rate, eight times as much each step (twice, after one that it only nearly kept up with), until
the engine does not keep up. The first step is longer, since a fresh engine starts its workers there; one that it does
not keep up with is repeated, until it is warm. At most three seconds of event time may wait: more than an engine's own
trigger keeps waiting, and, since it kept up with the step before, no batch that it chews on for minutes. In the last
repetition, whose drain rate counts, it is three seconds of what was drained before, so that batches are hardly larger
than they will be; one more is made where they were by far (Spark's own join drained 15 k/s in batches of 150,000, and
at 13 k/s in smaller ones was idle for two fifths of the time). But where a lower step was climbed and so little of the
next is drained, that lower one says more: it was drained in batches as a trial has them, and what comes next are
batches of a hundred million events. It is a guess for the search and nothing more.

Batches that fill a good part of their interval show where the engine will be full. The next step then offers one and a
half times that rate, and is the last: its batches are hardly longer than those of a trial.
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
"""Where less of a step's rate than that share was drained, its batches were many times those of any trial; so it is
made once more with batches that are only somewhat larger."""
BUSY_SHARE_MIN, OVERLOAD_FACTOR = 0.3, 1.5
"""A step whose batches fill that share of the time predicts the engine's limit; below it fixed costs hide what an event
costs. The last step offers this many times the predicted limit."""
CLIMB_SHARE = 0.8
"""Of the step's rate: a few batches tell no better, and an engine that is only nearly as fast is found on the next."""
HEAP_SHARE = 1 / 8
"""Of the heap, that rows may take as Arrow counts them: state has two versions, and batches are copied on their way.
Spark ran out of memory with 43 %, in a packed join at 6.4 M/s."""
KEPT_UP_SHARE = 0.95
"""Of a step's rate where it was stayed on, and of all that can be offered: less is a drain rate."""


@dataclass
class SaturationResult:
    """The drain rate over the last seconds, and whether the engine kept up with all that could be offered.

    `heap_limits`: it kept up with the highest rate that its heap allows, which is less than can be offered.
    `engine_failed`, `driver_failed`: the reasons, where one of them did; what was drained is then what it did before.
    """

    drained_per_s: float
    kept_up: bool
    trial_log: TrialLog
    engine_failed: str = ""
    driver_failed: str = ""
    heap_limits: bool = False


def probe_saturation(conductor: TrialConductor, most_per_s: float, to_the_end: bool = False) -> SaturationResult:
    """Climb until the engine does not keep up, stay there until a fresh engine is warm, and measure.

    `to_the_end`: stay there also where the step is far too high for a guess, since what is drained is compared.
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
        predicted = None if to_the_end else predicted_limit_per_s(record, rate)
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
    """The rate at which batches would fill `BUSY_FULL` of the time; None where they fill too little of it to tell."""
    share = backlog.busy_share(record)
    if share is None or not BUSY_SHARE_MIN <= share < BUSY_FULL:
        return None
    return rate_per_s * BUSY_FULL / share


def most_within_heap(resolved: ResolvedExperiment) -> float:
    """The highest rate whose rows fit into the engine's heap; infinite where none is known, or where no rows are kept.

    Event time passes at the plan's rate however little is drained, so state holds rows at that rate.
    """
    heap = entry(resolved.engine.name).heap_bytes(resolved.experiment.options)
    if not heap or resolved.reach_us is None or not any(map(_keeps_rows, graph.operators(resolved.flow))):
        return math.inf
    return heap * HEAP_SHARE / (resolved.event_bytes(FIRST_RATE_PER_S) * (PACE_S + resolved.reach_us / US))


def _keeps_rows(node: Node) -> bool:
    return isinstance(node, WindowJoin | IntervalJoin) or (isinstance(node, Process) and bool(node.keys))


class RateLadder:
    """Runs steps, again where only the start of the engine may have been slow."""

    def __init__(self, conductor: TrialConductor) -> None:
        self._conductor = conductor
        self._began = time.monotonic()

    def step(self, rate_per_s: float, seconds: float, climbed_per_s: float) -> tuple[TrialRecord, float, bool]:
        """(the last trial of a step, events a second that it drained, whether the step was stayed on).

        `climbed_per_s`: what the step before drained, 0 for the first.
        """
        record, drained = self._made(rate_per_s, seconds, 0.0)
        if climbed_per_s and drained < FAR_SHARE * rate_per_s:
            return record, drained, True
        # Only an engine that is warm and does not keep up has reached its limit; but one that does climbs on at once.
        if self._is_short(record, drained, rate_per_s) and self._cold_s > 0:
            record, drained = self._made(rate_per_s, STEP_S, drained)
        if stayed := self._is_short(record, drained, rate_per_s):
            # Half the rate at least: what a cold engine drained must not hold back a warm one.
            share = max(drained / rate_per_s, 0.5)
            record, drained = self._made(rate_per_s, max(LAST_S, self._cold_s), drained, PACE_S * share)
            if not record.ended_early and drained < FAR_SHARE * rate_per_s:
                share = LARGER * drained / rate_per_s
                record, drained = self._made(rate_per_s, LAST_S, drained, PACE_S * share)
        return record, drained, stayed

    def last_step(self, rate_per_s: float) -> tuple[TrialRecord, float, bool]:
        """As `step`, of a rate that lies little above the engine's limit: once, until the engine is warm."""
        record, drained = self._made(rate_per_s, max(STEP_S, self._cold_s), 0.0, PACE_S / OVERLOAD_FACTOR)
        return record, drained, True

    @property
    def _cold_s(self) -> float:
        """How long the engine will not be warm yet."""
        return FRESH_WARMUP_S - (time.monotonic() - self._began)

    def _made(
        self, rate_per_s: float, seconds: float, before: float, pace_s: float = PACE_S
    ) -> tuple[TrialRecord, float]:
        record = _step(self._conductor, rate_per_s, seconds, pace_s)
        # One that chews on its first batch all the while takes nothing more; then that batch is the guess.
        return record, _drained(record) or before

    @staticmethod
    def _is_short(record: TrialRecord, drained: float, rate_per_s: float) -> bool:
        return not record.ended_early and drained < CLIMB_SHARE * rate_per_s


def _step(conductor: TrialConductor, rate_per_s: float, seconds: float, pace_s: float = PACE_S) -> TrialRecord:
    """One step; it ends with its time, not with its events. At most `pace_s` of event time waits."""
    resolved, start = conductor.resolved, next_start(conductor.testbed)
    end = start + round(seconds * US)
    spans = TrialSpans(start, end - round(seconds * US / 2), end, end)
    policy = PacedLoad(pace_us(resolved, rate_per_s, pace_s))
    return conductor.conduct(resolved.plan(start, rate_per_s, seconds), spans, rate_per_s, policy)


def pace_us(resolved: ResolvedExperiment, rate_per_s: float, pace_s: float) -> int:
    """How much event time may wait: that, or half of what the queue holds."""
    return round(min(pace_s, resolved.bound_s(rate_per_s)[0] / 2) * US)


def _drained(record: TrialRecord) -> float:
    """Events a second in the later half: what each batch took, by when the next one came for more."""
    queries = record.trial_log.queries()
    return min((_drained_by(record, record.trial_log.of_query(query)) for query in queries), default=0.0)


def _drained_by(record: TrialRecord, trial_log: TrialLog) -> float:
    """Of one query; where a job is several, the slowest of them says what is drained."""
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
