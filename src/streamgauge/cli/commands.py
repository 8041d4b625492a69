"""Performs a parsed command: runs it with its view, prints the result and exits."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from streamgauge.cli.parameters import built
from streamgauge.config.experiment import Experiment
from streamgauge.config.experiment_file import read_values, to_toml
from streamgauge.config.named_files import is_own_file
from streamgauge.core.errors import InputError, Problem, StreamgaugeError, require
from streamgauge.core.exit_codes import VERDICT_CODES, ExitCode, worst
from streamgauge.core.output import print_answer, print_progress

if TYPE_CHECKING:
    from streamgauge.artifacts.run_folder import RunFolder, StudyResult
    from streamgauge.report.documents.study_pages import Plan
    from streamgauge.results.run import Result
    from streamgauge.trial.events import FlowNodes


class Options(NamedTuple):
    """How a command shows what it does: as JSON, without progress, with every check."""

    as_json: bool = False
    quiet: bool = False
    verbose: bool = False


def perform(experiment: Experiment, options: Options, print_toml: bool, dry_run: bool = False) -> None:
    """Performs an experiment. With `print_toml` it only checks the experiment and prints it as a file.

    With `dry_run` it only shows the plan of a command that has one.
    """
    shorthand = SHORTHANDS[experiment.command]
    if print_toml:
        from streamgauge.preflight.resolved_experiment import with_engine_transport

        shorthand.check(experiment)
        print_answer(to_toml(with_engine_transport(experiment)), end="")
    elif dry_run and shorthand.plan is not None:
        _show_plan(shorthand.plan(experiment), options)
    else:
        _say_at_once(options)
        _refuse_unknown(experiment)
        with _failure_as_json(options.as_json), _pages() as pages:
            shorthand.perform(experiment, options, pages)


def perform_file(
    file: Path | None, out: str | None, dry_run: bool, cells: str | None, resume: str | None, quick: bool,
    options: Options, print_toml: bool,
) -> None:  # fmt: skip
    """Performs an experiment file: its command once, or, with a matrix or a paper, for each of its cells.

    `out`: the folder instead of the file's. `cells`, `resume`: as in `studies.matrix.matrix.run_matrix`.
    `quick`: short trials instead; `cells` then chooses among those of the file.
    """
    rule = "must not be given with --resume, which goes on with what its folder began"
    require(not quick or resume is None, "--quick", rule, resume, "leave --quick out")
    experiment = _requested(file, out, resume)
    if quick:
        experiment, cells = _quick_look(experiment, cells), None
    is_matrix = experiment.matrix is not None or experiment.paper is not None
    rule = "must name cells of a [matrix], and the file has none"
    require(is_matrix or cells is None, "--cells", rule, cells, "leave --cells out, or add a [matrix] to the file")
    has_plan = not is_matrix and SHORTHANDS[experiment.command].plan is not None
    if (dry_run and not has_plan) or (print_toml and is_matrix):
        from streamgauge.studies.matrix.matrix import plan_matrix

        plan = plan_matrix(experiment, cells, resume)
        if print_toml:
            print_answer(to_toml(experiment), end="")
        else:
            _show_plan(plan, options)
    elif is_matrix:
        _say_at_once(options)
        with _pages() as pages:
            _matrix(experiment, cells, resume, options, pages)
    else:
        perform(experiment, options, print_toml, dry_run)


def _say_at_once(options: Options) -> None:
    """Shows that the command has begun, because the modules that it needs take seconds to load."""
    if not options.quiet:
        print_progress("checking the request")


def _refuse_unknown(experiment: Experiment) -> None:
    """Refuses an unknown workload or engine, with its other problems, before the modules of a trial are loaded.

    Not of a study to resume, whose folder is locked before anything is checked.
    """
    from streamgauge.engines.registry import declared
    from streamgauge.workloads.registry import names

    known = is_own_file(experiment.workload) or experiment.workload in names()
    if experiment.search.resume is None and not (known and experiment.engine in declared()):
        SHORTHANDS[experiment.command].check(experiment)


def _quick_look(experiment: Experiment, cells: str | None) -> Experiment:
    """The short trials instead of an experiment. Of a scalability study it is one, with the least load."""
    from streamgauge.studies.matrix.quick_look import quick_look
    from streamgauge.studies.scalability.scale import least_trial

    return quick_look(least_trial(experiment) if experiment.command == "scale" else experiment, cells)


def _requested(file: Path | None, out: str | None, resume: str | None) -> Experiment:
    """The experiment of a file, or of the matrix to resume."""
    given = built(read_values(file)) if file is not None else None
    if resume is not None:
        rule = "must not be given with --resume, which goes on in the folder of its matrix"
        require(out is None, "--out", rule, out, "leave --out out")
        from streamgauge.studies.matrix.matrix import stored_experiment

        return stored_experiment(resume, given)
    if given is None:
        raise InputError(Problem("FILE", "must be given", "", "streamgauge experiment FILE, or --resume FOLDER"))
    return given if out is None else given.model_copy(update={"out": out})


def require_rate_is_used(experiment: Experiment) -> None:
    """Raises InputError if `scale` would ignore the rate that was typed. It may be the default one."""
    from streamgauge.studies.scalability.scale import requested
    from streamgauge.studies.scalability.study import study_of

    study_of(requested(experiment), rate_is_given=True)


def _matrix(experiment: Experiment, cells: str | None, resume: str | None, options: Options, pages: _Pages) -> NoReturn:
    """Exits with the code of the worst requested cell. The one at which a matrix was stopped has that code."""
    from streamgauge.report.terminal.console import progress_console
    from streamgauge.report.terminal.studies import MatrixView, show_study
    from streamgauge.studies.matrix.matrix import run_matrix

    with MatrixView(progress_console(options.quiet)) as view:
        result = run_matrix(experiment, view, cells, resume, pages.of_run, pages.of_study)
    print_answer(result.to_json(), folder=result.folder) if options.as_json else show_study(result)
    named = None if cells is None else {int(number) for number in cells.split(",")}
    sys.exit(worst((ExitCode.HOLDS, *(row.code for row in result.cells if named is None or row.number in named))))


class _Pages:
    """Writes the pages of runs and studies. A page that cannot be written ends nothing: the results are stored."""

    def __init__(self) -> None:
        self.failures: dict[str, StreamgaugeError] = {}

    def of_run(self, folder: RunFolder, flow: FlowNodes) -> None:
        with self._kept(str(folder.path)):
            from streamgauge.report.documents.run import write_page

            write_page(folder, flow)

    def of_study(self, study: StudyResult) -> None:
        with self._kept(study.folder):
            from streamgauge.report.documents.study_pages import write_study_page

            write_study_page(study)

    @contextmanager
    def _kept(self, folder: str) -> Iterator[None]:
        try:
            yield
            self.failures.pop(folder, None)
        except StreamgaugeError as error:
            self.failures[folder] = error
        except KeyboardInterrupt:
            print_progress(f"the figures are stored in {folder}: streamgauge report {folder} writes their page")
            raise


@contextmanager
def _pages() -> Iterator[_Pages]:
    """The writer of pages for one command; whatever the end is, it says which are missing, and how to make them."""
    pages = _Pages()
    try:
        yield pages
    finally:
        for folder, error in pages.failures.items():
            print_progress(f"report.html could not be written: {error}")
            print_progress(f"the figures are stored; afterwards, streamgauge report {folder} writes it")


@contextmanager
def _failure_as_json(as_json: bool) -> Iterator[None]:
    """Prints the result of a start that failed: its run folder has one, and a program waits for it."""
    try:
        yield
    except StreamgaugeError as error:
        if as_json and error.folder:
            from streamgauge.artifacts.run_folder import RunFolder

            print_answer(RunFolder.open(Path(error.folder)).read_result().to_json())
        raise


def _check(experiment: Experiment) -> None:
    from streamgauge.preflight.settings_checks import check

    if experiment.workload and experiment.load.of is None:  # else the settings come from a run folder
        check(experiment, new_folder=False)


def _later(place: str) -> Callable[[Experiment], Any]:
    """The function `module:name`, which is loaded when it is called."""
    return lambda experiment: resolve_name(f"streamgauge.{place}")(experiment)


def _show_plan(plan: Plan, options: Options) -> None:
    from streamgauge.report.terminal.studies import show_plan

    print_answer(plan.to_json()) if options.as_json else show_plan(plan)
    if plan.missing:
        sys.exit(ExitCode.ENVIRONMENT)


def _run(experiment: Experiment, options: Options, pages: _Pages) -> None:
    """Runs one trial with its live view."""
    from streamgauge.report.terminal.console import TrialView, progress_console
    from streamgauge.studies.run.run import run_single
    from streamgauge.trial.progress import snapshots

    with TrialView(progress_console(options.quiet)) as view:
        result = run_single(experiment, snapshots(view.update), pages.of_run)
    _end(result, options)


def _sustain(experiment: Experiment, options: Options, pages: _Pages) -> None:
    """Runs a search with its live view."""
    from streamgauge.report.terminal.console import SearchView, progress_console
    from streamgauge.studies.capacity.sustain import sustain

    with SearchView(progress_console(options.quiet)) as view:
        result = sustain(experiment, view, pages.of_run)
    _end(result, options)


def _end(result: Result, options: Options) -> NoReturn:
    """Shows the result, and exits with the verdict's code."""
    if options.as_json:
        print_answer(result.to_json(), folder=result.folder)
    else:
        from streamgauge.report.terminal.console import show_result

        show_result(result, options.verbose)
    sys.exit(VERDICT_CODES[result.verdict.value])


