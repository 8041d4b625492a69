"""Checks the cells of a matrix before anything starts, and estimates how long each takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from streamgauge.config.matrix import Cell, merge_problems
from streamgauge.config.options_and_settings import Experiment
from streamgauge.core.clock import US
from streamgauge.core.errors import InputError, Problem, attempt
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.preflight.validate import check
from streamgauge.studies.latency_breakdown.command import check_trials
from streamgauge.studies.operator_profile.apply_advice import check_all
from streamgauge.studies.operator_profile.command import check_input
from streamgauge.user_workloads.lookup import changed_files

JAVA_START_S, START_S = 20.0, 6.0
"""Start of an engine, with and without a JVM, the end of the trial and its verification included."""
SEARCH_TRIALS = 8
"""Typical trials of a search."""
SEARCH_STARTS = 2
"""Engines that a search starts: for its overload trial, and for the bracket or the confirmation."""


@dataclass(frozen=True)
class CheckedCell:
    """A cell that can start. `resolved`: its trial, or the first of several; `seconds`: None if unforeseen."""

    cell: Cell
    resolved: ResolvedExperiment
    seconds: float | None


def check_cells(cells: Sequence[Cell]) -> tuple[CheckedCell, ...]:
    """Every cell, ready to start. Raises InputError with every problem of any cell."""
    problems: dict[int, list[Problem]] = {cell.number: [] for cell in cells}
    checked: dict[int, tuple[ResolvedExperiment, float | None]] = {}
    found = []
    for cell in cells:
        experiment = cell.experiment  # the repetitions of a combination share it
        if id(experiment) not in checked:
            outcome = attempt(partial(_checked, experiment), problems[cell.number])
            if outcome is None:
                continue
            checked[id(experiment)] = outcome
        found.append(CheckedCell(cell, *checked[id(experiment)]))
    if merged := merge_problems(problems):
        raise InputError(merged)
    return tuple(found)


def require_same_files(cells: Sequence[CheckedCell], before: Mapping[str, str], folder: str) -> None:
    """Raises InputError if files of a user job or data changed since the matrix in `folder` began."""
    way_out = f"restore the file, or start a new matrix without --resume {folder}"
    problems: dict[str, Problem] = {}
    for one in cells:
        files = one.resolved.workload.files
        previous = {name: digest for name, digest in before.items() if name in files}
        problems |= {str(problem): problem for problem in changed_files(one.resolved.workload, previous, way_out)}
    if problems:
        raise InputError(list(problems.values()))


def _checked(experiment: Experiment) -> tuple[ResolvedExperiment, float | None]:
    if problems := list(_unsuitable(experiment)):
        raise InputError(problems)
    return _CHECKS[experiment.command](experiment)


def _unsuitable(experiment: Experiment) -> Iterator[Problem]:
    if experiment.command not in _CHECKS:
        why = "has a grid of its own" if experiment.command == "scale" else "measures nothing"
        rule = f"must be {', '.join(_CHECKS)} with a matrix, because {experiment.command} {why}"
        yield Problem("command", rule, experiment.command, 'command = "run"')
    if experiment.search.resume is not None:
        rule = "must not be given with a matrix, which resumes as a whole"
        yield Problem("search.resume", rule, experiment.search.resume, "streamgauge experiment --resume FOLDER")


def _check_run(experiment: Experiment) -> tuple[ResolvedExperiment, float]:
    resolved = check(experiment)
    return resolved, _trial_s(resolved, fresh=True) + _start_s(resolved)


def _check_search(experiment: Experiment) -> tuple[ResolvedExperiment, float]:
    resolved = check(experiment)
    fresh_s = _trial_s(resolved, fresh=True) + _start_s(resolved)
    if resolved.reach_us is None:  # each trial gets an engine of its own
        return resolved, SEARCH_TRIALS * fresh_s
    starts = 1 if experiment.search.quick else SEARCH_STARTS
    return resolved, (SEARCH_TRIALS - starts) * _trial_s(resolved, fresh=False) + starts * fresh_s


def _check_anatomy(experiment: Experiment) -> tuple[ResolvedExperiment, float]:
    trials = check_trials(experiment)
    return trials[0], sum(_trial_s(trial, fresh=True) + _start_s(trial) for trial in trials)


def _check_characterization(experiment: Experiment) -> tuple[ResolvedExperiment, None]:
    check_all(experiment)
    return check_input(experiment), None


def _trial_s(resolved: ResolvedExperiment, fresh: bool) -> float:
    duration_s = resolved.experiment.load.duration
    return resolved.warmup_s(fresh, duration_s) + duration_s + resolved.tail_us / US


def _start_s(resolved: ResolvedExperiment) -> float:
    return JAVA_START_S if resolved.engine.needs_java else START_S


_CHECKS: Mapping[str, Callable[[Experiment], tuple[ResolvedExperiment, float | None]]] = {
    "run": _check_run,
    "sustain": _check_search,
    "anatomy": _check_anatomy,
    "characterize": _check_characterization,
}
"""By command: raises InputError, or gives the (first) trial and the estimated seconds."""
