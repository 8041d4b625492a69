"""The life of one trial on a started test bed: conduct it, verify the answers, judge, and write the run folder.

`TrialConductor` does these steps in order. `trial.phases.PhaseRunner` runs the phases of step one, and the trial's
`TrialPolicy` decides whether a phase is extended or ended early."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Protocol

import duckdb

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.experiment import Experiment
from streamgauge.core.clock import US, Clock
from streamgauge.core.errors import DriverError, StreamgaugeError, is_full
from streamgauge.core.operator_rows import OperatorCounts
from streamgauge.core.stage import Stage
from streamgauge.core.trial_spans import TrialSpans
from streamgauge.engines.spi import Engine
from streamgauge.harness.testbed import TestBed, TestBedSettings
from streamgauge.metrics.latency.event_latency import SinkLatencies
from streamgauge.metrics.latency.histogram import log_line, log_lines
from streamgauge.metrics.log.trial_log import TrialLog
from streamgauge.metrics.log.trial_record import TrialRecord
from streamgauge.metrics.summary import figures, operators
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.preflight.user_job import UserJob
from streamgauge.results.causes import Cause, WarningCode
from streamgauge.results.latency import Latencies
from streamgauge.results.run import Caution, Result, Verification
from streamgauge.results.verdict import Verdict
from streamgauge.stats.bootstrap import prepare
from streamgauge.system.full_disk import full_disk
from streamgauge.system.machine import only_on
from streamgauge.trial.events import (
    Emptying,
    EngineStarted,
    EngineStarting,
    Observer,
    VerdictReached,
    VerificationBegan,
    Verifying,
    unobserved,
)
from streamgauge.trial.interrupted import BUDGET_S, NOT_BEGUN, NOT_COUNTED, Budget, latencies_without_verification
from streamgauge.trial.phases import PhaseRunner, TrialPolicy, drain_backlog, poll
from streamgauge.trial.policy import JudgedTrial
from streamgauge.trial.result_builder import build_result
from streamgauge.verdict.collect_evidence import collect_evidence
from streamgauge.verdict.verdict import judge
from streamgauge.verification.expected import verify
from streamgauge.verification.sink_comparison import VerificationResult
from streamgauge.verification.user_job.truth import JOB_ERRORS, verify_user_job

if TYPE_CHECKING:
    from streamgauge.loadgen.plan import Plan

_QUERY_STOPPED = "interrupted"
"""DuckDB answers Ctrl-C with a RuntimeError that says so."""
_LACKING = (OSError, MemoryError)
"""A disk that is full, or too little memory, is no reason to lose what was measured."""
EVIDENCE_S, STOPPED_EVIDENCE_S = 30.0, 1.5
"""So long may the engine take to tell of its batches; somebody who pressed Ctrl-C waits 5 s for all there is to do."""
START_LEAD_US = 700_000
REPORTED_EVERY_S = 1.0
COMPARING = "comparing every answer"
LATE_S = 8.0
"""So long are missing results looked for after the deadline, where it is asked whether they are late or lost."""
LATE_POLL_S = 0.1
NOT_JUDGED = "not counted, as the answers could not be judged"
NOT_LOOKED_AT = "not counted: the trial was ended early, and its results were not looked at"


@dataclass
class TrialResult:
    """A trial's result and what it was made from."""

    result: Result
    record: TrialRecord
    verified: VerificationResult | None


def testbed_settings(resolved: ResolvedExperiment) -> TestBedSettings:
    """The test bed that an experiment needs."""
    load = resolved.experiment.load
    port = resolved.experiment.port
    return TestBedSettings(
        flow=resolved.lineage_flow, columns=resolved.columns, generators=resolved.generators,
        bound_us=round(load.bound * US), bytes_max=resolved.bytes_max,
        frontier=load.frontier, options=resolved.engine_options, master=resolved.experiment.master,
        driver_cpus=resolved.driver_cpus, transport=resolved.experiment.transport,
        transport_options=resolved.transport_options, host=resolved.experiment.bind,
        ports=tuple(range(port, port + resolved.generators + 1)) if port else (),
    )  # fmt: skip


