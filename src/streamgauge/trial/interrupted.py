"""The result of an interrupted trial: its latencies, without verification of its results.

The user waits for the end, so the planned input is not made again, and only the timestamps of results are read. The
results are counted from the spool, batch by batch, while there is time. Then they are stored if the experiment requests
it and there is time left. The result says what was left out.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.core.errors import is_full
from streamgauge.core.formatting import format_count
from streamgauge.metrics.event_latency import LatencyRule, SinkLatencies, sink_latencies
from streamgauge.metrics.rates_and_backlog import rows_per_s
from streamgauge.metrics.time_series import hlog_text, series_table
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.results.codes import WarningCode
from streamgauge.results.latency import Latencies
from streamgauge.results.run import Result, Verification
from streamgauge.results.text.sentences import cautions, in_words
from streamgauge.results.verdict import Remark
from streamgauge.system.disk import full_disk
from streamgauge.trial.policies import JudgedTrial
from streamgauge.trial.trial_result import TrialResult
from streamgauge.verdict.collect_evidence import collect_evidence
from streamgauge.verdict.verdict import judge
from streamgauge.verification import user_job_truth
from streamgauge.verification.expected import rule_of
from streamgauge.verification.received_results import ReceivedResults, results_file, write_results
from streamgauge.verification.sink_comparison import SinkDiff, VerificationResult

BUDGET_S = 1.5
"""Time to count and store results after Ctrl-C, of 5 s in all."""
NOTHING_COMPARED = "the run was stopped, so nothing was compared; latencies include right and wrong results"
UNVERIFIED = "unverified: only results that had arrived when the run was stopped"
NOT_BEGUN = "not measured: the run was stopped before its measured span began"
NOT_COUNTED = "not counted: the run was stopped a second time before that was done"
NONE_CAME = "no result of the measured span had arrived when the run was stopped"
NO_TIME = "the run was stopped, and no time was left to write them"
RESOURCE_ERRORS = (OSError, MemoryError)
"""Too little disk or memory to read or verify results. Other figures stay valid."""


def reason_of(error: BaseException) -> str:
    """Why results could not be read, stored or verified, in one line."""
    return full_disk() if is_full(error) else (str(error) or type(error).__name__).splitlines()[0]


def result_of_interrupted(
    resolved: ResolvedExperiment, folder: RunFolder, trial: JudgedTrial, record: TrialRecord, base: Result
) -> TrialResult:
    """The result of an interrupted trial, with the latencies of the results so far.

    It is written before the results are read, so that a second Ctrl-C may end that.
    """
    span_began = record.offered_until() > record.spans.measured_from_us
    latency = Latencies(notes=(NOT_COUNTED if span_began else NOT_BEGUN,))
    verdict = in_words(judge(collect_evidence(resolved, record, trial.rate_per_s)))
    result = base.model_copy(update={"verdict": verdict, "latency": latency})
    folder.write_result(result)
    if span_began:
        with suppress(KeyboardInterrupt):
            result = _with_unverified_latencies(resolved, folder, trial, record, result)
    return TrialResult(result, record, None)


def _with_unverified_latencies(
    resolved: ResolvedExperiment, folder: RunFolder, trial: JudgedTrial, record: TrialRecord, result: Result
) -> Result:
    """Adds unverified latencies and writes them to the folder."""
    keep_in = folder if trial.keep_results else None
    partial, warnings = latencies_without_verification(resolved, record, keep_in, time.monotonic() + BUDGET_S)
    slowest = partial.slowest.latencies
    result = result.warned(*cautions(warnings))
    result = result.model_copy(update={
        "sinks": partial.results, "latency": slowest.latencies, "verification": partial.verification,
    })  # fmt: skip
    folder.write_verification(partial.verification)
    folder.write_series(series_table(record, slowest.seconds))
    if any(sink.latencies.effective_count for sink in partial.sinks):
        folder.write_hlog(hlog_text(partial.latencies, record.spans))
    folder.write_result(result)
    return result


def latencies_without_verification(
    resolved: ResolvedExperiment, record: TrialRecord, keep_in: RunFolder | None, until_s: float
) -> tuple[VerificationResult, tuple[Remark, ...]]:
    """(latencies of the results in the measured span, warnings that name requested work that was left out).

    Also stores the results in `keep_in`, if given.

    The sinks share the time evenly; a sink's unused time goes to the following ones.
    """
    parts = [
        (one, replace(record, trial_log=record.trial_log.of_sink(one.flow.sink.name))) for one in resolved.by_sink()
    ]
    sinks = []
    for place, part in enumerate(parts):
        now_s = time.monotonic()
        sinks.append(_counted(*part, now_s + (until_s - now_s) / (len(parts) - place)))
    verified = VerificationResult(_nothing_compared(record), tuple(sinks))
    if keep_in is None:
        return verified, ()
    reasons = [
        _not_stored(of_sink, keep_in.path / results_file(one.flow.sink.name, len(parts) > 1), until_s)
        for one, of_sink in parts
    ]
    return verified, tuple(
        Remark(WarningCode.RESULTS_NOT_STORED, {"reason": reason}) for reason in dict.fromkeys(filter(None, reasons))
    )


def _nothing_compared(record: TrialRecord) -> Verification:
    return Verification(
        judged=False, independent=False, reference="", uncommitted=sum(record.trial_log.rows_ignored.values()),
        sentence=NOTHING_COMPARED,
    )  # fmt: skip


def _counted(resolved: ResolvedExperiment, record: TrialRecord, until_s: float) -> SinkDiff:
    """One sink's latencies; `record` has only its commits. If its results cannot be counted, a note says why."""
    commits, span = record.trial_log.commits, (record.spans.measured_from_us, record.spans.measured_to_us)
    received = ReceivedResults(record, since_us=record.spans.measured_from_us)
    rows, is_cut = 0, False

    def batches_in_time() -> Iterator[pa.RecordBatch]:
        nonlocal rows, is_cut
        for batch in received.batches():
            is_cut = time.monotonic() >= until_s
            if is_cut:
                return
            rows += batch.num_rows
            yield batch

    try:
        if resolved.workload.declares_truth:
            rule = user_job_truth.rule_of(resolved, record, received)
        else:
            rule = rule_of(resolved, record)
        found = sink_latencies(batches_in_time(), rule, span)
        of = f"the first {format_count(rows)} of {format_count(received.rows)} results"
        cut = [f"counted: {of} that came after the warm-up, as there was no time for more"] if is_cut else []
        if found.effective_count:
            notes = (UNVERIFIED, *cut, *found.latencies.notes)
            found = found._replace(latencies=found.latencies.model_copy(update={"notes": notes}))
        else:
            found = _nothing(*(cut or [NONE_CAME]))
    except (ValueError, *RESOURCE_ERRORS) as error:
        found = _nothing(f"not counted: {reason_of(error)}")
    query = next((commit.query for commit in commits), "")
    return SinkDiff(
        resolved.flow.sink.name,
        query,
        _nothing_compared(record),
        found,
        sum(commit.rows for commit in commits),
        rows_per_s=rows_per_s(record),
    )


def _nothing(*notes: str) -> SinkLatencies:
    """Latencies without figures, with the reasons."""
    return sink_latencies((), LatencyRule("row"), (0, 0))._replace(latencies=Latencies(notes=notes))


def _not_stored(record: TrialRecord, path: Path, until_s: float) -> str:
    """Stores one sink's results of the whole trial at `path`, if any came. Returns why it could not, or ""."""
    received = ReceivedResults(record)
    try:
        stored = received.empty or write_results(received, path, lambda: time.monotonic() >= until_s)
    except RESOURCE_ERRORS as error:
        return reason_of(error)
    return "" if stored else NO_TIME
