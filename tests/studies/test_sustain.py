"""A search's folder: what it keeps, so that a search that was killed goes on and shows what it found."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamgauge.engines.seam import EngineStatus
from streamgauge.errors import DriverError
from streamgauge.experiment import build
from streamgauge.report.store import RunFolder
from streamgauge.result import Check, Verdict, VerdictValue
from streamgauge.run.check import check
from streamgauge.run.journal import Journal
from streamgauge.run.rig import Tick
from streamgauge.run.trial import TrialSettings
from streamgauge.studies import sustain
from streamgauge.studies.search import Search, Settings, TrialOutcome, TrialRequest, replay
from streamgauge.studies.sustain import MEMO, Sustain, ceiling_kept, limit_of, recorded, trial_shown

HELD_PER_S, FAILED_PER_S = 100_000.0, 110_250.0


@pytest.fixture
def study(tmp_path: Path) -> RunFolder:
    """A study with a trial that held, and a later one that did not; both were made before a kill."""
    now = datetime.now(UTC)
    folder = RunFolder.create(tmp_path, "filter", "known", now)
    for number, (rate, verdict) in enumerate([(HELD_PER_S, "sustained"), (FAILED_PER_S, "not_sustained")], start=1):
        remember(folder, number, rate, verdict)
    return folder


def remember(study: RunFolder, number: int, rate_per_s: float, verdict: VerdictValue) -> None:
    trial = study.trial(number, datetime.now(UTC))
    check = Check(name=f"of {rate_per_s:g}", value=0, limit=0, unit="", ok=True, state="ok", sentence="")
    kept = trial.read_result().model_copy(update={"verdict": Verdict(value=verdict, checks=(check,), sentence="")})
    trial.write_result(kept)
    # Another working folder than the one of the search: only the number of the trial can be relied on.
    outcome = TrialOutcome(rate_per_s, verdict, rate_per_s, folder=f"elsewhere/{study.name}/trials/{number:02d}")
    with (study.path / MEMO).open("a") as memo:
        memo.write(json.dumps(asdict(outcome)) + "\n")


def test_a_search_that_goes_on_asks_for_the_rates_that_it_asked_for(study: RunFolder) -> None:
    """The ceiling differs with every measurement; kept, the recorded trials are those of the same search."""
    measured = iter([1e6, 2e6])
    first, again = (Search(Settings(ceiling_kept(study, lambda: next(measured)))) for _ in range(2))
    assert first.request == again.request
    outcome = TrialOutcome(first.request.rate_per_s, "not_sustained", 5e5)  # type: ignore[union-attr]
    assert replay(Settings(ceiling_kept(study, lambda: next(measured))), [outcome]).request is not None


def test_a_search_that_went_on_shows_the_trial_that_held(study: RunFolder) -> None:
    """From its folder, although this process has made no trial; never the figures of a rate that failed."""
    settings = Settings(ceiling_per_s=1e6, start_per_s=HELD_PER_S, quick=True)
    found = replay(settings, recorded(study)).result()
    assert found.sustained_per_s == HELD_PER_S
    shown = trial_shown(study, found)
    assert shown is not None
    assert [check.name for check in shown.verdict.checks] == [f"of {HELD_PER_S:g}"]
    assert limit_of(shown) == ""


def test_a_search_that_found_nothing_shows_its_last_trial(study: RunFolder) -> None:
    """There is no better one; and none at all before the first."""
    settings = Settings(ceiling_per_s=1e6, start_per_s=FAILED_PER_S, quick=True)
    assert trial_shown(study, Search(settings).result()) is None
    failed = recorded(study)[1]
    shown = trial_shown(study, replay(settings, [failed]).result())
    assert shown is not None
    assert [check.name for check in shown.verdict.checks] == [f"of {FAILED_PER_S:g}"]


@pytest.mark.parametrize(("options", "probed"), [({}, True), ({"probes": "on"}, True), ({"probes": "off"}, False)])
def test_the_trials_of_a_search_have_the_probes_that_were_asked_for(
    study: RunFolder, monkeypatch: pytest.MonkeyPatch, options: dict[str, str], probed: bool
) -> None:
    """Asking the engine for its own progress costs it something: `--option probes=off` holds for searches too."""
    asked: list[TrialSettings] = []

    def run_trial(ready: Any, rig: Any, folder: Any, settings: TrialSettings, **_: Any) -> None:
        asked.append(settings)
        raise KeyboardInterrupt

    monkeypatch.setattr(sustain, "run_trial", run_trial)
    values: dict[str, Any] = {"workload": "filter", "command": "sustain", "options": options}
    work = Sustain(check(build(values)), study, SimpleNamespace(trial_progress=None), 1e6)  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        work._judged(SimpleNamespace(), TrialRequest(HELD_PER_S, "bracket", fresh=True), fresh=True)  # type: ignore[arg-type]
    assert [settings.probe_batches for settings in asked] == [probed]


def test_a_rig_whose_driver_failed_is_given_up(study: RunFolder) -> None:
    """The trial is made once more, on a rig of its own; one that can be drained is kept."""
    for fails in (True, False):
        rig: Any = SimpleNamespace(engine_status=lambda: EngineStatus(True), commit=lambda before_us: None)
        rig.tick = lambda fails=fails: drained_tick(fails)
        work = Sustain(SimpleNamespace(), study, SimpleNamespace(), 1e6)  # type: ignore[arg-type]
        work._rig = rig
        work._drain(rig, Journal(SimpleNamespace(start_us=0)))  # type: ignore[arg-type]
        assert (work._rig is None) is fails


def drained_tick(fails: bool) -> Any:
    """What a rig says that has nothing left to do, or that has lost a generator."""
    if fails:
        raise DriverError("generator 0 ended (exit code -9)")
    return Tick([], [], [], frontier_us=0, bytes_kept=0, overflowed=False, ended=True, rows_ignored={})


def test_a_line_that_a_kill_cut_short_is_left_out(study: RunFolder) -> None:
    """What stands before it is whole."""
    with (study.path / MEMO).open("a") as memo:
        memo.write('{"rate_per_s": 1.2e')
    assert len(recorded(study)) == 2
