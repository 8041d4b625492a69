"""The plan of a run or of a search, as the terminal shows it."""

import io
from typing import Any

import pytest
from rich.console import Console

from streamgauge.report.documents.dry_run import plan_document
from streamgauge.report.terminal.console import show
from streamgauge.results.dry_run import ScaleTrialPlan, TrialPlan, Unavailable

LACKS = tuple(
    Unavailable(name=name, reason=f"needs {n} windows (slide: 4 s), and 60 s hold 15", way_out=f"--duration {4 * n}s")
    for name, n in (("p99", 100), ("p99.9", 1000))
)


def trial_plan(**changes: Any) -> TrialPlan:
    """The plan of a run, made up, with changes."""
    plan: dict[str, Any] = {
        "command": "run", "workload": "identity", "engine": "spark", "tuning": "tuned", "transport": "memory",
        "rate_per_s": 1e5, "generator_ceiling_per_s": 4e6, "starts": (), "warmup_s": 45, "duration_s": 60, "tail_s": 5,
        "trials": 1, "trials_max": 1, "seconds": 130, "seconds_max": 250, "unavailable": LACKS, "fetches": (),
        "missing": (), "not_checked": (),
    }  # fmt: skip
    return TrialPlan.model_validate(plan | changes)


def shown(plan: TrialPlan, width: int) -> list[str]:
    show(plan_document(plan), on=Console(file=(file := io.StringIO()), width=width, color_system=None))
    return file.getvalue().splitlines()


@pytest.mark.parametrize("width", [80, 200])
def test_each_gap_is_one_line_at_any_width(width: int) -> None:
    """With its way out, which can be copied; the terminal wraps it."""
    assert [line for line in shown(trial_plan(), width) if line.startswith("cannot have ")] == [
        "cannot have p99: needs 100 windows (slide: 4 s), and 60 s hold 15   instead: --duration 400s",
        "cannot have p99.9: needs 1000 windows (slide: 4 s), and 60 s hold 15   instead: --duration 4000s",
    ]


SCALE = {
    "resource": "parallelism", "resources": (1, 2), "dimension": "parameters.keys", "load_unit": "",
    "loads": (10.0, 20.0), "cells": 4, "command": "scale", "trials": 3, "trials_max": 3, "rate_per_s": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("rates", "words"),
    [((1e3, 2e3), "1 k/s, 2 k/s"), ((5e3, 5e3), "5 k/s at every load"), ((10.0, 20.0), "as the loads")],
)
def test_the_plan_of_a_study_shows_the_rate_of_each_load(rates: tuple[float, ...], words: str) -> None:
    plan = ScaleTrialPlan(**{**dict(trial_plan()), **SCALE, "rates": rates})
    assert f"rate        {words}   generators make at most 4 M/s here" in shown(plan, 200)


def test_plans_of_all_commands_have_one_form() -> None:
    """The same headings in the same order; a search and a study have a line more for their trials, a study its axes."""
    search = trial_plan(command="sustain", rate_per_s=None, trials=7, trials_max=16)
    study = ScaleTrialPlan(**{**dict(trial_plan()), **SCALE, "rates": (1e3, 2e3)})
    run, *others = ([line[:12].strip() for line in shown(plan, 200)[1:]] for plan in (trial_plan(), search, study))
    assert run == ["starts", "rate", "trial", "cannot have", "cannot have", "nothing was"]
    assert [[name for name in one if name not in ("trials", "levels", "loads")] for one in others] == [run, run]
    assert [name for name in others[1] if name not in run] == ["levels", "loads", "trials"]
    assert [shown(plan, 200)[0] for plan in (trial_plan(), search, study)] == [
        "run identity on spark (tuned), over memory: about 2 min 10 s; 4 min 10 s if extended",
        "sustain identity on spark (tuned), over memory: about 2 min 10 s; 4 min 10 s if all 16 trials run, each "
        "at its longest",
        "scale identity on spark (tuned), over memory: about 2 min 10 s; 4 min 10 s if every trial is extended",
    ]
