"""The four topologies of Ehrenstein 2020 in trials on a real Spark, each result verified. Over a broker:
`test_partitions.py`. In `make test`: `tests/engine_conformance/spark_session/test_topologies.py`.
"""

from pathlib import Path

import pytest

from streamgauge.workloads import registry
from tests.engine_conformance.spark_trials.helpers_spark_trials import check_ways, started
from tests.helpers_application_variants import together
from tests.helpers_broker_trials import check_sinks

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
