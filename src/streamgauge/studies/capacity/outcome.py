"""The result of a search: whose figures it shows, its verdict, the limit of its rate, and changes between trials."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.options_and_settings import Experiment
from streamgauge.core.errors import InputError, StreamgaugeError
from streamgauge.core.formatting import format_count, format_us, resume_command, share_beside
from streamgauge.engines.spi import CLUSTER_CORES
from streamgauge.results import labels
from streamgauge.results.codes import Cause, SearchEnd, WarningCode
from streamgauge.results.run import Caution, Result
from streamgauge.results.search import SearchResult, TrialSummary
from streamgauge.results.verdict import Verdict, VerdictValue
from streamgauge.system.machine import machine_percent
from streamgauge.verdict.evidence import BACKGROUND_SHARE_MAX, machine_speed_differs

EndedBy = KeyboardInterrupt | StreamgaugeError | None
"""The end of a search before its time: the user stopped it, or a test bed failed."""
NOT_SEEN = "not known: the search was stopped before a trial showed it"
_LOCAL_MASTER = re.compile(r"local\[(\d+|\*)")
_LONGER_S = 120.0
_QUIET = "close background processes or separate the driver's cores (--isolation pinned)"
_MORE_TRIALS = 8
_BUSY = 0.85
"""Share of the allowed CPU that counts as used up."""


def result_of(
    folder: RunFolder, experiment: Experiment, search: SearchResult, seconds: float, ended_by: EndedBy
) -> Result:
    """The result of the study in `folder`: that of the best trial, with the search's verdict."""
    chosen = trial_shown(folder, search)
    stopped = isinstance(ended_by, KeyboardInterrupt)
    search = with_interference(folder, search).model_copy(update={
        "seconds": seconds,
        "limit": _limit(chosen, search) or (NOT_SEEN if stopped else ""),
        "ended_by": SearchEnd.INTERRUPTED if stopped else search.ended_by,
    })  # fmt: skip
    begun = folder.read_result()
    return (chosen or begun).warned(*warnings_of(search)).model_copy(update={
        "run_id": begun.run_id,
        "experiment": experiment.model_dump(mode="json"),
        "verdict": _verdict(search, chosen, ended_by, folder),
        "search": search,
        "folder": str(folder.path),
    })  # fmt: skip


def resuming(folder: RunFolder) -> str:
    """The command that continues the search in `folder`."""
    return resume_command("sustain", folder.path)


def with_interference(folder: RunFolder, search: SearchResult) -> SearchResult:
    """Adds background load and machine speed to each trial of the search, from the trials' own folders."""
    at_90 = search.at_90_percent
    return search.model_copy(update={
        "trials": tuple(_with_machine(folder, trial) for trial in search.trials),
        "at_90_percent": at_90 and _with_machine(folder, at_90),
    })  # fmt: skip


def _with_machine(folder: RunFolder, trial: TrialSummary) -> TrialSummary:
    if trial.folder:  # not an overload trial
        with suppress(InputError):  # the folder was removed
            result = RunFolder.open(folder.path / "trials" / Path(trial.folder).name).read_result()
            return trial.model_copy(update=result.model_dump(include={"others_cpu_percent", "reference_work_us"}))
    return trial


def warnings_of(search: SearchResult) -> Iterator[Caution]:
    """Warnings for trials beside background load, and for a machine whose speed changed between trials."""
    for trial in search.trials:
        share = (trial.others_cpu_percent or 0.0) / machine_percent()
        if share > BACKGROUND_SHARE_MAX:
            used = share_beside(share, BACKGROUND_SHARE_MAX)
            sentence = f"trial {trial.number}: background processes used {used} of the CPU"
            yield Caution(WarningCode.TRIAL_BACKGROUND_LOAD, sentence)
    timed = [trial for trial in search.trials if trial.reference_work_us]
    fast, slow = (pick(timed, key=_reference_work_us, default=None) for pick in (min, max))
    if fast and slow and machine_speed_differs(_reference_work_us(fast), _reference_work_us(slow)):
        sentence = (
            f"the machine's speed differed between trials: the reference work took "
            f"{format_us(fast.reference_work_us)} in trial {fast.number}, "
            f"{format_us(slow.reference_work_us)} in trial {slow.number}. Run it again on a quiet machine"
        )
        yield Caution(WarningCode.MACHINE_CHANGED, sentence)


def _reference_work_us(trial: TrialSummary) -> float:
    return trial.reference_work_us or 0.0


