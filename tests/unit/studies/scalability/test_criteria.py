"""Criteria of a trial: the verdict of its run, or the growth of its lag."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.results.codes import WarningCode
from streamgauge.results.matrix import CellFigures
from streamgauge.results.run import Caution
from streamgauge.results.verdict import Check
from streamgauge.studies.scalability.criteria import judge
from tests.unit.studies.scalability.helpers_lag import series


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


def test_an_interval_across_the_limit_is_undecided(make: Callable[..., Path]) -> None:
    """With the scatter that was seen, and what decides it."""
    folder = RunFolder.open(make("one", seed=1))
    result = folder.read_result()
    checks = (checked("connected", "ok"), checked("answers", "ok"))
    folder.write_result(result.model_copy(update={"verdict": result.verdict.model_copy(update={"checks": checks})}))
    lags: list[float | None] = [5000.0 if second % 2 else 15_000.0 for second in range(60)]
    folder.write_series(series(lags, lags))
    judged = judge("ehrenstein", CellFigures(verdict="sustained"), folder.path, 60, 0.0)
    assert judged.outcome == "undecided"
    assert "scatters by 5,477 records. Use a longer --duration, a lower rate or --criterion slope" in judged.sentence


@pytest.mark.parametrize(("verdict", "outcome"), [("sustained", "undecided"), ("not_sustained", "not_sustained")])
def test_a_lag_that_is_not_known_cannot_decide(make: Callable[..., Path], verdict: Any, outcome: str) -> None:
    """A program that commits no offsets: everything due counts as its lag. Its run may still have failed."""
    folder = RunFolder.open(make("one", seed=1))
    result = folder.read_result().warned(Caution(WarningCode.LAG_UNKNOWN, "has committed no offset"))
    checks = (checked("connected", "ok"), checked("answers", "ok"))
    changed = result.verdict.model_copy(update={"value": verdict, "checks": checks})
    folder.write_result(result.model_copy(update={"verdict": changed}))
    folder.write_series(series([1e6 * second for second in range(10)]))
    judged = judge("ehrenstein", CellFigures(verdict=verdict), folder.path, 10, 0.0)
    assert (judged.outcome, judged.lag_growth) == (outcome, None)
    assert judged.sentence.startswith("the lag is unknown, because the program commits no offsets")


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
