"""`anatomy`: what is requested, what cannot be taken apart, and where a moment comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamgauge.config.options_and_settings import build
from streamgauge.core.errors import InputError
from streamgauge.engines.latency_probe import LatencyProbe
from streamgauge.engines.registry import streaming_engines
from streamgauge.engines.spark.latency_probe import MicroBatch
from streamgauge.engines.spark.latency_probe_dstream import DStream
from streamgauge.engines.spark.latency_probe_realtime import RealTime
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.preflight.validate import check
from streamgauge.studies.latency_breakdown.anatomy import (
    _interval,
    _trial_name,
    check_trials,
    engines_with_probe,
    probe_of,
)


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


def test_without_more_it_is_one_trial() -> None:
    """As the workload is."""
    (resolved,) = trials_of({"workload": "identity"}, rates=["5k"])
    assert (resolved.experiment.options, resolved.experiment.parameters) == ({}, {})
    (usual,) = check_trials(build({"command": "anatomy", "workload": "identity"}))
    assert (usual.experiment.load.rate, usual.experiment.load.duration) == (20_000.0, 30.0)


def test_real_time_mode_has_no_batches() -> None:
    """And none are counted; its chunks are its own."""
    (resolved,) = trials_of({"workload": "identity", "engine": "spark-rtm", "transport": "kafka"})
    assert resolved.experiment.options == {}
    assert resolved.experiment.load.chunk == 0.002


def test_an_interval_is_read_as_its_engine_writes_it() -> None:
    """And is in the words of the trial's progress; without batches there is none."""
    values: dict[str, Any] = {"workload": "identity", "engine": "spark-dstream", "options": {"batch_interval": "500ms"}}
    (resolved,) = trials_of(values)
    mode = probe_of("spark-dstream")
    interval = _interval(resolved.experiment.options, mode)
    assert (interval, mode.seconds(interval)) == ("500ms", 0.5)
    assert _trial_name(resolved.experiment, mode) == "20000/s, batches 500ms"
    (resolved,) = trials_of({"workload": "identity"}, batch_windows="1500ms")
    interval = _interval(resolved.experiment.options, probe_of("spark"))
    assert (interval, probe_of("spark").seconds(interval)) == ("1500 milliseconds", 1.5)
    (resolved,) = trials_of(RTM)
    assert _interval(resolved.experiment.options, probe_of("spark-rtm")) == ""


def test_all_trials_have_chunks_of_one_length() -> None:
    """The shortest of what each would have: at 200 k/s they are coarser else."""
    values = {"workload": "identity", "load": {"duration": "10s"}}
    assert [resolved.experiment.load.chunk for resolved in trials_of(values, rates="1k,300k")] == [0.01, 0.01]
    (alone,) = trials_of(values, rates="300k")
    assert alone.experiment.load.chunk == 0.05


def test_every_probe_says_what_its_stages_are() -> None:
    """Beginning with that of the driver."""
    for engine in engines_with_probe():
        assert next(iter(probe_of(engine).stages)) == "generated", engine


def test_an_engine_brings_its_own_probe() -> None:
    """Its plugin names it; each engine on Spark has one."""
    probes: dict[str, LatencyProbe] = {"spark": MicroBatch(), "spark-rtm": RealTime(), "spark-dstream": DStream()}
    assert {name: type(probe_of(name)) for name in engines_with_probe()} == {
        name: type(probe) for name, probe in probes.items()
    }
    assert set(probes) == {name for name in streaming_engines() if name.startswith("spark")}


@pytest.mark.parametrize(
    ("values", "option"),
    [
        ({"rates": "20k,many"}, "--rates"),
        ({"rates": ""}, "--rates"),
        ({"rates": []}, "anatomy.rates"),
        ({"batch_windows": "soon"}, "--batch-windows"),
        ({"batch_windows": "500us"}, "--batch-windows"),
        ({"record_sizes": "23"}, "--record-size"),
    ],
)
def test_what_is_none_is_refused(values: dict[str, Any], option: str) -> None:
    """By the option that it was given by."""
    with pytest.raises(InputError, match=option):
        trials_of({"workload": "stamped_text"}, **values)


RTM = {"workload": "identity", "engine": "spark-rtm", "transport": "kafka"}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"workload": "windowed_aggregation"}, "must turn each row of one stream into rows"),
        ({"workload": "word_count"}, "must turn each row of one stream into rows"),
        ({"workload": "identity", "engine": "known"}, "must be spark or spark-rtm"),
        ({"workload": "identity", "options": {"spark.eventLog.enabled": "true"}}, "is set by anatomy itself"),
        ({"workload": "identity", "parameters": {"record_bytes": "25"}}, "is not a parameter of identity"),
        ({"workload": "identity", "options": {"trigger": "soon"}}, "trigger"),
        ({"workload": "identity", "options": {"probes": "off"}}, "must be progress or on"),
        ({"workload": "spam_filter"}, "must turn each row of one stream into rows"),
        ({"workload": "identity", "load": {"duration": "10m"}}, "at most 10,000,000 events a trial"),
        ({"workload": "identity", "load": {"rate": "5k"}}, "is not a setting of anatomy"),
        ({"workload": "identity", "limits": ["p99<=2s"]}, "is not a setting of anatomy"),
        ({**RTM, "transport": "flight"}, "transport"),
        ({**RTM, "load": {"generators": 2}}, "must be 1 in real-time mode"),
        ({**RTM, "workload": "count"}, "must turn each row of one stream into rows"),
        ({**RTM, "anatomy": {"batch_windows": "1s"}}, "must not be given with spark-rtm, which has no batches"),
    ],
)
def test_what_cannot_be_taken_apart_is_refused(values: dict[str, Any], expected: str) -> None:
    """Before anything is started."""
    with pytest.raises(InputError, match=expected):
        check_trials(build({"command": "anatomy", **values}))


def test_an_own_job_is_refused() -> None:
    """Nobody can see into its function."""
    job = Path(__file__).parents[4] / "examples" / "enrich.py"
    with pytest.raises(InputError, match="must be a built-in workload"):
        trials_of({"workload": str(job)})


@pytest.mark.parametrize(
    ("values", "anatomy", "expected"),
    [
        ({"options": {"trigger": "1 second"}}, {"batch_windows": "0s"}, "is also set by --batch-windows"),
        ({"parameters": {"record_bytes": "100"}}, {"record_sizes": "25"}, "is also set by --record-size"),
    ],
)
def test_what_is_asked_for_twice_is_refused(values: dict[str, Any], anatomy: dict[str, Any], expected: str) -> None:
    """One of both would be passed over in silence."""
    with pytest.raises(InputError, match=expected):
        trials_of({"workload": "stamped_text", **values}, **anatomy)


def test_a_run_takes_no_trials_of_an_anatomy() -> None:
    """They would be passed over in silence."""
    with pytest.raises(InputError, match="is not a setting of run, only of anatomy"):
        check(build({"workload": "identity", "anatomy": {"rates": "5k"}}))
