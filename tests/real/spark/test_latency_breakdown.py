"""The anatomy of a real trial: its stages are its latency, and the one that was made longer is the one that is."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.experiment import build
from streamgauge.report.documents.study_pages import write_study_page
from streamgauge.studies.latency_breakdown.anatomy import anatomy, check_trials, probe_of, request_of
from streamgauge.studies.latency_breakdown.decompose import TrialEvidence, decompose
from streamgauge.trial.conductor import TrialConductor
from streamgauge.trial.events import VerdictReached
from streamgauge.trial.policies import JudgedTrial
from tests.helpers_broker_trials import require_jars, running


@pytest.mark.spark
def test_stages_are_the_latency_and_an_interval_is_waited_for(tmp_path: Path) -> None:
    """Within 2 %; with batches a second apart an event waits half of it on average for one to begin."""
    load = {"duration": "8s", "warmup": "5s", "generators": 2}
    trials = {"rates": "2k", "batch_windows": "1s"}
    settings = {"command": "anatomy", "workload": "stamped_text", "out": str(tmp_path), "load": load, "anatomy": trials}
    found = anatomy(build(settings), on_study=write_study_page).model_dump(mode="json")
    (trial,) = found["trials"]
    assert found["finished"]
    stages = sound(trial)
    assert 250_000 < stages["waiting"] < 750_000
    assert all(stages[name] > 0 for name in ("planned", "scheduled", "read", "processed and written"))
    assert trial["batch_window_s"] == 1.0
    assert trial["first_of_batch"]["mean_us"] > trial["latency"]["mean_us"]
    assert trial["tasks_share"] > 0
    assert (Path(found["folder"]) / "report.html").is_file()
    assert "eventLog" not in (Path(trial["run"]) / "experiment.toml").read_text()


@pytest.mark.long
@pytest.mark.spark
def test_a_batch_of_a_dstream_is_made_at_its_time(tmp_path: Path) -> None:
    """An event waits half an interval on average for it; where batches keep up, none waits long for its turn."""
    settings = {"workload": "stamped_text", "engine": "spark-dstream", "options": {"batch_interval": "1s"}}
    trial = trial_result(tmp_path, {"generators": 2}, **settings)
    stages = sound(trial)
    assert list(stages) == ["generated", "waiting", "queued", "scheduled", "read", "processed and written"]
    assert 250_000 < stages["waiting"] < 750_000


def sound(trial: dict[str, Any]) -> dict[str, float]:
    """Stages and their means, microseconds, of a trial in batches that nothing contradicts: they are its latency."""
    assert trial["reason"] == ""
    assert trial["latency"]["results"] > 10_000
    assert trial["left_out"] == 0
    assert abs(trial["remainder_share"]) < 0.02
    assert trial["latency"]["contradicted_share"] < 0.02
    assert (trial["contradicting_batches"], trial["doubts"]) == (0, [])
    stages = {stage["name"]: stage["mean_us"] for stage in trial["stages"]}
    assert sum(stages.values()) == pytest.approx(trial["latency"]["mean_us"])
    return stages


def trial_result(root: Path, load: Mapping[str, Any], **experiment: Any) -> dict[str, Any]:
    """A trial taken apart, whatever its verdict: a machine that is too busy for one is none here."""
    trials = {"command": "anatomy", "anatomy": {"rates": "2k"}, "load": {"warmup": "8s", **load}}
    (plain,) = check_trials(build({**trials, **experiment}))
    engine = plain.experiment.engine
    (root / "logs").mkdir()
    evidence = TrialEvidence(probe_of(engine).evidence(request_of(plain.experiment), root / "logs"))
    options = {**plain.experiment.options, **evidence.probe.options}
    resolved = replace(plain, experiment=plain.experiment.model_copy(update={"options": options}))
    folder = RunFolder.create(root, plain.experiment.workload, engine, datetime.now(UTC))
    with running(resolved, folder.path) as testbed:
        settings = JudgedTrial(resolved, 2000.0, fresh=True, duration_s=6.0, may_extend=False, keep_results=True)
        judged = TrialConductor(resolved, testbed).run(folder, settings)
        evidence.collect(VerdictReached(judged, testbed))
    return decompose(judged, folder.path, evidence).model_dump(mode="json")


@pytest.mark.long
@pytest.mark.spark
def test_blocks_of_receivers_have_their_part_of_the_way(tmp_path: Path) -> None:
    """An event waits half an interval for its block to be cut, and then for the batch that takes it."""
    options = {"block_interval": "100ms", "batch_interval": "1s"}
    settings = {"workload": "stamped_text", "engine": "spark-dstream", "transport": "socket", "options": options}
    trial = trial_result(tmp_path, {"generators": 2}, **settings)
    stages = sound(trial)
    assert list(stages) == [
        "generated", "received", "in a block", "stored and announced", "in a batch", "queued", "scheduled",
        "read, processed and written",
    ]  # fmt: skip
    assert 20_000 < stages["in a block"] < 100_000
    assert 200_000 < stages["in a batch"] < 700_000
    assert stages["stored and announced"] > 0


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.broker
@pytest.mark.parametrize("engine", ["spark-rtm", "spark"])
def test_the_broker_has_its_part_of_the_way(tmp_path: Path, engine: str) -> None:
    """In real-time mode and in micro-batches; its stamps lie between the driver's, result by result."""
    require_jars(engine)
    trial = trial_result(tmp_path, {"generators": 1}, workload="filter", engine=engine, transport="kafka")
    assert trial["reason"] == ""
    assert trial["latency"]["results"] >= trial["sampled"] > 1000
    assert trial["latency"]["contradicted_share"] < 0.02
    assert abs(trial["remainder_share"]) < 0.02
    stages = {stage["name"]: stage["mean_us"] for stage in trial["stages"]}
    assert set(stages) <= set(probe_of(engine).stages)
    assert sum(stages.values()) == pytest.approx(trial["latency"]["mean_us"], rel=0.02)
    assert all(stages[name] > 0 for name in ("generated", "in Kafka", "consumed"))
    assert trial["doubts"] == []
    if engine == "spark-rtm":
        assert list(stages) == ["generated", "in Kafka", "read and processed", "consumed"]
        assert stages["read and processed"] > 0
        assert (trial["batches"], trial["tasks_share"], trial["first_of_batch"]) == (None, None, {})
    else:
        assert trial["contradicting_batches"] == 0
        assert trial["first_of_batch"]["mean_us"] > trial["latency"]["mean_us"]
