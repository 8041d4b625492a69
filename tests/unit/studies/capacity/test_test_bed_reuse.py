"""A test bed between the trials of a search: warmed, drained and used again, or given up."""

import dataclasses
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, Mock

import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.core.errors import DriverError
from streamgauge.engines.spi import EngineStatus
from streamgauge.metrics import interference
from streamgauge.metrics.records import Tick
from streamgauge.metrics.trial_log import TrialLog
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.studies.capacity import sustain as sustain_module
from streamgauge.studies.capacity.search import TrialOutcome, TrialRequest
from streamgauge.trial import conductor as conductor_module
from streamgauge.trial.events import ignore
from tests.helpers_recording import append_and_return
from tests.unit.studies.helpers_studies import HELD_PER_S, conductor_at, worker

BRACKET = TrialRequest(HELD_PER_S, "bracket", fresh=False)
SUSTAINED = TrialOutcome(HELD_PER_S, "sustained")


@pytest.mark.parametrize(
    ("workload", "fresh", "warmed"), [("filter", True, True), ("filter", False, False), ("count", True, False)]
)
def test_a_fresh_engine_is_warmed_before_its_trial(
    study: RunFolder, monkeypatch: pytest.MonkeyPatch, workload: str, fresh: bool, warmed: bool
) -> None:
    """That trial is then like any other; but where no trial can follow another, the warm-up is the trial's own."""
    calls: list[Any] = []
    monkeypatch.setattr(sustain_module, "drained_where_far_behind", lambda *_: None)
    monkeypatch.setattr(sustain_module, "warm_up", lambda _, rate_per_s: append_and_return(calls, rate_per_s, None))
    work = worker(study, engine="spark", workload=workload)
    monkeypatch.setattr(work, "_drain", lambda conductor: append_and_return(calls, "emptied", True))
    conductor = conductor_at(10.0, lambda _, trial: append_and_return(calls, trial.fresh, 1) / 0)
    with pytest.raises(ZeroDivisionError):
        work._judged(conductor, TrialRequest(HELD_PER_S, "confirm", fresh=fresh), fresh=fresh)
    assert calls == ([HELD_PER_S, "emptied", False] if warmed else [fresh])


@pytest.mark.parametrize(("taken", "judged"), [(2_000_000, False), (2_000_000_000, True)])
def test_an_engine_that_falls_far_behind_in_its_warm_up_is_not_sustained(
    study: RunFolder, monkeypatch: pytest.MonkeyPatch, taken: int, judged: bool
) -> None:
    """Nothing is tried on top of a backlog of minutes; the next guess is what it drained. One of half the pace is."""
    trial_log: Any = SimpleNamespace(running=SimpleNamespace(taken_events=lambda: taken), background=[])
    record: Any = SimpleNamespace(trial_log=trial_log, spans=SimpleNamespace(start_us=0), ended_early=False)
    monkeypatch.setattr(sustain_module, "warm_up", lambda *_: record)
    monkeypatch.setattr(interference, "background_share", lambda _: 0.0)
    work = worker(study, engine="spark")
    monkeypatch.setattr(work, "_drain", lambda conductor: False)
    request = TrialRequest(4e7, "bracket", fresh=True)
    if judged:
        with pytest.raises(ZeroDivisionError):
            work._judged(conductor_at(100.0), request, fresh=True)
        return
    outcome = work._judged(conductor_at(100.0), request, fresh=True)
    assert (outcome.verdict, outcome.drained_per_s, outcome.folder) == ("not_sustained", 2e4, "")
    assert "drained 0.05% of its warm-up" in outcome.why


@pytest.mark.parametrize(
    ("state", "reused"),
    [
        ({}, True),
        ({"fails": True}, False),  # a generator has ended
        ({"alive": False}, False),  # no process would read what the next trial offers
    ],
)
def test_a_test_bed_is_used_again_unless_it_failed(
    study: RunFolder, fresh: Mock, state: dict[str, Any], reused: bool
) -> None:
    """One whose driver failed or whose engine died is given up."""
    work = worker(study)
    conductor = warm(work, **state)
    used, is_fresh = work._conductor_for(BRACKET)
    assert (used is conductor, is_fresh, fresh.call_count) == (reused, not reused, not reused)


def warm(work: sustain_module.Sustain, fails: bool = False, alive: bool = True) -> Any:
    """The conductor of a test bed on which a trial has just been made."""
    drained = Tick(chunks=[], deliveries=[], commits=[], frontier_us=0, overflowed=False, ended=True, rows_ignored={})
    failure = DriverError("generator 0 ended (exit code -9)")
    testbed = Mock(level=lambda: None, commit=lambda before_us: None)
    testbed.engine_status.return_value = EngineStatus(alive)
    testbed.tick = Mock(side_effect=failure) if fails else lambda: drained
    work._conductor = conductor_module.TrialConductor(work.resolved, testbed, ignore)
    work._conductor.last_log = TrialLog(SimpleNamespace(start_us=0, streams=()))
    return work._conductor


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Makes test beds that are started and stopped, nothing else; `exits` are their ends."""

    def make(*_: Any) -> MagicMock:
        testbed = MagicMock(reached_us=0, **{"clock.now_us.return_value": 0, "stage.return_value": ""})
        testbed.__enter__.return_value, testbed.__exit__ = testbed, made.exits
        testbed.engine_status.return_value = EngineStatus(True)
        return testbed

    made = Mock(side_effect=make, **{"exits.return_value": None})
    monkeypatch.setattr(conductor_module, "TestBed", made)
    return made


def test_a_search_that_goes_on_counts_engine_starts_from_where_it_was(
    study: RunFolder, fresh: Mock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each start has a folder of its own; a second first one would write over what the first one left."""
    work = worker(study, outcomes=[dataclasses.replace(SUSTAINED, engine_start=start) for start in (1, 3, 2)])
    monkeypatch.setattr(work, "_judged", lambda *_: SUSTAINED)
    assert work.trial(TrialRequest(HELD_PER_S, "confirm", fresh=True)).engine_start == 4
    assert [call.args[2].name for call in fresh.call_args_list] == ["start-4"]


def test_a_test_bed_that_cannot_be_emptied_in_time_is_given_up(
    study: RunFolder, fresh: Mock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time grows with the engine's interval, and with the time until reads are seen."""
    drain = Mock(return_value=False)
    monkeypatch.setattr(ResolvedExperiment, "unseen_s", 15.0)
    monkeypatch.setattr(conductor_module, "drain_backlog", drain)
    work = worker(study, options={"batch": "5s"}, load={"duration": "100s"})
    conductor = warm(work)
    used, is_fresh = work._conductor_for(BRACKET)
    assert (is_fresh, used is conductor) == (True, False)
    assert [call.args[2] for call in drain.call_args_list] == [sustain_module.DRAIN_TIMEOUT_S + 35.0]


def test_a_test_bed_that_is_not_used_again_is_not_drained(
    study: RunFolder, fresh: Mock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither after the last trial nor before a fresh one: a minute and a half for nothing."""
    monkeypatch.setattr(conductor_module, "drain_backlog", lambda *_: 1 / 0)
    with worker(study) as work:
        monkeypatch.setattr(work, "_judged", lambda *_: SUSTAINED)
        for _ in range(2):
            work.trial(TrialRequest(HELD_PER_S, "confirm", fresh=True))
    assert (fresh.call_count, fresh.exits.call_count) == (2, 2)
