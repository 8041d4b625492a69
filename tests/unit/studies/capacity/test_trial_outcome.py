"""studies/capacity/outcome.py: the outcome of a trial, for the search."""

from types import SimpleNamespace
from typing import Any

import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.engines.spark.options import NEAR_LIMIT
from streamgauge.results.codes import Cause
from streamgauge.results.latency import Latencies, Latency
from streamgauge.results.run import Rates
from streamgauge.results.verdict import Verdict, VerdictValue
from streamgauge.studies.capacity import outcome as outcome_module
from streamgauge.studies.capacity.saturation_probe import SaturationResult
from streamgauge.studies.capacity.search import TrialOutcome, TrialRequest
from tests.unit.studies.helpers_studies import HELD_PER_S

WITHOUT_BATCHES: Any = SimpleNamespace(engine=SimpleNamespace(has_batch_ids=False, near_limit=NEAR_LIMIT))
"""An experiment whose engine's results belong to no batches, so its busy share is unknown."""


def outcome_in(study: RunFolder, early_stop: str = "", verdict: Verdict | None = None, **changes: Any) -> TrialOutcome:
    """The outcome of a trial, with the result of `study` but for its changes."""
    changes |= {} if verdict is None else {"verdict": verdict}
    record = SimpleNamespace(early_stop=early_stop, trial_log=SimpleNamespace(by_query=lambda: ()))
    trial: Any = SimpleNamespace(result=study.read_result().model_copy(update=changes), record=record)
    return outcome_module.outcome_of(WITHOUT_BATCHES, TrialRequest(HELD_PER_S, "bisect", fresh=False), trial, study)


@pytest.mark.parametrize(
    ("verdict", "early_stop", "why"),
    [
        ("not_sustained", "the queue's bound was reached", "the queue's bound was reached"),
        ("not_sustained", "", "the backlog grew"),
        ("invalid", "the queue's bound was reached", "the backlog grew"),
    ],
)
def test_why_a_trial_failed_is_what_ended_it(
    study: RunFolder, verdict: VerdictValue, early_stop: str, why: str
) -> None:
    """Where it could only fail, that is reported; where the driver is to blame, the verdict's reason."""
    assert outcome_in(study, early_stop, Verdict(value=verdict, sentence="the backlog grew")).why == why


@pytest.mark.parametrize(
    ("verdict", "ingested_per_s", "drained_per_s"),
    [
        ("not_sustained", 9e4, 9e4), ("undecided", 9e4, None), ("sustained", 9e4, None), ("invalid", 9e4, 9e4),
        ("invalid", 9.8e4, None),
    ],
)  # fmt: skip
def test_only_a_trial_that_fell_behind_shows_what_the_engine_drains(
    study: RunFolder, verdict: VerdictValue, ingested_per_s: float, drained_per_s: float | None
) -> None:
    """What one that kept up has read is what it was offered: a search would take that for a limit.

    An invalid one proves nothing, but what it drained is the best guess, unless the engine took the rate.
    """
    rates = Rates(offered_per_s=1e5, achieved_per_s=9e4, ingested_per_s=ingested_per_s, planned_per_s=1e5)
    assert outcome_in(study, verdict=Verdict(value=verdict, sentence=""), rate=rates).drained_per_s == drained_per_s


@pytest.mark.parametrize(
    ("verdict", "cause", "isolation", "ingested_per_s", "share", "starved"),
    [
        ("invalid", Cause.SCHEDULE_DELAY, "shared", 1e5, NEAR_LIMIT.full, True),
        ("invalid", Cause.PLAN_NOT_KEPT, "shared", 9e4, None, True),  # without a share, the backlog tells
        ("invalid", Cause.DRIVER_STARVED, "shared", 9e4, 1.0, True),
        ("invalid", Cause.DRIVER_STARVED, "shared", 9e4, NEAR_LIMIT.full - 0.01, False),
        ("invalid", Cause.DRIVER_STARVED, "shared", 1e5, None, False),
        ("invalid", Cause.DRIVER_SLOWED_BY_BACKGROUND_LOAD, "shared", 9e4, 1.0, False),
        ("invalid", Cause.RECORDER_STALLED, "shared", 9e4, 1.0, False),
        ("invalid", Cause.SCHEDULE_DELAY, "pinned", 9e4, 1.0, False),
        ("undecided", Cause.SCHEDULE_DELAY, "shared", 9e4, 1.0, False),
    ],
)
def test_an_engine_near_its_limit_starves_a_driver_on_its_cores(
    study: RunFolder,
    monkeypatch: pytest.MonkeyPatch,
    verdict: VerdictValue,
    cause: Cause,
    isolation: str,
    ingested_per_s: float,
    share: float | None,
    starved: bool,
) -> None:
    """Not if something else was to blame, or if its batches left time over."""
    monkeypatch.setattr(outcome_module, "busy_share", lambda resolved, record: share)
    rates = Rates(offered_per_s=1e5, achieved_per_s=9e4, ingested_per_s=ingested_per_s, planned_per_s=1e5)
    changes: Any = {"verdict": Verdict(value=verdict, cause=cause, sentence=""), "rate": rates, "isolation": isolation}
    for master, local in ((None, True), ("local[2]", True), ("spark://elsewhere:7077", False)):
        assert outcome_in(study, engine="spark", experiment={"master": master}, **changes).starved is (
            starved and local
        )


def test_a_trial_of_updates_has_the_wait_of_every_event_too(study: RunFolder) -> None:
    """Beside that of the newest event in each update; null where results are none."""
    latency = Latencies(event_time_us=Latency(p50=8e5), until_counted_us=Latency(p50=2.8e6, p99=4.8e6))
    outcome = outcome_in(study, latency=latency)
    assert (outcome.event_time_p50_us, outcome.until_counted_p50_us, outcome.until_counted_p99_us) == (
        8e5,
        2.8e6,
        4.8e6,
    )
    assert outcome_in(study).until_counted_p50_us is None


def test_a_search_learns_how_busy_a_trial_left_the_engine(study: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what the driver saw of its batches, and nothing where it saw none: steps up are as long as that allows."""
    assert outcome_in(study).busy_share is None
    monkeypatch.setattr(outcome_module, "busy_share", lambda of, record: 0.25 if of is WITHOUT_BATCHES else 1 / 0)
    assert outcome_in(study).busy_share == 0.25


@pytest.mark.parametrize(
    ("changes", "verdict", "why"),
    [
        ({"kept_up": True}, "sustained", "kept up with"),
        ({}, "not_sustained", "looking below that"),
        ({"engine_failed": "exit code 137"}, "not_sustained", "the engine failed: exit code 137"),
        ({"driver_failed": "generator 0 ended"}, "invalid", "the driver failed: generator 0 ended"),
        ({"driver_failed": "its edge closed", "engine_failed": "it ended"}, "invalid", "its edge closed"),
    ],
)
def test_what_an_overload_trial_shows(changes: dict[str, Any], verdict: VerdictValue, why: str) -> None:
    """A driver that failed says nothing of the engine; an engine's own death is reported."""
    overload = SaturationResult(**({"drained_per_s": 0.0, "kept_up": False} | changes))
    outcome = outcome_module.outcome_of_overload(TrialRequest(1e6, "overload", fresh=True), overload)
    assert outcome.verdict == verdict
    assert why in outcome.why
