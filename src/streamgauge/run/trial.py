"""One trial, whole: conduct it on a started rig, verify the answers, judge, write the run folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

import duckdb

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.causes import WarningCode
from streamgauge.engines.seam import OperatorCounts
from streamgauge.errors import DriverError, is_full
from streamgauge.events import US
from streamgauge.experiment import Experiment
from streamgauge.measure.histogram import log_line, log_lines
from streamgauge.measure.latency import SinkLatencies
from streamgauge.progress import TrialSnapshot
from streamgauge.result import Caution, Latencies, Result, Verdict, Verification
from streamgauge.run import figures, operators
from streamgauge.run.columns import Log
from streamgauge.run.comparison import Verified
from streamgauge.run.conduct import DRAIN_S, Conducted, Conductor, Spans, look
from streamgauge.run.evidence import evidence_of
from streamgauge.run.measured import measured
from streamgauge.run.native_truth import UNJUDGED, verify_own
from streamgauge.run.own_job import OwnJob
from streamgauge.run.policy import EXTENSION_SHARE, EXTENSION_SHARE_MAX, EXTENSIONS_MAX
from streamgauge.run.ready import HOLD_US, LEVEL_MAX_US, Ready, spare_s
from streamgauge.run.rig import Rig, RigSettings
from streamgauge.run.unverified import BUDGET_S, NOT_BEGUN, NOT_COUNTED, Budget, unverified
from streamgauge.run.verdict import judge
from streamgauge.run.verify import verify
from streamgauge.run.watching import (
    holds_too_little,
    hopeless_reason,
    invalid_reason,
    left_open,
    unsustainable,
    why_starting,
)
from streamgauge.stats.bootstrap import prepare
from streamgauge.system.full_disk import full_disk
from streamgauge.system.machine import only_on
from streamgauge.transports.seam import Chunk
from streamgauge.units import format_rate

_QUERY_STOPPED = "interrupted"
"""DuckDB answers Ctrl-C with a RuntimeError that says so."""
_LACKING = (OSError, MemoryError)
"""A disk that is full, or too little memory, is no reason to lose what was measured."""
EVIDENCE_S, STOPPED_EVIDENCE_S = 30.0, 1.5
"""So long may the engine take to tell of its batches; somebody who pressed Ctrl-C waits 5 s for all there is to do."""
START_LEAD_US = 700_000
DECIDING_US = 300_000
"""So long a phase is shown on after its end."""
LOOK_US = 300_000
"""So long a look at the generators may take, while they go on."""
LEVEL_STEP_US = 5 * US
"""A warm-up at whose end the engine is still starting goes on by such steps."""
LATE_S = 8.0
"""So long are missing results looked for after the deadline, where it is asked whether they are late or lost."""
LATE_POLL_S = 0.1
NOT_JUDGED = "not counted, as the answers could not be judged"
NOT_LOOKED_AT = "not counted: the trial was ended early, and its results were not looked at"


@dataclass(frozen=True)
class TrialSettings:
    """What differs from trial to trial; `drain_s`: how long results are waited for after the plan's end."""

    rate_per_s: float
    fresh: bool
    duration_s: float
    may_extend: bool = True
    keep_results: bool = False
    probe_batches: bool = True
    skip_answers_when_failed: bool = False
    look_for_late: bool = False
    drain_s: float = DRAIN_S


@dataclass
class Judged:
    """A trial's result and what it was made from."""

    result: Result
    done: Conducted
    verified: Verified | None


def rig_settings(ready: Ready) -> RigSettings:
    """The rig that an experiment needs."""
    load = ready.experiment.load
    port = ready.experiment.port
    return RigSettings(
        flow=ready.lineage_flow, columns=ready.columns, generators=ready.generators,
        bound_us=round(load.bound * US), bytes_max=ready.bytes_max,
        frontier=load.frontier, options=ready.experiment.options, master=ready.experiment.master,
        driver_cpus=ready.driver_cpus, transport=ready.experiment.transport,
        transport_options=ready.transport_options, host=ready.experiment.bind,
        ports=tuple(range(port, port + ready.generators + 1)) if port else (),
    )  # fmt: skip


