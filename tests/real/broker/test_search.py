"""A search over a real broker to its end: steps that follow a drain offer their plan too."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench.kafka import kafka_searches
from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.experiment import build
from streamgauge.core.clock import US
from streamgauge.studies.capacity import saturation_probe
from streamgauge.studies.capacity import sustain as sustain_module
from streamgauge.trial import policies
from tests.helpers_broker_trials import WINDOW, on_a_broker, require_jars

SHORT = {
    "FIRST_RATE_PER_S": 1000.0, "FIRST_S": 5.0, "LAST_S": 5.0, "FRESH_WARMUP_S": 0.0, "pace_us": lambda *_: US // 2
}  # fmt: skip
"""A short overload trial. The gap after a drain is longer than this pace."""
APPROACH_PER_S = 3000.0


@pytest.fixture(scope="module")
def jars() -> None:
    require_jars("spark")


@on_a_broker
def test_each_trial_of_a_search_offers_its_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two partitions, drained between all trials; none is the driver's failure. The long test asks for a rate."""
    monkeypatch.setattr(policies, "LEVEL_MAX_US", 0)  # a young JVM will do
    for name, value in SHORT.items():
        monkeypatch.setattr(saturation_probe, name, value)
    monkeypatch.setattr(saturation_probe.RateLadder, "approach_rate", lambda *_: APPROACH_PER_S)
    monkeypatch.setattr(sustain_module, "ceiling_of", lambda *_: 30_000.0)
    drained: list[bool] = []
    drain = sustain_module.TrialConductor.drain

    def noted(conductor: sustain_module.TrialConductor, timeout_s: float) -> bool:
        drained.append(drain(conductor, timeout_s))
        return drained[-1]

    monkeypatch.setattr(sustain_module.TrialConductor, "drain", noted)
    values: dict[str, Any] = {
        "command": "sustain", "workload": "windowed_aggregation", "transport": "kafka", "partitions": 2,
        "out": str(tmp_path),
        "parameters": WINDOW, "load": {"warmup": "4s", "duration": "4s"},
        "options": {"trigger": "200 milliseconds"}, "search": {"quick": True, "trials_max": 3},
    }  # fmt: skip
    silent: Any = SimpleNamespace(header=lambda _: None, trial_progress=lambda _: None, trial=lambda _: None)
    result = sustain_module.sustain(build(values), silent)
    overload, *judged = sustain_module.recorded(RunFolder.open(str(result.folder)))
    assert overload.drained_per_s
    assert all("driver failed" not in one.why for one in (overload, *judged))
    assert judged
    assert len(drained) >= 3
    assert all(drained)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", kafka_searches.CASES)
@on_a_broker
def test_each_search_of_the_bench_ends_with_a_rate(name: str) -> None:
    """As a user types it, over both encodings, one and two partitions, a job, a program and real-time mode."""
    assert kafka_searches.measured(name)["value"] > 0
