"""What a command does once it is known what it asks for: runs it with its view, prints what came of it, and ends."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from streamgauge.errors import InputError, Problem

EXITS = {"sustained": 0, "not_sustained": 1, "undecided": 1, "interrupted": 1, "invalid": 3}
"""What a command ends with, by its verdict."""


def show_toml(experiment: Any) -> None:
    """`--print-toml`: the experiment as a file, checked as a run of it would be."""
    from streamgauge.experiment import to_toml
    from streamgauge.run.check import check

    if experiment.workload and experiment.load.of is None:  # else a run's folder says what is asked
        check(experiment, new_folder=False)
    print(to_toml(experiment), end="")


def answer(
    experiment: Any, run: Callable[[Any], Any], as_json: bool, verbose: bool, print_toml: bool, shown: bool = False
) -> None:
    """Runs what is asked, shows its result unless its view has `shown` it, and ends by its verdict."""
    if print_toml:
        show_toml(experiment)
        return
    from streamgauge.report.terminal import show_result

    result = run(experiment)
    if as_json:
        print(result.to_json())
    elif not shown:
        show_result(result, verbose)
    sys.exit(EXITS[result.verdict.value])


def run_with_view(experiment: Any) -> Any:
    """One trial, shown while it runs."""
    from streamgauge.report.page import write_page
    from streamgauge.report.terminal import TrialView
    from streamgauge.run.single import run_single

    with TrialView() as view:
        return run_single(experiment, view.update, write_page)


def sustain_with_view(experiment: Any, verbose: bool) -> Any:
    """The search's own view shows its result too."""
    from streamgauge.report.page import write_page
    from streamgauge.report.terminal import SearchView
    from streamgauge.studies.sustain import sustain as search

    with SearchView(verbose=verbose) as view:
        return search(experiment, view, write_page)


def write_input(experiment: Any, as_json: bool) -> None:
    """`generate`: the planned input, and which files it is in."""
    if experiment.out is None:
        raise InputError(Problem("out", "must be given: the folder to write the input to", None, 'out = "DIR"'))
    from streamgauge.report.terminal import InputView, tell
    from streamgauge.run.generate import generate as write

    out = Path(experiment.out)
    with InputView() as view:
        written = write(experiment, out, view.update)
    if as_json:
        print(json.dumps(written, indent=2))
        return
    for name, events in written["events"].items():
        tell(f"{events:,} events  {out / name}")
    if written["replaced"]:
        tell("replaced  the input that was there")
    for note in written["notes"]:
        tell(f"note  {note}")


def take_apart(experiment: Any, as_json: bool, print_toml: bool) -> None:
    """`anatomy`: ends by the worst of its trials, whatever rate held."""
    from streamgauge.studies.anatomy import anatomy as study
    from streamgauge.studies.anatomy import check_trials

    if print_toml:
        from streamgauge.experiment import to_toml

        check_trials(experiment)
        print(to_toml(experiment), end="")
        return
    from streamgauge.artifacts.run_folder import ANATOMY
    from streamgauge.report.again import write_study_page
    from streamgauge.report.anatomy_terminal import show_anatomy
    from streamgauge.report.page import write_page
    from streamgauge.report.terminal import TrialView

    with TrialView() as view:
        found = study(experiment, view.update, partial(write_study_page, ANATOMY), write_page)
    print(json.dumps(found, indent=2)) if as_json else show_anatomy(found)
    verdicts = [trial["verdict"] for trial in found["trials"]]
    whole = EXITS["invalid"] if "invalid" in verdicts else 0
    sys.exit(whole if found["finished"] else EXITS["interrupted"])


def characterize_with_view(experiment: Any, sizes: Any, apply: bool, as_json: bool) -> None:
    """The characterization; `apply`: then a run with the instances that it advises, whose verdict counts."""
    from streamgauge.artifacts.run_folder import CHARACTERIZATION
    from streamgauge.report.again import write_study_page
    from streamgauge.report.characterization_terminal import show_applied, show_characterization
    from streamgauge.report.page import write_page
    from streamgauge.report.terminal import StepView, TrialView
    from streamgauge.studies.apply import apply_advice
    from streamgauge.studies.characterize import characterize as study

    write_study = partial(write_study_page, CHARACTERIZATION)
    with StepView() as view:
        found = study(experiment, sizes, view.update, write_study)
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
