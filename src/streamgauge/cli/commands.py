"""Performs a parsed command: runs it with its view, prints the result and exits."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from streamgauge.config.experiment import Experiment, to_toml
from streamgauge.core.errors import InputError, Problem, StreamgaugeError

if TYPE_CHECKING:
    from streamgauge.results.run import Result

EXITS = {"sustained": 0, "not_sustained": 1, "undecided": 1, "interrupted": 1, "invalid": 3}
"""What a command ends with, by its verdict."""


def perform(experiment: Experiment, as_json: bool, verbose: bool, print_toml: bool) -> None:
    """What an experiment asks for; with `print_toml` only the file that asks the same, checked as a run would be."""
    shorthand = SHORTHANDS[experiment.command]
    if print_toml:
        shorthand.check(experiment)
        print(to_toml(experiment), end="")
    else:
        with _failure_as_json(as_json):
            shorthand.perform(experiment, as_json, verbose)


@contextmanager
def _failure_as_json(as_json: bool) -> Iterator[None]:
    """Prints the result of a start that failed: its run folder has one, and a program waits for it."""
    try:
        yield
    except StreamgaugeError as error:
        if as_json and error.folder:
            from streamgauge.artifacts.run_folder import RunFolder

            print(RunFolder.open(Path(error.folder)).read_result().to_json())
        raise


def _check(experiment: Experiment) -> None:
    from streamgauge.preflight.validate import check

    if experiment.workload and experiment.load.of is None:  # else a run's folder says what is asked
        check(experiment, new_folder=False)


def _check_anatomy(experiment: Experiment) -> None:
    from streamgauge.studies.latency_breakdown.command import check_trials

    check_trials(experiment)


def _check_characterization(experiment: Experiment) -> None:
    from streamgauge.studies.operator_profile.apply_advice import check_all

    check_all(experiment)


def _run(experiment: Experiment, as_json: bool, verbose: bool) -> None:
    from streamgauge.report.terminal.console import show_result

    result = run_with_view(experiment)
    if not as_json:
        show_result(result, verbose)
    _end(result, as_json)


def _sustain(experiment: Experiment, as_json: bool, verbose: bool) -> None:
    _end(sustain_with_view(experiment, verbose), as_json)


def _end(result: Result, as_json: bool) -> NoReturn:
    """Ends by the verdict."""
    if as_json:
        print(result.to_json())
    sys.exit(EXITS[result.verdict.value])


def run_with_view(experiment: Experiment) -> Result:
    """One trial, shown while it runs."""
    from streamgauge.report.documents.run import write_page
    from streamgauge.report.terminal.console import TrialView
    from streamgauge.trial.progress import snapshots
    from streamgauge.trial.run import run_single

    with TrialView() as view:
        return run_single(experiment, snapshots(view.update), write_page)


def sustain_with_view(experiment: Experiment, verbose: bool) -> Result:
    """The search's own view shows its result too."""
    from streamgauge.report.documents.run import write_page
    from streamgauge.report.terminal.console import SearchView
    from streamgauge.studies.capacity.command import sustain

    with SearchView(verbose=verbose) as view:
        return sustain(experiment, view, write_page)


def _generate(experiment: Experiment, as_json: bool, verbose: bool) -> None:
    """The planned input, and which files it is in."""
    if experiment.out is None:
        raise InputError(Problem("out", "must be given: the folder to write the input to", None, 'out = "DIR"'))
    from streamgauge.report.terminal.console import InputView, tell
    from streamgauge.trial.generate_input import generate

    out = Path(experiment.out)
    with InputView() as view:
        written = generate(experiment, out, view.update)
    if as_json:
        print(json.dumps(written, indent=2))
        return
    for name, events in written["events"].items():
        tell(f"{events:,} events  {out / name}")
    if written["replaced"]:
        tell("replaced  the input that was there")
    for note in written["notes"]:
        tell(f"note  {note}")


def _anatomy(experiment: Experiment, as_json: bool, verbose: bool) -> None:
    """Ends by the worst of its trials, whatever rate held."""
    from streamgauge.artifacts.run_folder import ANATOMY
    from streamgauge.report.documents.run import write_page
    from streamgauge.report.studies import show_anatomy, write_study_page
    from streamgauge.report.terminal.console import TrialView
    from streamgauge.studies.latency_breakdown.command import anatomy

    with TrialView() as view:
        found = anatomy(experiment, view.update, partial(write_study_page, ANATOMY), write_page)
    print(json.dumps(found, indent=2)) if as_json else show_anatomy(found)
    verdicts = [trial["verdict"] for trial in found["trials"]]
    whole = EXITS["invalid"] if "invalid" in verdicts else 0
    sys.exit(whole if found["finished"] else EXITS["interrupted"])


def _characterize(experiment: Experiment, as_json: bool, verbose: bool) -> None:
    """With `--apply` then a run with the instances that are advised, whose verdict counts."""
    from streamgauge.artifacts.run_folder import CHARACTERIZATION
    from streamgauge.report.documents.run import write_page
    from streamgauge.report.studies import show_applied, show_characterization, write_study_page
    from streamgauge.report.terminal.console import StepView, TrialView
    from streamgauge.studies.operator_profile.apply_advice import apply_advice, check_all
    from streamgauge.studies.operator_profile.command import characterize

    apply = experiment.characterize is not None and experiment.characterize.apply
    if apply:
        check_all(experiment)
    write_study = partial(write_study_page, CHARACTERIZATION)
    with StepView() as view:
        found = characterize(experiment, view.update, write_study)
    if not as_json:
        show_characterization(found, apply)
    if apply:
        with TrialView() as trial_view:
            found = apply_advice(experiment, found, trial_view.update, write_study, write_page)
    if as_json:
        print(json.dumps(found, indent=2))
    elif applied := found["applied"]:
        show_applied(applied)
    sys.exit(EXITS[found["applied"]["verdict"]] if found["applied"] else 0)


@dataclass(frozen=True)
class Shorthand:
    """A command that is shorthand for an experiment.

    Attributes:
        check: refuses what `perform` would refuse before anything is started.
        perform: does what an experiment asks for, with (as JSON, every check).
        workload_from: the setting that names a run folder, where the workload may be left out.
        verbose: whether it has `--verbose`.
    """

    help: str
    check: Callable[[Experiment], None]
    perform: Callable[[Experiment, bool, bool], None]
    short_help: str | None = None
    workload_from: str = ""
    verbose: bool = False


SHORTHANDS = {
    "run": Shorthand(
        "One trial: is this rate sustained, how late are the results, are they right?", _check, _run,
        "One trial: is a rate sustained, how late, are the answers right?", verbose=True,
    ),
    "sustain": Shorthand(
        "The highest rate that is sustained: bracketed, bisected, confirmed on a fresh engine.", _check, _sustain,
        "The highest rate that is sustained, by a search", "search.resume", verbose=True,
    ),
    "generate": Shorthand(
        "The planned input itself, as Parquet, without any engine.", _check, _generate, workload_from="load.of"
    ),
    "anatomy": Shorthand(
        "Where a record's time goes: every result's way, in stages, by the driver's stamps and what else is known.",
        _check_anatomy, _anatomy, "Where a record's time goes, stage by stage",
    ),
    "characterize": Shorthand(
        "Selectivity, tuple size and time per tuple of each operator alone, Spark's memory, and advised instances.",
        _check_characterization, _characterize,
        "What each operator of a workload does to the stream, and what it costs",
    ),
}  # fmt: skip
"""By the word of the command line, which is the experiment's `command`."""
