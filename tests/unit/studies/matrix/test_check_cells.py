"""Cells are checked by the rules of their command, and their time is estimated."""

from __future__ import annotations

from typing import Any

import pytest

from streamgauge.config.matrix import expand
from streamgauge.config.options_and_settings import build
from streamgauge.core.errors import InputError
from streamgauge.studies.matrix import cells as module
from streamgauge.studies.matrix.cells import SEARCH_TRIALS, CheckedCell, check_cells

ON_KNOWN = {"workload": "windowed_aggregation", "engine": "known", "parameters": {"range": "2s", "slide": "1s"}}
LOAD = {"warmup": "2s", "duration": "30s"}


def checked(command: str, **more: Any) -> CheckedCell:
    (one,) = check_cells(expand(build({"command": command, **ON_KNOWN, "load": LOAD, **more})))
    return one


def test_a_runs_time_is_that_of_its_phases_and_its_start() -> None:
    """Warm-up, span and tail; a JVM needs longer to start."""
    here = checked("run")
    assert here.seconds is not None
    assert 30 + 2 + 2 < here.seconds < 45
    on_spark = checked("run", engine="spark")
    assert on_spark.seconds is not None
    assert on_spark.seconds > here.seconds + 10


def test_a_searchs_time_is_that_of_some_trials() -> None:
    """Without its confirmation it is shorter."""
    run, search, quick = (
        checked("run").seconds, checked("sustain").seconds, checked("sustain", search={"quick": True}).seconds
    )  # fmt: skip
    assert run is not None
    assert search is not None
    assert quick is not None
    assert quick < search <= SEARCH_TRIALS * run


def test_an_anatomys_time_is_that_of_its_trials() -> None:
    """Each on an engine of its own."""
    of = {"workload": "identity", "engine": "spark", "parameters": {}}
    one, two = (checked("anatomy", **of, anatomy={"rates": rates}) for rates in ("1k", "1k,2k"))
    assert one.seconds is not None
    assert two.seconds == 2 * one.seconds


def test_a_characterizations_time_is_unforeseen() -> None:
    """Nobody can say how long a tuple takes before it is measured."""
    asked = {"command": "characterize", "workload": "identity", "characterize": {"slices": 10, "slice_events": 1000}}
    (one,) = check_cells(expand(build(asked)))
    assert one.seconds is None


def test_repetitions_are_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """They ask the same."""
    cells = expand(build({"command": "run", **ON_KNOWN, "load": LOAD, "matrix": {"load.seed": [1, 2], "repeat": 5}}))
    calls: list[Any] = []
    usual = module._CHECKS["run"]

    def counted(experiment: Any) -> Any:
        calls.append(experiment)
        return usual(experiment)

    monkeypatch.setitem(module._CHECKS, "run", counted)
    assert len(check_cells(cells)) == 10
    assert len(calls) == 2


@pytest.mark.parametrize(
    ("asked", "setting", "rule"),
    [
        ({"command": "generate"}, "command", "must be run, sustain, anatomy, characterize with a matrix"),
        ({"command": "sustain", "search": {"resume": "runs/one"}}, "search.resume", "must not be given with a matrix"),
        ({"command": "anatomy"}, "engine", "must be spark"),
        ({"command": "run", "matrix": {"parameters.rang": ["4s"]}}, "set rang", "is not a parameter"),
    ],
)
def test_what_a_cell_cannot_be_is_refused(asked: dict[str, Any], setting: str, rule: str) -> None:
    """By the rules of its command."""
    with pytest.raises(InputError) as refused:
        check_cells(expand(build({**ON_KNOWN, "load": LOAD, **asked})))
    assert [problem.setting for problem in refused.value.problems] == [setting]
    assert rule in refused.value.problems[0].rule
