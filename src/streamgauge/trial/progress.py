"""Progress of a running trial, from its events: the phase, and the figures of the last five seconds.

Steps without polls (a start, verification) report from a thread, every second."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import takewhile

from streamgauge.core.clock import US, repeated
from streamgauge.core.formatting import format_rate
from streamgauge.core.trial import TrialSnapshot
from streamgauge.core.units import FAR_FUTURE_US
from streamgauge.metrics.rates_and_backlog import backlog_events
from streamgauge.metrics.records import Log
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.transports.spi import Chunk
from streamgauge.trial.events import Draining, Observer, PhaseBegan, Progress, StepProgress, TrialEvent

REPORT_INTERVAL_S = 1.0
POLL_US = 300_000
"""Most time of a poll of the generators."""


Show = Callable[[TrialSnapshot], object]


def snapshots(show: Show) -> Observer:
    """An observer that shows progress. It keeps the phase of the trial whose events it observes."""
    phase = "start"

    def observe(event: TrialEvent) -> None:
        nonlocal phase
        match event:
            case StepProgress():
                show(TrialSnapshot(event.phase, event.elapsed_s, 0.0, note=event.note))
            case PhaseBegan():
                phase = event.phase
            case Progress():
                shown = snapshot(event.record, event.now_us, phase)
                show(replace(shown, note=event.note or shown.note))
            case Draining():
                show(TrialSnapshot("drain", 0.0, 0.0, note="draining the backlog of the last trial"))

    return observe


def show_one_of_several(show: Show, which: str, snapshot: TrialSnapshot) -> None:
    """Shows a trial's progress with the words that say which trial of a study it is."""
    show(replace(snapshot, note=f"{which}; {snapshot.note}" if snapshot.note else which))


def snapshot(record: TrialRecord, now_us: int, phase: str) -> TrialSnapshot:
    """A snapshot of a trial in `phase`, with the figures of the last five seconds."""
    trial_log, spans, running = record.trial_log, record.spans, record.trial_log.running
    since = max(spans.start_us, now_us - 5 * US)
    seconds = max(0.5, (now_us - since) / US)
    commits = takewhile(lambda c: c.committed_us >= since, reversed(trial_log.commits))
    latencies = [c.latency_us_p50 for c in commits if c.emitted_us >= since and c.latency_us_p50 is not None]
    now = min(now_us, spans.end_us)
    return TrialSnapshot(
        phase=phase,
        elapsed_s=max(0.0, (now - spans.start_us) / US),
        planned_s=(spans.end_us - spans.start_us) / US,
        offered_per_s=sum(_offered_per_s(log, spans.start_us, since, now) for log in trial_log.chunks),
        ingested_per_s=int(running.delivered_by(FAR_FUTURE_US) - running.delivered_by(since)) / seconds,
        backlog_events=int(backlog_events(record, now_us)),
        event_time_p50_us=max(latencies, default=None),
        note=_note(record, now_us),
        ends_early=record.ended_early,
    )


def _offered_per_s(log: Log[Chunk], start_us: int, since_us: int, now_us: int) -> float:
    """Events/s that a generator has published since `since_us`, also those that were due before.

    The chunk in progress counts neither events nor time, up to the length of a chunk and a poll. So a generator that
    stands still for longer shows.
    """
    own = list(takewhile(lambda chunk: chunk.published_us > since_us and chunk.from_us >= start_us, reversed(log)))
    if not own:
        return 0.0
    last, first = own[0], own[-1]
    chunk_us = last.to_us - last.from_us
    earlier = log[-len(own) - 1] if len(log) > len(own) else None
    begun_us = first.from_us if earlier is None else max(earlier.published_us, since_us - chunk_us)
    until_us = max(last.published_us, now_us - chunk_us - POLL_US)
    return sum(chunk.events for chunk in own) / (until_us - max(begun_us, start_us)) * US


def _note(record: TrialRecord, now_us: int) -> str:
    """Why a trial ends early or takes longer than planned, or to which rate it still rises."""
    if record.interrupted:
        return "stopping; the measurements are kept"
    if reason := record.early_stop or record.engine_failed or record.driver_failed:
        return reason.splitlines()[0]
    plan, from_us, notes = record.trial_log.plan, record.spans.measured_from_us, []
    target = plan.profile.rate_at((from_us - plan.start_us) / US)
    rate = plan.profile.rate_at(max(0.0, (now_us - plan.start_us) / US))
    if record.prolonged_us:
        notes.append(f"warm-up {record.prolonged_us / US:.0f} s longer, because {record.prolonged_for[-1]}")
    if record.interim_analyses > 1:
        undecided = record.extended_for[-1]
        notes.append(f"extended, because {undecided} {'were' if ' and ' in undecided else 'was'} undecided")
    elif now_us < from_us and rate < target:
        # Without the target rate the generators would seem to fail.
        notes.append(f"rising to {format_rate(target, 'events/s')}")
    return "; ".join(notes)


def report_start_progress(observe: Observer, note: str, stage: Callable[[], str]) -> AbstractContextManager[None]:
    """Reports every second how long a start takes, with the current stage, or `note` before the first stage."""
    return every_second(lambda elapsed_s: observe(StepProgress("start", elapsed_s, stage() or note)))


def every_second(report_elapsed: Callable[[float], object]) -> AbstractContextManager[None]:
    """Calls `report_elapsed` with the elapsed seconds, at once and then every second, from its own thread."""
    start_s = time.monotonic()
    return repeated(lambda: report_elapsed(time.monotonic() - start_s), REPORT_INTERVAL_S, "reporter")
