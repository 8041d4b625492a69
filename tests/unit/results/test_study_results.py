"""anatomy.json and characterization.json: what is written is read again, and so are older files."""

import json
from pathlib import Path
from typing import Any

import pytest

from streamgauge.artifacts.run_folder import ANATOMY, CHARACTERIZATION, StudyResult, read_study, write_study
from streamgauge.core.errors import InputError
from streamgauge.results.breakdown import BreakdownTrial, Decomposition, LatencyBreakdown
from streamgauge.results.profile import OperatorProfile
from tests.helpers_study_results import breakdown, breakdown_trial, operator_profile

NOT_STARTED = BreakdownTrial(rate_per_s=1.0, chunk_us=1, verdict="invalid", reason="it did not start")


@pytest.mark.parametrize(
    ("file", "study"),
    [(ANATOMY, breakdown(breakdown_trial(), NOT_STARTED)), (CHARACTERIZATION, operator_profile())],
)
def test_what_is_written_is_read_again(tmp_path: Path, file: str, study: StudyResult) -> None:
    """Every field, to the last digit."""
    write_study(tmp_path, file, study)
    assert read_study(tmp_path, file) == study


def test_a_trial_without_stages_has_every_key() -> None:
    """Its latencies are empty objects, other figures null or empty; the conditions come first."""
    trial = json.loads(breakdown(NOT_STARTED).to_json())["trials"][0]
    assert list(trial) == [
        "rate_per_s", "record_bytes", "chunk_us", "batch_window", "batch_window_s", "run", "verdict", "sentence",
        "exit_code", "clock_moved_us", *Decomposition.model_fields,
    ]  # fmt: skip
    assert (trial["latency"], trial["first_of_batch"], trial["stages"], trial["cdf_us"]) == ({}, {}, [], [])
    assert (trial["batches"], trial["tasks_share"], trial["doubts"]) == (None, None, [])


def test_a_breakdown_of_schema_version_1_is_read() -> None:
    """It had no tuning, no requested interval and no sample, and one figure more of each batch's first result."""
    stored = as_json(breakdown(breakdown_trial()))
    del stored["tuning"], stored["published_work_share"]
    (trial,) = stored["trials"]
    del trial["batch_window_s"], trial["sampled"], trial["contradicting_results"]
    trial["first_of_batch"]["contradicted_share"] = 0.0
    study = LatencyBreakdown.model_validate({**stored, "schema_version": 1})
    assert (study.schema_version, study.tuning, study.trials[0].sampled) == (1, "tuned", None)
    assert study.trials[0].first_of_batch == breakdown_trial().first_of_batch


def test_a_profile_from_before_tuning_profiles_is_read() -> None:
    """Nor had it an interval of the median, or advice that was applied; and a field had an engine's name."""
    stored = as_json(operator_profile())
    del stored["tuning"], stored["applied"]
    for operator in stored["operators"]:
        operator["instances_on_spark"] = operator.pop("engine_instances")
        if operator["time_per_tuple_us"]:
            del operator["time_per_tuple_us"]["interval"]
    assert OperatorProfile.model_validate(stored) == operator_profile()


@pytest.mark.parametrize(("change", "fault"), [
    ({"trials": [{"rate_per_s": "fast"}]}, r"trials.0.rate_per_s: "), ({"colour": "red"}, r"colour: "),
    (None, "version of streamgauge .KeyError: 'finished'"),
])  # fmt: skip
def test_a_file_of_another_version_is_refused(tmp_path: Path, change: dict[str, Any] | None, fault: str) -> None:
    """By its first fault in one line, with the command that makes a new one."""
    (tmp_path / ANATOMY).write_text(json.dumps({} if change is None else {**as_json(breakdown()), **change}))
    with pytest.raises(InputError, match=fault) as refused:
        read_study(tmp_path, ANATOMY)
    assert refused.value.problems[0].way_out == "streamgauge anatomy makes one anew"
    assert "\n" not in refused.value.problems[0].rule


def as_json(study: StudyResult) -> dict[str, Any]:
    stored: dict[str, Any] = json.loads(study.to_json())
    return stored
