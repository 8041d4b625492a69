"""`anatomy`: what is asked for, what cannot be taken apart, and where a moment comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamgauge.errors import InputError
from streamgauge.experiment import build
from streamgauge.studies.anatomy import STAGES, Asked, _trials, read


def test_every_rate_is_tried_with_every_interval_and_size() -> None:
    """Each once."""
    asked = read("20k, 1k,20k", "0s,1s", "25,100")
    assert asked == Asked((20_000.0, 1_000.0), ("0 milliseconds", "1000 milliseconds"), (25, 100))
    trials = [ready.experiment for ready in _trials(build({"workload": "stamped_text"}), asked)]
    told = [(t.load.rate, t.options["trigger"], t.parameters["record_bytes"]) for t in trials]
    assert told[:3] == [
        (20_000.0, "0 milliseconds", 25), (1_000.0, "0 milliseconds", 25), (20_000.0, "0 milliseconds", 100)
    ]  # fmt: skip
    assert len(set(told)) == 8
    assert all(trial.keep_results for trial in trials)


def test_without_more_it_is_one_trial() -> None:
    """As the workload is."""
    (ready,) = _trials(build({"workload": "identity"}), read("5k", None, None))
    assert (ready.experiment.options, ready.experiment.parameters) == ({"probes": "progress"}, {})


def test_all_trials_have_chunks_of_one_length() -> None:
    """The shortest of what each would have: at 200 k/s they are coarser else."""
    trials = _trials(build({"workload": "identity", "load": {"duration": "10s"}}), read("1k,300k", None, None))
    assert [ready.experiment.load.chunk for ready in trials] == [0.01, 0.01]
    (alone,) = _trials(build({"workload": "identity", "load": {"duration": "10s"}}), read("300k", None, None))
    assert alone.experiment.load.chunk == 0.05


def test_stages_have_names_for_both_transports() -> None:
    """The last one is the same of both, but for what nobody sees."""
    assert list(STAGES)[-2:] == ["processed and written", "read, processed and written"]


@pytest.mark.parametrize(
    ("asked", "option"),
    [
        (("20k,many", None, None), "--rates"),
        (("", None, None), "--rates"),
        (("20k", "soon", None), "--batch-windows"),
        (("20k", "500us", None), "--batch-windows"),
        (("20k", None, "23"), "--record-size"),
    ],
)
def test_what_is_none_is_refused(asked: tuple[str, str | None, str | None], option: str) -> None:
    """By the option that it was given by."""
    with pytest.raises(InputError, match=option):
        read(*asked)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"workload": "windowed_aggregation"}, "must make rows of the rows of one stream"),
        ({"workload": "word_count"}, "must make rows of the rows of one stream"),
        ({"workload": "identity", "engine": "known"}, "must be spark"),
        ({"workload": "identity", "options": {"spark.eventLog.enabled": "true"}}, "is set by the anatomy itself"),
        ({"workload": "identity", "parameters": {"record_bytes": "25"}}, "is not a parameter of identity"),
        ({"workload": "identity", "options": {"trigger": "soon"}}, "trigger"),
        ({"workload": "identity", "options": {"probes": "off"}}, "must be progress or on"),
        ({"workload": "spam_filter"}, "must make rows of the rows of one stream"),
        ({"workload": "identity", "load": {"duration": "10m"}}, "at most 10,000,000 events a trial"),
    ],
)
def test_what_cannot_be_taken_apart_is_refused(asked: dict[str, object], expected: str) -> None:
    """Before anything is started."""
    with pytest.raises(InputError, match=expected):
        _trials(build(asked), read("20k", None, None))


def test_an_own_job_is_refused() -> None:
    """Nobody can see into its function."""
    job = Path(__file__).parents[2] / "examples" / "enrich.py"
    with pytest.raises(InputError, match="must make rows of the rows of one stream"):
        _trials(build({"workload": str(job)}), read("20k", None, None))


@pytest.mark.parametrize(
    ("asked", "words", "expected"),
    [
        ({"options": {"trigger": "1 second"}}, ("20k", "0s", None), "asked for by --batch-windows too"),
        ({"parameters": {"record_bytes": "100"}}, ("20k", None, "25"), "asked for by --record-size too"),
    ],
)
def test_what_is_asked_for_twice_is_refused(asked: dict[str, Any], words: tuple[str, str, str], expected: str) -> None:
    """One of both would be passed over in silence."""
    with pytest.raises(InputError, match=expected):
        _trials(build({"workload": "stamped_text", **asked}), read(*words))
