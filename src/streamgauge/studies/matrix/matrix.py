"""A matrix of experiments: runs its cells one after the other, and writes one folder for all of them.

An experiment with the table of a paper is one too, if only of one cell.

    runs/<utc time>-<workload>-matrix/
        experiment.toml             the file with its [matrix]
        matrix.json                 the cells that were run, written again after each
        cells.parquet, cells.csv    one row a cell
        report.html                 one page for all cells
        cells/NNN/                  the run folder, or the study's folder, of each attempt at a cell

A matrix that is killed keeps every cell that ended; `--resume` runs the others.
"""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Protocol

from streamgauge.artifacts.atomic_write import OUT, write_text
from streamgauge.artifacts.run_folder import MATRIX, new_folder, reopen, write_study
from streamgauge.config.experiment import Experiment, Matrix
from streamgauge.config.experiment_file import read, read_published, to_toml
from streamgauge.config.matrix import Cell, expand, run_order, select, values_of, varied
from streamgauge.config.named_files import change_files
from streamgauge.core.errors import Problem, attempt, require
from streamgauge.core.formatting import resume_command
from streamgauge.core.trial import TrialSnapshot
from streamgauge.preflight.machine_requirements import missing_here, require_machine
from streamgauge.results.matrix import MatrixCell, MatrixPlan, MatrixResult, PlannedCell, PublishedTable, Sweep
from streamgauge.studies.matrix.cells import (
    LOOK_S_MAX,
    TABLES,
    CheckedCell,
    Observers,
    cells_table,
    check_cells,
    perform_within,
    require_same_files,
    write_tables,
)
from streamgauge.studies.study_folder import exclusive
from streamgauge.system.machine import environment
from streamgauge.trial.events import OnResult, OnStudy, ignore
from streamgauge.user_workloads.lookup import with_absolute_paths

REPEATABLE = ("invalid", "undecided")
"""Verdicts of ended cells that `--resume` runs again if `--cells` names them."""


class MatrixObserver(Protocol):
    """An observer of a matrix."""

    def begin(self, result: MatrixResult, to_run: int) -> None:
        """Receives the earlier cells, and how many cells run now."""

    def progress(self, snapshot: TrialSnapshot) -> None:
        """Receives the state of the current cell."""

    def cell(self, cell: MatrixCell) -> None:
        """Receives a cell that was run."""


def plan_matrix(experiment: Experiment, numbers: str | None = None, resume: str | None = None) -> MatrixPlan:
    """The cells that would run, in their order, with estimated times. Raises InputError with every problem."""
    cells = expand(_with_files_of_here(experiment))
    chosen = _chosen(cells, experiment, numbers)
    if resume is not None:
        checked = check_cells(_missing(chosen, reopen(Path(resume), MATRIX, MatrixResult), named=numbers is not None))
    else:
        checked, _ = _checked(experiment, chosen)
    return MatrixPlan(
        workload=experiment.workload,
        command=experiment.command,
        varied=varied(cells),
        quick=experiment.is_quick_look,
        left_out=(experiment.matrix or Matrix()).left_out,
        no_cells=(experiment.matrix or Matrix()).no_cells,
        missing=missing_here(*(one.resolved for one in checked)),
        cells=tuple(
            PlannedCell(
                number=one.cell.number, settings=dict(one.cell.settings), repetition=one.cell.repetition,
                seconds=one.seconds,
            )
            for one in checked
        ),
    )  # fmt: skip


def run_matrix(
    experiment: Experiment,
    observer: MatrixObserver,
    numbers: str | None = None,
    resume: str | None = None,
    on_result: OnResult = ignore,
    on_study: OnStudy = ignore,
    conclude: Callable[[MatrixResult], MatrixResult] = lambda result: result,
) -> MatrixResult:
    """Runs the cells that `numbers` names, else all; with `resume` those that the folder lacks.

    `conclude`: adds to the result what follows from the cells so far.

    Raises:
        InputError, MachineError: before anything was started; MachineError also later, for example for a full disk.
    """
    experiment = _with_files_of_here(experiment)
    cells = expand(experiment)
    chosen = _chosen(cells, experiment, numbers)
    observers = Observers(observer.progress, on_result, on_study)
    with exclusive("--resume", "a matrix") as lock:
        if resume is not None:
            folder = Path(resume)
            lock(folder)
            result = reopen(folder, MATRIX, MatrixResult)
            chosen = _missing(chosen, result, named=numbers is not None)
            checked = check_cells(chosen)
            require_same_files(checked, result.job_files, resume)
            require_machine(*(one.resolved for one in checked))
        else:
            checked, published = _checked(experiment, chosen)
            require_machine(*(one.resolved for one in checked))
            folder, result = begin(experiment, cells, checked, published)
            lock(folder)
        by_number = {cell.number: cell for cell in cells}
        _write(folder, result, by_number, on_study)
        observer.begin(result, len(chosen))
        begun = time.monotonic()
        for index, cell in enumerate(chosen):
            figures = perform_within(folder, cell.number, cell.experiment, observers)
            with_repeat_s = time.monotonic() - begun + sum(one.seconds or 0.0 for one in checked[index:])
            # Searches repeat their trials themselves.
            if experiment.is_quick_look and figures.verdict == "invalid" and with_repeat_s < LOOK_S_MAX:
                figures = perform_within(folder, cell.number, cell.experiment, observers)
            row = MatrixCell(
                number=cell.number, settings=dict(cell.settings), repetition=cell.repetition, **dict(figures)
            )
            result = conclude(result.with_cell(row))
            _write(folder, result, by_number, on_study)
            observer.cell(row)
            if row.verdict == "interrupted":
                break
    return result


