"""The outcome of a trial, as the search needs it, and the result of a search.

A result says whose figures it shows, its verdict, the limit of its rate, and changes between trials.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.experiment import Experiment
from streamgauge.core.clock import US
from streamgauge.core.errors import InputError, StreamgaugeError
from streamgauge.core.formatting import format_count, format_rate, resume_command
from streamgauge.engines.registry import entry
from streamgauge.engines.spi import CLUSTER_CORES
from streamgauge.metrics.interference import BACKGROUND_SHARE_MAX, machine_speed_differs
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.results.codes import Cause, NextStep, RateLimit, SearchEnd, WarningCode
from streamgauge.results.run import Result
from streamgauge.results.search import SearchResult, TrialSummary
from streamgauge.results.text.search import limit_sentence, next_step, stopped_sentence
from streamgauge.results.text.sentences import cautions, counts_in_words
from streamgauge.results.verdict import Remark, Verdict, VerdictValue
from streamgauge.studies.capacity.constants import SWAMPED_SHARE
from streamgauge.studies.capacity.search import TrialOutcome, TrialRequest
from streamgauge.system.machine import machine_percent
from streamgauge.trial.trial_result import TrialResult
from streamgauge.verdict.collect_evidence import busy_share, draining_at_start

EndedBy = KeyboardInterrupt | StreamgaugeError | None
"""The end of a search before its time: the user stopped it, or a test bed failed."""
_LONGER_S = 120.0
_MORE_TRIALS = 8
_BUSY = 0.85
"""Share of the allowed CPU that counts as used up."""


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
        others_cpu_percent=result.others_cpu_percent,
        reference_work_us=result.reference_work_us,
        busy_share=share,
        folder=str(folder.path),
        wrong_answers=wrong_answers(result),
        began_behind=draining_at_start(judged.record),
        starved=invalid and near_limit and _is_late(result),
    )


def _is_late(result: Result) -> bool:
    """Whether the driver of a trial was late on cores that it shares with the engine."""
    runs_here = entry(result.engine).usable_cores(result.experiment.get("master"), 1) is not None
    return (
        runs_here
        and result.isolation == "shared"
        and result.verdict.cause in (Cause.PLAN_NOT_KEPT, Cause.SCHEDULE_DELAY, Cause.DRIVER_STARVED)
    )


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


def _why(result: Result) -> str:
    if result.verdict.value == "sustained":
        batches = next((check.value for check in result.verdict.checks if check.name == "evidence"), None)
        return f"{batches:.0f} batches, answers right" if batches is not None else "all checks hold"
    return result.verdict.sentence


def wrong_answers(result: Result) -> str:
    """The faults in the results of a trial that failed only by its answers; empty for any other trial."""
    found = result.verification
    if result.verdict.decided_by != ("answers",) or result.verdict.value != "not_sustained" or found is None:
        return ""
    share = f" ({found.fault_count / found.expected:.2%})" if found.expected else ""
    return f"{counts_in_words(found.faults)} of {format_count(found.expected)} expected results{share}"


def result_of(
    folder: RunFolder, experiment: Experiment, search: SearchResult, seconds: float, ended_by: EndedBy
) -> Result:
    """The result of the study in `folder`: that of the best trial, with the search's verdict."""
    chosen = trial_shown(folder, search)
    stopped = isinstance(ended_by, KeyboardInterrupt)
    search = search.model_copy(update={
        "seconds": seconds,
        "limit": limit_sentence(_limit(chosen, search, stopped)),
        "ended_by": SearchEnd.INTERRUPTED if stopped else search.ended_by,
    })  # fmt: skip
    begun = folder.read_result()
    return (chosen or begun).warned(*cautions(warnings_of(search))).model_copy(update={
        "run_id": begun.run_id,
        "experiment": experiment.model_dump(mode="json"),
        "verdict": _verdict(search, chosen, ended_by, folder),
        "search": search,
        "folder": str(folder.path),
    })  # fmt: skip


def _folder_of(trial: TrialSummary, study: RunFolder) -> Path | None:
    """The folder of a trial within that of its study; an overload trial has none."""
    return study.path / "trials" / Path(trial.folder).name if trial.folder else None


def trial_result(study: RunFolder, trial: TrialSummary) -> Result | None:
    """The stored result of a search's trial; None if it has none, or if its folder was removed."""
    return _result_in(_folder_of(trial, study))


