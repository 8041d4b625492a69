"""The overload trial: predicts the engine's limit, or measures its drain rate while there is always a backlog.

It climbs from a low rate. Each step has eight times the rate of the one before, or twice if the engine only nearly kept
up. The first step is longer, because a fresh engine starts its workers there; it is repeated if the engine falls
behind. At most three seconds of event time may wait. That is more than an engine's trigger leaves waiting. Since the
engine kept up with the step before, no batch then takes minutes.

An engine that works in batches predicts its limit: the share of the time that its batches need grows with the rate. So
once it falls behind, or batches need 30 % of the time, the next step is an approach: below the expected limit. Two or
three follow each other, until the engine is warm and its batches need 60 % of the time. Their share gives the limit. An
overload would say less, since its batches are larger than those of any trial. The first step predicts nothing, because
a cold engine is slow.

Of any other engine the drain rate is measured:

- The step in which it falls behind is repeated until the engine is warm. The drain rate of the last repetition counts.
  Its bound is three seconds of the rate drained before, so that batches are about as large as in a trial.
- If batches were far larger, one more repetition follows. (A join drained 15 k/s in batches of 150,000. At
  13 k/s in smaller batches it was idle for two fifths of the time.)
- If the engine climbed a lower step and drains only little of the next, the lower step counts. Its batches were like
  those of a trial, whereas the next ones would have a hundred million events.

If the flow keeps rows until windows end, as a join does, every step lasts until windows end in both of its halves,
because the batches in which they end are the long ones. (In steps without them a join drained 1.4 M/s. It
sustained 0.7 M/s.)

A step in which the driver was too slow does not count: on shared cores, generators at full speed take the CPU of a
program. (One drained 126 k/s and sustained 362 k/s.) The next step has twice the rate that the engine kept up with, and
no later one has more than half the rate at which the driver was too slow.

The result is only a guess for the search."""

import math
import time
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from streamgauge.core.clock import US
from streamgauge.core.errors import DriverError
from streamgauge.core.formatting import format_rate
from streamgauge.core.trial import TrialSpans
from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import IntervalJoin, Process, WindowJoin
from streamgauge.engines.registry import entry
from streamgauge.metrics import interference
from streamgauge.metrics.trial_log import TrialLog
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.preflight.resolved_experiment import FRESH_WARMUP_S, ResolvedExperiment
from streamgauge.results.verdict import VerdictValue
from streamgauge.studies.capacity.constants import (
    APPROACH_FACTOR,
    APPROACH_FACTOR_WARM,
    APPROACH_SHARE_MAX,
    APPROACH_SHARE_MIN,
    APPROACH_STEP_MAX,
    APPROACHES_MAX,
    APPROACHES_MIN,
    BATCHES_MIN,
    BUSY_SHARE_MIN,
    CLIMB_SHARE,
    CLOSING_S_MAX,
    FAR_SHARE,
    FIRST_RATE_PER_S,
    FIRST_S,
    KEPT_UP_SHARE,
    LARGER,
    LAST_S,
    PACE_S,
    PACE_SHARE_MAX,
    SILENT_GAPS,
    STEP,
    STEP_S,
    STEP_WHERE_NEAR,
    UNSEEN_SLACK_S,
)  # fmt: skip
from streamgauge.studies.capacity.search_state import TrialOutcome, TrialRequest
from streamgauge.trial.conductor import TrialConductor, next_start
from streamgauge.trial.phases import PacedLoad
from streamgauge.verdict.collect_evidence import INTERVALS_MIN, busy_share
from streamgauge.verdict.trend_checks import far_behind


