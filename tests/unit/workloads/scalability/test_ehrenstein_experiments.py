"""The experiment files of Ehrenstein 2020 ask what its specification states, cell by cell."""

from typing import Any, NamedTuple

import pytest

from streamgauge.config.experiment import Experiment
from streamgauge.config.experiment_file import read
from streamgauge.config.matrix import expand
from streamgauge.preflight.settings_checks import fixed_rate
from streamgauge.workloads.registry import get
from tests.helpers_modules import ROOT

EXPERIMENTS = ROOT / "experiments" / "ehrenstein"
DOUBLINGS = [2**n for n in range(12, 18)]


class Cell(NamedTuple):
    """A cell: its experiment, and the workload's parameters as numbers."""

    experiment: Experiment
    parameters: Any


def cells_of(name: str) -> list[Cell]:
    """The cells of a file, each with the spans of the paper and the rate that its keys fix."""
    results = []
    for cell in expand(read(EXPERIMENTS / f"{name}.toml")):
        one = cell.experiment
        assert (one.load.warmup, one.load.duration, one.transport) == (180, 360, "kafka")
        assert fixed_rate(one) == one.load.rate
        results.append(Cell(one, get(one.workload).read(one.parameters)))
    return results


def test_workload_1_is_that_of_the_paper() -> None:
    """2^12 to 2^17 keys with a record per second."""
    parameters = [(one.experiment.workload, one.parameters.keys, one.parameters.frequency) for one in cells_of("sink")]
    assert parameters == [("scalability_sink", keys, 1) for keys in DOUBLINGS]


def test_workload_2_is_that_of_the_paper() -> None:
    """Full trees of 10 children with heights 1 to 5: 10^k leaves with a record per second."""
    cells = cells_of("hierarchical")
    parameters = [(one.parameters.height, one.parameters.children, one.parameters.frequency) for one in cells]
    assert parameters == [(height, 10, 1) for height in range(1, 6)]
    assert {one.experiment.workload for one in cells} == {"scalability_hierarchical"}
    leaves = [10**height for height in range(1, 6)]
    assert [one.parameters.keys for one in cells] == [one.experiment.load.rate for one in cells] == leaves


def test_workload_3_is_that_of_the_paper() -> None:
    """Tumbling windows of a minute; 2^12 to 2^17 keys, and frequencies of 1 to 6000 records/s of a key."""
    cells = cells_of("tumbling")
    assert {(one.experiment.workload, one.parameters.range) for one in cells} == {("scalability_tumbling", 60)}
    assert [one.parameters.keys for one in cells if one.parameters.frequency == 1] == DOUBLINGS
    frequencies = [one.parameters.frequency for one in cells if one.parameters.keys == DOUBLINGS[0]]
    assert frequencies == [1, 10, 100, 1000, 6000]


def test_workload_4_is_that_of_the_paper() -> None:
    """10,000 keys with 10 records/s; a new window of a minute every 1000 to 10 ms: 60 to 6000 at a time."""
    cells = cells_of("hopping")
    assert {one.experiment.workload for one in cells} == {"scalability_hopping"}
    assert {(one.parameters.keys, one.parameters.frequency) for one in cells} == {(10_000, 10)}
    assert [one.parameters.range / one.parameters.period for one in cells] == pytest.approx([60, 120, 600, 1200, 6000])
