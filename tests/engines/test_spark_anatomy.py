"""The anatomy of a real trial: its stages are its latency, and the one that was made longer is the one that is."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamgauge.experiment import build
from streamgauge.studies.anatomy import anatomy, read


@pytest.mark.spark
def test_stages_are_the_latency_and_an_interval_is_waited_for(tmp_path: Path) -> None:
    """Within 2 %; with batches a second apart an event waits half of it on average for one to begin."""
    load = {"rate": "2k", "duration": "8s", "warmup": "5s", "generators": 2}
    asked = build({"workload": "stamped_text", "out": str(tmp_path), "load": load})
    found = anatomy(asked, read("2k", "1s", None))
    (trial,) = found["trials"]
    assert found["finished"]
    assert trial["reason"] == ""
    assert trial["latency"]["results"] > 10_000
    assert trial["left_out"] == 0
    assert abs(trial["remainder_share"]) < 0.02
    assert trial["latency"]["contradicted_share"] < 0.02
    assert (trial["contradicting_batches"], trial["doubts"]) == (0, [])
    stages = {stage["name"]: stage["mean_us"] for stage in trial["stages"]}
    assert sum(stages.values()) == pytest.approx(trial["latency"]["mean_us"])
    assert 250_000 < stages["waiting"] < 750_000
    assert all(stages[name] > 0 for name in ("planned", "scheduled", "read", "processed and written"))
    assert trial["first_of_batch"]["mean_us"] > trial["latency"]["mean_us"]
    assert trial["tasks_share"] > 0
    assert (Path(found["folder"]) / "report.html").is_file()
    assert "eventLog" not in (Path(trial["run"]) / "experiment.toml").read_text()