@dataclass(frozen=True)
class Step:
    """One trial at a fixed rate. `busy_share`: of its batches; None if unknown or not wanted.

    `enough`: the share of its rate that counts as keeping up. `repeated`: whether it was made again while cold.
    """

    record: TrialRecord
    rate_per_s: float
    drained_per_s: float
    busy_share: float | None
    enough: float = CLIMB_SHARE
    repeated: bool = False

    @property
    def kept_up(self) -> bool:
        return self.drained_per_s >= self.enough * self.rate_per_s

    @property
    def is_short(self) -> bool:
        """Whether it fell behind to the end."""
        return not self.record.ended_early and not self.kept_up

    @property
    def driver_late(self) -> bool:
        """Whether the generators offered too little although nothing held them back, so that it proves nothing."""
        spans, until_us = self.record.spans, self.record.offered_until()
        return not self.record.held_back and until_us - spans.start_us < self.enough * (spans.end_us - spans.start_us)


def probe_saturation(conductor: TrialConductor, request: TrialRequest, to_the_end: bool = False) -> TrialOutcome:
    """Climbs until the engine's limit is near, then predicts it, or measures the drain rate of a warm engine.

    It is sustained if the engine kept up with the requested rate. If engine or driver failed, the drain rate is from
    before that.
    `to_the_end`: measure the drain rate, even in a step that is far too high for a guess, because the caller compares
    it.
    """
    # Batches without an interval fill all the time at any rate.
    ladder = RateLadder(conductor, predicts=conductor.resolved.interval_s > 0 and not to_the_end)
    highest = min(request.rate_per_s, most_within_heap(conductor.resolved))
    climbed, limit = 0.0, None
    step = ladder.again_if_cold(ladder.step(min(FIRST_RATE_PER_S, highest), FIRST_S))
    while not step.record.ended_early and not (step.kept_up and step.rate_per_s >= highest):
        near = ladder.approach_rate(step, climbed)
        if near is not None and near < highest:
            last, limit = ladder.approach(near, highest)
            # An approach below the limit drains less than the step before, which stays the guess.
            step = last if last.is_short else replace(step, record=last.record, busy_share=last.busy_share)
            climbed = min(climbed, step.drained_per_s)
            break
        if step.kept_up:
            climbed = step.drained_per_s
            factor = STEP if climbed >= KEPT_UP_SHARE * step.rate_per_s else STEP_WHERE_NEAR
            step = ladder.step(min(step.rate_per_s * factor, highest), STEP_S)
            continue
        if climbed and step.driver_late and not to_the_end:
            highest = step.rate_per_s / STEP_WHERE_NEAR
            step = ladder.step(min(STEP_WHERE_NEAR * climbed, highest), STEP_S)
            continue
        if climbed and step.drained_per_s < FAR_SHARE * step.rate_per_s and not to_the_end:
            break
        step = ladder.stay(step)
        if not step.kept_up:
            break
    record, drained = step.record, step.drained_per_s
    if record.interrupted:
        raise KeyboardInterrupt
    kept_up_to_heap = not record.ended_early and max(drained, limit or 0.0) >= KEPT_UP_SHARE * highest
    heap_limits = highest == most_within_heap(conductor.resolved) < request.rate_per_s and kept_up_to_heap
    verdict: VerdictValue = "not_sustained"
    if record.driver_failed:
        verdict = "invalid"
    elif limit is None and not record.ended_early and drained >= KEPT_UP_SHARE * request.rate_per_s:
        verdict = "sustained"
    outcome = TrialOutcome(
        request.rate_per_s,
        verdict,
        drained if to_the_end else max(drained, climbed),
        limit_per_s=limit and min(limit, highest),
        busy_share=step.busy_share,
    )
    return replace(outcome, why=_why(outcome, record, heap_limits))


