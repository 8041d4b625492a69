"""What a search's result says: whose figures it shows, its verdict, what kept the rate from being higher, and what was
not the same in all of its trials.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.experiment_settings import Experiment
from streamgauge.core.errors import InputError, StreamgaugeError
from streamgauge.core.formatting import format_count, format_us, share_beside
from streamgauge.results import labels
from streamgauge.results.causes import Cause, SearchEnd, WarningCode
from streamgauge.results.run import Caution, Result
from streamgauge.results.search import SearchResult, TrialSummary
from streamgauge.results.verdict import Verdict, VerdictValue
from streamgauge.system.machine import machine_percent
from streamgauge.verdict.evidence import BACKGROUND_SHARE_MAX, machine_speed_differs

EndedBy = KeyboardInterrupt | StreamgaugeError | None
"""What ended a search before its time: somebody who stopped it, or a test bed that failed."""
NOT_SEEN = "not known: the search was stopped before a trial had shown it"
_LOCAL_MASTER = re.compile(r"local\[(\d+|\*)")
_ADVICE_WRONG = "look at the examples in {}/verification.json, correct the job or a setting, and search again"
_BUSY = 0.85
"""Of the CPU that may be used: so much is used up."""


def result_of(
    folder: RunFolder, experiment: Experiment, search: SearchResult, seconds: float, ended_by: EndedBy
) -> Result:
    """The result of the study in `folder`: that of the best trial, under the search's verdict."""
    chosen = trial_shown(folder, search)
    limit = _limit(chosen, search) or (NOT_SEEN if isinstance(ended_by, KeyboardInterrupt) else "")
    stopped = SearchEnd.INTERRUPTED if isinstance(ended_by, KeyboardInterrupt) else search.ended_by
    update = {"seconds": seconds, "limit": limit, "ended_by": stopped}
    search = with_interference(folder, search).model_copy(update=update)
    begun = folder.read_result()
    base = chosen or begun
    return base.warned(*warnings_of(search)).model_copy(update={
        "run_id": begun.run_id,
        "experiment": experiment.model_dump(mode="json"),
        "verdict": _verdict(search, chosen, ended_by, resuming(folder)),
        "search": search,
        "folder": str(folder.path),
    })  # fmt: skip


def resuming(folder: RunFolder) -> str:
    """The command that goes on with the search in `folder`."""
    return f"streamgauge sustain --resume {folder.path}"


def with_interference(folder: RunFolder, search: SearchResult) -> SearchResult:
    """The search with what other processes used during each of its trials, and how fast the machine itself was, from
    the trials' own folders.
    """

    def told(trial: TrialSummary) -> TrialSummary:
        if not trial.folder:  # an overload trial
            return trial
        with suppress(InputError):  # somebody has cleared the folder away
            result = RunFolder.open(folder.path / "trials" / Path(trial.folder).name).read_result()
            known = {name: getattr(result, name) for name in ("others_cpu_percent", "reference_work_us")}
            return trial.model_copy(update=known)
        return trial

    near = search.at_90_percent
    trials = tuple(told(trial) for trial in search.trials)
    return search.model_copy(update={"trials": trials, "at_90_percent": told(near) if near is not None else None})


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
    """The trial whose figures a search shows: the last one that held at the rate it found, else the last there is.

    Read from the study's folder, so that a search that was killed and went on shows the same. One whose folder somebody
    has cleared away gives its place to the one before; a search that has ended is not lost for it.
    """
    rate = search.sustained_per_s
    held = [t for t in search.trials if rate is None or (t.verdict == "sustained" and t.offered_per_s == rate)]
    kept = [folder.path / "trials" / Path(trial.folder).name for trial in held if trial.folder]
    for path in reversed(kept):
        with suppress(InputError):
            return RunFolder.open(path).read_result()
    return None


