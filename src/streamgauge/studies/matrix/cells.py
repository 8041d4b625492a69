"""The cells of a study: checked before anything starts, performed one by one, and listed in a table."""

import io
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pyarrow.csv

from streamgauge.artifacts.atomic_write import OUT, disk, write_table, write_text
from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.experiment import Experiment
from streamgauge.config.matrix import Cell, merge_problems, value_of
from streamgauge.core.errors import InputError, MachineError, Problem, Rule, StreamgaugeError, refuse, require_all
from streamgauge.core.exit_codes import SEVERITY, VERDICT_CODES
from streamgauge.core.formatting import format_value
from streamgauge.core.trial import TrialSnapshot
from streamgauge.preflight.dry_run import start_s, trial_s
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.preflight.settings_checks import check
from streamgauge.results.breakdown import LatencyBreakdown
from streamgauge.results.latency import Latencies
from streamgauge.results.matrix import CellFigures, MatrixResult, SearchFigures, SinkFigures
from streamgauge.results.run import Result
from streamgauge.studies.capacity.outcome import trial_result
from streamgauge.studies.capacity.sustain import sustain, typical_s
from streamgauge.studies.latency_breakdown.anatomy import anatomy, check_trials, exit_code
from streamgauge.studies.operator_profile.characterize import characterize, check_all, check_input
from streamgauge.studies.run.run import run_judged
from streamgauge.trial.events import OnResult, OnStudy, ignore
from streamgauge.trial.progress import Show, snapshots
from streamgauge.trial.trial_result import TrialResult
from streamgauge.user_workloads.lookup import changed_files

LOOK_S_MAX = 600.0
"""The time of a look, seconds."""


@dataclass(frozen=True)
class CheckedCell:
    """A cell that can start. `resolved`: its trial, or the first of several; `seconds`: None if unforeseen."""

    cell: Cell
    resolved: ResolvedExperiment
    seconds: float | None


def check_cells(cells: Sequence[Cell], others: Sequence[Problem] = ()) -> tuple[CheckedCell, ...]:
    """Every cell, ready to start. Raises InputError with every problem of any cell, and with the `others`."""
    problems: dict[int, list[Problem]] = {cell.number: [] for cell in cells}
    checked: dict[int, tuple[ResolvedExperiment, float | None]] = {}
    found, incomplete = [], False
    for cell in cells:
        experiment = cell.experiment  # the repetitions of a combination share it
        try:
            if id(experiment) not in checked:
                checked[id(experiment)] = _checked(experiment)
            found.append(CheckedCell(cell, *checked[id(experiment)]))
        except InputError as error:
            problems[cell.number] += error.problems
            incomplete = incomplete or error.incomplete
    refuse([*others, *merge_problems(problems)], incomplete=incomplete)
    return tuple(found)


def require_same_files(cells: Sequence[CheckedCell], before: Mapping[str, str], folder: str) -> None:
    """Raises InputError if files of a user job or data changed since the matrix in `folder` began."""
    way_out = f"restore the file, or start a new matrix without --resume {folder}"
    changed = (
        problem
        for one in (cell.resolved.workload for cell in cells)
        for problem in changed_files(one, {name: before[name] for name in before if name in one.files}, way_out)
    )
    refuse(list({str(problem): problem for problem in changed}.values()))


COMMANDS = ("run", "sustain", "anatomy", "characterize")


def _checked(experiment: Experiment) -> tuple[ResolvedExperiment, float | None]:
    """The (first) trial and the estimated seconds; InputError if it cannot start."""
    command = experiment.command
    why = "has a grid of its own" if command in ("scale", "sweep") else "measures nothing"
    require_all(
        Rule(
            command in COMMANDS, "command",
            f"must be {', '.join(COMMANDS)} with a matrix or a paper, because {command} {why}", command,
            'command = "run"',
        ),
        Rule(
            experiment.search.resume is None, "search.resume",
            "must not be given with a matrix, which resumes as a whole", experiment.search.resume,
            "streamgauge experiment --resume FOLDER",
        ),
    )  # fmt: skip
    if command == "characterize":
        check_all(experiment)
        return check_input(experiment), None
    trials = check_trials(experiment) if command == "anatomy" else [check(experiment)]
    if command == "sustain":
        return trials[0], typical_s(trials[0])
    return trials[0], sum(trial_s(trial, fresh=True) + start_s(trial) for trial in trials)


@dataclass(frozen=True)
class Observers:
    """What observes a cell: its progress, its run folders, its study's findings, and a run with its evidence."""

    show: Show = ignore
    on_result: OnResult = ignore
    on_study: OnStudy = ignore
    on_judged: Callable[[TrialResult], None] = ignore


