"""Criteria of a trial: the verdict of its run, or the growth of its lag."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streamgauge.artifacts import tables
from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.results.matrix import CellFigures
from streamgauge.results.verdict import Check
from streamgauge.studies.scalability.criteria import end_s, judge, lag_growth


def series(lags: list[float | None], warmup: int = 3) -> pa.Table:
    phases = ["warm-up"] * warmup + ["measured"] * len(lags) + ["tail"]
    lag = pa.array([9e9] * warmup + lags + [9e9], pa.float64())
    others = {
        field.name: pa.array(range(len(phases)), field.type)
        if not field.nullable
        else pa.nulls(len(phases), field.type)
        for field in tables.SCHEMA
        if field.name not in ("phase", "lag_events_mean")
    }
    return pa.table({**others, "phase": phases, "lag_events_mean": lag}).select(tables.SCHEMA.names)


def test_both_ends_lie_in_one_phase_of_the_saw_tooth() -> None:
    """Right after a commit, within one batch interval of either end."""
    tooth = [10.0, 40.0, 20.0, 30.0]
    assert lag_growth(series(tooth * 5), 20, 4) == 0
    assert lag_growth(series([10.0, *tooth * 5]), 20, 4) == 0
    assert lag_growth(series([n * 30 + one for n, one in enumerate(tooth * 5)]), 20, 4) == 16 * 30
    # Seconds beyond an end do not count to it.
    assert lag_growth(series([30.0] * 4 + [10.0] * 12 + [30.0] * 4), 20, 4) == 0
    # A second sampled alone would show a difference that is none.
    assert lag_growth(series([*tooth * 5]), 20, 1) == 20


def test_an_extension_of_the_span_does_not_count() -> None:
    """The span is the planned one."""
    assert lag_growth(series([5.0] * 10 + [500.0] * 5), 10, 1) == 0


def test_a_span_that_was_cut_short_has_no_growth() -> None:
    """Nor one whose lag is unknown."""
    assert lag_growth(series([5.0] * 9), 10, 1) is None
    assert lag_growth(series([5.0] * 9 + [None]), 10, 1) is None
    assert (end_s(0.0), end_s(4.0), end_s(7.5)) == (5, 5, 8)


def checked(name: str, state: Any) -> Check:
    return Check(name=name, value=1, limit=0, unit="rows", ok=state == "ok", state=state, sentence=f"{name} {state}")


@pytest.mark.parametrize(
    ("verdict", "checks", "lags", "outcome"),
    [
        ("sustained", {}, [50.0] * 10, "sustained"),
        ("not_sustained", {"backlog_trend": "failed"}, [50.0] * 5 + [149.0] * 5, "sustained"),
        ("sustained", {}, [50.0] * 5 + [150.0] * 5, "not_sustained"),
        ("undecided", {"evidence": "undecided"}, [50.0] * 10, "sustained"),
        ("not_sustained", {"answers": "failed"}, [50.0] * 10, "not_sustained"),
        ("undecided", {"answers": "not_judged"}, [50.0] * 10, "undecided"),
        ("not_sustained", {"connected": "failed"}, [50.0] * 10, "not_sustained"),
        ("not_sustained", {"backlog_trend": "failed"}, [50.0] * 4, "not_sustained"),
        ("sustained", {}, [50.0] * 4, "undecided"),
        ("invalid", {"driver": "invalid"}, [50.0] * 10, "invalid"),
    ],
)
def test_the_growth_decides_where_answers_are_right(
    make: Callable[..., Path], verdict: Any, checks: dict[str, str], lags: list[float | None], outcome: str
) -> None:
    """The run's own slope does not; a dead system, wrong answers and a failed driver do."""
    folder = RunFolder.open(make("one", seed=1))
    result = folder.read_result()
    all_checks = tuple(checked(name, state) for name, state in {"connected": "ok", "answers": "ok", **checks}.items())
    changed = result.verdict.model_copy(update={"value": verdict, "checks": all_checks})
    folder.write_result(result.model_copy(update={"verdict": changed}))
    folder.write_series(series(lags))
    figures = CellFigures(verdict=verdict, sentence="of the run")
    judged = judge("ehrenstein", figures, folder.path, 10, 0.0)
    assert judged.outcome == outcome
    assert judge("slope", figures, folder.path, 10, 0.0)[:2] == (verdict, "of the run")
    if judged.lag_growth is not None and outcome in ("sustained", "not_sustained") and "answers" not in checks:
        assert "records a partition (limit 100)" in judged.sentence or "connected" in judged.sentence


def test_answers_that_are_wrong_while_it_keeps_up_are_told(make: Callable[..., Path]) -> None:
    """By the run's verdict: only its answers decided it."""
    folder = RunFolder.open(make("one", seed=1))
    result = folder.read_result()
    assert result.verification is not None
    changed = {
        "verdict": result.verdict.model_copy(update={"value": "not_sustained", "decided_by": ("answers",)}),
        "verification": result.verification.model_copy(update={"missing": 3, "expected": 10}),
    }
    folder.write_result(result.model_copy(update=changed))
    figures = CellFigures(verdict="not_sustained", faults=3)
    assert judge("slope", figures, folder.path, 10, 0.0).wrong_answers.startswith("3 missing of 10 expected results")
    folder.write_result(result.model_copy(update={**changed, "verdict": result.verdict}))
    assert judge("slope", figures, folder.path, 10, 0.0).wrong_answers == ""


def test_a_trial_that_never_started_is_invalid() -> None:
    """It has no folder to look into."""
    figures = CellFigures(verdict="invalid", sentence="no such port")
    assert judge("ehrenstein", figures, Path("none"), 10, 0.0).outcome == "invalid"