def _verdict(search: SearchResult, chosen: Result | None, ended_by: EndedBy, go_on: str) -> Verdict:
    """`go_on`: the command that goes on with a search that somebody stopped."""
    checks = chosen.verdict.checks if chosen else ()
    if isinstance(ended_by, KeyboardInterrupt):
        sentence = (
            f"the search was stopped; so far: {search.sentence}" if search.trials else "stopped in its first trial"
        )
        return Verdict(
            value="interrupted", cause=Cause.INTERRUPTED, checks=checks, sentence=sentence, advice=f"to go on: {go_on}"
        )
    value = _value(search, failed=ended_by is not None)
    wrong = search.ended_by == SearchEnd.WRONG_ANSWERS
    cause = Cause.WRONG_ANSWERS if wrong else _CAUSES.get(value, Cause.NO_RATE_HELD)
    advice = _ADVICE_WRONG.format(chosen.folder) if wrong and chosen else ""
    return Verdict(value=value, cause=cause, checks=checks, sentence=search.sentence, advice=advice)


_CAUSES = {"sustained": Cause.RATE_HELD, "invalid": Cause.SEARCH_FAILED}


def wrong_answers(result: Result) -> str:
    """What is wrong with the results of a trial that failed by its answers alone; empty of every other trial."""
    found = result.verification
    if result.verdict.decided_by != ("answers",) or result.verdict.value != "not_sustained" or found is None:
        return ""
    share = f" ({found.fault_count / found.expected:.2%})" if found.expected else ""
    return f"{labels.faults(found)} of {format_count(found.expected)} expected results{share}"


def _value(search: SearchResult, failed: bool) -> VerdictValue:
    """Of a search that nobody stopped. What held stays a lower bound, whatever became of the trials after it.

    Where nothing held, only a trial that is proof says that nothing does.
    """
    verdicts = [trial.verdict for trial in search.trials]
    if search.confirmed or (search.sustained_per_s is not None and not failed):
        return "sustained"
    if failed or verdicts[-1:] == ["invalid"]:
        return "invalid"
    return "not_sustained" if "not_sustained" in verdicts else "undecided"


def _limit(shown: Result | None, search: SearchResult) -> str:
    """Where every rate that was tried held, nothing limited the engine yet, whatever it used."""
    told = limit_of(shown)
    return f"not found, as every rate that was tried held: {told}" if told and search.low and not search.high else told


def limit_of(shown: Result | None) -> str:
    """What keeps the rate from being higher, as far as the driver can see."""
    if shown is None:
        return ""
    sut = next((one for one in shown.processes if one.role == "sut"), None)
    driver = sum(one.cpu_percent_mean for one in shown.processes if one.role == "driver")
    if sut is None:
        return ""
    cores = len(shown.environment.get("sut_cpus", ())) or shown.environment.get("cpus", 1)
    allowed = cores_of(shown.experiment.get("master"), cores)
    if allowed is None:
        here = f"SUT CPU {sut.cpu_percent_mean:.0f} % on this machine"
        return f"{here}: not known, executors run elsewhere; driver used {driver:.0f} %"
    shared = driver if shown.isolation == "shared" else 0.0
    bound = _bound(sut.cpu_percent_mean, shared, 100.0 * allowed, 100.0 * cores)
    return f"SUT CPU {sut.cpu_percent_mean:.0f} % of {100 * allowed} %: {bound}; driver used {driver:.0f} %"


def _bound(sut: float, shared: float, allowed: float, whole: float) -> str:
    """What a SUT that used so much of what its master allows it is bound by; `shared`: the driver's on its cores."""
    if sut >= _BUSY * allowed:
        return "the engine is CPU bound" if allowed >= whole else "the engine has used up what its master allows it"
    if sut + shared >= _BUSY * whole:
        return "engine and driver together have used up the CPU"
    single = "; a task that is always busy uses one core and no more" if sut >= _BUSY * 100 else ""
    return f"not all of the CPU: look at the engine's batches{single}"


def cores_of(master: str | None, cores: int) -> int | None:
    """How many of the `cores` tasks may use; None where the master is not of this machine, or may not be."""
    if master is None:
        return cores
    if master == "local":
        return 1
    asked = _LOCAL_MASTER.match(master)
    if asked is None:
        return None
    return cores if asked.group(1) == "*" else min(int(asked.group(1)), cores)
