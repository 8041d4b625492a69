"""A search's folder: what it keeps, so that a search that was killed goes on and shows what it found."""

from __future__ import annotations

import dataclasses
import errno
import io
import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.options_and_settings import build
from streamgauge.core.errors import EngineError, InputError, MachineError
from streamgauge.engines.registry import entry
from streamgauge.preflight.validate import check
from streamgauge.report.terminal.console import show_result
from streamgauge.results.codes import SearchEnd
from streamgauge.results.run import ProcessUse, Result, Verification
from streamgauge.results.verdict import VerdictValue
from streamgauge.studies.capacity import saved_search
from streamgauge.studies.capacity import sustain as sustain_module
from streamgauge.studies.capacity.outcome import NOT_SEEN
from streamgauge.studies.capacity.saved_search import CEILING, MEMO, recorded, stored_ceiling
from streamgauge.studies.capacity.search import Search, Settings, TrialOutcome, TrialRequest, replay
from streamgauge.studies.capacity.sustain import Sustain
from streamgauge.studies.exclusive_folder import LOCK
from streamgauge.studies.run import run as run_module
from streamgauge.system.disk import try_lock
from streamgauge.trial.policies import SearchTrial
from tests.unit.studies.helpers_studies import HELD_PER_S, conductor_at, worker