def probes(experiment: Experiment) -> bool:
    """Whether the engine's own progress is kept as extra series; `--option probes=off` leaves it out."""
    return experiment.options.get("probes") != "off"


def next_start(rig: Rig, apart_us: int = 0) -> int:
    """The next whole second that leaves the generators time to make their first chunk.

    `apart_us`: so far it lies from all that the rig has offered before. A flow's reach, so that no window holds events
    of two trials, and the watermark's delay, so that the first events close the windows of the one before.
    """
    earliest_us = max(rig.clock.now_us() + START_LEAD_US, rig.reached_us + apart_us)
    return -(-earliest_us // US) * US


def run_trial(
    ready: Ready,
    rig: Rig,
    folder: RunFolder,
    settings: TrialSettings,
    *,
    on_progress: Callable[[TrialSnapshot], None] = lambda _: None,
    ceiling_per_s: float | None = None,
) -> Judged:
    """Conduct, verify and judge one trial; the folder holds everything when this returns."""
    prepare()
    started_us = next_start(rig, (ready.reach_us or 0) + ready.watermark_delay_us)
    spans = ready.spans(started_us, settings.fresh, settings.duration_s)
    spare = spare_s(settings.duration_s) if settings.may_extend else 0.0
    plan = ready.trial_plan(spans, settings.rate_per_s, settings.fresh, spare)
    conductor = Conductor(
        rig, plan, spans, ready.chunk_for(settings.rate_per_s),
        on_tick=lambda done: on_progress(snapshot(done, rig.clock.now_us())),
        closes_late=ready.closing_sinks, interval_s=ready.interval_s, drain_s=settings.drain_s,
        hold_us=HOLD_US if settings.may_extend else 0,
        levelling=lambda done: _levelling_us(ready, done, settings),
        hopeless=lambda done: _hopeless(ready, done, settings, rig.clock.now_us()),
        undecided=lambda done: _extension_us(ready, done, settings),
        failed=lambda done: _failed(ready, done, settings),
    )  # fmt: skip
    with only_on(ready.driver_cpus):
        done = conductor.conduct()
    told = _told(rig, done) if settings.probe_batches and not done.engine_failed else Told()
    if done.interrupted:
        rig.stop()  # first of all: to judge and to draw beside a busy engine takes long, and somebody waits for the end
    return conclude(ready, rig, folder, settings, done, told, on_progress, ceiling_per_s)


@dataclass(frozen=True)
class Told:
    """What the engine says of its batches, and of the rows of each operator in them; it decides nothing."""

    progress: list[dict[str, Any]] = field(default_factory=list)
    counts: OperatorCounts = field(default_factory=OperatorCounts)


def _told(rig: Rig, done: Conducted) -> Told:
    """Nothing of a trial is written yet, so Ctrl-C here must not escape."""
    progress: list[dict[str, Any]] = []
    try:
        progress = rig.engine.evidence(STOPPED_EVIDENCE_S if done.interrupted else EVIDENCE_S)
        return Told(progress, OperatorCounts() if done.interrupted else rig.engine.rows(EVIDENCE_S))
    except KeyboardInterrupt:
        done.interrupted = True
        return Told(progress)


def conclude(
    ready: Ready,
    rig: Rig,
    folder: RunFolder,
    settings: TrialSettings,
    done: Conducted,
    told: Told,
    on_progress: Callable[[TrialSnapshot], None],
    ceiling_per_s: float | None,
) -> Judged:
    """Verify, judge and write down; what was measured is written before it is judged."""
    folder.forget_answers()
    base = measured(ready, rig, folder, done, settings.rate_per_s, ceiling_per_s)
    base = _with_operators(ready, folder, done, told, base)
    folder.write_result(base)
    counted = ready.engine.own_batches
    folder.write_batches(figures.batches(told.progress, done.spans.start_us, done.journal, counted))
    folder.write_series(figures.series(done, None))
    base = _with_appends(rig, done, base)
    if done.interrupted:
        return _stopped(ready, folder, settings, done, base)
    if done.hopeless and settings.skip_answers_when_failed:
        result = _with_verdict(base, judge(evidence_of(ready, done, settings.rate_per_s, None, None)))
        result = result.model_copy(update={"latency": Latencies(notes=(NOT_LOOKED_AT,))})
        folder.write_result(result)
        return Judged(result, done, None)
    on_progress(replace(snapshot(done, rig.clock.now_us()), phase="verification", note="comparing every answer"))
    try:
        verified = _verified(ready, rig, done, folder if settings.keep_results else None)
        if settings.look_for_late and verified.verification.missing and _late_came(rig, done):
            verified = _verified(ready, rig, done, folder if settings.keep_results else None)
    except (KeyboardInterrupt, RuntimeError, *UNJUDGED, *_LACKING) as error:
        stopped = isinstance(error, RuntimeError) and _QUERY_STOPPED in str(error)
        done.interrupted = stopped or isinstance(error, (KeyboardInterrupt, duckdb.InterruptException))
        if not done.interrupted and not isinstance(error, (*UNJUDGED, *_LACKING)):
            raise
        if done.interrupted:
            return _stopped(ready, folder, settings, done, base)
        return _without_answers(ready, folder, settings.rate_per_s, done, base, error)
    folder.write_verification(verified.verification)
    slowest = verified.slowest.latencies
    verdict = judge(evidence_of(ready, done, settings.rate_per_s, verified, slowest.latencies))
    result = _with_verdict(base, verdict).model_copy(
        update={
            "sinks": verified.results, "latency": slowest.latencies, "verification": verified.verification,
            "notes": (*base.notes, *verified.notes),
        }
    )  # fmt: skip
    folder.write_series(figures.series(done, slowest.seconds))
    folder.write_hlog(_hlog(verified, done.spans))
    folder.write_result(result)
    return Judged(result, done, verified)


def _with_operators(ready: Ready, folder: RunFolder, done: Conducted, told: Told, base: Result) -> Result:
    """With figures by operator, which are also written down; a warning where the engine counts no more."""
    if told.progress or told.counts.rows:
        known = operators.counted(told.counts.rows, done.journal)
        found = operators.summaries(ready.flow, known, done.journal, done.spans)
        base = base.model_copy(update={"operators": found})
        folder.write_operators(operators.table(ready.flow, known))
    if told.counts.ended:
        said = f"rows of operators were not counted to the end: {told.counts.ended}"
        base = base.warned(Caution(WarningCode.OPERATOR_ROWS_INCOMPLETE, said))
    return base


def _with_appends(rig: Rig, done: Conducted, base: Result) -> Result:
    """With what the broker says of when it had events, of a trial that came to its end."""
    if done.ended_early or base.driver is None:
        return base
    try:
        found = figures.append_latency(rig.append_latencies_us(done.spans.measured_from_us, done.measured_until))
    except DriverError as error:
        said = f"when the broker had events is not known: {error}"
        return base.warned(Caution(WarningCode.BROKER_TIMES_UNKNOWN, said))
    except KeyboardInterrupt:
        done.interrupted = True
        return base
    return base.model_copy(update={"driver": base.driver.model_copy(update={"append_latency_us": found})})


def _stopped(ready: Ready, folder: RunFolder, settings: TrialSettings, done: Conducted, base: Result) -> Judged:
    """A trial that somebody stopped: its figures, and how late the results were that came.

    Written before the results are looked at, so that a second Ctrl-C may end that.
    """
    begun = done.offered_until() > done.spans.measured_from_us
    latency = Latencies(notes=(NOT_COUNTED if begun else NOT_BEGUN,))
    result = _with_verdict(base, judge(evidence_of(ready, done, settings.rate_per_s, None, None)))
    result = result.model_copy(update={"latency": latency})
    folder.write_result(result)
    if begun:
        with suppress(KeyboardInterrupt):
            result = _with_what_came(ready, folder, settings, done, result)
    return Judged(result, done, None)


def _with_what_came(
    ready: Ready, folder: RunFolder, settings: TrialSettings, done: Conducted, result: Result
) -> Result:
    """With latencies that nobody verified; the folder holds them too when this returns."""
    found = unverified(ready, done, folder if settings.keep_results else None, Budget(BUDGET_S))
    slowest = found.sinks.slowest.latencies
    result = result.warned(*(Caution(WarningCode.RESULTS_NOT_STORED, said) for said in found.warnings))
    result = result.model_copy(update={
        "sinks": found.sinks.results, "latency": slowest.latencies, "verification": found.sinks.verification,
    })  # fmt: skip
    folder.write_verification(found.sinks.verification)
    folder.write_series(figures.series(done, slowest.seconds))
    if any(sink.latencies.effective_count for sink in found.sinks.sinks):
        folder.write_hlog(_hlog(found.sinks, done.spans))
    folder.write_result(result)
    return result


def _without_answers(
    ready: Ready, folder: RunFolder, rate_per_s: float, done: Conducted, base: Result, error: BaseException
) -> Judged:
    """The trial as far as it goes where the verification could not be done: the figures stand."""
    # What the driver failed of is said once: the same full disk takes no answers either.
    found = _unverified(error, said=done.disk_full)
    evidence = evidence_of(ready, done, rate_per_s, None, None)
    evidence = replace(evidence, verification=found, answers_disk_full=is_full(error))
    latency = Latencies(notes=(NOT_JUDGED,))
    result = _with_verdict(base, judge(evidence)).model_copy(update={"verification": found, "latency": latency})
    folder.write_verification(found)
    folder.write_result(result)
    return Judged(result, done, None)


def _unverified(error: BaseException, said: bool) -> Verification:
    reason = _reason(error) if not (said and is_full(error)) else "for the same reason"
    return Verification(
        judged=False, independent=False, reference="", sentence=f"the answers could not be judged: {reason}"
    )


def _reason(error: BaseException) -> str:
    return full_disk() if is_full(error) else (str(error) or type(error).__name__).splitlines()[0]


def _verified(ready: Ready, rig: Rig, done: Conducted, keep_in: RunFolder | None) -> Verified:
    if isinstance(ready.workload, OwnJob):
        return verify_own(ready, done, rig.folder / "engine" / "batch.log", keep_in)
    return verify(ready, done, keep_in)


def _late_came(rig: Rig, done: Conducted) -> bool:
    """Whether results came after the deadline of a trial whose input was all committed; they are in its journal then.

    Without this look a result that comes late could not be told from one that is lost.
    """
    before, until = len(done.journal.commits), time.monotonic() + LATE_S
    if not done.drained or done.ended_early:
        return False
    with suppress(DriverError):
        while time.monotonic() < until and len(done.journal.commits) == before:
            time.sleep(LATE_POLL_S)
            look(rig, done.journal)
    return len(done.journal.commits) > before


def snapshot(done: Conducted, now_us: int) -> TrialSnapshot:
    """What progress shows: the last five seconds, at most."""
    journal, spans = done.journal, done.spans
    since = max(spans.start_us, now_us - 5 * US)
    seconds = max(0.5, (now_us - since) / US)
    commits = takewhile(lambda c: c.committed_us >= since, reversed(journal.commits))
    latencies = [c.latency_us_p50 for c in commits if c.emitted_us >= since and c.latency_us_p50 is not None]
    now = min(now_us, spans.end_us)
    return TrialSnapshot(
        # What follows a phase is only known once the look at its end has decided that it does not go on.
        phase=figures.phase_at(spans, max(spans.start_us, now_us - DECIDING_US)),
        elapsed_s=max(0.0, (now - spans.start_us) / US),
        planned_s=(spans.end_us - spans.start_us) / US,
        offered_per_s=sum(_offered_per_s(log, spans.start_us, since, now) for log in journal.chunks),
        ingested_per_s=journal.ingested_since(since) / seconds,
        backlog_events=max(0, journal.offered_events() - journal.running.taken_events()),
        event_time_p50_us=max(latencies, default=None),
        note=_note(done, now_us),
    )


def _offered_per_s(log: Log[Chunk], start_us: int, since_us: int, now_us: int) -> float:
    """The rate of a generator's chunks that ended since then, over the time that they are of.

    What is under way is of no chunk yet: its time counts as little as its events do, up to as long as a chunk and a
    look at it take. So a generator that stands still longer shows.
    """
    recent = list(takewhile(lambda chunk: chunk.to_us > since_us and chunk.from_us >= start_us, reversed(log)))
    if not recent:
        return 0.0
    last = recent[0]
    until_us = max(last.to_us, now_us - (last.to_us - last.from_us) - LOOK_US)
    return sum(chunk.events for chunk in recent) / (until_us - recent[-1].from_us) * US


def _note(done: Conducted, now_us: int) -> str:
    """Why a trial takes longer than was planned, and that its rate is not whole yet."""
    if done.interrupted:
        return "stopping; what was measured is kept"
    notes = []
    if done.prolonged_us:
        notes.append(f"warm-up {done.prolonged_us / US:.0f} s longer, as {done.prolonged_for[-1]}")
    if done.looks > 1:
        notes.append(f"extended, as {done.extended_for[-1]} was undecided")
    elif rising := _rising(done, now_us):
        notes.append(rising)
    return "; ".join(notes)


def _rising(done: Conducted, now_us: int) -> str:
    """While the rate of a warm-up still rises: to what. Without that it looks as if the generators failed."""
    plan = done.journal.plan
    whole = plan.profile.rate_at((done.spans.measured_from_us - plan.start_us) / US)
    now = plan.profile.rate_at(max(0.0, (now_us - plan.start_us) / US))
    warming = now_us < done.spans.measured_from_us
    return f"rising to {format_rate(whole, 'events/s')}" if warming and now < whole else ""


def _levelling_us(ready: Ready, done: Conducted, settings: TrialSettings) -> int:
    """At the end of the warm-up: how much longer it lasts."""
    if not settings.may_extend or done.prolonged_us >= LEVEL_MAX_US:
        return 0
    if reason := why_starting(done, ready.interval_s):
        done.prolonged_for.append(reason)
    return LEVEL_STEP_US if reason else 0


def _hopeless(ready: Ready, done: Conducted, settings: TrialSettings, now_us: int) -> str | None:
    """A search makes an invalid trial again, and need not wait for its end; a run's figures show what happened."""
    reason = hopeless_reason(ready, done, settings.rate_per_s, now_us)
    return reason or (invalid_reason(done) if settings.skip_answers_when_failed else None)


def _failed(ready: Ready, done: Conducted, settings: TrialSettings) -> str | None:
    """A search has its answer when a trend failed, or stays undecided: it needs neither tail nor answers then."""
    return unsustainable(ready, done, settings.rate_per_s) if settings.skip_answers_when_failed else None


def _extension_us(ready: Ready, done: Conducted, settings: TrialSettings) -> int:
    """At the end of a look: how much longer to measure. Judged on trends alone; answers are compared after the run."""
    if not settings.may_extend or done.looks > EXTENSIONS_MAX:
        return 0
    measured_s = (done.spans.measured_to_us - done.spans.measured_from_us) / US
    extension_s = settings.duration_s * (EXTENSION_SHARE_MAX if holds_too_little(ready, done) else EXTENSION_SHARE)
    longest = 1 + (EXTENSIONS_MAX + 1 - done.looks) * extension_s / measured_s
    open_ = left_open(ready, done, settings.rate_per_s, longest)
    if open_:
        done.extended_for.append(" and ".join(open_))
    return round(extension_s * US) if open_ else 0


def _with_verdict(result: Result, verdict: Verdict) -> Result:
    return result.model_copy(update={"verdict": verdict})


def _hlog(verified: Verified, spans: Spans) -> str:
    """The latencies that are known by the second, second by second; the others, of the whole measured span."""
    several = len(verified.sinks) > 1
    return "".join(
        line for sink in verified.sinks for line in _hlog_of(sink.latencies, f"/{sink.name}" if several else "", spans)
    )


def _hlog_of(found: SinkLatencies, tag: str, spans: Spans) -> Iterator[str]:
    of = found.seconds
    by_second = {
        "event_time": of.event_time, "processing_time": of.processing_time, "closing_delay": of.closing_delay,
    }  # fmt: skip
    for kind, seconds in by_second.items():
        yield log_lines(seconds, f"{kind}{tag}")
    for kind, whole in found.histograms.items():
        reported = found.latencies.of(kind)
        if kind not in by_second and reported is not None and reported.max is not None:
            yield log_line(whole, f"{kind}{tag}", spans.measured_from_us / US, spans.measured_to_us / US)