def _generate(experiment: Experiment, options: Options, pages: _Pages) -> None:
    """Writes the planned input and lists its files."""
    if experiment.out is None:
        raise InputError(Problem("out", "must name the folder for the input", None, 'out = "DIR"'))
    from streamgauge.report.terminal.console import InputView, progress_console
    from streamgauge.results.run import shown_notes
    from streamgauge.studies.run.generate_input import generate

    out = Path(experiment.out)
    with InputView(progress_console(options.quiet)) as view:
        written = generate(experiment, out, view.written)
    if options.as_json:
        print_answer(json.dumps(written, indent=2))
        return
    for name, events in written["events"].items():
        print_answer(f"{events:,} events  {out / name}")
    if written["replaced"]:
        print_answer("replaced  the previous input")
    for note in shown_notes(written["notes"]):
        print_answer(f"note  {note}")


def _scale(experiment: Experiment, options: Options, pages: _Pages) -> None:
    """Runs a scalability study with its live view."""
    from streamgauge.report.terminal.console import progress_console
    from streamgauge.report.terminal.studies import ScaleView, show_study
    from streamgauge.studies.scalability.scale import exit_code, scale

    with ScaleView(progress_console(options.quiet)) as view:
        result = scale(experiment, view, pages.of_run, pages.of_study)
    print_answer(result.to_json(), folder=result.folder) if options.as_json else show_study(result)
    sys.exit(exit_code(result))