def trial_shown(folder: RunFolder, search: SearchResult) -> Result | None:
    """The trial whose figures a search shows: the last one that held at the rate found, else the last one.

    Read from the study's folder, so that a resumed search shows the same. If a trial's folder was removed, the trial
    before takes its place, so that a finished search stays readable.
    """
    rate = search.sustained_per_s
    held = [t for t in search.trials if rate is None or (t.verdict == "sustained" and t.offered_per_s == rate)]
    for trial in reversed(held):
        if trial.folder:  # not an overload trial
            with suppress(InputError):
                return RunFolder.open(folder.path / "trials" / Path(trial.folder).name).read_result()
    return None


def _verdict(search: SearchResult, chosen: Result | None, ended_by: EndedBy, folder: RunFolder) -> Verdict:
    checks = chosen.verdict.checks if chosen else ()
    if isinstance(ended_by, KeyboardInterrupt):
        sentence = (
            f"the search was stopped; so far: {search.sentence}" if search.trials else "stopped in its first trial"
        )
        return Verdict(
            value="interrupted", cause=Cause.INTERRUPTED, checks=checks, sentence=sentence,
            advice=f"to go on: {resuming(folder)}",
        )  # fmt: skip
    value = _value(search, failed=ended_by is not None)
    wrong = search.ended_by == SearchEnd.WRONG_ANSWERS
    cause = Cause.WRONG_ANSWERS if wrong else _CAUSES.get(value, Cause.NO_RATE_HELD)
    return Verdict(
        value=value, cause=cause, checks=checks, sentence=search.sentence, advice=_advice(search, chosen, folder)
    )


_ADVICE = {
    SearchEnd.FAILED: "read the engine's log in {folder}/engine and remove the cause; then go on: {go_on}",
    SearchEnd.DRIVER_FAILED: (
        "the driver failed, not the engine: {folder}/engine has the generators' and the broker's logs; search again, "
        "or from a low rate (--start-rate)"
    ),
    SearchEnd.NOTHING_DRAINED: ("read the engine's log in {folder}/engine; then search from a low rate (--start-rate)"),
    SearchEnd.INVALID_TWICE: "{quiet}; then search again (the reason: {invalid})",
    SearchEnd.NO_RATE_HELD: (
        "read in {last} why not even that rate held, then try the job at a low rate: streamgauge run WORKLOAD --rate 1k"
    ),
    SearchEnd.TRIALS_USED_UP: "go on with more trials: {go_on} --trials-max {more}",
    SearchEnd.INTERRUPTED: "to go on: {go_on}",
}
"""What to do after a search that something ended."""


def _advice(search: SearchResult, chosen: Result | None, study: RunFolder) -> str:
    """What to do after a search, by its end."""
    folder = str(study.path)
    if search.ended_by == SearchEnd.WRONG_ANSWERS:
        return _advice_wrong(chosen, folder)
    if search.ended_by is None:
        load = chosen.experiment.get("load", {}) if chosen else {}
        longer_s = max(_LONGER_S, 2 * load.get("duration", 0.0))
        return _advice_at_end(search, f"longer trials (--duration {longer_s:.0f}s) may decide")
    invalid = _folder_of_last([one for one in search.trials if one.verdict == "invalid"], folder)
    return _ADVICE[search.ended_by].format(
        folder=folder, go_on=resuming(study), more=len(search.trials) + _MORE_TRIALS, invalid=invalid,
        last=_folder_of_last(search.trials, folder), quiet=_advice_of(invalid) or _QUIET,
    )  # fmt: skip


def _folder_of_last(trials: Sequence[TrialSummary], folder: str) -> str:
    """The folder of the last trial; an overload trial has none."""
    name = Path(trials[-1].folder).name if trials else ""
    return f"{folder}/trials/{name}" if name else folder


def _advice_of(trial: str) -> str:
    """The advice of one trial; empty if its folder is gone."""
    with suppress(InputError):
        return RunFolder.open(trial).read_result().verdict.advice
    return ""


def _advice_at_end(search: SearchResult, longer: str) -> str:
    """What to do after a search that came to its end by itself. `longer`: the advice for what is undecided."""
    at_90 = search.at_90_percent
    advice = (
        (search.sustained_per_s is None,
         f"no rate was proven: {longer}, and a rate to start from (--start-rate) saves trials"),
        (search.high is None,
         "the generators are the limit, not the engine: use more of them (--generators) or more cores"),
        (search.high_verdict == "invalid",
         "the upper end is open: give the driver CPUs of its own (--isolation pinned), or more cores"),
        (search.high_is_unproven, f"the upper end is open: {longer} it"),
        (not search.confirmed, "search again without --quick, which confirms the rate, before you publish it"),
        (at_90 is None or at_90.verdict != "sustained", f"the rate at 90 % is open: {longer} it"),
        (True, "measure the latency at the rate that you plan for: streamgauge run WORKLOAD --rate RATE, with the same "
         "options"),
    )  # fmt: skip
    return next(text for applies, text in advice if applies)