def probes(experiment: Experiment) -> bool:
    """Whether the engine's own progress is kept as extra series; `--option probes=off` leaves it out."""
    return experiment.options.get("probes") != "off"


def next_start(testbed: TestBed, apart_us: int = 0) -> int:
    """The next whole second that leaves the generators time to make their first chunk.

    `apart_us`: so far it lies from all that the test bed has offered before. A flow's reach, so that no window holds
    events of two trials, and the watermark's delay, so that the first events close the windows of the one before.
    """
    earliest_us = max(testbed.clock.now_us() + START_LEAD_US, testbed.reached_us + apart_us)
    return -(-earliest_us // US) * US


@dataclass(frozen=True)
class EngineReport:
    """What the engine says of its batches, and of the rows of each operator in them; it decides nothing."""

    progress: list[dict[str, Any]] = field(default_factory=list)
    counts: OperatorCounts = field(default_factory=OperatorCounts)


class TrialConductor:
    """Owns the life of the trials on one test bed: start, warm up, conduct, drain, verify, judge, write."""

    def __init__(
        self,
        resolved: ResolvedExperiment,
        testbed: TestBed,
        observe: Observer = unobserved,
        ceiling_per_s: float | None = None,
    ) -> None:
        self.resolved, self.testbed, self.observe, self.ceiling_per_s = resolved, testbed, observe, ceiling_per_s
        self.left: TrialLog | None = None
        """Of the last trial: what it has left is drained when another one follows."""

    @classmethod
    @contextmanager
    def on_test_bed(
        cls,
        resolved: ResolvedExperiment,
        make_engine: Callable[[], Engine],
        folder: Path,
        observe: Observer = unobserved,
        *,
        options: Mapping[str, str] | None = None,
        ceiling_per_s: float | None = None,
    ) -> Iterator[TrialConductor]:
        """A conductor with a test bed of its own, not yet started. `options`: of the engine's, besides those asked."""
        asked = testbed_settings(resolved)
        asked = replace(asked, options={**asked.options, **(options or {})})
        with TestBed(asked, make_engine, folder, Clock.fixed_now()) as testbed:
            yield cls(resolved, testbed, observe, ceiling_per_s)

    def start(self, rate_per_s: float, note: str, folder: RunFolder | None = None) -> None:
        """Start the processes. Where that fails, `folder` says why."""
        with record_start_failure(folder), report_start_progress(self.observe, note, self.testbed):
            self.testbed.start(self.resolved.plan(next_start(self.testbed) - START_LEAD_US, rate_per_s, 1.0))
        self.observe(EngineStarted())

    def conduct(self, plan: Plan, spans: TrialSpans, rate_per_s: float, policy: TrialPolicy) -> TrialRecord:
        """Offer a plan to its end, or as far as the policy lets it go; nothing is judged."""
        chunk_us = self.resolved.chunk_for(rate_per_s)
        conductor = PhaseRunner(self.testbed, plan, spans, chunk_us, policy, self.observe)
        with only_on(self.resolved.driver_cpus):
            record = conductor.conduct()
        self.left = record.trial_log
        return record

    def run(self, folder: RunFolder, trial: JudgedTrial) -> TrialResult:
        """One trial, conducted, verified and judged; the folder holds everything when this returns."""
        prepare()
        spans = trial.spans(next_start(self.testbed, trial.apart_us))
        record = self.conduct(trial.plan(spans), spans, trial.rate_per_s, trial)
        trial.before_judging(self, record)
        report = (
            _report_of_engine(self.testbed, record)
            if trial.probe_batches and not record.engine_failed
            else EngineReport()
        )
        if record.interrupted:
            # First of all: to judge and to draw beside a busy engine takes long, and somebody waits for the end.
            self.testbed.stop()
        judged = self.conclude(folder, trial, record, report)
        self.observe(VerdictReached(judged, self.testbed))
        return judged

    def emptied(self, timeout_s: float) -> bool:
        """Whether all that the last trial has left is committed, in so long at most; True where none was made."""
        self.observe(Emptying())
        return self.left is None or drain_backlog(self.testbed, self.left, timeout_s)

    def conclude(self, folder: RunFolder, trial: JudgedTrial, record: TrialRecord, report: EngineReport) -> TrialResult:
        """Verify, judge and write down; what was measured is written before it is judged."""
        resolved, testbed = self.resolved, self.testbed
        folder.forget_answers()
        base = build_result(resolved, testbed, folder, record, trial.rate_per_s, self.ceiling_per_s)
        base = _with_operators(resolved, folder, record, report, base)
        folder.write_result(base)
        counted = resolved.engine.has_batch_ids
        folder.write_batches(figures.batches(report.progress, record.spans.start_us, record.trial_log, counted))
        folder.write_series(figures.series(record, None))
        base = _with_appends(testbed, record, base)
        if record.interrupted:
            return _interrupted(resolved, folder, trial, record, base)
        if not trial.verifies(record):
            result = _with_verdict(base, judge(collect_evidence(resolved, record, trial.rate_per_s, None, None)))
            result = result.model_copy(update={"latency": Latencies(notes=(NOT_LOOKED_AT,))})
            folder.write_result(result)
            return TrialResult(result, record, None)
        try:
            self.observe(VerificationBegan(record, testbed.clock.now_us()))
            verified = self._verified(folder, trial, record)
        except (KeyboardInterrupt, RuntimeError, *JOB_ERRORS, *_LACKING) as error:
            stopped = isinstance(error, RuntimeError) and _QUERY_STOPPED in str(error)
            record.interrupted = stopped or isinstance(error, (KeyboardInterrupt, duckdb.InterruptException))
            if not record.interrupted and not isinstance(error, (*JOB_ERRORS, *_LACKING)):
                raise
            if record.interrupted:
                return _interrupted(resolved, folder, trial, record, base)
            return _without_answers(resolved, folder, trial.rate_per_s, record, base, error)
        return _judge_answers(resolved, folder, trial.rate_per_s, record, base, verified)

    def _verified(self, folder: RunFolder, trial: JudgedTrial, record: TrialRecord) -> VerificationResult:
        keep_in = folder if trial.keep_results else None
        stage = Stage(COMPARING)
        with _every_second(lambda elapsed_s: self.observe(Verifying(elapsed_s, stage()))):
            verified = _verified(self.resolved, self.testbed, record, keep_in, stage)
            if trial.recheck_missing and verified.verification.missing:
                stage.set("waiting for results that are missing")
                if _late_came(self.testbed, record):
                    verified = _verified(self.resolved, self.testbed, record, keep_in, stage)
        return verified


def _report_of_engine(testbed: TestBed, record: TrialRecord) -> EngineReport:
    """Nothing of a trial is written yet, so Ctrl-C here must not escape."""
    progress: list[dict[str, Any]] = []
    try:
        progress = testbed.engine.batch_progress(STOPPED_EVIDENCE_S if record.interrupted else EVIDENCE_S)
        return EngineReport(
            progress, OperatorCounts() if record.interrupted else testbed.engine.operator_row_counts(EVIDENCE_S)
        )
    except KeyboardInterrupt:
        record.interrupted = True
        return EngineReport(progress)


def _judge_answers(
    resolved: ResolvedExperiment,
    folder: RunFolder,
    rate_per_s: float,
    record: TrialRecord,
    base: Result,
    verified: VerificationResult,
) -> TrialResult:
    """The trial with its answers, and the verdict that goes by them."""
    folder.write_verification(verified.verification)
    slowest = verified.slowest.latencies
    verdict = judge(collect_evidence(resolved, record, rate_per_s, verified, slowest.latencies))
    result = _with_verdict(base, verdict).model_copy(
        update={
            "sinks": verified.results, "latency": slowest.latencies, "verification": verified.verification,
            "notes": (*base.notes, *verified.notes),
        }
    )  # fmt: skip
    folder.write_series(figures.series(record, slowest.seconds))
    folder.write_hlog(_hlog(verified, record.spans))
    folder.write_result(result)
    return TrialResult(result, record, verified)


@contextmanager
def report_start_progress(observe: Observer, note: str, starting: Starting) -> Iterator[None]:
    """Reports every second how long a start takes, and what is done if `starting` says so."""
    with _every_second(lambda elapsed_s: observe(EngineStarting(elapsed_s, starting.stage() or note))):
        yield


class Starting(Protocol):
    """A test bed, or an engine alone."""

    def stage(self) -> str:
        """What it does; empty if it does not say."""


@contextmanager
def _every_second(report_elapsed: Callable[[float], object]) -> Iterator[None]:
    """Calls it with the seconds that have passed, at once and then every second, from a thread of its own."""
    begun, over = time.monotonic(), Event()

    def report() -> None:
        going_on = True
        while going_on:
            report_elapsed(time.monotonic() - begun)
            going_on = not over.wait(REPORTED_EVERY_S)

    reporter = Thread(target=report, name="reporter", daemon=True)
    reporter.start()
    try:
        yield
    finally:
        over.set()
        reporter.join()


@contextmanager
def record_start_failure(folder: RunFolder | None) -> Iterator[None]:
    """A start that fails leaves a folder that says why."""
    try:
        yield
    except StreamgaugeError as error:
        if folder is not None:
            verdict = Verdict(value="invalid", cause=Cause.START_FAILED, sentence=str(error).splitlines()[0])
            error.folder = str(folder.path)
            noted = folder.read_result().model_copy(update={"verdict": verdict, "folder": str(folder.path)})
            folder.write_result(noted)
        raise


def _with_operators(
    resolved: ResolvedExperiment, folder: RunFolder, record: TrialRecord, report: EngineReport, base: Result
) -> Result:
    """With figures by operator, which are also written down; a warning where the engine counts no more."""
    if report.progress or report.counts.rows:
        known = operators.operator_row_counts(report.counts.rows, record.trial_log)
        found = operators.summaries(resolved.flow, known, record.trial_log, record.spans)
        base = base.model_copy(update={"operators": found})
        folder.write_operators(operators.table(resolved.flow, known))
    if report.counts.ended:
        said = f"rows of operators were not counted to the end: {report.counts.ended}"
        base = base.warned(Caution(WarningCode.OPERATOR_ROWS_INCOMPLETE, said))
    return base


def _with_appends(testbed: TestBed, record: TrialRecord, base: Result) -> Result:
    """With what the broker says of when it had events, of a trial that came to its end."""
    if record.ended_early or base.driver is None:
        return base
    try:
        found = figures.append_latency(
            testbed.append_latencies_us(record.spans.measured_from_us, record.measured_until)
        )
    except DriverError as error:
        said = f"when the broker had events is not known: {error}"
        return base.warned(Caution(WarningCode.BROKER_TIMES_UNKNOWN, said))
    except KeyboardInterrupt:
        record.interrupted = True
        return base
    return base.model_copy(update={"driver": base.driver.model_copy(update={"append_latency_us": found})})


def _interrupted(
    resolved: ResolvedExperiment, folder: RunFolder, trial: JudgedTrial, record: TrialRecord, base: Result
) -> TrialResult:
    """A trial that somebody stopped: its figures, and how late the results were that came.

    Written before the results are looked at, so that a second Ctrl-C may end that.
    """
    begun = record.offered_until() > record.spans.measured_from_us
    latency = Latencies(notes=(NOT_COUNTED if begun else NOT_BEGUN,))
    result = _with_verdict(base, judge(collect_evidence(resolved, record, trial.rate_per_s, None, None)))
    result = result.model_copy(update={"latency": latency})
    folder.write_result(result)
    if begun:
        with suppress(KeyboardInterrupt):
            result = _with_what_came(resolved, folder, trial, record, result)
    return TrialResult(result, record, None)


def _with_what_came(
    resolved: ResolvedExperiment, folder: RunFolder, trial: JudgedTrial, record: TrialRecord, result: Result
) -> Result:
    """With latencies that nobody verified; the folder holds them too when this returns."""
    found = latencies_without_verification(resolved, record, folder if trial.keep_results else None, Budget(BUDGET_S))
    slowest = found.sinks.slowest.latencies
    result = result.warned(*(Caution(WarningCode.RESULTS_NOT_STORED, said) for said in found.warnings))
    result = result.model_copy(update={
        "sinks": found.sinks.results, "latency": slowest.latencies, "verification": found.sinks.verification,
    })  # fmt: skip
    folder.write_verification(found.sinks.verification)
    folder.write_series(figures.series(record, slowest.seconds))
    if any(sink.latencies.effective_count for sink in found.sinks.sinks):
        folder.write_hlog(_hlog(found.sinks, record.spans))
    folder.write_result(result)
    return result


def _without_answers(
    resolved: ResolvedExperiment,
    folder: RunFolder,
    rate_per_s: float,
    record: TrialRecord,
    base: Result,
    error: BaseException,
) -> TrialResult:
    """The trial as far as it goes where the verification could not be done: the figures stand."""
    # What the driver failed of is said once: the same full disk takes no answers either.
    found = _unverified(error, said=record.disk_full)
    evidence = collect_evidence(resolved, record, rate_per_s, None, None)
    evidence = replace(evidence, verification=found, answers_disk_full=is_full(error))
    latency = Latencies(notes=(NOT_JUDGED,))
    result = _with_verdict(base, judge(evidence)).model_copy(update={"verification": found, "latency": latency})
    folder.write_verification(found)
    folder.write_result(result)
    return TrialResult(result, record, None)


def _unverified(error: BaseException, said: bool) -> Verification:
    reason = _reason(error) if not (said and is_full(error)) else "for the same reason"
    return Verification(
        judged=False, independent=False, reference="", sentence=f"the answers could not be judged: {reason}"
    )


def _reason(error: BaseException) -> str:
    return full_disk() if is_full(error) else (str(error) or type(error).__name__).splitlines()[0]


def _verified(
    resolved: ResolvedExperiment, testbed: TestBed, record: TrialRecord, keep_in: RunFolder | None, stage: Stage
) -> VerificationResult:
    if isinstance(resolved.workload, UserJob):
        return verify_user_job(resolved, record, testbed.folder / "engine" / "batch.log", keep_in, stage)
    stage.set(COMPARING)
    return verify(resolved, record, keep_in)


def _late_came(testbed: TestBed, record: TrialRecord) -> bool:
    """Whether results came after the deadline of a trial whose input was all committed; they are in its log then.

    Without this look a result that comes late could not be told from one that is lost.
    """
    before, until = len(record.trial_log.commits), time.monotonic() + LATE_S
    if not record.drained or record.ended_early:
        return False
    with suppress(DriverError):
        while time.monotonic() < until and len(record.trial_log.commits) == before:
            time.sleep(LATE_POLL_S)
            poll(testbed, record.trial_log)
    return len(record.trial_log.commits) > before


def _with_verdict(result: Result, verdict: Verdict) -> Result:
    return result.model_copy(update={"verdict": verdict})


def _hlog(verified: VerificationResult, spans: TrialSpans) -> str:
    """The latencies that are known by the second, second by second; the others, of the whole measured span."""
    several = len(verified.sinks) > 1
    return "".join(
        line for sink in verified.sinks for line in _hlog_of(sink.latencies, f"/{sink.name}" if several else "", spans)
    )


def _hlog_of(found: SinkLatencies, tag: str, spans: TrialSpans) -> Iterator[str]:
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
