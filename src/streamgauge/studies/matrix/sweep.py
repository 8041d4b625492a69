"""`sweep`: latency against load. A matrix over the rate, whose loads are shares of one rate.

    runs/<utc time>-<workload>-sweep/    the folder of a matrix
        cells/000/                       the search for the rate that is 100 %, unless it is given

The knee is where power, rate / latency, is greatest (Kleinrock 1979), here with the p99 of the event time.
"""

import math
from functools import partial
from pathlib import Path

from streamgauge.artifacts.run_folder import MATRIX, reopen, write_study
from streamgauge.config import reproduce
from streamgauge.config.experiment import Experiment, Matrix, Search
from streamgauge.config.experiment import Sweep as SweepSettings
from streamgauge.config.matrix import Cell, expand
from streamgauge.core.errors import attempt
from streamgauge.core.exit_codes import ExitCode, worst
from streamgauge.preflight.dry_run import start_s, trial_s
from streamgauge.preflight.machine_requirements import missing_here, require_machine
from streamgauge.preflight.sample_size import lacking_percentiles, spacings
from streamgauge.preflight.settings_checks import check
from streamgauge.results.matrix import KNEE_LOADS_MIN, CellFigures, MatrixPlan, MatrixResult, PlannedCell, Sweep
from streamgauge.studies.matrix.cells import CheckedCell, Observers, check_cells, perform_within
from streamgauge.studies.matrix.matrix import MatrixObserver, begin, plan_matrix, run_matrix
from streamgauge.studies.study_folder import exclusive, requested_study
from streamgauge.trial.events import OnResult, OnStudy, ignore

SEARCH_S = 30.0
"""Span of the search's trials, if the workload's windows allow it. The sweep's own may be long for a p99."""


def as_matrix(experiment: Experiment, full_per_s: float) -> Experiment:
    """The loads as a matrix of runs. `full_per_s`: events per second of 100 %."""
    rates = [float(f"{load * full_per_s:.6g}") for load in (experiment.sweep or SweepSettings()).loads]
    return experiment.model_copy(update={
        "command": "run", "sweep": None, "search": Search(), "matrix": Matrix.model_validate({"load.rate": rates}),
    })  # fmt: skip


def plan_sweep(experiment: Experiment) -> MatrixPlan:
    """The loads that would run, after a search if 100 % is not known. Raises InputError with every problem."""
    resume, experiment = experiment.search.resume, _requested(experiment)
    sweep, checked = _checked(experiment, _stored(resume))
    if sweep.full_per_s is not None:
        plan = plan_matrix(as_matrix(experiment, sweep.full_per_s), _numbers(sweep), resume)
        return plan.model_copy(update={"command": experiment.command, "sweep": sweep})
    search = checked[0].resolved
    longer_s = experiment.load.duration - search.experiment.load.duration
    seconds = trial_s(search, fresh=True) + start_s(search) + longer_s
    cells = (
        PlannedCell(number=number, settings={"load.rate": None}, repetition=1, seconds=seconds)
        for number, _ in enumerate(sweep.loads, 1)
    )
    return MatrixPlan(
        workload=experiment.workload, command=experiment.command, varied=("load.rate",), cells=tuple(cells),
        sweep=sweep, search_s=checked[0].seconds, missing=missing_here(search),
    )  # fmt: skip


def run_sweep(
    experiment: Experiment, observer: MatrixObserver, on_result: OnResult = ignore, on_study: OnStudy = ignore
) -> MatrixResult:
    """Searches for 100 % unless it is known, and runs the loads; with `search.resume` those that the folder lacks, and
    those that decided nothing.

    Raises:
        InputError, MachineError: before anything was started; MachineError also later, for example for a full disk.
            InputError also after the search, for a rate that it found and that no trial can have.
    """
    resume = experiment.search.resume
    with exclusive("search.resume", "a sweep") as lock:
        experiment = _requested(experiment, lock=lock)
        result = _stored(resume)
        sweep, checked = _checked(experiment, result)
        require_machine(*(one.resolved for one in checked))
        if result is None:
            cells = expand(as_matrix(experiment, sweep.full_per_s or 1.0))
            folder, result = begin(experiment, cells, checked, sweep=sweep)
            lock(folder)
        folder = Path(result.folder)
        write_study(folder, MATRIX, result)
        if sweep.full_per_s is None:
            observer.begin(result, len(sweep.loads))
            sweep = _searched(experiment, sweep, folder, Observers(observer.progress, on_result))
            result = result.model_copy(update={"sweep": sweep})
            write_study(folder, MATRIX, result)
            on_study(result)
    if sweep.full_per_s is None:
        return result
    matrix = as_matrix(experiment, sweep.full_per_s)
    return run_matrix(matrix, observer, _numbers(sweep), str(folder), on_result, on_study, with_knee)