def _why(outcome: TrialOutcome, record: TrialRecord, heap_limits: bool) -> str:
    """How an overload trial ended. `heap_limits`: at the highest rate that the engine's heap allows."""
    drained = format_rate(outcome.drained_per_s)
    if record.driver_failed:
        before = f"drained {drained} until then" if outcome.drained_per_s else "had nothing to drain"
        return f"the driver failed: {record.driver_failed} (the engine {before})"
    if record.engine_failed:
        return f"drained {drained} until the engine failed: {record.engine_failed}"
    if outcome.holds:
        return f"kept up with {drained}, all that the generators offer"
    if heap_limits:
        return f"drained {drained}, the most that is safe for the engine's heap: looking around that"
    if outcome.limit_per_s is not None:
        return f"its batches would be full at {format_rate(outcome.limit_per_s)}: looking around that"
    return f"drained {drained}: looking below that"


def most_within_heap(resolved: ResolvedExperiment) -> float:
    """The highest rate whose rows fit the engine's heap; infinite if the heap is unknown or the flow keeps no rows.

    Event time advances at the plan's rate even if little is drained, so state holds rows at that rate.
    """
    heap = entry(resolved.engine.name).heap_bytes(resolved.experiment.options)
    if not heap or resolved.reach_us is None or not keeps_rows(resolved):
        return math.inf
    return (
        heap
        * resolved.engine.near_limit.heap_share
        / (resolved.event_bytes(FIRST_RATE_PER_S) * (PACE_S + resolved.reach_us / US))
    )


def closing_s(resolved: ResolvedExperiment) -> float:
    """How long a step must be for windows to end in both of its halves; 0 if the flow keeps no rows until then.

    Where progress is seen late: for it to be seen in both of them, also if it comes a little later than it should.
    """
    reach_s = (resolved.reach_us or 0) / US if keeps_rows(resolved) else 0.0
    unseen_s = 2 * resolved.unseen_s + UNSEEN_SLACK_S if resolved.unseen_s else 0.0
    return max(min(2 * reach_s, CLOSING_S_MAX), unseen_s)


def keeps_rows(resolved: ResolvedExperiment) -> bool:
    """Whether an operator keeps rows until the watermark passes."""
    return any(
        isinstance(node, WindowJoin | IntervalJoin) or (isinstance(node, Process) and bool(node.keys))
        for node in graph.operators(resolved.flow)
    )


