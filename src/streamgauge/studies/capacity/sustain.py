"""`sustain`: runs the search of `studies.capacity.search` on real test beds and stores it in one study folder.

Trials of flows with finite reach share a warm test bed: one engine and one plan that grows by segments. The backlog is
drained between trials, and segments are further apart than the reach. A fresh engine starts when the search asks."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from streamgauge.artifacts.atomic_write import OUT, write_text
from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config import reproduce
from streamgauge.config.experiment import Experiment
from streamgauge.config.experiment import Search as SearchSettings
from streamgauge.config.experiment_file import read as read_experiment
from streamgauge.core.errors import DriverError, Rule, StreamgaugeError, broken, refuse, require
from streamgauge.core.formatting import format_rate, resume_command
from streamgauge.core.trial import TrialSnapshot
from streamgauge.dataflow.describe import describe
from streamgauge.engines.registry import entry, starter_of
from streamgauge.preflight.dry_run import start_s, trial_plan, trial_s
from streamgauge.preflight.generator_ceiling import ceiling_of
from streamgauge.preflight.machine_requirements import require_machine
from streamgauge.preflight.resolved_experiment import ResolvedExperiment, spare_s
from streamgauge.preflight.sample_size import percentile_note
from streamgauge.preflight.settings_checks import check
from streamgauge.results.codes import SearchEnd
from streamgauge.results.dry_run import TrialPlan
from streamgauge.results.run import Result
from streamgauge.results.search import TrialSummary
from streamgauge.results.verdict import Remark
from streamgauge.studies.capacity.constants import CEILING_SHARE, DRAIN_TIMEOUT_S, STARTS_TYPICAL, TRIALS_TYPICAL
from streamgauge.studies.capacity.outcome import EndedBy, outcome_of, outcome_of_warm_up, result_of
from streamgauge.studies.capacity.saturation_probe import (
    drained_where_far_behind,
    keeps_rows,
    probe_saturation,
    warm_up,
)
from streamgauge.studies.capacity.search import Search, Settings, TrialOutcome, TrialRequest
from streamgauge.studies.run.prometheus import exported
from streamgauge.studies.run.run import create_folder, interrupted_result
from streamgauge.studies.study_folder import Lock, exclusive
from streamgauge.system.cpu_pinning import cpus
from streamgauge.trial.conductor import TrialConductor, stores_engine_progress
from streamgauge.trial.events import Observer, OnResult, ignore
from streamgauge.trial.phases import DRAIN_INTERVALS
from streamgauge.trial.policies import SearchTrial
from streamgauge.trial.progress import snapshots
from streamgauge.user_workloads.lookup import changed_files, with_absolute_paths

_SEARCH_SETTINGS = "must be the search's own with --resume"
_FREE = ("out", "search.resume", "search.trials_max", "prometheus")
"""Settings that --resume may change: it may allow more trials, and export figures to another port."""
MEMO, CEILING = "search.jsonl", "ceiling.json"


class SearchObserver(Protocol):
    """An observer of a search."""

    def header(self, text: str) -> None:
        """Receives the question and the machine, as text."""

    def trial_progress(self, snapshot: TrialSnapshot) -> None:
        """Receives the state of the current trial."""

    def trial(self, trial: TrialSummary) -> None:
        """Receives a finished trial."""


class Sustain(AbstractContextManager["Sustain"]):
    """One search: owns the current test bed, by its conductor, and the study's folder.

    `outcomes`: of its trials so far, also of those that an earlier, killed search made.
    """

    def __init__(
        self,
        resolved: ResolvedExperiment,
        folder: RunFolder,
        view: SearchObserver,
        ceiling_per_s: float,
        on_result: OnResult = ignore,
        observe: Observer | None = None,
        outcomes: Sequence[TrialOutcome] = (),
    ) -> None:
        self.resolved, self.folder, self.view, self.ceiling_per_s = resolved, folder, view, ceiling_per_s
        self.on_result, self.observe = on_result, observe or snapshots(view.trial_progress)
        self._stack = ExitStack()
        self._conductor: TrialConductor | None = None
        self.outcomes = list(outcomes)
        self._engine_starts = max((outcome.engine_start for outcome in outcomes), default=0)

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def settings(self) -> Settings:
        search = self.resolved.experiment.search
        return Settings(
            ceiling_per_s=self.ceiling_per_s * CEILING_SHARE,
            tolerance=search.tolerance,
            quick=search.quick,
            start_per_s=search.start_rate,
            trials_max=search.trials_max,
            fresh_always=self.resolved.reach_us is None or self.resolved.workload.restarts,
            keeps_rows=keeps_rows(self.resolved),
            near_limit=self.resolved.engine.near_limit,
        )

    def trial(self, request: TrialRequest) -> TrialOutcome:
        """Runs the trial that the search requests, and records its outcome.

        Raises:
            KeyboardInterrupt: the user stopped it. It proves nothing, and is repeated after a resume.
        """
        started = time.monotonic()
        conductor, fresh = self._conductor_for(request)
        if request.purpose == "overload":
            outcome = probe_saturation(conductor, request)
        else:
            outcome = self._judged(conductor, request, fresh)
        outcome = replace(
            outcome,
            purpose=request.purpose,
            seconds=time.monotonic() - started,
            engine_start=self._engine_starts,
        )
        if outcome.verdict == "interrupted":
            raise KeyboardInterrupt
        self.outcomes.append(outcome)
        record(self.folder, self.outcomes)
        return outcome

    def _conductor_for(self, request: TrialRequest) -> tuple[TrialConductor, bool]:
        """(the conductor of a started test bed, whether its engine is new)."""
        current = self._conductor
        if current is not None and not request.fresh and self._drain(current):
            return current, False
        self._stack.close()
        self._conductor = None
        self._engine_starts += 1
        resolved = self.resolved
        engine = resolved.experiment.engine
        conductor = self._stack.enter_context(TrialConductor.on_test_bed(
            resolved, starter_of(engine, resolved.sut_cpus, resolved.experiment.parallelism),
            self.folder.path / "engine" / f"start-{self._engine_starts}",
            self.observe, ceiling_per_s=self.ceiling_per_s,
        ))  # fmt: skip
        self._conductor = conductor
        conductor.start(request.rate_per_s, f"starting {engine}, start {self._engine_starts}", self.folder)
        return conductor, True

    def _judged(self, conductor: TrialConductor, request: TrialRequest, fresh: bool) -> TrialOutcome:
        experiment = self.resolved.experiment
        warmed = fresh and self.resolved.reach_us is not None
        if warmed and (drained_per_s := self._warm(conductor, request.rate_per_s)):
            return outcome_of_warm_up(request, drained_per_s)
        folder = self.folder.trial(len(self.outcomes) + 1, datetime.now(UTC))
        folder.write_experiment(experiment.model_copy(update={
            "command": "run", "load": experiment.load.model_copy(update={"rate": request.rate_per_s}),
            "search": SearchSettings(),  # without the search's settings, the trial's file is one that `run` can repeat
        }), self.resolved.workload.files)  # fmt: skip
        trial = SearchTrial(
            self.resolved, request.rate_per_s, fresh=fresh and not warmed, duration_s=experiment.load.duration,
            keep_results=experiment.keep_results, probe_batches=stores_engine_progress(experiment),
        )  # fmt: skip
        judged = conductor.run(folder, trial)
        self.on_result(folder, describe(self.resolved.flow))
        return outcome_of(self.resolved, request, judged, folder)

    def _warm(self, conductor: TrialConductor, rate_per_s: float) -> float | None:
        """Warms a fresh engine up, so that every trial starts on compiled code with an empty queue.

        If the queue cannot be emptied, the trial will show it. If the engine fell far behind, no trial follows, and the
        result is what the engine drained.
        """
        drained_per_s = drained_where_far_behind(conductor, warm_up(conductor, rate_per_s), rate_per_s)
        if drained_per_s is None:
            self._drain(conductor)
        return drained_per_s

    def _drain(self, conductor: TrialConductor) -> bool:
        """Whether another trial may follow. Gives up a test bed that cannot be emptied or whose driver failed.

        Called only if a trial follows on it. Otherwise the user would wait for nothing.
        """
        with suppress(DriverError):
            if conductor.testbed.engine_status().alive:
                return conductor.drain(
                    DRAIN_TIMEOUT_S + DRAIN_INTERVALS * self.resolved.interval_s + self.resolved.unseen_s
                )
        return False


def sustain(experiment: Experiment, view: SearchObserver, on_result: OnResult = ignore) -> Result:
    """Searches, and writes the study's folder. `search.resume` continues a killed search.

    Raises:
        InputError, MachineError: before anything was started.
        EngineError, DriverError: an engine or the driver did not start; the folder has the findings so far.
    """
    with exclusive("search.resume", "a search") as lock:
        resolved, folder = _checked(experiment, lock)
        require_machine(resolved)
        folder = folder or create_folder(resolved, lock)
        result = _search(resolved, folder, view, on_result)
        on_result(folder, describe(resolved.flow))
        return result


def _checked(experiment: Experiment, lock: Lock = ignore) -> tuple[ResolvedExperiment, RunFolder | None]:
    """The search ready to start, and the folder of the one to continue, unless its user job's files changed since."""
    experiment, folder = resumed(experiment, lock)
    resolved = check(experiment, new_folder=folder is None)
    if folder is not None:
        refuse(list(changed_files(
            resolved.workload, folder.read_result().job_files,
            "restore the file, or start a new search without --resume",
        )))  # fmt: skip
    return resolved, folder


