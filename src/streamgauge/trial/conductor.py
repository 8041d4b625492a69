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
from typing import TYPE_CHECKING, Protocol

import duckdb

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.options_and_settings import Experiment
from streamgauge.core.batch_progress import BatchProgress
from streamgauge.core.clock import US, Clock
from streamgauge.core.errors import DriverError, StreamgaugeError, is_full
from streamgauge.core.operator_rows import OperatorCounts
from streamgauge.core.progress_step import Stage
from streamgauge.core.trial_spans import TrialSpans
from streamgauge.engines.spi import Engine
from streamgauge.harness.testbed import TestBed, TestBedSettings
from streamgauge.metrics.latency.hlog_text import hlog_text
from streamgauge.metrics.log.trial_log import TrialLog
from streamgauge.metrics.log.trial_record import TrialRecord
from streamgauge.metrics.summary import driver, engine_batches, operators, time_series
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.preflight.user_job import UserJob
from streamgauge.results.causes import Cause, WarningCode
from streamgauge.results.latency import Latencies
from streamgauge.results.run import Caution, Result, Verification
from streamgauge.results.verdict import Verdict
from streamgauge.stats.bootstrap import prepare
from streamgauge.system.machine import pin_threads
from streamgauge.trial.events import (
    Draining,
    EngineStarting,
    Observer,
    VerdictReached,
    Verifying,
    unobserved,
)
from streamgauge.trial.extension_policy import JudgedTrial
from streamgauge.trial.interrupted import RESOURCE_ERRORS, reason_of, result_of_interrupted
from streamgauge.trial.phases import PhaseRunner, TrialPolicy, drain_backlog, poll
from streamgauge.trial.result_builder import build_result
from streamgauge.trial.trial_result import TrialResult
from streamgauge.verdict.collect_evidence import collect_evidence
from streamgauge.verdict.verdict import judge
from streamgauge.verification.expected import verify
from streamgauge.verification.sink_comparison import VerificationResult
from streamgauge.verification.user_job.truth import JOB_ERRORS, verify_user_job

if TYPE_CHECKING:
    from streamgauge.loadgen.plan import Plan

_QUERY_STOPPED = "interrupted"
"""Text of DuckDB's RuntimeError on Ctrl-C."""
EVIDENCE_S, STOPPED_EVIDENCE_S = 30.0, 1.5
"""Most seconds for the engine's report of its batches; shorter after Ctrl-C, which must end within 5 s."""
START_LEAD_US = 700_000
REPORT_INTERVAL_S = 1.0
COMPARING = "comparing every answer"
LATE_S = 8.0
"""Seconds after the deadline in which missing results may still arrive, to tell late from lost."""
LATE_POLL_S = 0.1
NOT_JUDGED = "not counted, because the answers could not be judged"
NOT_READ = "not counted: the trial ended early, so its results were not read"


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
    """Whether the run folder stores the engine's own progress; `--option probes=off` turns it off."""
    return experiment.options.get("probes") != "off"