def _sweep(experiment: Experiment, options: Options, pages: _Pages) -> None:
    """Runs the loads of a sweep with their live view."""
    from streamgauge.report.terminal.console import progress_console
    from streamgauge.report.terminal.studies import MatrixView, show_study
    from streamgauge.studies.matrix.sweep import exit_code, run_sweep

    with MatrixView(progress_console(options.quiet)) as view:
        result = run_sweep(experiment, view, pages.of_run, pages.of_study)
    print_answer(result.to_json(), folder=result.folder) if options.as_json else show_study(result)
    sys.exit(exit_code(result))


def _anatomy(experiment: Experiment, options: Options, pages: _Pages) -> None:
    """Runs the trials of a latency breakdown with their live view."""
    from streamgauge.report.terminal.console import TrialView, progress_console
    from streamgauge.report.terminal.studies import show_study
    from streamgauge.studies.latency_breakdown.anatomy import anatomy, exit_code

    with TrialView(progress_console(options.quiet)) as view:
        breakdown = anatomy(experiment, view.update, pages.of_study, pages.of_run)
    print_answer(breakdown.to_json(), folder=breakdown.folder) if options.as_json else show_study(breakdown)
    sys.exit(exit_code(breakdown))


def _characterize(experiment: Experiment, options: Options, pages: _Pages) -> None:
    """With `--apply` it also runs the advised instances and exits by that run's verdict."""
    from streamgauge.report.terminal.console import StepView, TrialView, progress_console
    from streamgauge.report.terminal.studies import show_applied, show_characterization
    from streamgauge.studies.operator_profile.characterize import apply_advice, characterize, check_all

    apply = experiment.characterize is not None and experiment.characterize.apply
    if apply:
        check_all(experiment)
    with StepView(progress_console(options.quiet)) as view:
        profile = characterize(experiment, view.update, pages.of_study)
    if not options.as_json:
        show_characterization(profile, apply)
    if apply:
        with TrialView(progress_console(options.quiet)) as trial_view:
            profile = apply_advice(experiment, profile, trial_view.update, pages.of_study, pages.of_run)
    if options.as_json:
        print_answer(profile.to_json(), folder=profile.folder)
    elif profile.applied is not None:
        show_applied(profile.applied)
    sys.exit(VERDICT_CODES[profile.applied.verdict] if profile.applied is not None else ExitCode.HOLDS)