def _advice_wrong(chosen: Result | None, folder: str) -> str:
    """What to do about wrong answers: the user's job is the user's to correct, a built-in workload is not."""
    examples = f"look at the examples in {chosen.folder if chosen else f'{folder}/trials'}/verification.json"
    if chosen is None or chosen.job_files:
        return f"{examples}, correct the job or a setting, and search again"
    return (
        f"{examples}; the workload is built in, so the engine, its lowering or streamgauge is at fault: report it with "
        "that file and experiment.toml"
    )


_CAUSES = {"sustained": Cause.RATE_HELD, "invalid": Cause.SEARCH_FAILED}


def wrong_answers(result: Result) -> str:
    """The faults in the results of a trial that failed only by its answers; empty for any other trial."""
    found = result.verification
    if result.verdict.decided_by != ("answers",) or result.verdict.value != "not_sustained" or found is None:
        return ""
    share = f" ({found.fault_count / found.expected:.2%})" if found.expected else ""
    return f"{labels.faults(found)} of {format_count(found.expected)} expected results{share}"


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


def _limit(shown: Result | None, search: SearchResult) -> str:
    """The limit in words. Without an upper end, nothing limited the engine yet, as far as trials were valid."""
    limit = limit_of(shown)
    if not limit or not search.low or search.high:
        return limit
    invalid = any(
        one.verdict == "invalid" and one.folder and (one.offered_per_s or 0) > search.low for one in search.trials
    )
    why = "the trials at higher rates were invalid" if invalid else "every tried rate held"
    return f"not found, because {why}: {limit}"


def limit_of(shown: Result | None) -> str:
    """The limit of the rate that the driver can see."""
    sut = next((one for one in shown.processes if one.role == "sut"), None) if shown is not None else None
    if shown is None or sut is None:
        return ""
    driver, broker = (
        sum(one.cpu_percent_mean for one in shown.processes if one.role == role) for role in ("driver", "broker")
    )
    beside = f"driver used {driver:.0f} %" + (f", broker {broker:.0f} %" if broker else "")
    others = shown.others_cpu_percent or 0.0
    cores = len(shown.environment.get("sut_cpus", ())) or shown.environment.get("cpus", 1)
    of_cluster = shown.settings.get(CLUSTER_CORES)
    allowed = int(of_cluster) if of_cluster else cores_of(shown.experiment.get("master"), cores)
    if allowed is None:
        here = f"SUT CPU {sut.cpu_percent_mean:.0f} % on this machine"
        return f"{here}: not known, because executors run elsewhere; {beside}"
    allowed = min(allowed, shown.experiment.get("parallelism") or allowed)
    shared = driver + broker if shown.isolation == "shared" else 0.0
    # A master that allows less than the machine stays the limit beside background load.
    at_allowance = allowed < cores and sut.cpu_percent_mean >= _BUSY * 100.0 * allowed
    if others > BACKGROUND_SHARE_MAX * machine_percent() and not at_allowance:
        bound = f"background processes used {others:.0f} %, so the limit is not known. Close them and search again"
    else:
        bound = _bound(sut.cpu_percent_mean, shared, 100.0 * allowed, 100.0 * cores, broker > 0)
        bound += f"; background processes used {others:.0f} %" if others else ""
    return f"SUT CPU {sut.cpu_percent_mean:.0f} % of {100 * allowed} %: {bound}; {beside}"


def _bound(sut: float, shared: float, allowed: float, whole: float, has_broker: bool) -> str:
    """The limit of a SUT by its CPU use within its master's allowance.

    `shared`: the use of its cores by the driver and the broker, if there is one.
    """
    if sut >= _BUSY * allowed:
        return "the engine is CPU bound" if allowed >= whole else "the engine has used up what its master allows it"
    if sut + shared >= _BUSY * whole:
        return f"{'engine, driver and broker' if has_broker else 'engine and driver'} together have used up the CPU"
    single = "; a single busy task uses only one core" if sut >= _BUSY * 100 else ""
    return f"not all of the CPU: look at the engine's batches{single}"


def cores_of(master: str | None, cores: int) -> int | None:
    """The number of `cores` that tasks may use; None if the master is or may be on another machine."""
    if master is None:
        return cores
    if master == "local":
        return 1
    match = _LOCAL_MASTER.match(master)
    if match is None:
        return None
    return cores if match.group(1) == "*" else min(int(match.group(1)), cores)