def exit_code(result: MatrixResult) -> ExitCode:
    """That of the worst load up to 100 %, because a higher one is meant to fail; without any that of the search."""
    sweep = result.sweep
    assert sweep is not None
    if sweep.full_per_s is None:
        return ExitCode.SIGINT if sweep.search is None else sweep.search.code
    rows = (row for row in result.cells if sweep.load_of(row) <= 1 or row.verdict == "interrupted")
    return worst((ExitCode.HOLDS if result.finished else ExitCode.SIGINT, *(row.code for row in rows)))


def with_knee(result: MatrixResult) -> MatrixResult:
    """The result with the knee of its loads, once all have ended."""
    sweep = result.sweep
    assert sweep is not None
    rows = result.cells if result.finished else ()
    failed = min((sweep.load_of(row) for row in rows if row.verdict == "not_sustained"), default=math.inf)
    power = {
        load: load / row.event_time_p99_us
        for row in rows
        if row.verdict == "sustained" and row.event_time_p99_us and (load := sweep.load_of(row)) < failed
    }
    knee = max(power, key=power.__getitem__) if len(power) >= KNEE_LOADS_MIN else None
    return result.model_copy(update={"sweep": sweep.model_copy(update={"candidates": tuple(power), "knee": knee})})


_requested = partial(requested_study, file=MATRIX, defaults=SweepSettings(), what="a sweep")


def _stored(resume: str | None) -> MatrixResult | None:
    return None if resume is None else reopen(Path(resume), MATRIX, MatrixResult)


def _numbers(sweep: Sweep) -> str:
    """All cells by name, so that those that decided nothing run again."""
    return ",".join(str(number) for number, _ in enumerate(sweep.loads, 1))


def _checked(experiment: Experiment, stored: MatrixResult | None) -> tuple[Sweep, tuple[CheckedCell, ...]]:
    """What is known of the sweep, and its loads, or the search for 100 %, ready to start. Else raises InputError."""
    settings = experiment.sweep or SweepSettings()
    full_per_s = settings.of if stored is None or stored.sweep is None else stored.sweep.full_per_s
    if full_per_s is None:
        cells: tuple[Cell, ...] = (Cell(0, {}, 1, _search(experiment)),)
    else:
        cells = expand(as_matrix(experiment, full_per_s))
    checked = check_cells(cells, reproduce.unsupported_settings(experiment))
    trial = checked[0].resolved
    lack = lacking_percentiles(spacings(trial.flow, trial.interval), experiment.load.duration).get("p99")
    return Sweep(loads=settings.loads, full_per_s=full_per_s, p99_needs_s=lack and lack.needed_s), checked


def _search(experiment: Experiment, resume: str | None = None) -> Experiment:
    """The search for 100 %, whose spans are short unless this is too short for the workload."""
    search = experiment.search.model_copy(update={"quick": True, "resume": resume})
    whole = experiment.model_copy(update={"command": "sustain", "sweep": None, "search": search})
    load = experiment.load.model_copy(update={"duration": min(SEARCH_S, experiment.load.duration)})
    short = whole.model_copy(update={"load": load})
    return short if attempt(partial(check, short), []) else whole


def _searched(experiment: Experiment, sweep: Sweep, folder: Path, observers: Observers) -> Sweep:
    """The sweep after its search, which goes on if it was stopped. 100 % stays unknown without a sustained rate."""
    earlier = next((str(file.parent) for file in folder.glob("cells/000/*/experiment.toml")), None)
    figures = perform_within(folder, 0, _search(experiment, earlier), observers)
    found = CellFigures(**figures.model_dump(exclude={"at_90_percent"}))
    full_per_s = found.sustained_per_s if found.verdict == "sustained" else None
    return sweep.model_copy(update={"search": found, "full_per_s": full_per_s})
