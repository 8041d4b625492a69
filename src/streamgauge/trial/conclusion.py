"""The end of a trial: its answers are verified, it is judged, and the run folder is completed."""

import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import duckdb

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.core.engine_reports import BatchProgress, OperatorCounts, SeriesSample
from streamgauge.core.errors import DriverError, is_full
from streamgauge.core.trial import ProgressText
from streamgauge.engines.registry import entry
from streamgauge.engines.spi import ReportsSeries
from streamgauge.harness.start_processes import TestBed
from streamgauge.metrics import operators, resources, time_series
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.results.codes import WarningCode
from streamgauge.results.latency import Latencies
from streamgauge.results.run import Result, Verification
from streamgauge.results.text.sentences import cautions, in_words
from streamgauge.results.verdict import Remark
from streamgauge.trial.events import Observer, StepProgress
from streamgauge.trial.interrupted import RESOURCE_ERRORS, reason_of, result_of_interrupted
from streamgauge.trial.phases import poll
from streamgauge.trial.policies import JudgedTrial
from streamgauge.trial.progress import every_second
from streamgauge.trial.trial_result import TrialResult, build_result
from streamgauge.verdict.collect_evidence import collect_evidence
from streamgauge.verdict.evidence import Evidence
from streamgauge.verdict.verdict import judge
from streamgauge.verification.expected import verify
from streamgauge.verification.sink_comparison import VerificationResult
from streamgauge.verification.user_job_truth import JOB_ERRORS, verify_user_job

_QUERY_STOPPED = "interrupted"
"""Text of DuckDB's RuntimeError on Ctrl-C."""
EVIDENCE_S, STOPPED_EVIDENCE_S = 30.0, 1.5
"""Most seconds for the engine's report of its batches; shorter after Ctrl-C, which must end within 5 s."""
LAST_BATCH_S = 5.0
"""Most seconds until an engine that reports batches reports the last one, which it may do after the commit."""
COMPARING = "comparing every answer"
LATE_S = 8.0
"""Seconds after the deadline in which missing results may still arrive, to tell late from lost."""
LATE_POLL_S = 0.1
NOT_JUDGED = "not counted, because the answers could not be judged"
NOT_READ = "not counted: the trial ended early, so its results were not read"


@dataclass(frozen=True)
class EngineReport:
    """The engine's own report of its batches, of operator rows, and of series of its own. It decides nothing."""

    progress: list[BatchProgress] = field(default_factory=list)
    counts: OperatorCounts = field(default_factory=OperatorCounts)
    series: list[SeriesSample] = field(default_factory=list)


def engine_report(testbed: TestBed, record: TrialRecord) -> EngineReport:
    """The engine's report. Ctrl-C must not escape here, because the trial is not written yet."""
    progress: list[BatchProgress] = []
    engine = testbed.engine
    try:
        progress = engine.batch_progress(STOPPED_EVIDENCE_S if record.interrupted else EVIDENCE_S)
        until = time.monotonic() + LAST_BATCH_S
        while record.drained and _lacks_last_batch(progress, record) and time.monotonic() < until:
            time.sleep(LATE_POLL_S)
            progress = engine.batch_progress(EVIDENCE_S)
        if record.interrupted:
            return EngineReport(progress)
        counts = engine.operator_row_counts(EVIDENCE_S)
        return EngineReport(progress, counts, engine.series(EVIDENCE_S) if isinstance(engine, ReportsSeries) else [])
    except KeyboardInterrupt:
        record.interrupted = True
        return EngineReport(progress)


def _lacks_last_batch(progress: list[BatchProgress], record: TrialRecord) -> bool:
    """Whether the last committed batch of a query is missing from the reports on that query."""
    reported: dict[str, int] = {}
    for one in progress:
        reported[one.query] = max(one.batch, reported.get(one.query, 0))
    return any(commit.batch > reported.get(commit.query, commit.batch) for commit in record.trial_log.commits)