class RateLadder:
    """Runs steps, repetitions, and approaches; the last only if it `predicts` and the engine works in batches."""

    def __init__(self, conductor: TrialConductor, predicts: bool = True) -> None:
        self._conductor, self._predicts, self._batches_seen = conductor, predicts, False
        self._closing_s = closing_s(conductor.resolved)
        self._near_limit = conductor.resolved.engine.near_limit
        self._began = time.monotonic()

    def step(self, rate_per_s: float, seconds: float, before_per_s: float = 0.0, pace_s: float = PACE_S) -> Step:
        """One trial of `seconds`, or longer if windows must end. `before_per_s`: the guess if it drains nothing.

        An engine that works on its first batch all the time reads nothing more, so that batch is the guess.
        """
        record = _step(self._conductor, rate_per_s, max(seconds, self._closing_s), pace_s)
        resolved = self._conductor.resolved
        share = busy_share(resolved, record) if self._predicts else None
        return Step(record, rate_per_s, _drained(record, rate_per_s, resolved.unseen_s) or before_per_s, share)

    def stay(self, step: Step) -> Step:
        """The step again, until the engine is warm, with batches about as large as in a trial."""
        step = self.again_if_cold(step)
        if not step.is_short:
            return step
        rate, share = step.rate_per_s, step.drained_per_s / step.rate_per_s
        # At least half the rate, so that a cold engine's drain rate does not throttle a warm one.
        step = self.step(rate, max(LAST_S, self._cold_s), step.drained_per_s, PACE_S * max(share, 0.5))
        share = step.drained_per_s / rate
        if not step.record.ended_early and share < FAR_SHARE:
            step = self.step(rate, LAST_S, step.drained_per_s, PACE_S * LARGER * share)
        return replace(step, enough=KEPT_UP_SHARE)

    def approach_rate(self, step: Step, climbed_per_s: float) -> float | None:
        """The rate of an approach after a step; None if no limit is near, or batches do not predict it.

        `climbed_per_s`: what the engine drained in the step before; 0 in the first.
        """
        self._batches_seen = self._batches_seen or step.busy_share is not None
        if not self._batches_seen or not climbed_per_s:
            return None
        limit, share = max(step.drained_per_s, climbed_per_s), step.busy_share
        if step.kept_up and (share is None or share < BUSY_SHARE_MIN):
            return None
        if step.kept_up and share is not None and share < self._near_limit.full:
            limit = self._full_rate(step.rate_per_s, share)
        return min(APPROACH_FACTOR * limit, APPROACH_STEP_MAX * step.rate_per_s)

    def approach(self, rate_per_s: float, highest_per_s: float) -> tuple[Step, float | None]:
        """(the last step, the limit in events per second that its batches predict; None if they do not)."""
        limit = None
        for number in range(1, APPROACHES_MAX + 1):
            # A driver that failed is the reason of the next step's failure.
            with suppress(DriverError):
                self._conductor.drain(CLOSING_S_MAX)
            warm = number >= APPROACHES_MIN
            length_s = max(LAST_S, 1.5 * self._closing_s) if warm else FIRST_S
            step = self.step(rate_per_s, max(length_s, self._cold_s))
            if step.record.ended_early:
                break
            if step.is_short or not step.busy_share or step.busy_share > APPROACH_SHARE_MAX:
                rate_per_s, limit = APPROACH_FACTOR * (step.drained_per_s or rate_per_s), None
                continue
            limit = self._full_rate(rate_per_s, step.busy_share)
            if warm and (step.busy_share >= APPROACH_SHARE_MIN or rate_per_s >= highest_per_s):
                break
            rate_per_s = min(APPROACH_FACTOR_WARM * limit, APPROACH_STEP_MAX * rate_per_s, highest_per_s)
        return step, limit

    def _full_rate(self, rate_per_s: float, busy_share: float) -> float:
        return self._near_limit.rate_at(self._near_limit.full, rate_per_s, busy_share)

    def again_if_cold(self, step: Step) -> Step:
        """The step, made again if a fresh engine fell behind: only a warm one has then reached its limit."""
        if step.is_short and not step.repeated and self._cold_s > 0:
            return replace(self.step(step.rate_per_s, STEP_S, step.drained_per_s), repeated=True)
        return step

    @property
    def _cold_s(self) -> float:
        """Remaining time until the engine is warm."""
        return FRESH_WARMUP_S - (time.monotonic() - self._began)


def _step(conductor: TrialConductor, rate_per_s: float, seconds: float, pace_s: float = PACE_S) -> TrialRecord:
    """Runs one step of fixed duration. At most `pace_s` of event time waits."""
    resolved, start = conductor.resolved, next_start(conductor.testbed)
    end = start + round(seconds * US)
    spans = TrialSpans(start, end - round(seconds * US / 2), end, end)
    plan, policy = resolved.plan(start, rate_per_s, seconds), PacedLoad(pace_us(resolved, rate_per_s, pace_s))
    return conductor.conduct(plan, spans, rate_per_s, policy)


def pace_us(resolved: ResolvedExperiment, rate_per_s: float, pace_s: float) -> int:
    """The event time that may wait: `pace_s`, or half of the queue's bound.

    An engine or a program may have read more than is seen. It would get nothing until that is seen, which may wait for
    its windows.
    """
    bound_s, unseen_s = resolved.bound_s(rate_per_s)[0], resolved.unseen_s
    return round(min(min(pace_s, bound_s / 2) + unseen_s, PACE_SHARE_MAX * bound_s) * US)


def _drained(record: TrialRecord, rate_per_s: float, unseen_s: float = 0.0) -> float:
    """Events per second in the later half, by the times at which batches read, and no more than were offered.

    `unseen_s`: for how long progress may not be seen. Above 0, what is called a batch is progress seen from outside,
    which has its time from the end of its events.
    """
    log = record.trial_log
    queries = (_drained_by(record, log.of_query(query), unseen_s) for query in log.queries())
    return min(min(queries, default=0.0), rate_per_s)


