"""`python -m bench`: which programs, what their rows say, and the exit code. No program is run."""

import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

import bench
from bench.__main__ import APART, chosen, main, programs, said


def row(value: float, floor: float | None = None, goal: float | None = None) -> dict[str, Any]:
    bounds = {"floor": floor, "goal": goal}
    return {"what": "made up", "value": value, "unit": "events/s", **bounds, "median": value, "spread": 0.1, "note": ""}


@pytest.mark.parametrize(
    ("made", "word"),
    [
        (row(30.0, 10.0, 20.0), "goal"),
        (row(15.0, 10.0, 20.0), "floor"),
        (row(5.0, 10.0, 20.0), "missed"),
        (row(5.0, 10.0), "missed"),
        (row(5.0), "-"),
        (row(1.0, 3.0, 2.0), "goal"),
        (row(2.5, 3.0, 2.0), "floor"),
        (row(4.0, 3.0, 2.0), "missed"),
    ],
)
def test_bounds_are_shown(made: dict[str, Any], word: str) -> None:
    """More is better, unless the goal lies below the floor; baselines have no bounds."""
    assert said(made) == word


def test_programs_with_a_table_of_their_own_are_made_by_name_alone() -> None:
    """Without a name all others are made, and it must be the name of a program."""
    assert (
        set(programs()) - set(chosen(None, sorted(programs())))
        == {"applications", "marginal_cpu", "topologies", "tuning_profiles"}
        == set(APART)
    )
    assert chosen("applications", sorted(programs())) == ["applications"]


def test_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, and the names there are."""
    with pytest.raises(SystemExit) as ended:
        main(["--only", "generaton"])
    assert ended.value.code == 2
    assert "generation" in capsys.readouterr().err


def test_a_floor_that_is_missed_shows_in_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    """1 where a floor is missed, 0 where all are reached; the table says which."""
    assert main(["--only", "generation"], lambda name: [row(30.0, 10.0, 20.0), row(5.0)]) == 0
    assert main(["--only", "generation"], lambda name: [row(30.0, 10.0, 20.0), row(5.0, 10.0)]) == 1
    assert "missed" in capsys.readouterr().out


def test_a_program_that_fails_does_not_stop_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    """The others' rows are printed, the failure is reported on stderr, and the exit code is 1."""
    run = Mock(side_effect=[RuntimeError("no such luck"), [row(1.0)]])
    assert main(["--only", "generation,histogram", "--json"], run) == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out) == [row(1.0)]
    assert "bench.loadgen.generation failed: RuntimeError: no such luck" in printed.err


def test_a_program_is_named_by_the_last_part() -> None:
    """No two packages have a program of the same last part, and what the programs share is no program."""
    modules = [path for path in Path(bench.__file__).parent.glob("*/*.py") if path.stem != "__init__"]
    assert sorted(programs()) == sorted(path.stem for path in modules if path.parent.name != "support")
    assert programs()["latency"] == "bench.spark.latency"
    assert "demo" not in programs()