def next_start(testbed: TestBed, gap_us: int = 0) -> int:
    """The next whole second that leaves the generators time for their first chunk.

    `gap_us`: event time since the last event that the test bed offered. See `JudgedTrial.gap_us`.
    """
    earliest_us = max(testbed.clock.now_us() + START_LEAD_US, testbed.reached_us + gap_us)
    return -(-earliest_us // US) * US


@dataclass(frozen=True)
class EngineReport:
    """The engine's own report of its batches and of operator rows. It decides nothing."""

    progress: list[BatchProgress] = field(default_factory=list)
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
        self.last_log: TrialLog | None = None
        """Log of the last trial, whose backlog is drained before the next one."""

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
        """A conductor with its own test bed, not yet started. `options`: engine options beside the experiment's."""
        settings = testbed_settings(resolved)
        settings = replace(settings, options={**settings.options, **(options or {})})
        with TestBed(settings, make_engine, folder, Clock.fixed_now()) as testbed:
            yield cls(resolved, testbed, observe, ceiling_per_s)

    def start(self, rate_per_s: float, note: str, folder: RunFolder | None = None) -> None:
        """Starts the processes. If that fails, `folder` gets the reason."""
        with record_start_failure(folder), report_start_progress(self.observe, note, self.testbed):
            self.testbed.start(self.resolved.plan(next_start(self.testbed) - START_LEAD_US, rate_per_s, 1.0))

    def conduct(self, plan: Plan, spans: TrialSpans, rate_per_s: float, policy: TrialPolicy) -> TrialRecord:
        """Offers a plan to its end, or until the policy stops it, without a verdict."""
        chunk_us = self.resolved.chunk_for(rate_per_s)
        conductor = PhaseRunner(self.testbed, plan, spans, chunk_us, policy, self.observe)
        with pin_threads(self.resolved.driver_cpus):
            record = conductor.conduct()
        self.last_log = record.trial_log
        return record

    def run(self, folder: RunFolder, trial: JudgedTrial) -> TrialResult:
        """Conducts, verifies and judges one trial; the folder is complete when this returns."""
        prepare()
        spans = trial.spans(next_start(self.testbed, trial.gap_us))
        record = self.conduct(trial.plan(spans), spans, trial.rate_per_s, trial)
        trial.before_judging(self.testbed, record, self.observe)
        report = (
            _engine_report(self.testbed, record) if trial.probe_batches and not record.engine_failed else EngineReport()
        )
        if record.interrupted:
            # Stop first: verdict and report take long beside a busy engine, and the user waits.
            self.testbed.stop()
        result = self.conclude(folder, trial, record, report)
        self.observe(VerdictReached(result, self.testbed))
        return result

    def drain(self, timeout_s: float) -> bool:
        """Drains the last trial's backlog. Returns whether everything is committed within `timeout_s`."""
        self.observe(Draining())
        return self.last_log is None or drain_backlog(self.testbed, self.last_log, timeout_s)

    def conclude(self, folder: RunFolder, trial: JudgedTrial, record: TrialRecord, report: EngineReport) -> TrialResult:
        """Verifies, judges and writes. The measurements are written before the verdict."""
        resolved, testbed = self.resolved, self.testbed
        folder.forget_answers()
        base = build_result(resolved, testbed, folder, record, trial.rate_per_s, self.ceiling_per_s)
        base = _with_operators(resolved, folder, record, report, base)
        folder.write_result(base)
        counted = resolved.engine.has_batch_ids
        batches = engine_batches.batches_table(report.progress, record.spans.start_us, record.trial_log, counted)
        folder.write_batches(batches)
        folder.write_series(time_series.series_table(record, None))
        base = _with_appends(testbed, record, base)
        if record.interrupted:
            return result_of_interrupted(resolved, folder, trial, record, base)
        if not trial.verifies(record):
            result = _with_verdict(base, judge(collect_evidence(resolved, record, trial.rate_per_s, None, None)))
            result = result.model_copy(update={"latency": Latencies(notes=(NOT_READ,))})
            folder.write_result(result)
            return TrialResult(result, record, None)
        try:
            verified = self._verified(folder, trial, record)
        except (KeyboardInterrupt, RuntimeError, *JOB_ERRORS, *RESOURCE_ERRORS) as error:
            stopped = isinstance(error, RuntimeError) and _QUERY_STOPPED in str(error)
            if stopped or isinstance(error, (KeyboardInterrupt, duckdb.InterruptException)):
                record.interrupt()
                return result_of_interrupted(resolved, folder, trial, record, base)
            if not isinstance(error, (*JOB_ERRORS, *RESOURCE_ERRORS)):
                raise
            return _without_answers(resolved, folder, trial.rate_per_s, record, base, error)
        return _judge_answers(resolved, folder, trial.rate_per_s, record, base, verified)

    def _verified(self, folder: RunFolder, trial: JudgedTrial, record: TrialRecord) -> VerificationResult:
        keep_in = folder if trial.keep_results else None
        stage = Stage(COMPARING)
        with _every_second(lambda elapsed_s: self.observe(Verifying(elapsed_s, stage()))):
            verified = _verified(self.resolved, self.testbed, record, keep_in, stage)
            if trial.recheck_missing and verified.verification.missing:
                stage.set("waiting for missing results")
                if _late_results_came(self.testbed, record):
                    verified = _verified(self.resolved, self.testbed, record, keep_in, stage)
        return verified


def _engine_report(testbed: TestBed, record: TrialRecord) -> EngineReport:
    """The engine's report. Ctrl-C must not escape here, because the trial is not written yet."""
    progress: list[BatchProgress] = []
    try:
        progress = testbed.engine.batch_progress(STOPPED_EVIDENCE_S if record.interrupted else EVIDENCE_S)
        return EngineReport(
            progress, OperatorCounts() if record.interrupted else testbed.engine.operator_row_counts(EVIDENCE_S)
        )
    except KeyboardInterrupt:
        record.interrupt()
        return EngineReport(progress)


def _judge_answers(
    resolved: ResolvedExperiment,
    folder: RunFolder,
    rate_per_s: float,
    record: TrialRecord,
    base: Result,
    verified: VerificationResult,
) -> TrialResult:
    """The verdict on a trial with its verification."""
    folder.write_verification(verified.verification)
    slowest = verified.slowest.latencies
    verdict = judge(collect_evidence(resolved, record, rate_per_s, verified, slowest.latencies))
    result = _with_verdict(base, verdict).model_copy(
        update={
            "sinks": verified.results, "latency": slowest.latencies, "verification": verified.verification,
            "notes": (*base.notes, *verified.notes),
        }
    )  # fmt: skip
    folder.write_series(time_series.series_table(record, slowest.seconds))
    folder.write_hlog(hlog_text(verified.latencies, record.spans))
    folder.write_result(result)
    return TrialResult(result, record, verified)


@contextmanager
def report_start_progress(observe: Observer, note: str, starting: Starting) -> Iterator[None]:
    """Reports every second how long a start takes, with the stage if `starting` has one."""
    with _every_second(lambda elapsed_s: observe(EngineStarting(elapsed_s, starting.stage() or note))):
        yield


class Starting(Protocol):
    """A test bed, or an engine alone."""

    def stage(self) -> str:
        """The current stage, or ""."""


@contextmanager
def _every_second(report_elapsed: Callable[[float], object]) -> Iterator[None]:
    """Calls `report_elapsed` with the elapsed seconds, at once and then every second, from its own thread."""
    start_s, stop = time.monotonic(), Event()

    def report() -> None:
        stopped = False
        while not stopped:
            report_elapsed(time.monotonic() - start_s)
            stopped = stop.wait(REPORT_INTERVAL_S)

    reporter = Thread(target=report, name="reporter", daemon=True)
    reporter.start()
    try:
        yield
    finally:
        stop.set()
        reporter.join()


@contextmanager
def record_start_failure(folder: RunFolder | None) -> Iterator[None]:
    """Writes the reason of a failed start into the run folder."""
    try:
        yield
    except StreamgaugeError as error:
        if folder is not None:
            verdict = Verdict(value="invalid", cause=Cause.START_FAILED, sentence=str(error).splitlines()[0])
            error.folder = str(folder.path)
            failed = folder.read_result().model_copy(update={"verdict": verdict, "folder": str(folder.path)})
            folder.write_result(failed)
        raise


def _with_operators(
    resolved: ResolvedExperiment, folder: RunFolder, record: TrialRecord, report: EngineReport, base: Result
) -> Result:
    """Adds the figures by operator, which it also writes, and a warning if the engine stopped counting."""
    if report.progress or report.counts.rows:
        counts = operators.operator_row_counts(report.counts.rows, record.trial_log)
        summaries = operators.summaries(resolved.flow, counts, record.trial_log, record.spans)
        base = base.model_copy(update={"operators": summaries})
        folder.write_operators(operators.table(resolved.flow, counts))
    if report.counts.ended:
        sentence = f"rows of operators were not counted to the end: {report.counts.ended}"
        base = base.warned(Caution(WarningCode.OPERATOR_ROWS_INCOMPLETE, sentence))
    return base


def _with_appends(testbed: TestBed, record: TrialRecord, base: Result) -> Result:
    """Adds the broker's append times, if the trial was not ended early."""
    if record.ended_early or base.driver is None:
        return base
    try:
        latency = driver.append_latency(
            testbed.append_latencies_us(record.spans.measured_from_us, record.measured_until)
        )
    except DriverError as error:
        sentence = f"the broker's append times are unknown: {error}"
        return base.warned(Caution(WarningCode.BROKER_TIMES_UNKNOWN, sentence))
    except KeyboardInterrupt:
        record.interrupt()
        return base
    return base.model_copy(update={"driver": base.driver.model_copy(update={"append_latency_us": latency})})


def _without_answers(
    resolved: ResolvedExperiment,
    folder: RunFolder,
    rate_per_s: float,
    record: TrialRecord,
    base: Result,
    error: BaseException,
) -> TrialResult:
    """The result of a trial whose verification failed; its figures stay valid."""
    # If the driver already failed on the full disk, the reason is stated once.
    verification = _unverified(error, reported=record.disk_full)
    evidence = collect_evidence(resolved, record, rate_per_s, None, None)
    evidence = replace(evidence, verification=verification, answers_disk_full=is_full(error))
    latency = Latencies(notes=(NOT_JUDGED,))
    result = _with_verdict(base, judge(evidence)).model_copy(update={"verification": verification, "latency": latency})
    folder.write_verification(verification)
    folder.write_result(result)
    return TrialResult(result, record, None)


def _unverified(error: BaseException, reported: bool) -> Verification:
    reason = reason_of(error) if not (reported and is_full(error)) else "for the same reason"
    return Verification(
        judged=False, independent=False, reference="", sentence=f"the answers could not be judged: {reason}"
    )


def _verified(
    resolved: ResolvedExperiment, testbed: TestBed, record: TrialRecord, keep_in: RunFolder | None, stage: Stage
) -> VerificationResult:
    if isinstance(resolved.workload, UserJob):
        return verify_user_job(resolved, record, testbed.folder / "engine" / "batch.log", keep_in, stage)
    stage.set(COMPARING)
    return verify(resolved, record, keep_in)


def _late_results_came(testbed: TestBed, record: TrialRecord) -> bool:
    """Polls for results after the deadline of a trial whose input was all committed; returns whether any came.

    This distinguishes late results from lost ones.
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