def perform(experiment: Experiment, observers: Observers) -> CellFigures:
    """Runs a cell to its end. A cell that could not start is invalid, with the reason, and the matrix goes on.

    Raises:
        MachineError: this machine lacks something, as it would in the other cells.
    """
    try:
        figures = _performed(experiment, observers)
    except MachineError:
        raise
    except StreamgaugeError as error:
        sentence = " ".join(str(error).split())
        return CellFigures(verdict="invalid", sentence=sentence, folder=error.folder, exit_code=error.exit_code)
    return figures.model_copy(update={"exit_code": figures.code})


def perform_within(study: Path, number: int, experiment: Experiment, observers: Observers) -> CellFigures:
    """Runs a cell in `cells/NNN` of a study's folder. Ctrl-C makes it interrupted; it may then have figures so far."""
    place, started = study / "cells" / f"{number:03d}", time.monotonic()
    with disk(place):
        place.mkdir(parents=True, exist_ok=True)
    try:
        figures = perform(experiment.model_copy(update={"out": str(place)}), observers)
    except KeyboardInterrupt:
        figures = CellFigures(verdict="interrupted", sentence="stopped before its end")
    changes: dict[str, Any] = {"seconds": round(time.monotonic() - started, 1), **_places(figures, study)}
    if isinstance(figures, SearchFigures) and (trial := figures.at_90_percent) is not None:
        changes["at_90_percent"] = trial.model_copy(update=_places(trial, study))
    return figures.model_copy(update=changes)


def _places(figures: CellFigures, study: Path) -> dict[str, str]:
    """Folder and report, relative to the study."""
    report = Path(figures.folder, "report.html")
    return {
        "folder": os.path.relpath(figures.folder, study) if figures.folder else "",
        "report": os.path.relpath(report, study) if figures.folder and report.exists() else "",
    }


def figures_of(result: Result) -> CellFigures:
    """The figures of a run, or of a search's best trial."""
    rate, driver = result.rate, result.driver
    processes = {process.role: process for process in reversed(result.processes)}
    sut, broker = processes.get("sut"), processes.get("broker")
    answers = result.verification
    rows_per_s = [sink.rows_per_s for sink in result.sinks if sink.rows_per_s is not None]

    def latencies(among: Latencies, kind: str, *statistics: str) -> dict[str, Any]:
        return {f"{kind}_{name}_us": getattr(among.by_kind(kind), name, None) for name in statistics}

    return CellFigures(
        verdict=result.verdict.value,
        sentence=result.verdict.sentence,
        decided_by=", ".join(result.verdict.decided_by),
        folder=result.folder,
        sustained_per_s=result.search.sustained_per_s if result.search else None,
        planned_per_s=rate.planned_per_s if rate else None,
        offered_per_s=rate.offered_per_s if rate else None,
        ingested_per_s=rate.ingested_per_s if rate else None,
        ingested_std_per_s=rate.ingested_std_per_s if rate else None,
        achieved_per_s=rate.achieved_per_s if rate else None,
        maximum_per_s=rate.maximum_per_s if rate else None,
        results_per_s=sum(rows_per_s) if 0 < len(rows_per_s) == len(result.sinks) else None,
        backlog_max=result.backlog.max if result.backlog else None,
        faults=answers.fault_count if answers and answers.judged else None,
        sut_cpu_percent=sut.cpu_percent_mean if sut else None,
        sut_memory_bytes=sut.memory_bytes_max if sut else None,
        broker_cpu_percent=broker.cpu_percent_mean if broker else None,
        driver_cpu_percent=driver.cpu_percent if driver else None,
        driver_memory_bytes=driver.memory_bytes_max if driver else None,
        others_cpu_percent=result.others_cpu_percent,
        loopback_bytes_per_s=result.loopback_bytes_per_s,
        scheduling_delay_us_max=result.scheduling_delay_us_max,
        reference_work_us=result.reference_work_us,
        **latencies(result.latency, "event_time", "mean", "min", "p50", "p90", "p95", "p99", "max"),
        lower_bounds=_lower_bounds(result.latency),
        **latencies(result.latency, "processing_time", "p50", "p99"),
        **latencies(result.latency, "until_counted", "p50", "p99"),
        sinks=tuple(
            SinkFigures(
                name=sink.name,
                results_per_s=sink.rows_per_s,
                **latencies(sink.latency, "event_time", "p50", "p95", "p99"),
                lower_bounds=_lower_bounds(sink.latency),
            )
            for sink in (result.sinks if len(result.sinks) > 1 else ())
        ),
    )


def _lower_bounds(latency: Latencies) -> int:
    return latency.event_time_us.lower_bounds if latency.event_time_us is not None else 0