def plan_search(experiment: Experiment) -> TrialPlan:
    """What `sustain` would do; with `search.resume` the whole search. It starts, fetches and writes nothing.

    Raises:
        InputError: with the problems for which the search would be refused.
    """
    resolved, _ = _checked(experiment)
    search, load = resolved.experiment.search, resolved.experiment.load
    ceiling = ceiling_of(resolved, search.start_rate or load.rate)
    longest_s = trial_s(resolved, fresh=True) + start_s(resolved) + spare_s(load.duration)
    return trial_plan(
        resolved, ceiling, search.start_rate, trials=min(TRIALS_TYPICAL, search.trials_max),
        trials_max=search.trials_max, seconds=typical_s(resolved), seconds_max=search.trials_max * longest_s,
    )  # fmt: skip


def typical_s(resolved: ResolvedExperiment) -> float:
    """Estimated seconds of a search with the usual number of trials."""
    fresh_s = trial_s(resolved, fresh=True) + start_s(resolved)
    trials = min(TRIALS_TYPICAL, resolved.experiment.search.trials_max)
    if resolved.reach_us is None:  # each trial gets an engine of its own
        return trials * fresh_s
    starts = 1 if resolved.experiment.search.quick else STARTS_TYPICAL
    return (trials - starts) * trial_s(resolved, fresh=False) + starts * fresh_s


