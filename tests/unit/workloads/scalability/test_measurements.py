"""Keys in turn at a fixed frequency, the record's own time, and the frequency that contradicts a rate."""

from typing import Any

import numpy as np
import pytest

from streamgauge.config.experiment import build
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.rate_profile import parse_profile
from streamgauge.preflight.settings_checks import check
from streamgauge.workloads.scalability.measurements import WATTS_MAX, measurements
from tests.unit.helpers_refusals import assert_refused, problem_of

START, COLUMNS = 1_700_000_000_000_000, ["sensor_id", "watts", "measured_us", "event_time"]
TOPOLOGIES = ("scalability_sink", "scalability_hierarchical", "scalability_tumbling", "scalability_hopping")


def rows_of(partitions: int, keyed: bool, sensors: int = 40, rate: float = 400.0) -> dict[str, np.ndarray]:
    """All events of ten seconds, in the order of time."""
    plan = Plan((measurements(sensors),), parse_profile("constant", rate, 10.0), START, 10.0, partitions, 1, keyed)
    batches = [plan.batch(0, part, 0, plan.count_before(0, part, plan.end_us), COLUMNS) for part in range(partitions)]
    columns = {name: np.concatenate([batch.column(name).to_numpy() for batch in batches]) for name in COLUMNS}
    order = np.argsort(columns["event_time"], kind="stable")
    return {name: column[order] for name, column in columns.items()}


@pytest.mark.parametrize(("partitions", "keyed"), [(1, False), (4, False), (1, True), (4, True)])
def test_each_sensor_measures_at_a_fixed_frequency(partitions: int, keyed: bool) -> None:
    """Evenly spread: 40 sensors at 400/s are each heard ten times a second, however many partitions there are."""
    rows = rows_of(partitions, keyed)
    assert rows["sensor_id"].tolist() == [number % 40 for number in range(4000)]
    for sensor in (0, 17, 39):
        times = rows["event_time"][rows["sensor_id"] == sensor]
        assert np.abs(np.diff(times) - 100_000).max() <= 1


@pytest.mark.parametrize("keyed", [False, True])
def test_a_record_has_its_own_time(keyed: bool) -> None:
    """That of the plan, also where partitions have the events of their keys."""
    rows = rows_of(3, keyed)
    assert (rows["measured_us"] == rows["event_time"]).all()
    assert 0 <= rows["watts"].min() < rows["watts"].max() <= WATTS_MAX


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_a_frequency_that_contradicts_the_rate_is_refused(name: str) -> None:
    """With both ways out; the default frequency follows from the rate."""
    tree = {"height": 2} if name == "scalability_hierarchical" else {"keys": 100}
    experiment = {"workload": name, "parameters": {**tree, "frequency": 2}}
    check(build({**experiment, "load": {"rate": "200"}}), new_folder=False)
    check(build({"workload": name, "parameters": tree, "load": {"rate": "12345"}}), new_folder=False)
    problem = problem_of(check, build({**experiment, "load": {"rate": "201"}}), new_folder=False)
    assert (problem.setting, problem.way_out) == ("load.rate", "--rate 200, or leave --set frequency out")


@pytest.mark.parametrize(("command", "frequency", "message"), [
    ("sustain", 1, "fixes the rate at 1000 events/s, and sustain tries several"),
    ("anatomy", 1, "fixes the rate at 1000 events/s, and anatomy tries several"),
    *(("run", value, "frequency") for value in ("-1", "inf", "nan", "often")),
])  # fmt: skip
def test_frequencies_that_are_refused(command: str, frequency: Any, message: str) -> None:
    """Each trial of a search has another rate; a frequency is a number of at least 0."""
    experiment = {"command": command, "workload": "scalability_sink", "parameters": {"frequency": frequency}}
    assert_refused(message, check, build(experiment), new_folder=False)
