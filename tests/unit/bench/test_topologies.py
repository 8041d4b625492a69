"""bench/studies/topologies.py: what is run, and what its rows say. Nothing is run."""

from typing import Any
from unittest.mock import Mock

import pytest

from bench.studies import topologies
from bench.support.run_command import RunCase
from streamgauge.config.experiment import build
from streamgauge.preflight.settings_checks import check


def settings_of(case: RunCase) -> dict[str, Any]:
    flags = list(zip(case.more[::2], case.more[1::2], strict=True))
    of_flag = {
        flag: dict(value.split("=", 1) for name, value in flags if name == flag) for flag in ("--set", "--option")
    }
    load = {"rate": case.rate, "duration": case.duration}
    return {"workload": case.workload, "parameters": of_flag["--set"], "options": of_flag["--option"], "load": load}


@pytest.mark.parametrize("name", topologies.FLOORS)
def test_every_floor_can_be_run(name: str) -> None:
    """Its settings pass the check before a run."""
    check(build(settings_of(topologies.FLOORS[name].case)), new_folder=False)


@pytest.mark.parametrize("windows", topologies.WINDOWS)
def test_every_point_of_the_curve_can_be_run(windows: int) -> None:
    """With that many windows of an event."""
    resolved = check(build(settings_of(topologies._on_curve("panes", windows))), new_folder=False)
    assert round(resolved.parameters.range / resolved.parameters.period) == windows


def test_a_floor_that_is_missed_counts_as_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a curve ends where its lowering is not sustained."""
    monkeypatch.setattr(topologies, "if_sustained", lambda case: None)
    rows = topologies.main()
    floors = [each for each in rows if "floor" in each["what"]]
    assert [each["value"] for each in floors] == [0.0] * len(topologies.FLOORS)
    assert len(rows) - len(floors) == len(topologies.LOWERINGS)
    assert {each["note"] for each in rows} == {"", "not sustained"}


def test_the_cost_is_the_engines_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all its processes, in cores; parts of them are in it already."""
    processes = [
        {"role": "sut", "cpu_percent_mean": 150.0},
        {"role": "sut_part", "cpu_percent_mean": 50.0},
        {"role": "driver", "cpu_percent_mean": 20.0},
    ]
    monkeypatch.setattr(topologies, "if_sustained", lambda case: {"processes": processes})
    rows = topologies.main(["sliding"])
    assert [each["value"] for each in rows] == [1.5] * len(topologies.WINDOWS)


@pytest.mark.parametrize(("only", "cases"), [("sink", 1), ("hopping_60,tumbling", 2), ("sink, panes", 1 + 7)])
def test_some_can_be_run_by_their_names(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], only: str, cases: int
) -> None:
    """And no other; the table has a line for each, and a floor that is met gives exit code 0."""
    monkeypatch.setattr(topologies, "if_sustained", sustained := Mock(return_value={"processes": []}))
    assert topologies.command(["--only", only]) == 0
    assert sustained.call_count == cases == len(capsys.readouterr().out.splitlines()) - 1
