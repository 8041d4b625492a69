"""`scale`: demand and capacity over levels of resources, by one monotone search whose trials are runs.

    runs/<utc time>-<workload>-scale/
        experiment.toml             the study's settings
        scale.json                  the trials and the answer so far, written again after each trial
        trials.parquet, trials.csv  one row a trial
        report.html                 one page
        cells/NNN/                  the run folder of each trial

A study that is killed keeps every trial that ended; `--resume` goes on, and repeats trials that decided nothing."""

import csv
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Protocol

from streamgauge.artifacts.atomic_write import OUT, write_text
from streamgauge.artifacts.run_folder import SCALE, new_folder, reopen, write_study
from streamgauge.config.experiment import Experiment, Matrix, Scale
from streamgauge.config.experiment_file import to_toml
from streamgauge.core.exit_codes import ExitCode, worst
from streamgauge.core.trial import TrialSnapshot
from streamgauge.preflight.dry_run import trial_plan
from streamgauge.preflight.generator_ceiling import ceiling_of
from streamgauge.preflight.machine_requirements import require_machine
from streamgauge.results.dry_run import ScaleTrialPlan
from streamgauge.results.scalability import (
    PublishedCapacity,
    ScaleAxes,
    ScaleCell,
    ScalePlan,
    ScaleResult,
)
from streamgauge.studies.matrix.cells import Observers, perform_within, require_same_files, rows_table, write_tables
from streamgauge.studies.scalability.answer import (
    answered,
    next_point,
    outcomes_of,
    point_of,
    without_undecided,
)
from streamgauge.studies.scalability.criteria import judge
from streamgauge.studies.scalability.monotone_search import Point
from streamgauge.studies.scalability.study import PARALLELISM, Study, study_of
from streamgauge.studies.study_folder import Lock, exclusive, requested_study
from streamgauge.system.machine import environment
from streamgauge.trial.events import OnResult, OnStudy, ignore
from streamgauge.trial.progress import Show, show_one_of_several
from streamgauge.trial.trial_result import TrialResult
from streamgauge.verdict.collect_evidence import busy_share

COLUMNS = ("number", "resources", "load", "repetition", "outcome", "lag_growth")
"""Columns of the tables before those of `CellFigures`."""


class ScaleObserver(Protocol):
    """An observer of a scalability study."""

    def begin(self, result: ScaleResult, plan: ScalePlan) -> None:
        """Receives the study with its earlier trials."""

    def progress(self, snapshot: TrialSnapshot) -> None:
        """Receives the state of the current trial."""

    def cell(self, result: ScaleResult, cell: ScaleCell) -> None:
        """Receives a trial that ended, and the study with it."""


def check_scale(experiment: Experiment) -> ScalePlan:
    """How many trials the study needs at most. Raises InputError with every problem."""
    return study_of(requested(experiment)).plan()


def plan_scale(experiment: Experiment) -> ScaleTrialPlan:
    """What `scale` would do. It starts and fetches nothing. Raises InputError with every problem."""
    study = study_of(requested(experiment))
    plan, largest = dict(study.plan()), study.checked[-1].resolved
    ceiling, size = ceiling_of(largest, max(study.rates)), {name: plan[name] for name in ("seconds", "seconds_max")}
    trial = trial_plan(largest, ceiling, None, trials=study.trials_max, trials_max=study.trials_max, **size)
    return ScaleTrialPlan(**{**dict(trial), **plan, "command": experiment.command})


def least_trial(experiment: Experiment) -> Experiment:
    """The run of the least load on the least resources, as a matrix of this cell, which lists the others as left out.

    Raises InputError with every problem of any trial.
    """
    study = study_of(requested(experiment))
    levels, loads = (range(len(axis.values)) for axis in (study.resources, study.loads))
    first, *others = (study.settings(Point(load, level)) for level in levels for load in loads)
    return study.trial(Point(0, 0)).model_copy(update={"matrix": Matrix(include=(first,), left_out=tuple(others))})


def scale(
    experiment: Experiment, observer: ScaleObserver, on_result: OnResult = ignore, on_study: OnStudy = ignore
) -> ScaleResult:
    """Runs the study to its end, or goes on with the one in the folder of `search.resume`.

    Raises:
        InputError, MachineError: before anything was started; MachineError also later, for example for a full disk.
    """
    resume = experiment.search.resume
    with exclusive("search.resume", "a study") as lock:
        study = study_of(requested(experiment, lock))
        require_machine(*(one.resolved for one in study.checked))
        result = _begin(study, lock) if resume is None else reopen(Path(resume), SCALE, ScaleResult)
        require_same_files(study.checked, result.job_files, result.folder)
        result = _store(study, result.model_copy(update={"cells": without_undecided(result)}), on_study)
        observer.begin(result, study.plan())
        while (point := next_point(result, study.grid)) is not None:
            cell = _run(study, result, point, observer.progress, on_result)
            result = _store(study, result.model_copy(update={"cells": (*result.cells, cell)}), on_study)
            observer.cell(result, cell)
            if cell.outcome == "interrupted":
                break
    return result


