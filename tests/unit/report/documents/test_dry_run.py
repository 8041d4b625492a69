"""The plan of a run or of a search, as the terminal shows it."""

import io
from typing import Any

import pytest
from rich.console import Console

from streamgauge.report.documents.dry_run import plan_document
from streamgauge.report.terminal.console import show
from streamgauge.results.dry_run import TrialPlan, Unavailable

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