def _result_in(folder: Path | None) -> Result | None:
    """The result in a trial's folder; None without one, or if it was removed."""
    with suppress(InputError):
        return RunFolder.open(folder).read_result() if folder is not None else None
    return None


def warnings_of(search: SearchResult) -> Iterator[Remark]:
    """Warnings for trials beside background load, and for a machine whose speed changed between trials."""
    shares = {trial.number: (trial.others_cpu_percent or 0.0) / machine_percent() for trial in search.trials}
    beside = {number: share for number, share in shares.items() if share > BACKGROUND_SHARE_MAX}
    if beside:
        yield Remark(WarningCode.TRIAL_BACKGROUND_LOAD, {
            "trials": tuple(beside), "shares": (min(beside.values()), max(beside.values())),
            "limit": BACKGROUND_SHARE_MAX,
        })  # fmt: skip
    work_us = {trial.number: trial.reference_work_us for trial in search.trials if trial.reference_work_us}
    fast, slow = (pick(work_us, key=work_us.__getitem__, default=0) for pick in (min, max))
    if work_us and machine_speed_differs(work_us[fast], work_us[slow]):
        yield Remark(WarningCode.MACHINE_CHANGED, {
            "fast": fast, "fast_us": work_us[fast], "slow": slow, "slow_us": work_us[slow],
        })  # fmt: skip


def trial_shown(folder: RunFolder, search: SearchResult) -> Result | None:
    """The trial whose figures a search shows: the last one that held at the rate found, else the last one.

    Read from the study's folder, so that a resumed search shows the same. If a trial's folder was removed, the trial
    before takes its place, so that a finished search stays readable.
    """
    rate = search.sustained_per_s
    held = [t for t in search.trials if rate is None or (t.verdict == "sustained" and t.offered_per_s == rate)]
    results = (trial_result(folder, trial) for trial in reversed(held))
    return next(filter(None, results), None)


def _verdict(search: SearchResult, chosen: Result | None, ended_by: EndedBy, folder: RunFolder) -> Verdict:
    checks = chosen.verdict.checks if chosen else ()
    if isinstance(ended_by, KeyboardInterrupt):
        return Verdict(
            value="interrupted", cause=Cause.INTERRUPTED, checks=checks, sentence=stopped_sentence(search),
            advice=next_step(Remark(NextStep.GO_ON, {"go_on": resume_command("sustain", folder.path)})),
        )  # fmt: skip
    value = _value(search, failed=ended_by is not None)
    wrong = search.ended_by == SearchEnd.WRONG_ANSWERS
    cause = Cause.WRONG_ANSWERS if wrong else _CAUSES.get(value, Cause.NO_RATE_HELD)
    return Verdict(
        value=value, cause=cause, checks=checks, sentence=search.sentence,
        advice=next_step(_next_step(search, chosen, folder)),
    )  # fmt: skip


_AFTER = {
    SearchEnd.FAILED: NextStep.READ_ENGINE_LOG,
    SearchEnd.DRIVER_FAILED: NextStep.READ_DRIVER_LOGS,
    SearchEnd.NOTHING_DRAINED: NextStep.START_LOW,
    SearchEnd.INVALID_TWICE: NextStep.MEND_AND_SEARCH,
    SearchEnd.NO_RATE_HELD: NextStep.TRY_LOW_RATE,
    SearchEnd.TRIALS_USED_UP: NextStep.MORE_TRIALS,
}
"""What to do after a search that something ended."""


def _next_step(search: SearchResult, chosen: Result | None, study: RunFolder) -> Remark:
    """What to do after a search, by its end."""
    folder = str(study.path)
    if search.ended_by == SearchEnd.WRONG_ANSWERS:
        # The user's job is the user's to correct, a built-in workload is not.
        correct = chosen is None or bool(chosen.job_files)
        where = {"folder": chosen.folder if chosen else f"{folder}/trials"}
        return Remark(NextStep.CORRECT_JOB if correct else NextStep.REPORT_WRONG, where)
    if search.ended_by is None:
        load = chosen.experiment.get("load", {}) if chosen else {}
        return Remark(_step_at_end(search), {"longer_s": max(_LONGER_S, 2 * load.get("duration", 0.0))})
    invalid = _folder_of_last([one for one in search.trials if one.verdict == "invalid"], study)
    shown = _result_in(invalid)
    return Remark(_AFTER[search.ended_by], {
        "folder": folder, "go_on": resume_command("sustain", study.path), "more": len(search.trials) + _MORE_TRIALS,
        "invalid": str(invalid),
        "last": str(_folder_of_last(search.trials, study)), "advice": shown.verdict.advice if shown else "",
    })  # fmt: skip


