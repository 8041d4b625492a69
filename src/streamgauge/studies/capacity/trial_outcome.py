"""The outcome of a trial, as the search needs it: from its result, its warm-up, or an overload trial."""

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.core.clock import US
from streamgauge.core.formatting import format_rate
from streamgauge.engines.registry import entry
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.results.codes import Cause
from streamgauge.results.run import Result
from streamgauge.results.verdict import VerdictValue
from streamgauge.studies.capacity.constants import SWAMPED_SHARE
from streamgauge.studies.capacity.outcome import wrong_answers
from streamgauge.studies.capacity.saturation_probe import SaturationResult
from streamgauge.studies.capacity.search import TrialOutcome, TrialRequest
from streamgauge.trial.trial_result import TrialResult
from streamgauge.verdict.collect_evidence import busy_share, draining_at_start


def outcome_of(
    resolved: ResolvedExperiment, request: TrialRequest, judged: TrialResult, folder: RunFolder
) -> TrialOutcome:
    """What the search needs of a trial's result."""
    result = judged.result
    event_time, counted = result.latency.event_time_us, result.latency.until_counted_us
    failing, invalid = result.verdict.value == "not_sustained", result.verdict.value == "invalid"
    rate, share = result.rate, busy_share(resolved, judged.record)
    # The engine took clearly less than it was offered.
    swamped = invalid and rate is not None and rate.ingested_per_s < SWAMPED_SHARE * rate.offered_per_s
    near_limit = swamped if share is None else share >= resolved.engine.near_limit.full
    early_stop = judged.record.early_stop if failing else ""
    slopes = [check.value for check in result.verdict.checks if check.name == "backlog_trend"]
    return TrialOutcome(
        rate_per_s=request.rate_per_s,
        verdict=result.verdict.value,
        drained_per_s=_drained_per_s(judged) if failing or swamped else None,
        why=early_stop or _why(result),
        event_time_p50_us=event_time.p50 if event_time else None,
        event_time_p99_us=event_time.p99 if event_time else None,
        until_counted_p50_us=counted.p50 if counted else None,
        until_counted_p99_us=counted.p99 if counted else None,
        backlog_slope_share=slopes[0] if slopes else None,
        busy_share=share,
        folder=str(folder.path),
        wrong_answers=wrong_answers(result),
        began_behind=draining_at_start(judged.record),
        starved=invalid and near_limit and _is_late(result),
    )


def _is_late(result: Result) -> bool:
    """Whether the driver of a trial was late on cores that it shares with the engine."""
    runs_here = entry(result.engine).usable_cores(result.experiment.get("master"), 1) is not None
    shares_cores = result.isolation == "shared" and runs_here
    return shares_cores and result.verdict.cause in (Cause.PLAN_NOT_KEPT, Cause.SCHEDULE_DELAY, Cause.DRIVER_STARVED)


def _drained_per_s(judged: TrialResult) -> float | None:
    """The rate ingested over a trial's span, or since its start if it ended before its span."""
    record, rate = judged.record, judged.result.rate
    if rate is None:
        return None
    if rate.ingested_per_s:
        return rate.ingested_per_s
    seconds = (record.deadline_us - record.spans.start_us) / US
    return record.trial_log.running.taken_events() / seconds if seconds > 0 else None


def outcome_of_warm_up(request: TrialRequest, drained_per_s: float) -> TrialOutcome:
    """The outcome of an engine that fell so far behind in its warm-up that no trial followed."""
    drained = f"{drained_per_s / request.rate_per_s:.2%} of its warm-up's load ({format_rate(drained_per_s)})"
    return TrialOutcome(
        request.rate_per_s, "not_sustained", drained_per_s, why=f"drained {drained}: looking below that"
    )


def outcome_of_overload(request: TrialRequest, found: SaturationResult) -> TrialOutcome:
    """The outcome of an overload trial: a guess, and the reason if it could not be better."""
    drained = format_rate(found.drained_per_s)
    verdict: VerdictValue = "sustained" if found.kept_up else "not_sustained"
    why = f"drained {drained}: looking below that"
    if found.limit_per_s is not None:
        why = f"its batches would be full at {format_rate(found.limit_per_s)}: looking around that"
    if found.driver_failed:
        before = f"drained {drained} until then" if found.drained_per_s else "had nothing to drain"
        verdict, why = "invalid", f"the driver failed: {found.driver_failed} (the engine {before})"
    elif found.engine_failed:
        why = f"drained {drained} until the engine failed: {found.engine_failed}"
    elif found.kept_up:
        why = f"kept up with {drained}, all that the generators offer"
    elif found.heap_limits:
        why = f"drained {drained}, the most that is safe for the engine's heap: looking around that"
    return TrialOutcome(
        request.rate_per_s,
        verdict,
        drained_per_s=found.drained_per_s,
        limit_per_s=found.limit_per_s,
        busy_share=found.busy_share,
        why=why,
    )


def _why(result: Result) -> str:
    if result.verdict.value == "sustained":
        batches = next((check.value for check in result.verdict.checks if check.name == "evidence"), None)
        return f"{batches:.0f} batches, answers right" if batches is not None else "all checks hold"
    return result.verdict.sentence