def exit_code(result: ScaleResult) -> ExitCode:
    """`HOLDS` if every cell is decided: a load that is not sustained is a result here.

    Else the worst of what left a cell undecided, `FAILS` for wrong answers, and that of a stop.
    """
    if result.decided:
        return ExitCode.HOLDS
    outcomes = outcomes_of(result)
    invalid = (cell for cell in result.cells if cell.outcome == "invalid")
    codes = [cell.code for cell in invalid if outcomes.get(point_of(result, cell)) == "undecided"]
    codes += (ExitCode.FAILS for cell in result.cells if cell.wrong_answers)
    codes += (ExitCode.SIGINT for cell in result.cells if cell.outcome == "interrupted")
    return worst((ExitCode.UNDECIDED, *codes))


def requested(experiment: Experiment, lock: Lock = ignore) -> Experiment:
    """The experiment of the study, which may go on in its folder. It locks the folder to resume."""
    return requested_study(experiment, SCALE, Scale(), "a scalability study", lock)


def _begin(study: Study, lock: Lock) -> ScaleResult:
    """The result without a trial, with a new folder, which it locks."""
    experiment, plan = study.experiment, study.plan()
    folder = new_folder(experiment.out or "runs", experiment.workload, "scale", datetime.now(UTC))
    lock(folder)
    write_text(folder / "experiment.toml", to_toml(experiment), OUT)
    # Loads in events per second, or keys with one of them each: the paper's own unit.
    same_axes = plan.rates == plan.loads and study.resources.setting == PARALLELISM
    return ScaleResult(
        **{name: getattr(plan, name) for name in ScaleAxes.model_fields},
        engine=experiment.engine, transport=experiment.transport,
        parameters=study.parameters(), options=experiment.options, metric=study.loads.metric,
        criterion=study.scale.criterion, repeat=study.scale.repeat,
        environment=environment(), job_files=dict(study.resolved.workload.files),
        start_time=datetime.now(UTC).isoformat(timespec="seconds"), folder=str(folder), notes=tuple(study.notes()),
        published=ehrenstein() if same_axes and experiment.workload == MEASURED_TOPOLOGY else (),
    )  # fmt: skip


def _run(study: Study, result: ScaleResult, point: Point, show: Show, on_result: OnResult) -> ScaleCell:
    """The trial of a cell."""
    folder = Path(result.folder)
    number = 1 + max((int(path.name) for path in (folder / "cells").glob("*") if path.name.isdecimal()), default=0)
    load, resources = study.loads.numbers[point.load], round(study.resources.numbers[point.resources])
    count = len(result.cells) + 1
    which = f"trial {count} of at most {study.trials_max}" if count <= study.trials_max else f"trial {count}"
    experiment = study.trial(point)
    trials: list[TrialResult] = []
    observers = Observers(partial(show_one_of_several, show, which), on_result, on_judged=trials.append)
    figures = perform_within(folder, number, experiment, observers)
    resolved = study.checked[point.load].resolved
    cell = ScaleCell(
        **dict(figures), number=number, resources=resources, load=load,
        repetition=1 + sum((cell.load, cell.resources) == (load, resources) for cell in result.cells),
        outcome=figures.verdict or "invalid",
        busy_share=next((busy_share(resolved, trial.record) for trial in trials), None),
    )  # fmt: skip
    run = folder / figures.folder
    return judge(cell, study.scale.criterion, run, experiment.load.duration, study.resolved.interval_s)


def _store(study: Study, result: ScaleResult, on_study: OnStudy) -> ScaleResult:
    """Writes the study with its answer so far."""
    result = answered(result, study.grid)
    folder = Path(result.folder)
    columns = {name: [getattr(cell, name) for cell in result.cells] for name in COLUMNS}
    write_tables(folder, "trials", rows_table(columns, result.cells))
    write_study(folder, SCALE, result)
    on_study(result)
    return result


MEASURED_TOPOLOGY = "scalability_sink"
"""The workload that the figure is of."""
FIGURE_5 = Path(__file__).parent / "data" / "ehrenstein_fig5.csv"


def ehrenstein() -> tuple[PublishedCapacity, ...]:
    """The points of figure 5."""
    rows = csv.DictReader(line for line in FIGURE_5.read_text().splitlines() if not line.startswith("#"))
    return tuple(PublishedCapacity(resources=int(row["instances"]), per_s=float(row["messages_per_s"])) for row in rows)