def _folder_of_last(trials: Sequence[TrialSummary], study: RunFolder) -> Path:
    """The folder of the last trial; that of the study if it has none."""
    return (_folder_of(trials[-1], study) if trials else None) or study.path


def _step_at_end(search: SearchResult) -> NextStep:
    """What to do after a search that came to its end by itself."""
    at_90 = search.at_90_percent
    steps = (
        (search.sustained_per_s is None, NextStep.PROVE_A_RATE),
        (search.high is None, NextStep.MORE_GENERATORS),
        (search.high_verdict == "invalid", NextStep.SEPARATE_DRIVER),
        (search.high_is_unproven, NextStep.DECIDE_UPPER_END),
        (not search.confirmed, NextStep.CONFIRM),
        (at_90 is None or at_90.verdict != "sustained", NextStep.DECIDE_AT_90),
    )
    return next((step for applies, step in steps if applies), NextStep.MEASURE_LATENCY)


_CAUSES = {"sustained": Cause.RATE_HELD, "invalid": Cause.SEARCH_FAILED}


def _value(search: SearchResult, failed: bool) -> VerdictValue:
    """The verdict of a search that was not stopped. A rate that held stays a lower bound, whatever came after.

    If no rate held, only a proven failure says that none does.
    """
    verdicts = [trial.verdict for trial in search.trials]
    if search.sustained_per_s is not None and not failed:
        return "sustained"
    if failed or verdicts[-1:] == ["invalid"]:
        return "invalid"
    return "not_sustained" if "not_sustained" in verdicts else "undecided"


def _limit(shown: Result | None, search: SearchResult, stopped: bool) -> Remark | None:
    """What keeps the rate from being higher. Without an upper end, nothing limited the engine yet."""
    limit = limit_of(shown)
    if limit is None:
        return Remark(RateLimit.NOT_SEEN) if stopped else None
    # What to do next then stands in the advice.
    facts = {**limit.facts, "advised": search.ended_by == SearchEnd.INVALID_TWICE}
    if search.low and not search.high:
        invalid = any(
            one.verdict == "invalid" and one.folder and (one.offered_per_s or 0) > search.low for one in search.trials
        )
        facts["above"] = "invalid" if invalid else "held"
    return Remark(limit.code, facts)


def limit_of(shown: Result | None) -> Remark | None:
    """The limit of the rate that the driver can see, with the CPU used in percent of a core."""
    sut = next((one for one in shown.processes if one.role == "sut"), None) if shown is not None else None
    if shown is None or sut is None:
        return None
    driver, broker = (
        sum(one.cpu_percent_mean for one in shown.processes if one.role == role) for role in ("driver", "broker")
    )
    used = sut.cpu_percent_mean
    cores = len(shown.environment.get("sut_cpus", ())) or shown.environment.get("cpus", 1)
    facts: dict[str, Any] = {"sut": used, "driver": driver, "broker": broker, "others": shown.others_cpu_percent or 0.0}
    of_cluster = shown.settings.get(CLUSTER_CORES)
    allowed = int(of_cluster) if of_cluster else entry(shown.engine).usable_cores(shown.experiment.get("master"), cores)
    if allowed is None:
        return Remark(RateLimit.ELSEWHERE, facts)
    allowed = min(allowed, shown.experiment.get("parallelism") or allowed)
    facts |= {"allowed": 100.0 * allowed, "single": used >= _BUSY * 100}
    at_allowance = used >= _BUSY * 100.0 * allowed
    # A master that allows less than the machine stays the limit beside background load.
    below_machine = at_allowance and allowed < cores
    if facts["others"] > BACKGROUND_SHARE_MAX * machine_percent() and not below_machine:
        return Remark(RateLimit.BACKGROUND_LOAD, facts)
    if at_allowance:
        return Remark(RateLimit.ALLOWANCE if below_machine else RateLimit.ENGINE_CPU, facts)
    shared = driver + broker if shown.isolation == "shared" else 0.0
    return Remark(RateLimit.SHARED_CPU if used + shared >= _BUSY * 100.0 * cores else RateLimit.NOT_CPU, facts)
