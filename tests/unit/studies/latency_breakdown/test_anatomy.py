"""`anatomy`: what is requested, what cannot be taken apart, and where a moment comes from."""

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from streamgauge.config.experiment import build
from streamgauge.core.errors import DriverError, EngineError, InputError
from streamgauge.core.exit_codes import ExitCode
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.studies.latency_breakdown import anatomy as module
from streamgauge.studies.latency_breakdown.anatomy import (
    _interval,
    _trial_name,
    anatomy,
    check_trials,
    exit_code,
    probe_of,
)
from tests.helpers_study_results import breakdown, breakdown_trial


def trials_of(values: dict[str, Any], **anatomy: Any) -> list[ResolvedExperiment]:
    return check_trials(build({"command": "anatomy", **values, "anatomy": {"rates": "20k", **anatomy}}))


def test_every_rate_is_tried_with_every_interval_and_size() -> None:
    """Each once."""
    values = {"rates": "20k, 1k,20k", "batch_windows": "0s,1s", "record_sizes": "25,100"}
    trials = [resolved.experiment for resolved in trials_of({"workload": "stamped_text"}, **values)]
    reported = [(t.load.rate, t.options["trigger"], t.parameters["record_bytes"]) for t in trials]
    assert reported[:3] == [
        (20_000.0, "0 milliseconds", 25), (1_000.0, "0 milliseconds", 25), (20_000.0, "0 milliseconds", 100)
    ]  # fmt: skip
    assert len(set(reported)) == 8
    assert all((trial.keep_results, trial.command, trial.anatomy) == (True, "run", None) for trial in trials)


@pytest.mark.parametrize(
    ("trials", "code"),
    [
        ([{"verdict": "sustained"}, {"verdict": "not_sustained"}, {"verdict": "undecided"}], ExitCode.HOLDS),
        ([{"verdict": "sustained"}, {"verdict": "invalid"}], ExitCode.INVALID),
        ([{"verdict": "invalid", "exit_code": 1}], ExitCode.FAILS),
        ([{"verdict": "invalid", "exit_code": 1}, {"verdict": "invalid"}], ExitCode.INVALID),
        ([{"verdict": "invalid"}, {"verdict": "interrupted"}], ExitCode.SIGINT),
    ],
)
def test_the_exit_code_is_that_of_the_worst_unusable_trial(trials: list[dict[str, Any]], code: ExitCode) -> None:
    """A rate that is not sustained has latencies, too."""
    assert exit_code(breakdown(*(breakdown_trial(**trial) for trial in trials))) == code


@pytest.mark.parametrize(("error", "code"), [(EngineError("no memory"), 1), (DriverError("no generator"), 4)])
def test_a_trial_that_did_not_start_keeps_the_code_of_its_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception, code: int
) -> None:
    """And the anatomy ends with it."""
    monkeypatch.setattr(module, "require_machine", Mock())
    monkeypatch.setattr(module, "run_judged", Mock(side_effect=error))
    found = anatomy(build({"command": "anatomy", "workload": "identity", "out": str(tmp_path)}))
    assert ([trial.exit_code for trial in found.trials], exit_code(found)) == ([code], code)


def test_without_more_it_is_one_trial() -> None:
    """As the workload is."""
    (resolved,) = trials_of({"workload": "identity"}, rates=["5k"])
    assert (resolved.experiment.options, resolved.experiment.parameters) == ({}, {})
    (usual,) = check_trials(build({"command": "anatomy", "workload": "identity"}))
    assert (usual.experiment.load.rate, usual.experiment.load.duration) == (20_000.0, 30.0)


def test_real_time_mode_has_no_batches() -> None:
    """And none are counted; its chunks are its own."""
    (resolved,) = trials_of(RTM)
    assert (resolved.experiment.options, resolved.experiment.load.chunk) == ({}, 0.002)


