"""`generate`: what was requested, what a run of the same settings is offered, and a run's very input made again."""

import sys
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pyarrow.parquet as pq
import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.experiment import Experiment, build
from streamgauge.core.clock import US
from streamgauge.core.errors import InputError
from streamgauge.core.trial import TrialSpans
from streamgauge.loadgen.export import write_input
from streamgauge.loadgen.plan import Plan
from streamgauge.metrics.rates_and_backlog import offered_input
from streamgauge.metrics.trial_log import TrialLog
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.preflight.settings_checks import check
from streamgauge.results.run import Result
from streamgauge.studies.run.generate_input import generate
from streamgauge.trial import conductor as trial
from streamgauge.trial.policies import JudgedTrial
from streamgauge.user_workloads.data_files import replayed_data
from streamgauge.user_workloads.lookup import with_absolute_paths

START_US = 1_700_000_000 * US
VALUES: dict[str, Any] = {
    "workload": "identity",
    "load": {"rate": 500, "duration": "4s", "warmup": "2s", "seed": 7, "generators": 2},
}


def extended(tmp_path: Path, **requested: Any) -> tuple[RunFolder, Plan, int]:
    """(the folder of a run whose warm-up was prolonged and whose span was extended, its plan, its end)."""
    resolved = check(build({**VALUES, **requested}))
    spans = resolved.spans(START_US, True, 4.0)
    plan = resolved.trial_plan(spans, 500.0, fresh=True, spare_s=20.0)
    record = TrialRecord(TrialLog(plan), spans.later(5 * US).longer(2 * US), prolonged_us=5 * US, interim_analyses=2)
    folder = RunFolder.create(tmp_path, "identity", "spark", datetime.now(UTC))
    changes = {"experiment": resolved.experiment.model_dump(mode="json"), "input": offered_input(record, 2)}
    folder.write_result(folder.read_result().model_copy(update=changes))
    return folder, plan, record.spans.end_us


def experiment_of_run(folder: RunFolder, **more: Any) -> Experiment:
    return build(
        {
            "command": "generate",
            "workload": "identity",
            **more,
            "load": {"of": str(folder.path), **more.get("load", {})},
        }
    )


def test_a_profile_is_written_as_it_was_requested(tmp_path: Path) -> None:
    """Without a start: from its first moment, over exactly its duration, whatever the warm-up of a run would be."""
    load = {**VALUES["load"], "profile": "step:900@1s,200@3s"}
    written = generate(build({"command": "generate", **VALUES, "load": load}), tmp_path / "new")
    assert written["end_us"] - written["start_us"] == 4 * US
    times = pq.read_table(tmp_path / "new" / "purchases").column("event_time").cast("int64").to_numpy()
    per_s = np.bincount((times - written["start_us"]) // US)
    assert per_s.tolist() == pytest.approx([500, 900, 900, 200], abs=1)


@pytest.mark.parametrize("profile", ["constant", "ramp:900"])
def test_what_a_run_of_these_settings_is_offered_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: str
) -> None:
    """With its start: the very plan that a fresh run follows, from its first event to the last of its tail."""
    plan, spans = plan_of_a_run(monkeypatch, build({**VALUES, "load": {**VALUES["load"], "profile": profile}}))
    write_input(plan, tmp_path / "offered", spans.start_us, spans.end_us)
    start = datetime.fromtimestamp(spans.start_us / US, UTC).isoformat()
    load = {**VALUES["load"], "profile": profile, "start": start}
    written = generate(build({"command": "generate", **VALUES, "load": load}), tmp_path / "again")
    assert (written["start_us"], written["end_us"]) == (spans.start_us, spans.end_us)
    assert rows(tmp_path / "again") == rows(tmp_path / "offered")


def plan_of_a_run(monkeypatch: pytest.MonkeyPatch, experiment: Experiment) -> tuple[Plan, TrialSpans]:
    """What a trial's conductor is given on a test bed that has just been started."""
    monkeypatch.setattr(trial, "PhaseRunner", runner := Mock(side_effect=KeyboardInterrupt))
    testbed: Any = SimpleNamespace(clock=SimpleNamespace(now_us=lambda: START_US + 5), reached_us=0)
    resolved = check(experiment)
    policy = JudgedTrial(resolved, experiment.load.rate, fresh=True, duration_s=experiment.load.duration)
    with pytest.raises(KeyboardInterrupt):
        trial.TrialConductor(resolved, testbed).run(Mock(), policy)
    return runner.call_args.args[1], runner.call_args.args[2]


def rows(folder: Path) -> dict[str, Any]:
    return {str(path.relative_to(folder)): pq.read_table(path) for path in sorted(folder.rglob("*.parquet"))}


@pytest.mark.parametrize("profile", ["constant", "step:900@1s", "ramp:900"])
def test_an_extended_run_is_made_again_whole(tmp_path: Path, profile: str) -> None:
    """What was offered, to the event: the rising warm-up, its prolongation, the extension, and the tail."""
    folder, plan, end_us = extended(tmp_path, load={**VALUES["load"], "profile": profile})
    write_input(plan, tmp_path / "offered", START_US, end_us)
    written = generate(experiment_of_run(folder), tmp_path / "again")
    assert (written["start_us"], written["end_us"]) == (START_US, end_us)
    assert end_us - START_US > (2 + 5 + 4 + 2) * US
    assert rows(tmp_path / "again") == rows(tmp_path / "offered")