def conclude(
    resolved: ResolvedExperiment,
    testbed: TestBed,
    observe: Observer,
    ceiling_per_s: float | None,
    folder: RunFolder,
    trial: JudgedTrial,
    record: TrialRecord,
    report: EngineReport,
) -> TrialResult:
    """The result of a conducted trial. The measurements are written before the verdict."""
    folder.forget_answers()
    record.restarted = testbed.restarted
    base = build_result(resolved, testbed, folder, record, trial.rate_per_s, ceiling_per_s)
    base = _with_operators(resolved, folder, record, report, base)
    delay_us_max = time_series.scheduling_delay_us_max(report.progress, record.spans)
    base = base.model_copy(update={"scheduling_delay_us_max": delay_us_max})
    late = operators.late_rows(report.progress, report.series, record.spans.start_us)
    if late:
        known = resolved.workload.watermark_known
        delay_us = resolved.watermark_delay_us if known else 0
        warning = operators.late_rows_warning(late, record, not known, delay_us)
        base = base.warned(*cautions([warning]))
    folder.write_result(base)
    since_us, steps, counted = record.spans.start_us, resolved.engine.batch_steps, resolved.engine.has_batch_ids
    batches = time_series.batches_table(report.progress, since_us, record.trial_log, steps, counted)
    folder.write_engine_table("batches", batches)
    if report.series:
        folder.write_engine_table("series", time_series.engine_series_table(report.series, since_us))
    folder.write_series(time_series.series_table(record, None))
    base = _with_appends(testbed, record, base)
    if record.interrupted:
        return result_of_interrupted(resolved, folder, trial, record, base)
    if not trial.verifies(record):
        evidence = collect_evidence(resolved, record, trial.rate_per_s)
        return _concluded(folder, record, base, evidence, latency=Latencies(notes=(NOT_READ,)))
    try:
        verified = _verified_in_steps(resolved, testbed, observe, folder, trial, record)
    except (KeyboardInterrupt, RuntimeError, *JOB_ERRORS, *RESOURCE_ERRORS) as error:
        stopped = isinstance(error, RuntimeError) and _QUERY_STOPPED in str(error)
        if stopped or isinstance(error, (KeyboardInterrupt, duckdb.InterruptException)):
            record.interrupted = True
            return result_of_interrupted(resolved, folder, trial, record, base)
        if not isinstance(error, (*JOB_ERRORS, *RESOURCE_ERRORS)):
            raise
        return _without_answers(resolved, folder, trial.rate_per_s, record, base, error)
    verification = verified.verification.model_copy(update={"late_rows": late})
    verified = replace(verified, verification=verification)
    return _judge_answers(resolved, folder, trial.rate_per_s, record, base, verified)


def _verified_in_steps(
    resolved: ResolvedExperiment,
    testbed: TestBed,
    observe: Observer,
    folder: RunFolder,
    trial: JudgedTrial,
    record: TrialRecord,
) -> VerificationResult:
    """The verification, with its progress; once more if missing results came late."""
    keep_in = folder if trial.keep_results else None
    stage = ProgressText(COMPARING)
    with every_second(lambda elapsed_s: observe(StepProgress("verification", elapsed_s, stage()))):
        verified = _verified(resolved, testbed, record, keep_in, stage)
        if trial.recheck_missing and verified.verification.missing:
            stage.set("waiting for missing results")
            if _late_results_came(testbed, record):
                verified = _verified(resolved, testbed, record, keep_in, stage)
    return verified


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
    evidence = collect_evidence(resolved, record, rate_per_s, verified)
    folder.write_series(time_series.series_table(record, slowest.seconds))
    folder.write_hlog(time_series.hlog_text(verified.latencies, record.spans))
    return _concluded(
        folder, record, base, evidence, verified, sinks=verified.results, latency=slowest.latencies,
        verification=verified.verification, notes=(*base.notes, *verified.notes),
    )  # fmt: skip


def _with_operators(
    resolved: ResolvedExperiment, folder: RunFolder, record: TrialRecord, report: EngineReport, base: Result
) -> Result:
    """Adds the figures by operator, which it also writes, and a warning if the engine stopped counting."""
    if (report.progress or report.counts.rows) and not resolved.workload.observed_from_outside:
        counts = operators.operator_row_counts(resolved.flow, report.counts.rows, record.trial_log)
        base = base.model_copy(update={"operators": operators.summaries(counts, record.trial_log, record.spans)})
        if (table := operators.table(counts)).num_rows:
            folder.write_engine_table("operators", table)
    if report.counts.ended:
        base = base.warned(*cautions([Remark(WarningCode.OPERATOR_ROWS_INCOMPLETE, {"reason": report.counts.ended})]))
    return base


def _with_appends(testbed: TestBed, record: TrialRecord, base: Result) -> Result:
    """Adds the broker's append times, if the trial was not ended early."""
    if record.ended_early or base.driver is None:
        return base
    try:
        appended = testbed.append_latencies_us(record.spans.measured_from_us, record.measured_until)
    except DriverError as error:
        return base.warned(*cautions([Remark(WarningCode.BROKER_TIMES_UNKNOWN, {"reason": error})]))
    except KeyboardInterrupt:
        record.interrupted = True
        return base
    latency = resources.delay_percentiles(appended)
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
    reason = "for the same reason" if record.disk_full and is_full(error) else reason_of(error)
    verification = Verification(
        judged=False, independent=False, reference="", sentence=f"the answers could not be judged: {reason}"
    )
    evidence = collect_evidence(resolved, record, rate_per_s)
    evidence = replace(evidence, verification=verification, answers_disk_full=is_full(error))
    folder.write_verification(verification)
    latency = Latencies(notes=(NOT_JUDGED,))
    return _concluded(folder, record, base, evidence, verification=verification, latency=latency)


def _verified(
    resolved: ResolvedExperiment, testbed: TestBed, record: TrialRecord, keep_in: RunFolder | None, stage: ProgressText
) -> VerificationResult:
    if resolved.workload.declares_truth:
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


def _concluded(
    folder: RunFolder,
    record: TrialRecord,
    base: Result,
    evidence: Evidence,
    verified: VerificationResult | None = None,
    **changes: Any,
) -> TrialResult:
    """The result with its verdict and these changes, which it also writes."""
    verdict = in_words(judge(evidence), entry(base.engine).memory_option)
    result = base.model_copy(update={"verdict": verdict, **changes})
    folder.write_result(result)
    return TrialResult(result, record, verified)