Sit = Callable[..., Result]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, "   spark local[2]   flight   "),
        ({"parallelism": 3}, "   spark local[3]   flight   "),
        ({"master": "local[1]"}, "   spark local[1]   flight   "),
        ({"engine": "known"}, "   known 2 cores   flight   "),
        ({"search": {"start_rate": 5e6}}, "1 M/s   starts at 900 k/s, 90% of it, not at --start-rate"),
    ],
)
def test_a_search_says_where_it_runs(more: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A master only of an engine that has one; and where it starts if no generator makes so much."""
    monkeypatch.setattr(sustain_module, "cpus", lambda: (0, 1))
    requested = {"workload": "filter", "command": "sustain", "load": {"duration": "10s"}}
    assert words in sustain_module.header(check(build({**requested, **more})), 1e6)


def test_an_engine_on_a_jvm_has_no_master_of_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its plugin says where it runs."""
    plugin = entry("known")
    monkeypatch.setattr(plugin, "capabilities", dataclasses.replace(plugin.capabilities, needs_java=True))
    monkeypatch.setattr(sustain_module, "cpus", lambda: (0, 1))
    requested = {"workload": "filter", "command": "sustain", "engine": "known", "load": {"duration": "10s"}}
    assert "   known 2 cores   " in sustain_module.header(check(build(requested)), 1e6)


def test_a_search_of_a_program_shows_no_empty_parameters() -> None:
    """It has none."""
    path = Path(__file__).parents[4] / "examples" / "external" / "python_consumer" / "program.toml"
    shown = sustain_module.header(check(build({"workload": str(path), "command": "sustain"})), 1e6)
    assert shown.startswith("python consumer   external ")


def test_a_search_that_goes_on_asks_for_the_rates_that_it_asked_for(study: RunFolder) -> None:
    """The ceiling differs with every measurement; kept, the recorded trials are those of the same search."""
    measured = iter([1e6, 2e6])
    first, again = (Search(Settings(stored_ceiling(study, lambda: next(measured)))) for _ in range(2))
    assert first.request == again.request
    outcome = TrialOutcome(first.request.rate_per_s, "not_sustained", 5e5)  # type: ignore[union-attr]
    assert replay(Settings(stored_ceiling(study, lambda: next(measured))), [outcome]).request is not None


def test_no_trial_is_offered_the_whole_ceiling(study: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of all generators which have a core each: eight of them on two make no more than two would."""
    monkeypatch.setattr(run_module, "measure_capacity", lambda *_: 1000.0)
    monkeypatch.setattr(run_module, "cpus", lambda: [0, 1])
    resolved = check(build({"workload": "filter", "engine": "known", "load": {"generators": 8}}))
    ceiling = run_module.ceiling_of(resolved, 100.0)
    few = run_module.ceiling_of(dataclasses.replace(resolved, generators=1), 100.0)
    work = Sustain(resolved, study, worker(study).view, ceiling)
    assert (ceiling, few, work.settings().ceiling_per_s) == (2000.0, 1000.0, 1800.0)


@pytest.mark.parametrize(
    ("options", "probed"),
    [({"probes": "progress"}, True), ({"probes": "on"}, True), ({"probes": "off"}, False)],
)
def test_the_trials_of_a_search_have_the_probes_that_were_asked_for(
    study: RunFolder, monkeypatch: pytest.MonkeyPatch, options: dict[str, str], probed: bool
) -> None:
    """Asking the engine for its own progress costs it something: `--option probes=off` holds for searches too."""
    requested: list[SearchTrial] = []

    def run(folder: Any, trial: SearchTrial) -> None:
        requested.append(trial)
        raise KeyboardInterrupt

    values: dict[str, Any] = {"workload": "filter", "command": "sustain", "options": options}
    work = Sustain(check(build(values)), study, SimpleNamespace(trial_progress=None), 1e6)
    with pytest.raises(KeyboardInterrupt):
        work._judged(SimpleNamespace(run=run), TrialRequest(HELD_PER_S, "bracket", fresh=False), fresh=False)
    assert [trial.probe_batches for trial in requested] == [probed]


def test_a_trial_of_a_search_can_be_asked_again(study: RunFolder) -> None:
    """Its file is that of a run at its rate, with nothing of a search in it."""
    values: dict[str, Any] = {"workload": "filter", "command": "sustain", "search": {"quick": True}}
    work = Sustain(check(build(values)), study, SimpleNamespace(trial_progress=None), 1e6)
    work._number = 7
    with pytest.raises(ZeroDivisionError):
        work._judged(conductor_at(0.0), TrialRequest(HELD_PER_S, "bracket", fresh=False), fresh=False)
    requested = saved_search.read_experiment(study.path / "trials" / "07" / "experiment.toml")
    assert (check(requested).experiment.load.rate, requested.command) == (HELD_PER_S, "run")


def test_a_line_that_a_kill_cut_short_is_left_out(study: RunFolder) -> None:
    """What stands before it is whole; and so is what the search that goes on writes after it."""
    with (study.path / MEMO).open("a") as memo:
        memo.write('{"rate_per_s": 1.2e')
    outcomes = recorded(study)
    assert len(outcomes) == 2
    work = worker(study)
    work.skip(outcomes)
    saved_search.remember(study, outcomes[0])
    assert recorded(study) == [*outcomes, outcomes[0]]


def test_a_disk_that_is_full_is_reported(study: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the file, and how to name another place; what was remembered before is still there."""
    before = recorded(study)

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(saved_search, "_line", full)
    with pytest.raises(MachineError, match=f"{MEMO} is full.*--out"):
        saved_search.remember(study, before[0])
    assert recorded(study) == before


def test_interrupted_trials_of_older_searches_are_left_out(study: RunFolder) -> None:
    """Wherever they stand: stopped twice, a search goes on; and no later trial writes into the folder of one."""
    good = recorded(study)
    stopped = dataclasses.replace(good[0], verdict="interrupted", folder="trials/02")
    last = dataclasses.replace(good[1], folder="trials/03")
    (study.path / MEMO).write_text("".join(json.dumps(asdict(one)) + "\n" for one in (good[0], stopped, last, stopped)))
    assert recorded(study) == [good[0], last]
    work = worker(study)
    work.skip(recorded(study))
    assert work._number == 3


def test_an_interrupted_trial_is_not_recorded(study: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search that goes on makes it again; what it writes then comes after the same outcomes."""
    before, work = recorded(study), worker(study)
    monkeypatch.setattr(work, "_conductor_for", lambda request: (None, True))
    for verdict, written in (("interrupted", 0), ("sustained", 1)):
        outcome = TrialOutcome(HELD_PER_S, verdict)
        monkeypatch.setattr(work, "_judged", lambda *_, outcome=outcome: outcome)
        assert work.trial(TrialRequest(HELD_PER_S, "bracket", fresh=True)).verdict == verdict
        assert len(recorded(study)) == len(before) + written
        assert len((study.path / MEMO).read_text().splitlines()) == len(before) + written


@pytest.fixture
def sit(study: RunFolder, monkeypatch: pytest.MonkeyPatch) -> Sit:
    """One sitting at the search of `study`, with nothing remembered, or what is in `outcomes`.

    Its trials are what `said` answers or raises, one after the other.
    """
    monkeypatch.setattr(sustain_module, "require_machine", lambda resolved: None)
    monkeypatch.setattr(sustain_module, "ceiling_of", lambda resolved, rate: 1e6)
    requested = build(
        {"workload": "filter", "command": "sustain", "search": {"start_rate": HELD_PER_S, "trials_max": 5}}
    )
    study.write_experiment(requested)
    resumed = requested.model_copy(update={"search": requested.search.model_copy(update={"resume": str(study.path)})})

    def one(message: Iterable[VerdictValue | BaseException], outcomes: Sequence[TrialOutcome] = ()) -> Result:
        (study.path / MEMO).write_text("".join(json.dumps(asdict(outcome)) + "\n" for outcome in outcomes))
        answers = iter(message)

        def trial(work: Sustain, request: TrialRequest) -> TrialOutcome:
            answer = next(answers)
            if isinstance(answer, BaseException):
                raise answer
            return TrialOutcome(request.rate_per_s, answer, purpose=request.purpose)

        monkeypatch.setattr(Sustain, "trial", trial)
        nothing = dict.fromkeys(("header", "trial", "finish", "trial_progress"), lambda _: None)
        return sustain_module.sustain(resumed, SimpleNamespace(**nothing))

    return one


@pytest.mark.parametrize(
    ("message", "verdict"),
    [
        (["undecided"] * 5, "undecided"),
        (["undecided"] * 4 + ["not_sustained"], "not_sustained"),
        (["not_sustained"] + ["undecided"] * 4, "not_sustained"),
        (["undecided"] * 4 + ["sustained"], "sustained"),
        (["undecided", *["invalid"] * 4], "invalid"),
        (["sustained", *["invalid"] * 4], "sustained"),
        (["undecided", "interrupted"], "interrupted"),
    ],
)
def test_only_proof_makes_a_search_say_that_nothing_holds(sit: Sit, message: Any, verdict: VerdictValue) -> None:
    """Undecided trials alone leave it undecided."""
    assert sit(message).verdict.value == verdict


@pytest.mark.parametrize("message", [["sustained"], []])
def test_an_engine_that_fails_to_start_leaves_what_was_found(study: RunFolder, sit: Sit, message: Any) -> None:
    """In the folder, with what ended it; the failure itself goes on to who asked."""
    with pytest.raises(EngineError, match="no such master"):
        sit([*message, EngineError("no such master\nand more of it")])
    left = study.read_result()
    assert left.search is not None
    assert left.search.sustained_per_s == (HELD_PER_S if message else None)
    assert left.search.ended_by == SearchEnd.FAILED
    assert left.verdict.value == "invalid"
    assert left.verdict.sentence.endswith("ended early: no such master")


def test_a_rate_that_held_once_is_not_confirmed_when_an_engine_fails(study: RunFolder, sit: Sit) -> None:
    """It stays in the result as what was found."""
    with pytest.raises(EngineError):
        sit(["sustained", "not_sustained", "not_sustained", "sustained", EngineError("no such master")])
    left = study.read_result()
    assert left.search is not None
    assert (left.verdict.value, left.search.confirmed) == ("invalid", False)
    assert left.search.sustained_per_s is not None


def test_the_seconds_of_a_search_are_those_of_all_its_sittings(sit: Sit) -> None:
    """Those of this one, and of the trials that were made before it."""
    before = [TrialOutcome(HELD_PER_S, "sustained", purpose="bracket", seconds=1000.0)]
    found = sit(["interrupted"], before)
    assert found.search is not None
    assert 1000.0 < found.search.seconds < 1100.0


@pytest.mark.parametrize("message", [["interrupted"], [KeyboardInterrupt()]])
def test_a_search_stopped_in_its_first_trial_has_every_line_of_its_end(sit: Sit, message: Any) -> None:
    """What is still unknown is reported: a limit that is left out would be taken for none."""
    found = sit(message)
    console = Console(file=io.StringIO(), width=200)
    show_result(found, False, console)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert f"limit       {NOT_SEEN}" in lines
    assert any(line.startswith("answers     not judged") for line in lines)
    assert lines[-1].startswith("report ")


def test_a_search_stopped_before_its_first_trial_names_its_folder(
    study: RunFolder, sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while the generators' ceiling is measured: how to go on, and the folder."""

    def stopped(*_: Any) -> float:
        raise KeyboardInterrupt

    monkeypatch.setattr(sustain_module, "ceiling_of", stopped)
    found = sit([])
    assert found == study.read_result()
    assert (found.verdict.value, found.folder) == ("interrupted", str(study.path))
    assert found.verdict.advice == f"to go on: streamgauge sustain --resume {study.path}"


def test_a_stopped_search_has_the_limit_and_the_answers_of_what_held(study: RunFolder, sit: Sit) -> None:
    """As one that came to its end: they are those of the trial that is shown."""
    use = ProcessUse(name="engine", role="sut", cpu_percent_mean=110.0, cpu_percent_max=120.0, memory_bytes_max=1)
    trial = RunFolder.open(study.path / "trials" / "01")
    right = Verification(judged=True, independent=True, reference="here", expected=9, matched=9)
    update = {"processes": (use,), "environment": {"cpus": 2}, "verification": right}
    trial.write_result(trial.read_result().model_copy(update=update))
    found = sit(["interrupted"], recorded(study)[:1])
    assert found.search is not None
    assert found.search.limit.startswith("not found, because every tried rate held: SUT CPU 110 % of 200 %")
    assert found.search.ended_by == SearchEnd.INTERRUPTED
    assert found.verification == right


def test_going_on_is_of_the_same_search(study: RunFolder) -> None:
    """What contradicts it is refused, all at once, rather than passed over; more trials may be allowed."""
    requested = build({"workload": "filter", "command": "sustain", "search": {"trials_max": 5, "quick": True}})
    study.write_experiment(requested)
    same = {"workload": "filter", "command": "sustain", "search": {"resume": str(study.path)}}
    assert saved_search.resumed(build(same))[0] == requested
    more = saved_search.resumed(build(same | {"search": {"resume": str(study.path), "trials_max": 9}}))[0]
    assert (more.search.trials_max, more.search.quick) == (9, True)
    outcome = TrialOutcome(100.0, "sustained")
    (study.path / saved_search.MEMO).write_text(saved_search._line(outcome) * 7)
    allowed = same | {"search": {"resume": str(study.path), "trials_max": 7}}
    assert saved_search.resumed(build(allowed))[0].search.trials_max == 7
    with pytest.raises(InputError, match=r"search.trials_max: must be at least 7"):
        saved_search.resumed(build(same | {"search": {"resume": str(study.path), "trials_max": 6}}))
    (study.path / saved_search.MEMO).unlink()
    empty = str(study.path.parent)
    with pytest.raises(InputError, match=r"search\.resume: must be the folder of a search .*\n.*folder of a sustain"):
        saved_search.resumed(build(same | {"search": {"resume": empty}}))
    other = same | {"workload": "identity", "load": {"memory": "8GiB", "seed": 3}}
    with pytest.raises(InputError) as refused:
        saved_search.resumed(build(other))
    assert [problem.setting for problem in refused.value.problems] == ["workload", "load.seed", "load.memory"]
    assert refused.value.problems[2].way_out == "leave --memory out"


@pytest.mark.parametrize("left", ["", "1.2e", "null", "[]"])
def test_a_ceiling_that_cannot_be_read_is_measured_anew(study: RunFolder, left: str) -> None:
    """A kill in the midst of writing must not end the search for good."""
    (study.path / CEILING).write_text(left)
    assert [stored_ceiling(study, lambda: 1e6), stored_ceiling(study, lambda: 2e6)] == [1e6, 1e6]


def test_a_search_that_still_runs_is_not_gone_on_with(study: RunFolder, sit: Sit) -> None:
    """Two at one folder would write over each other's trials; that of one that has ended is free."""
    memo = (study.path / MEMO).read_text()
    with try_lock(study.path / LOCK), pytest.raises(InputError, match=r"search\.resume.*\n.*wait for it"):
        sit(["undecided"] * 5, recorded(study))
    assert (study.path / MEMO).read_text() == memo
    assert sit(["undecided"] * 5).verdict.value == "undecided"
    assert sit(["undecided"] * 5).verdict.value == "undecided"


def test_a_search_goes_on_from_any_working_folder(study: RunFolder, sit: Sit) -> None:
    """Its folder is there already: where it once was made, seen from elsewhere, says nothing."""
    requested = saved_search.read_experiment(study.path / "experiment.toml")
    study.write_experiment(requested.model_copy(update={"out": "seen/from/elsewhere"}))
    assert sit(["undecided"] * 5).verdict.value == "undecided"


def test_a_searchs_file_is_found_from_any_working_folder(
    study: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is kept with its whole path; going on may name it as it lies from there."""
    monkeypatch.chdir(tmp_path)
    requested = saved_search.resumed(build({"workload": "mine/job.py", "command": "sustain"}))[0]
    assert requested.workload == str(tmp_path / "mine" / "job.py")
    study.write_experiment(requested)
    (study.path / MEMO).unlink()
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path / "mine")
    again: dict[str, Any] = {"command": "sustain", "search": {"resume": str(study.path)}}
    assert saved_search.resumed(build(again | {"workload": "job.py"}))[0] == requested
    with pytest.raises(InputError, match="workload"):
        saved_search.resumed(build(again | {"workload": "mine/job.py"}))


def test_a_search_of_a_job_that_has_changed_is_not_gone_on_with(
    study: RunFolder, sit: Sit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trials of two versions of a job are no one search."""
    monkeypatch.setattr(sustain_module, "check", lambda *_, **__: resolved)
    resolved: Any = SimpleNamespace(workload=SimpleNamespace(files={"job.py": "b" * 64}))
    kept = study.read_result().model_copy(update={"job_files": {"job.py": "a" * 64}})
    study.write_result(kept)
    with pytest.raises(InputError, match=r"job\.py: must be unchanged.*aaa.*\n.*without --resume"):
        sit([])


def test_data_of_a_search_are_found_from_any_working_folder(
    study: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are kept with their whole path, as a user job's file is; going on may name them as they lie from there."""
    monkeypatch.chdir(tmp_path)
    request = {"workload": "filter", "command": "sustain", "parameters": {"data": "a.csv"}}
    requested = saved_search.resumed(build(request))[0]
    assert requested.parameters == {"data": str(tmp_path / "a.csv")}
    study.write_experiment(requested)
    (study.path / MEMO).unlink()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    again: dict[str, Any] = {"workload": "filter", "command": "sustain", "search": {"resume": str(study.path)}}
    assert saved_search.resumed(build(again))[0] == requested
    assert saved_search.resumed(build(again | {"parameters": {"data": "../a.csv"}}))[0] == requested
    with pytest.raises(InputError, match=r"parameters\.data"):
        saved_search.resumed(build(again | {"parameters": {"data": "a.csv"}}))