@pytest.mark.parametrize(
    ("engine", "values", "anatomy", "interval", "seconds"),
    [
        ("spark-dstream", {"options": {"batch_interval": "500ms"}}, {}, "500ms", 0.5),
        ("spark", {}, {"batch_windows": "1500ms"}, "1500 milliseconds", 1.5),
        ("spark-rtm", {"transport": "kafka"}, {}, "", None),
    ],
)
def test_an_interval_is_read_as_its_engine_writes_it(
    engine: str, values: dict[str, Any], anatomy: dict[str, Any], interval: str, seconds: float | None
) -> None:
    """And is in the words of the trial's progress; without batches there is none."""
    (resolved,) = trials_of({"workload": "identity", "engine": engine, **values}, **anatomy)
    probe, experiment = probe_of(engine), resolved.experiment
    assert _interval(experiment.options, probe) == interval
    assert not interval or probe.seconds(interval) == seconds
    assert _trial_name(experiment, probe) == ", ".join(["20000/s", *([f"batches {interval}"] if interval else [])])


def test_all_trials_have_chunks_of_one_length() -> None:
    """The shortest of what each would have: at 200 k/s they are coarser else."""
    values = {"workload": "identity", "load": {"duration": "10s"}}
    assert [resolved.experiment.load.chunk for resolved in trials_of(values, rates="1k,300k")] == [0.01, 0.01]
    (alone,) = trials_of(values, rates="300k")
    assert alone.experiment.load.chunk == 0.05


@pytest.mark.parametrize(
    ("values", "option"),
    [
        ({"rates": "20k,many"}, "--rates"),
        ({"rates": ""}, "--rates"),
        ({"rates": []}, "anatomy.rates"),
        ({"batch_windows": "soon"}, "--batch-windows"),
        ({"batch_windows": "500us"}, "--batch-windows"),
        ({"record_sizes": "23"}, "--record-sizes"),
    ],
)
def test_what_is_none_is_refused(values: dict[str, Any], option: str) -> None:
    """By the option that it was given by."""
    with pytest.raises(InputError, match=option):
        trials_of({"workload": "stamped_text"}, **values)


RTM = {"workload": "identity", "engine": "spark-rtm", "transport": "kafka"}
JOB = Path(__file__).parents[4] / "examples" / "enrich.py"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"workload": "windowed_aggregation"}, "must turn each row of one stream into rows"),
        ({"workload": "word_count"}, "must turn each row of one stream into rows"),
        ({"workload": "identity", "engine": "known"}, "must be spark or spark-rtm"),
        ({"workload": "identity", "options": {"spark.eventLog.enabled": "true"}}, "is set by anatomy itself"),
        ({"workload": "identity", "parameters": {"record_bytes": "25"}}, "is not a parameter of identity"),
        ({"workload": "stamped_text", "parameters": {"record_bytes": 23}}, "record_bytes: must be at least 24"),
        ({"workload": "identity", "options": {"trigger": "soon"}}, "trigger"),
        ({"workload": "identity", "options": {"probes": "off"}}, "must be progress or on"),
        ({"workload": "spam_filter"}, "must turn each row of one stream into rows"),
        ({"workload": "identity", "load": {"duration": "10m"}}, "at most 10,000,000 events a trial"),
        ({"workload": "identity", "load": {"rate": "5k"}}, "is not a setting of anatomy"),
        ({"workload": "identity", "limits": ["p99<=2s"]}, "is not a setting of anatomy"),
        ({**RTM, "transport": "memory"}, "transport"),
        ({**RTM, "load": {"generators": 2}}, "must be 1 in real-time mode"),
        ({**RTM, "workload": "count"}, "must turn each row of one stream into rows"),
        ({**RTM, "anatomy": {"batch_windows": "1s"}}, "must not be given with spark-rtm, which has no batches"),
        # The study cannot see into a user job's function.
        ({"workload": str(JOB), "anatomy": {"rates": "20k"}}, "must be a built-in workload"),
        # One of both would be passed over in silence.
        (
            {"workload": "stamped_text", "options": {"trigger": "1 second"}, "anatomy": {"batch_windows": "0s"}},
            "is also set by --batch-windows",
        ),
        (
            {"workload": "stamped_text", "parameters": {"record_bytes": "9"}, "anatomy": {"record_sizes": "25"}},
            "is also set by --record-sizes",
        ),
    ],
)
def test_what_cannot_be_taken_apart_is_refused(values: dict[str, Any], expected: str) -> None:
    """Before anything is started."""
    with pytest.raises(InputError, match=expected):
        check_trials(build({"command": "anatomy", **values}))