@pytest.mark.parametrize("engine", ["spark", "spark-rtm"])
def test_a_run_over_a_broker_is_made_again_with_its_keys(tmp_path: Path, engine: str) -> None:
    """Each partition has the events of its keys, as in the run; real-time mode has one partition."""
    several = {"partitions": 3} if engine == "spark" else {"load": {**VALUES["load"], "generators": 1}}
    requested = {"workload": "count", "engine": engine, "transport": "kafka", **several}
    folder, plan, end_us = extended(tmp_path, **requested)
    assert plan.keyed
    write_input(plan, tmp_path / "offered", plan.start_us, end_us)
    generate(experiment_of_run(folder, workload="count"), tmp_path / "again")
    assert rows(tmp_path / "again") == rows(tmp_path / "offered")
    assert len(rows(tmp_path / "again")) == plan.partitions


def test_the_runs_own_settings_may_be_given_again(tmp_path: Path) -> None:
    """The arguments of the run, repeated with --of, contradict nothing."""
    folder, *_ = extended(tmp_path)
    generate(experiment_of_run(folder, load={"rate": 500, "seed": 7}), tmp_path / "again")


def refused(experiment: Experiment, out: Path) -> set[str]:
    with pytest.raises(InputError) as caught:
        generate(experiment, out)
    assert not out.exists()
    return {problem.setting for problem in caught.value.problems}


def test_settings_that_are_not_the_runs_are_refused(tmp_path: Path) -> None:
    """All of them at once: another input than the run's would be no check of its answers."""
    folder, *_ = extended(tmp_path)
    other = experiment_of_run(folder, workload="filter", parameters={"above": 3}, load={"rate": 400, "seed": 7})
    assert refused(other, tmp_path / "again") == {"workload", "parameters.above", "load.rate"}


def test_a_run_that_does_not_say_what_it_was_offered_is_refused(tmp_path: Path) -> None:
    """One that never began has no input."""
    folder, *_ = extended(tmp_path)
    folder.write_result(folder.read_result().model_copy(update={"input": None}))
    assert refused(experiment_of_run(folder), tmp_path / "again") == {"load.of"}


def test_a_trial_that_ended_early_was_offered_no_more(make: Any) -> None:
    """Generators stopped in second 8 of 20; the input ends there."""
    record = make.story(seconds=8).record(engine_failed="gone")
    assert offered_input(record, 2).end_us == record.spans.start_us + 8 * US
    assert Result.model_fields["input"].default is None


SAMPLED = """
from streamgauge.jobs import job, stream

@job(stream("purchases", sample="purchases.csv"), reach="0s")
def all_of_them(spark, inputs):
    return inputs["purchases"]
"""


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The file of a job that samples another one."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "mine.py").write_text(SAMPLED)
    (tmp_path / "purchases.csv").write_text("price\n" + "01\n2\n" * 50)
    return str(tmp_path / "mine.py")


@pytest.mark.parametrize("edited", ["mine.py", "purchases.csv"])
def test_an_own_job_that_has_changed_is_not_taken_for_the_runs(tmp_path: Path, job: str, edited: str) -> None:
    """Its file and its samples decide the input: another one would be no check of the run's answers."""
    folder, *_ = extended(tmp_path, workload=job)
    files = check(build({**VALUES, "workload": job})).workload.files
    folder.write_result(folder.read_result().model_copy(update={"job_files": dict(files)}))
    generate(experiment_of_run(folder, workload=job), tmp_path / "same")
    with (tmp_path / edited).open("a") as file:
        file.write("\n" if edited == "mine.py" else "3\n")
    assert refused(experiment_of_run(folder, workload=job), tmp_path / "again") == {edited}
    assert set(files) == {"mine.py", "purchases.csv"}


@pytest.mark.parametrize("then", [{"rows": 3}, {"left_out": 1}, {"columns": ({"unreadable": 1},)}])
def test_a_run_whose_data_were_read_otherwise_is_refused(tmp_path: Path, then: dict[str, Any]) -> None:
    """Another number of rows, of lines left out or of values of a column."""
    (tmp_path / "bought.csv").write_text("user_id,gem_pack_id,price\n1,2,30\n")
    folder, plan, end_us = extended(tmp_path, parameters={"data": str(tmp_path / "bought.csv")})
    (one,) = replayed_data(plan, end_us)
    columns = tuple(column.model_copy(update=then.get("columns", ({},))[0]) for column in one.columns)
    data = one.model_copy(update={**then, "columns": columns})
    folder.write_result(folder.read_result().model_copy(update={"data": (data,)}))
    with pytest.raises(InputError, match=r"bought\.csv: must be read as in that run") if then else nullcontext():
        generate(experiment_of_run(folder), tmp_path / "again")


def test_a_run_on_data_is_made_again_from_any_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run keeps their whole path; they may be named as they lie from there, and others are refused."""
    (tmp_path / "bought.csv").write_text("user_id,gem_pack_id,price\n1,2,30\n")
    monkeypatch.chdir(tmp_path)
    requested = with_absolute_paths(build({**VALUES, "parameters": {"data": "bought.csv"}}))
    folder, *_ = extended(tmp_path, **requested.model_dump())
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    generate(experiment_of_run(folder), tmp_path / "again")
    assert set(pq.read_table(tmp_path / "again" / "purchases")["price"].to_pylist()) == {30}
    generate(experiment_of_run(folder, parameters={"data": "../bought.csv"}), tmp_path / "same")
    assert refused(experiment_of_run(folder, parameters={"data": "bought.csv"}), tmp_path / "x") == {"parameters.data"}