def stored_experiment(resume: str, given: Experiment | None) -> Experiment:
    """The experiment of the matrix to resume. `given`: what the user named too, which must be the same."""
    folder = Path(resume)
    rule = f"must be the folder of a matrix, which holds a {MATRIX}"
    require((folder / MATRIX).is_file(), "--resume", rule, resume, "a folder runs/*-matrix")
    stored = read(folder / "experiment.toml")
    same = given is None or to_toml(_with_files_of_here(given)) == to_toml(stored)
    rule = "must be the folder of the experiment in FILE, and its experiment.toml differs"
    require(same, "--resume", rule, resume, f"leave FILE out: {resume_command('experiment', resume)}")
    if stored.command != "sweep":
        return stored
    return stored.model_copy(update={"search": stored.search.model_copy(update={"resume": resume})})


def _with_files_of_here(experiment: Experiment) -> Experiment:
    """The experiment with absolute paths, so that it can be resumed from anywhere."""
    of_here, matrix, paper = with_absolute_paths(experiment), experiment.matrix, experiment.paper
    changed = matrix and Matrix.model_validate(change_files(matrix.model_dump(), os.path.abspath))
    beside = paper and paper.model_copy(update={"published": os.path.abspath(paper.published)})
    return of_here.model_copy(update={"matrix": changed, "paper": beside})


def _checked(experiment: Experiment, cells: Sequence[Cell]) -> tuple[tuple[CheckedCell, ...], PublishedTable | None]:
    """Cells that can start, and the table of the paper. Raises InputError with every problem of both."""
    problems: list[Problem] = []
    published = attempt(partial(read_published, experiment.paper), problems) if experiment.paper else None
    return check_cells(cells, problems), published


def _chosen(cells: Sequence[Cell], experiment: Experiment, numbers: str | None) -> tuple[Cell, ...]:
    ordered = run_order(cells, experiment.matrix or Matrix())
    return ordered if numbers is None else select(ordered, numbers)


def _missing(cells: Iterable[Cell], result: MatrixResult, named: bool) -> tuple[Cell, ...]:
    """Cells that have not ended; of `named` ones also those that decided nothing."""
    verdicts = {row.number: row.verdict for row in result.cells}
    open_ones = ("interrupted", *REPEATABLE) if named else ("interrupted",)
    return tuple(cell for cell in cells if verdicts.get(cell.number, "interrupted") in open_ones)


def begin(
    experiment: Experiment, cells: Sequence[Cell], checked: Sequence[CheckedCell],
    published: PublishedTable | None = None, sweep: Sweep | None = None,
) -> tuple[Path, MatrixResult]:  # fmt: skip
    """A new folder with the experiment, and the result without a cell."""
    now = datetime.now(UTC)
    folder = new_folder(experiment.out or "runs", experiment.workload, "sweep" if sweep else "matrix", now)
    write_text(folder / "experiment.toml", to_toml(experiment), OUT)
    return folder, MatrixResult(
        command=experiment.command, workload=experiment.workload, engine=experiment.engine, varied=varied(cells),
        experiment=values_of(experiment, "matrix", "paper", "out"),
        planned=len(cells), quick=experiment.is_quick_look, left_out=(experiment.matrix or Matrix()).left_out,
        environment=environment(), no_cells=(experiment.matrix or Matrix()).no_cells,
        job_files={name: digest for one in checked for name, digest in one.resolved.workload.files.items()},
        published=published, sweep=sweep, start_time=now.isoformat(timespec="seconds"), folder=str(folder),
    )  # fmt: skip


def _write(folder: Path, result: MatrixResult, cells: dict[int, Cell], on_study: OnStudy) -> None:
    write_tables(folder, TABLES, cells_table(result, cells))
    write_study(folder, MATRIX, result)
    on_study(result)
