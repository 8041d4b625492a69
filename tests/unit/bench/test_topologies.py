"""bench/studies/topologies.py: what is run, and what its rows say. Nothing is run."""

from __future__ import annotations

from typing import Any

import pytest

from bench.studies import topologies
from bench.support.run_command import Asked
from streamgauge.config.options_and_settings import build
from streamgauge.preflight.validate import check


def settings_of(asked: Asked) -> dict[str, Any]:
    flags = list(zip(asked.more[::2], asked.more[1::2], strict=True))
    of_flag = {
        flag: dict(value.split("=", 1) for name, value in flags if name == flag) for flag in ("--set", "--option")
    }
    load = {"rate": asked.rate, "duration": asked.duration}
    return {"workload": asked.workload, "parameters": of_flag["--set"], "options": of_flag["--option"], "load": load}


@pytest.mark.parametrize(
    "asked", [each.asked for each in topologies.FLOORS], ids=[each.name for each in topologies.FLOORS]
)
def test_every_floor_can_be_run(asked: Asked) -> None:
    """Its settings pass the check before a run."""
    check(build(settings_of(asked)), new_folder=False)


@pytest.mark.parametrize("windows", topologies.WINDOWS)
def test_every_point_of_the_curve_can_be_run(windows: int) -> None:
    """With that many windows of an event."""
    resolved = check(build(settings_of(topologies._on_curve("panes", windows))), new_folder=False)
    assert round(resolved.parameters.range / resolved.parameters.period) == windows


def test_a_floor_that_is_missed_counts_as_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a curve ends where its lowering is not sustained."""
    monkeypatch.setattr(topologies, "if_sustained", lambda asked: None)
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
    monkeypatch.setattr(topologies, "if_sustained", lambda asked: {"processes": processes})
    rows = topologies.main(["hopping", "sliding"])
    assert [each["value"] for each in rows] == [1.5] * len(topologies.WINDOWS)