def _search(resolved: ResolvedExperiment, folder: RunFolder, view: SearchObserver, on_result: OnResult) -> Result:
    """Runs the search in its folder, from what the folder already has."""
    experiment, outcomes, started = resolved.experiment, recorded(folder), time.monotonic()
    try:
        ceiling = stored_ceiling(
            folder, lambda: ceiling_of(resolved, experiment.search.start_rate or experiment.load.rate)
        )
    except KeyboardInterrupt:
        return interrupted_result(folder, f"to go on: {resume_command('sustain', folder.path)}")
    view.header(header(resolved, ceiling))
    with (
        exported(experiment, snapshots(view.trial_progress)) as observe,
        Sustain(resolved, folder, view, ceiling, on_result, observe, outcomes) as work,
    ):
        machine = Search(work.settings(), outcomes)
        for trial in machine.result().trials:
            view.trial(trial)
        ended_by: EndedBy = None
        try:
            while machine.request is not None:
                machine.tell(work.trial(machine.request))
                view.trial(machine.result().trials[-1])
        except KeyboardInterrupt as stop:
            ended_by = stop
        except StreamgaugeError as failure:
            machine.end(Remark(SearchEnd.FAILED, {"reason": str(failure).splitlines()[0]}))
            ended_by = failure
        seconds = sum(outcome.seconds for outcome in outcomes) + time.monotonic() - started
        result = result_of(folder, experiment, machine.result(), seconds, ended_by)
    folder.write_result(result)
    if isinstance(ended_by, StreamgaugeError):
        on_result(folder, describe(resolved.flow))
        raise ended_by
    return result