@dataclass(frozen=True)
class Shorthand:
    """A command that is shorthand for an experiment.

    Attributes:
        check: raises the InputError that `perform` would raise before it starts anything.
        perform: performs an experiment.
        workload_from: setting that names a run folder; with it the workload argument is optional.
        verbose: whether the command has `--verbose`.
        plan: what the command would run, for `--dry-run`.
    """

    help: str
    check: Callable[[Experiment], object]
    perform: Callable[[Experiment, Options, _Pages], None]
    short_help: str | None = None
    workload_from: str = ""
    verbose: bool = False
    plan: Callable[[Experiment], Plan] | None = None


SHORTHANDS = {
    "run": Shorthand(
        "Run one trial: is this rate sustained, how late are the results, are they right?", _check, _run,
        "Run one trial at a given rate", verbose=True, plan=_later("preflight.dry_run:plan_run"),
    ),
    "sustain": Shorthand(
        "Search for the highest sustained rate: bracket, bisect, and confirm on a fresh engine.", _check, _sustain,
        "Search for the highest sustained rate", "search.resume", verbose=True,
        plan=_later("studies.capacity.sustain:plan_search"),
    ),
    "scale": Shorthand(
        "Find the capacity of each level of resources, and the demand of each load.",
        _later("studies.scalability.scale:check_scale"), _scale, "Find capacity and demand", "search.resume",
        plan=_later("studies.scalability.scale:plan_scale"),
    ),
    "sweep": Shorthand(
        "Measure latency against load: one trial at each share of the sustained rate, and the knee.",
        _later("studies.matrix.sweep:plan_sweep"), _sweep, "Measure latency against load", "search.resume",
        plan=_later("studies.matrix.sweep:plan_sweep"),
    ),
    "generate": Shorthand(
        "Write the planned input as Parquet, without an engine.", _check, _generate, workload_from="load.of"
    ),
    "anatomy": Shorthand(
        "Split the latency of every result into stages, from the driver's timestamps and the engine's progress.",
        _later("studies.latency_breakdown.anatomy:check_trials"), _anatomy, "Split latency into stages",
    ),
    "characterize": Shorthand(
        "Measure selectivity, tuple size and time per tuple of each operator and Spark's memory, and advise instances.",
        _later("studies.operator_profile.characterize:check_all"), _characterize,
        "Measure each operator of a workload",
    ),
}  # fmt: skip
"""By command, which is the experiment's `command`."""
