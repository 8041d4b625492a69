"""Each application alone by `streamgauge run`, at half the least rate that it must hold, by the command's own verdict.

What it sustains is for `python -m bench.studies.applications` to show, which takes ten times as long and prints the
machine's speed beside: here a slow day must not fail.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.studies.applications import NATIVE, OTHERS, floor_of
from streamgauge.core.exit_codes import VERDICT_CODES
from streamgauge.results.run import Result
from streamgauge.workloads import registry
from tests.engine_conformance.spark_trials.helpers_spark_trials import check_ways, started
from tests.helpers_application_variants import together
from tests.helpers_broker_trials import check_sinks

pytestmark = [pytest.mark.spark, pytest.mark.long]

WARM_UP, DURATION = "30s", "20s"
"""Short: a run goes on for longer by itself where its engine still starts, or a trend is undecided."""
SHARE_OF_FLOOR = 0.5


def run_of(application: str, out: Path) -> tuple[int, Result]:
    """(exit code, result) of a run at `SHARE_OF_FLOOR` of the application's floor, as a user types it."""
    rate = f"{SHARE_OF_FLOOR * floor_of(application):.0f}"
    words = ["run", application, "--rate", rate, "--warmup", WARM_UP, "--duration", DURATION]
    command = [sys.executable, "-m", "streamgauge", *words, "--json", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return done.returncode, Result.model_validate(json.loads(done.stdout))


@pytest.mark.parametrize("application", [*NATIVE, *OTHERS])
def test_nothing_speaks_against_half_its_floor_and_it_is_right(tmp_path: Path, application: str) -> None:
    """No check fails, and every answer is right by an independent reference.

    The verdict may be undecided, as of so short a span a trend's interval may lie on both sides of its limit; and then
    invalid, where other programs use the machine meanwhile.
    """
    code, result = run_of(application, tmp_path)
    states = {check.name: check.state for check in result.verdict.checks}
    assert (states["driver"], states["connected"], states["answers"]) == ("ok", "ok", "ok"), result.verdict.sentence
    assert set(states.values()) <= {"ok", "undecided"}, result.verdict.sentence
    assert code == VERDICT_CODES[result.verdict.value]
    found = result.verification
    assert found is not None
    assert (found.independent, found.right) == (True, True)
    assert found.matched == found.expected > 0


SENSORS = {"keys": "100"}
Topologies = dict[str, dict[str, str]]
GROUPS: dict[str, tuple[str, Topologies, dict[str, str], dict[str, int]]] = {
    "defaults": (
        "20k",
        {
            "scalability_sink": SENSORS,
            "scalability_hierarchical": {"height": "2", "range": "1s"},
            "scalability_tumbling": {**SENSORS, "range": "1s"},
            "scalability_hopping": {**SENSORS, "range": "2s", "period": "1s"},
        },
        {},
        {"records": 80_000, "groups": 30, "statistics": 300, "weekdays": 600},
    ),
    "other ways": (
        "10k",
        {
            "scalability_sink": {**SENSORS, "sink": "log"},
            "scalability_hierarchical": {"height": "2", "range": "1s", "aggregation": "flat"},
            "scalability_hopping": {**SENSORS, "range": "2s", "period": "10ms"},
        },
        {},
        {"records": 40_000, "groups": 30, "weekdays": 60_000},
    ),
    "high tree": (
        "10k",
        {"scalability_hierarchical": {"height": "4", "children": "4", "range": "1s"}},
        {},
        {"groups": 200},
    ),
    "panes": (
        "5k",
        {"scalability_hopping": {"keys": "5", "range": "2s", "period": "10ms"}},
        {"lowering.aggregate": "panes"},
        {"weekdays": 3_000},
    ),
    "windows": (
        "5k",
        {"scalability_hopping": {"keys": "5", "range": "2s", "period": "50ms"}},
        {"lowering.aggregate": "window"},
        {"weekdays": 600},
    ),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("name", GROUPS)
def test_every_topology_is_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Several of them beside each other, over one stream of measurements."""
    rate, topologies, options, rows_least = GROUPS[name]
    workload = together(topologies)
    monkeypatch.setitem(registry._all(), workload.name, workload)
    with started(tmp_path, workload.name, rate, {}, options) as running:
        judged = running.trial(1)
    check_sinks(judged, rows_least)
    check_ways(judged)


def test_every_topology_is_verified_on_spark() -> None:
    """None is forgotten above."""
    tried = {name for _, topologies, _, _ in GROUPS.values() for name in topologies}
    assert tried == {name for name in registry.names() if name.startswith("scalability_")}
