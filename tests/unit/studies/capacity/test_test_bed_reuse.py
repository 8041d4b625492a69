"""A test bed between the trials of a search: warmed, drained and used again, or given up."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.options_and_settings import build
from streamgauge.core.errors import DriverError
from streamgauge.engines.spi import EngineStatus
from streamgauge.metrics import resources
from streamgauge.metrics.records import Tick
from streamgauge.metrics.trial_log import TrialLog
from streamgauge.preflight.validate import check
from streamgauge.studies.capacity import sustain as sustain_module
from streamgauge.studies.capacity.saved_search import recorded
from streamgauge.studies.capacity.search import TrialOutcome, TrialRequest
from streamgauge.studies.capacity.sustain import Sustain
from streamgauge.trial import conductor as conductor_module
from streamgauge.trial.conductor import TrialConductor
from streamgauge.trial.policies import SearchTrial
from streamgauge.trial.progress import snapshots
from tests.helpers_recording import append_and_return
from tests.unit.studies.helpers_studies import HELD_PER_S, conductor_at, worker


@pytest.mark.parametrize(
    ("workload", "fresh", "warmed"), [("filter", True, True), ("filter", False, False), ("count", True, False)]
)
def test_a_fresh_engine_is_warmed_before_its_trial(
    study: RunFolder, monkeypatch: pytest.MonkeyPatch, workload: str, fresh: bool, warmed: bool
) -> None:
    """That trial is then like any other; but where no trial can follow another, the warm-up is the trial's own."""
    seen: list[Any] = []

    def warm(conductor: Any, rate_per_s: float) -> Any:
        seen.append(rate_per_s)
        return SimpleNamespace(trial_log=None, spans=SimpleNamespace(start_us=0))

    def run(folder: Any, trial: SearchTrial) -> None:
        seen.append(trial.fresh)
        raise ZeroDivisionError

    monkeypatch.setattr(sustain_module, "warm_up", warm)
    work = Sustain(check(build({"workload": workload, "command": "sustain"})), study, worker(study).view, 1e6)
    monkeypatch.setattr(work, "_drain", lambda conductor, timeout_s: append_and_return(seen, "emptied", True))
    with pytest.raises(ZeroDivisionError):
        work._judged(conductor_at(10.0, run), TrialRequest(HELD_PER_S, "confirm", fresh=fresh), fresh=fresh)
    assert seen == ([HELD_PER_S, "emptied", False] if warmed else [fresh])


@pytest.mark.parametrize(("taken", "judged"), [(2_000_000, False), (2_000_000_000, True)])
def test_an_engine_that_falls_far_behind_in_its_warm_up_is_not_sustained(
    study: RunFolder, monkeypatch: pytest.MonkeyPatch, taken: int, judged: bool
) -> None:
    """Nothing is tried on top of a backlog of minutes; the next guess is what it drained. One of half the pace is."""
    trial_log: Any = SimpleNamespace(running=SimpleNamespace(taken_events=lambda: taken), background=[])
    record: Any = SimpleNamespace(trial_log=trial_log, spans=SimpleNamespace(start_us=0), ended_early=False)
    monkeypatch.setattr(sustain_module, "warm_up", lambda *_: record)
    monkeypatch.setattr(resources, "background_share", lambda _: 0.0)
    work = Sustain(check(build({"workload": "filter", "command": "sustain"})), study, worker(study).view, 1e6)
    monkeypatch.setattr(work, "_drain", lambda conductor, timeout_s=None: False)
    request = TrialRequest(4e7, "bracket", fresh=True)
    if judged:
        with pytest.raises(ZeroDivisionError):
            work._judged(conductor_at(100.0), request, fresh=True)
        return
    outcome = work._judged(conductor_at(100.0), request, fresh=True)
    assert (outcome.verdict, outcome.drained_per_s, outcome.folder) == ("not_sustained", 2e4, "")
    assert "drained 0.05% of its warm-up" in outcome.why


@pytest.mark.parametrize(("left", "kept"), [(100_000, True), (20_000_000, False)])
def test_an_engine_is_started_anew_where_draining_takes_longer(
    study: RunFolder, fresh: type[Fresh], left: int, kept: bool
) -> None:
    """At 20 k/s a backlog of 20 M takes a quarter of an hour, a new engine a minute."""
    work = worker(study)
    conductor = warm(work)
    conductor.last_log.running.offered_events = left
    work._drained_per_s = 2e4
    used, is_fresh = work._conductor_for(TrialRequest(HELD_PER_S, "bracket", fresh=False))
    assert (used is conductor, is_fresh) == (kept, not kept)


def warm(work: Sustain, **more: Any) -> Any:
    """The conductor of a test bed on which a trial has just been made."""
    testbed: Any = SimpleNamespace(
        engine_status=lambda: EngineStatus(True), commit=lambda before_us: None, level=lambda: None,
        tick=lambda: drained_tick(fails=False), **more,
    )  # fmt: skip
    conductor = work._conductor = TrialConductor(
        work.resolved, testbed, snapshots(lambda shown: work.view.trial_progress(shown))
    )
    conductor.last_log = TrialLog(SimpleNamespace(start_us=0))
    return conductor


class Fresh:
    """A test bed that is started, and stopped; nothing else."""

    made: list[Fresh]

    def __init__(self, *_: Any) -> None:
        self.clock = SimpleNamespace(now_us=lambda: 0)
        self.reached_us, self.stopped = 0, False
        Fresh.made.append(self)

    def __enter__(self) -> Fresh:
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped = True

    def start(self, plan: Any) -> None:
        pass

    def stage(self) -> str:
        return ""


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> type[Fresh]:
    """The test beds that are started from here on."""
    Fresh.made = []
    monkeypatch.setattr(conductor_module, "TestBed", Fresh)
    return Fresh