def _drained_by(record: TrialRecord, trial_log: TrialLog, unseen_s: float) -> float:
    """The drain rate of one query; the slowest query of a job decides.

    A batch reads all partitions. Progress that is seen late moves in each of them at other times: consumers of a group
    commit one after the other, so that moves of all may lie a tenth of a second apart.
    """
    logs: dict[tuple[str, int] | None, list[Any]] = defaultdict(list)
    for partition, log in enumerate(trial_log.deliveries):
        for part in log:
            logs[(part.stream, partition) if unseen_s else None].append(part)
    return sum(_drained_of(record, log, unseen_s) for log in logs.values())


def _drained_of(record: TrialRecord, log: Iterable[Any], unseen_s: float) -> float:
    batches: dict[int, tuple[int, int]] = {}
    for part in log:
        if not part.again and part.reader == 0 and part.events:
            when, events = batches.get(part.batch, (part.when_us, 0))
            batches[part.batch] = (min(when, part.when_us), events + part.events)
    ordered = sorted(batches.values())
    later = [one for one in ordered if one[0] >= record.spans.measured_from_us]
    chosen = later if len(later) >= BATCHES_MIN else ordered
    times = [when for when, _ in chosen]
    # Two moves of progress seen late may lie close together, and then say nothing.
    least, apart_us = (2, unseen_s * US / 2) if unseen_s else (BATCHES_MIN, 1)
    if len(chosen) < least or times[-1] - times[0] < apart_us:
        return sum(events for _, events in chosen) * US / max(1, record.deadline_us - record.spans.start_us)
    end_us = times[-1]
    between = chosen[1:] if unseen_s else chosen[:-1]
    if record.deadline_us - end_us > SILENT_GAPS * max(after - before for before, after in pairwise(times)):
        # It stands still since, or is at work on its last batch.
        end_us = record.deadline_us
        between = chosen[1:] if unseen_s else chosen
    return sum(events for _, events in between) * US / (end_us - times[0])


def warm_up(conductor: TrialConductor, rate_per_s: float) -> TrialRecord:
    """Offers a rate that rises to `rate_per_s`, for the warm-up of a fresh engine; nothing is judged.

    As in the overload trial, the waiting event time is bounded, because the rate may be far too high.

    Raises:
        KeyboardInterrupt: the user stopped it.
    """
    resolved, start_us = conductor.resolved, next_start(conductor.testbed)
    end_us = start_us + round(resolved.warmup_s(True, resolved.experiment.load.duration) * US)
    spans = TrialSpans(start_us, end_us, end_us, end_us)
    plan, policy = resolved.trial_plan(spans, rate_per_s, fresh=True), PacedLoad(pace_us(resolved, rate_per_s, PACE_S))
    record = conductor.conduct(plan, spans, rate_per_s, policy)
    if record.interrupted:
        raise KeyboardInterrupt
    return record


def drained_where_far_behind(conductor: TrialConductor, record: TrialRecord, rate_per_s: float) -> float | None:
    """Events per second that the engine drained since the warm-up began, if that is almost nothing of the rate.

    None if it is more, or if the engine had too little time to show it.
    """
    resolved = conductor.resolved
    since_s = (conductor.testbed.clock.now_us() - record.spans.start_us) / US
    drained_per_s = record.trial_log.running.taken_events() / since_s
    least_s = max(FRESH_WARMUP_S, INTERVALS_MIN * resolved.interval_s, INTERVALS_MIN * resolved.unseen_s)
    if since_s < least_s or record.ended_early or not drained_per_s:
        return None
    return drained_per_s if far_behind(drained_per_s / rate_per_s, interference.background_share(record)) else None