def stored_ceiling(folder: RunFolder, measure: Callable[[], float]) -> float:
    """The generators' ceiling of a search, measured once and stored, since a resumed search needs the same rates."""
    path = folder.path / CEILING
    with suppress(FileNotFoundError, ValueError, TypeError):  # missing, empty, broken, or not a number
        return float(json.loads(path.read_text()))
    ceiling = measure()
    write_text(path, json.dumps(ceiling), OUT)
    return ceiling


def recorded(folder: RunFolder) -> list[TrialOutcome]:
    """The outcomes that a search left in its folder, as far as they can be read."""
    outcomes = []
    with suppress(FileNotFoundError, json.JSONDecodeError, TypeError):
        for line in (folder.path / MEMO).read_text().splitlines():
            outcomes.append(TrialOutcome(**json.loads(line)))
    return outcomes


def record(folder: RunFolder, outcomes: Iterable[TrialOutcome]) -> None:
    """Stores the outcomes of a search, one a line."""
    lines = (json.dumps(asdict(outcome)) + "\n" for outcome in outcomes)
    write_text(folder.path / MEMO, "".join(lines), OUT)


def resumed(experiment: Experiment, lock: Lock = ignore) -> tuple[Experiment, RunFolder | None]:
    """The experiment, and the folder of the search to continue, which it locks."""
    experiment = with_absolute_paths(experiment)
    if experiment.search.resume is None:
        return experiment, None
    path = Path(experiment.search.resume)
    folder = RunFolder(path.parent if path.is_file() else path)
    file = folder.path / "experiment.toml"
    rule, way_out = "must be the folder of a search", "the run folder of a sustain"
    require(file.is_file(), "search.resume", rule, str(folder.path), way_out)
    previous = read_experiment(file)
    require(previous.command == "sustain", "search.resume", rule, str(folder.path), way_out)
    lock(folder.path)
    given, name = experiment.model_dump(mode="json"), experiment.workload
    refuse([
        *broken(Rule(name == previous.workload, "workload", _SEARCH_SETTINGS, name, "leave WORKLOAD out")),
        *reproduce.contradictions(given, previous.model_dump(mode="json"), _SEARCH_SETTINGS, _FREE),
    ])  # fmt: skip
    made, search = len(recorded(folder)), previous.search
    if any(setting.name == "search.trials_max" for setting in reproduce.settings(given)):
        search = search.model_copy(update={"trials_max": experiment.search.trials_max})
    rule = f"must be at least {made}, the number of trials that this search has made"
    require(search.trials_max >= made, "search.trials_max", rule, search.trials_max, str(made + 4))
    return previous.model_copy(update={"prometheus": experiment.prometheus, "search": search}), folder


def header(resolved: ResolvedExperiment, ceiling_per_s: float) -> str:
    """One line: the experiment and its machine, and a start rate that is lowered."""
    experiment = resolved.experiment
    parameters = ", ".join(f"{name}={value}" for name, value in resolved.parameters.model_dump().items())
    asked = f"{resolved.workload.title} ({parameters})" if parameters else resolved.workload.title
    cores = experiment.parallelism or len(resolved.sut_cpus or cpus())
    where = entry(experiment.engine).place(experiment.master, cores)
    start, highest = experiment.search.start_rate, CEILING_SHARE * ceiling_per_s
    lowered = start is not None and start > highest
    return (
        f"{asked}   {experiment.engine} {where}   {experiment.transport}   "
        f"tuning: {experiment.tuning}   seed {experiment.load.seed}   isolation: {experiment.isolation}   "
        f"{resolved.generators_in_words}   "
        f"generator ceiling (making events) {format_rate(ceiling_per_s)}"
        + (f"   {note}" if (note := percentile_note(resolved)) else "")
        + (f"   starts at {format_rate(highest)}, {CEILING_SHARE:.0%} of it, not at --start-rate" if lowered else "")
    )