class _SearchProgress:
    """Observes a search within a matrix: only its progress is shown. The cell's report has the rest."""

    header = trial = staticmethod(ignore)

    def __init__(self, show: Show) -> None:
        self._show = show

    def trial_progress(self, snapshot: TrialSnapshot) -> None:
        self._show(snapshot)


def _performed(experiment: Experiment, observers: Observers) -> CellFigures:
    show, on_result = observers.show, observers.on_result
    match experiment.command:
        case "sustain":
            return _figures_of_search(sustain(experiment, _SearchProgress(show), on_result))
        case "anatomy":
            return _figures_of_breakdown(anatomy(experiment, show, observers.on_study, on_result))
        case "characterize":
            return CellFigures(folder=characterize(experiment, partial(_show_step, show), observers.on_study).folder)
    result, judged = run_judged(experiment, snapshots(show), on_result=on_result)
    if judged is not None:
        observers.on_judged(judged)
    return figures_of(result)


def _figures_of_search(result: Result) -> SearchFigures:
    """The figures of its best trial, and those of its trial at 90 %."""
    at_90 = None
    if result.search is not None and (trial := result.search.at_90_percent) is not None:
        found = trial_result(RunFolder(Path(result.folder)), trial)
        at_90 = figures_of(found).model_copy(update={"seconds": trial.seconds}) if found is not None else None
    return SearchFigures(**dict(figures_of(result)), at_90_percent=at_90)


def _show_step(show: Show, step: str) -> None:
    show(TrialSnapshot("start", 0.0, 0.0, note=step))


def _figures_of_breakdown(breakdown: LatencyBreakdown) -> CellFigures:
    """The figures of its trial; of several trials only the worst verdict."""
    if len(breakdown.trials) == 1 and breakdown.trials[0].run:
        figures = figures_of(RunFolder.open(breakdown.trials[0].run).read_result())
    else:
        decisive = max(breakdown.trials, key=lambda trial: SEVERITY.index(VERDICT_CODES[trial.verdict]))
        figures = CellFigures(verdict=decisive.verdict, sentence=decisive.sentence)
    return figures.model_copy(update={"folder": breakdown.folder, "exit_code": exit_code(breakdown)})


TABLES = "cells"


def write_tables(folder: Path, name: str, table: pa.Table) -> None:
    """Writes both files."""
    write_table(folder / f"{name}.parquet", table)
    text = io.BytesIO()
    pyarrow.csv.write_csv(table, text)
    write_text(folder / f"{name}.csv", text.getvalue().decode(), OUT)


def cells_table(result: MatrixResult, cells: Mapping[int, Cell]) -> pa.Table:
    """The cells that were run, by number. `cells`: every cell of the matrix by its number.

    If a cell has a trial at 90 %, so has the table: the same figures as `at_90_percent.NAME`.
    """
    rows = result.cells
    table = rows_table(
        {
            "number": [row.number for row in rows],
            **({"load": [result.sweep.load_of(row) for row in rows]} if result.sweep else {}),
            **{name: [value_of(cells[row.number].experiment, name) for row in rows] for name in result.varied},
            "repetition": [row.repetition for row in rows],
        },
        rows,
    )
    if any(row.at_90_percent for row in rows):
        trials = rows_table({}, [row.at_90_percent or CellFigures() for row in rows])
        for name in trials.column_names:
            table = table.append_column(f"at_90_percent.{name}", trials[name])
    return table


def rows_table(first: Mapping[str, list[Any]], rows: Sequence[CellFigures]) -> pa.Table:
    """The rows with every figure, behind other columns, then `sinks.SINK.FIGURE` of each sink of any row."""
    figures = {
        name: pa.array([getattr(row, name) for row in rows], _type(field.annotation))
        for name, field in CellFigures.model_fields.items()
        if name != "sinks"
    }
    by_name = [{sink.name: sink for sink in row.sinks} for row in rows]
    for sink in dict.fromkeys(chain.from_iterable(by_name)):
        for name in [*SinkFigures.model_fields][1:]:  # behind its name
            values = [getattr(one.get(sink), name, None) for one in by_name]
            figures[f"sinks.{sink}.{name}"] = pa.array(values, pa.float64())
    return pa.table({name: _column(values) for name, values in first.items()} | figures)


def _column(values: list[Any]) -> pa.Array:
    """Numbers stay numbers if all values are; everything else is text. None stays null."""
    kinds = {type(value) for value in values if value is not None}
    for accepted, type_ in (({bool}, pa.bool_()), ({int}, pa.int64()), ({int, float}, pa.float64())):
        if kinds and kinds <= accepted:
            return pa.array(values, type_)
    return pa.array([None if value is None else format_value(value) for value in values], pa.string())


def _type(annotation: Any) -> pa.DataType:
    kinds = get_args(annotation) or (annotation,)
    return pa.float64() if float in kinds else pa.int64() if int in kinds else pa.string()