@pytest.mark.parametrize("fails", [True, False])
def test_a_test_bed_whose_driver_failed_is_given_up(study: RunFolder, fresh: type[Fresh], fails: bool) -> None:
    """The trial is made once more, on a test bed of its own; one that can be drained is kept."""
    work = worker(study)
    conductor = warm(work)
    conductor.testbed.tick = lambda: drained_tick(fails)
    used, is_fresh = work._conductor_for(TrialRequest(HELD_PER_S, "bracket", fresh=False))
    assert is_fresh is fails
    assert (used is conductor) is not fails
    assert len(fresh.made) == fails


@pytest.mark.parametrize("alive", [True, False])
def test_a_test_bed_whose_engine_died_is_given_up(study: RunFolder, fresh: type[Fresh], alive: bool) -> None:
    """Though all that it was offered is committed: no process would read what the next trial offers."""
    work = worker(study)
    conductor = warm(work)
    conductor.testbed.engine_status = lambda: EngineStatus(alive)
    used, is_fresh = work._conductor_for(TrialRequest(HELD_PER_S, "bracket", fresh=False))
    assert (used is conductor, is_fresh) == (alive, not alive)


def test_a_search_that_goes_on_counts_engine_starts_from_where_it_was(
    study: RunFolder, fresh: type[Fresh], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each start has a folder of its own; a second first one would write over what the first one left."""
    folders: list[str] = []
    started = Fresh.__init__
    monkeypatch.setattr(
        Fresh, "__init__", lambda testbed, *args: append_and_return(folders, args[2].name, started(testbed, *args))
    )
    work, outcome = worker(study), TrialOutcome(HELD_PER_S, "sustained")
    work.skip([dataclasses.replace(outcome, engine_start=start) for start in (1, 3, 2)])
    monkeypatch.setattr(work, "_judged", lambda *_: outcome)
    assert work.trial(TrialRequest(HELD_PER_S, "confirm", fresh=True)).engine_start == 4
    assert folders == ["start-4"]


def test_a_test_bed_that_cannot_be_emptied_in_time_is_given_up(
    study: RunFolder, fresh: type[Fresh], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time grows with the engine's interval."""
    given: list[float] = []
    monkeypatch.setattr(
        conductor_module,
        "drain_backlog",
        lambda testbed, *args: append_and_return(given, args[1], False),
    )
    values = {"workload": "filter", "engine": "known", "options": {"batch": "5s"}, "load": {"duration": "100s"}}
    work = Sustain(check(build(values)), study, worker(study).view, 1e6)
    conductor = warm(work)
    used, is_fresh = work._conductor_for(TrialRequest(HELD_PER_S, "bracket", fresh=False))
    assert (is_fresh, used is conductor) == (True, False)
    assert given == [sustain_module.DRAIN_TIMEOUT_S + 20.0]


def test_a_test_bed_that_is_not_used_again_is_not_drained(
    study: RunFolder, fresh: type[Fresh], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither after the last trial nor before a fresh one: a minute and a half for nothing, in which a Ctrl-C would
    leave a trial in the memo that the search's result lacks.
    """
    monkeypatch.setattr(conductor_module, "drain_backlog", lambda *_: 1 / 0)
    before = len(recorded(study))
    with worker(study) as work:
        outcome = TrialOutcome(HELD_PER_S, "sustained")
        monkeypatch.setattr(work, "_judged", lambda *_: outcome)
        for _ in range(2):
            work.trial(TrialRequest(HELD_PER_S, "confirm", fresh=True))
    assert len(recorded(study)) == before + 2
    assert [testbed.stopped for testbed in fresh.made] == [True, True]


def test_what_a_trial_left_is_drained_before_the_next_one_on_its_test_bed(
    study: RunFolder, fresh: type[Fresh], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the log of the trial before."""
    drained: list[Any] = []
    monkeypatch.setattr(
        conductor_module,
        "drain_backlog",
        lambda testbed, *args: append_and_return(drained, args[0], True),
    )
    left = [TrialLog(SimpleNamespace(start_us=start)) for start in range(3)]
    work, journals = worker(study), iter(left)

    def judged(conductor: TrialConductor, *_: Any) -> TrialOutcome:
        conductor.last_log = next(journals)
        return TrialOutcome(HELD_PER_S, "sustained")

    monkeypatch.setattr(work, "_judged", judged)
    monkeypatch.setattr(Fresh, "engine_status", lambda self: EngineStatus(True), raising=False)
    for is_fresh in (True, False, False):
        work.trial(TrialRequest(HELD_PER_S, "bracket", fresh=is_fresh))
    assert drained == left[:2]
    assert len(fresh.made) == 1


def test_draining_is_reported(study: RunFolder) -> None:
    """It may take longer than a trial, and the last word would be of the trial's answers."""
    reported: list[str] = []
    work = worker(study)
    work.view.trial_progress = lambda snapshot: reported.append(snapshot.note)  # type: ignore[method-assign]
    conductor = warm(work)
    conductor.testbed.level = lambda: reported.append("drained")
    work._conductor_for(TrialRequest(HELD_PER_S, "bracket", fresh=False))
    assert reported == ["draining the backlog of the last trial", "drained"]


def drained_tick(fails: bool) -> Any:
    """What a test bed says that has nothing left to do, or that has lost a generator."""
    if fails:
        raise DriverError("generator 0 ended (exit code -9)")
    return Tick([], [], [], frontier_us=0, overflowed=False, ended=True, rows_ignored={})
