"""A search's folder: what it keeps, so that a search that was killed goes on and shows what it found."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.experiment import Experiment
from streamgauge.core.errors import EngineError, InputError
from streamgauge.engines.registry import entry
from streamgauge.preflight.settings_checks import check
from streamgauge.results.codes import RateLimit, SearchEnd
from streamgauge.results.run import ProcessUse, Result, Verification
from streamgauge.results.text.search import LIMITS
from streamgauge.results.verdict import VerdictValue
from streamgauge.studies.capacity import sustain as sustain_module
from streamgauge.studies.capacity.search import TrialOutcome, TrialRequest
from streamgauge.studies.capacity.sustain import CEILING, MEMO, record, recorded, stored_ceiling
from streamgauge.studies.study_folder import LOCK
from streamgauge.system.disk import try_lock
from streamgauge.trial.policies import SearchTrial
from tests.unit.studies.helpers_studies import HELD_PER_S, conductor_at, requested, worker

Sit = Callable[..., Result]


PROGRAM = Path(__file__).parents[4] / "examples" / "external" / "python_consumer" / "program.toml"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, "   spark local[2]   memory   "),
        ({"parallelism": 3}, "   spark local[3]   memory   "),
        ({"master": "local[1]"}, "   spark local[1]   memory   "),
        ({"engine": "known"}, "   known 2 cores   memory   "),
        ({"search": {"start_rate": 5e6}}, "1 M/s   starts at 900 k/s, 90% of it, not at --start-rate"),
        ({"workload": str(PROGRAM), "load": {}}, "python consumer   external "),  # has no parameters
    ],
)
@pytest.mark.parametrize("jvm", [False, True])
def test_the_header_of_a_search_names_where_it_runs(
    more: dict[str, Any], words: str, jvm: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A master only of an engine that has one, which a JVM does not show; and the first rate if no generator makes so
    much.
    """
    plugin = entry("known")
    monkeypatch.setattr(plugin, "capabilities", dataclasses.replace(plugin.capabilities, needs_java=jvm))
    monkeypatch.setattr(sustain_module, "cpus", lambda: (0, 1))
    assert words in sustain_module.header(check(requested(**{"load": {"duration": "10s"}, **more})), 1e6)


def test_no_trial_is_offered_the_whole_ceiling(study: RunFolder) -> None:
    assert worker(study, 2000.0).settings().ceiling_per_s == 1800.0


@pytest.mark.parametrize(("probes", "probed"), [("progress", True), ("on", True), ("off", False)])
def test_a_trial_of_a_search_is_one_that_run_can_repeat(study: RunFolder, probes: str, probed: bool) -> None:
    """Its file is that of a run at its rate, with nothing of a search in it. Asking the engine for its own progress
    costs it something: `--option probes=off` holds for searches too.
    """
    trials: list[SearchTrial] = []

    def run(folder: Any, trial: SearchTrial) -> None:
        trials.append(trial)
        raise KeyboardInterrupt

    work = worker(study, engine="spark", options={"probes": probes}, search={"quick": True})
    with pytest.raises(KeyboardInterrupt):
        work._judged(conductor_at(0.0, run), TrialRequest(HELD_PER_S, "bracket", fresh=False), fresh=False)
    assert [trial.probe_batches for trial in trials] == [probed]
    stored = sustain_module.read_experiment(study.path / "trials" / "01" / "experiment.toml")
    assert (check(stored).experiment.load.rate, stored.command) == (HELD_PER_S, "run")


def test_a_line_that_was_cut_short_is_left_out(study: RunFolder) -> None:
    """What stands before it is whole."""
    before = recorded(study)
    with (study.path / MEMO).open("a") as memo:
        memo.write('{"rate_per_s": 1.2e')
    assert recorded(study) == before


def test_an_interrupted_trial_is_not_recorded(study: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search that goes on makes it again; what it writes then comes after the same outcomes."""
    before = recorded(study)
    work = worker(study, outcomes=before)
    verdicts: Iterator[VerdictValue] = iter(("interrupted", "sustained"))
    monkeypatch.setattr(work, "_conductor_for", lambda request: (None, True))
    monkeypatch.setattr(work, "_judged", lambda *_: TrialOutcome(HELD_PER_S, next(verdicts)))
    with pytest.raises(KeyboardInterrupt):
        work.trial(TrialRequest(HELD_PER_S, "bracket", fresh=True))
    assert recorded(study) == before
    made = work.trial(TrialRequest(HELD_PER_S, "bracket", fresh=True))
    assert recorded(study) == [*before, made]


@pytest.fixture
def sit(study: RunFolder, monkeypatch: pytest.MonkeyPatch) -> Sit:
    """One sitting at the search of `study`, with nothing remembered, or what is in `outcomes`.

    Its trials have the verdicts of `trials`, one after the other, or raise them.
    """
    monkeypatch.setattr(sustain_module, "require_machine", lambda resolved: None)
    monkeypatch.setattr(sustain_module, "ceiling_of", lambda resolved, rate: 1e6)
    search: dict[str, Any] = {"start_rate": HELD_PER_S, "trials_max": 5}
    study.write_experiment(requested(search=search))

    def one(trials: Iterable[VerdictValue | BaseException], outcomes: Sequence[TrialOutcome] = ()) -> Result:
        record(study, outcomes)
        verdicts = Mock(side_effect=trials)
        monkeypatch.setattr(
            sustain_module.Sustain,
            "trial",
            lambda _, trial: TrialOutcome(trial.rate_per_s, verdicts(), purpose=trial.purpose),
        )
        return sustain_module.sustain(requested(search=search | {"resume": str(study.path)}), Mock())

    return one


@pytest.mark.parametrize(
    ("trials", "verdict"),
    [
        (["undecided"] * 5, "undecided"),
        (["undecided"] * 4 + ["not_sustained"], "not_sustained"),
        (["not_sustained"] + ["undecided"] * 4, "not_sustained"),
        (["undecided"] * 4 + ["sustained"], "sustained"),
        (["undecided", *["invalid"] * 4], "invalid"),
        (["sustained", *["invalid"] * 4], "sustained"),
        (["undecided", KeyboardInterrupt()], "interrupted"),
    ],
)
def test_only_proof_is_a_verdict_that_nothing_holds(sit: Sit, trials: Any, verdict: VerdictValue) -> None:
    """Undecided trials alone leave it undecided."""
    assert sit(trials).verdict.value == verdict


@pytest.mark.parametrize(
    ("trials", "low"),
    [
        ([], None),
        (["sustained"], HELD_PER_S),
        # A rate that held once, and is not confirmed.
        (["sustained", "not_sustained", "not_sustained", "sustained"], None),
    ],
)
def test_an_engine_that_fails_to_start_leaves_what_was_found(
    study: RunFolder, sit: Sit, trials: Any, low: float | None
) -> None:
    """In the folder, with what ended it; the failure itself is raised too."""
    with pytest.raises(EngineError, match="no such master"):
        sit([*trials, EngineError("no such master\nand more of it")])
    result: Any = study.read_result()
    assert (result.search.ended_by, result.search.confirmed) == (SearchEnd.FAILED, False)
    assert (result.search.sustained_per_s is None) is (trials == [])
    assert low is None or result.search.sustained_per_s == low
    assert result.verdict.value == "invalid"
    assert result.verdict.sentence.endswith("ended early: no such master")


def test_the_seconds_of_a_search_are_those_of_all_its_sittings(sit: Sit) -> None:
    """Those of this one, and of the trials that were made before it."""
    result: Any = sit([KeyboardInterrupt()], [TrialOutcome(HELD_PER_S, "sustained", purpose="bracket", seconds=1000.0)])
    assert 1000.0 < result.search.seconds < 1100.0


def test_a_search_stopped_before_its_first_trial_names_its_folder(
    study: RunFolder, sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while the generators' ceiling is measured: how to go on, and the folder."""
    monkeypatch.setattr(sustain_module, "ceiling_of", Mock(side_effect=KeyboardInterrupt))
    result = sit([])
    assert result == study.read_result()
    assert (result.verdict.value, result.folder) == ("interrupted", str(study.path))
    assert result.verdict.advice == f"to go on: streamgauge sustain --resume {study.path}"


def test_a_stopped_search_has_the_limit_and_the_answers_of_what_held(study: RunFolder, sit: Sit) -> None:
    """As one that came to its end: they are those of the trial that is shown. Before, that it was not found."""
    use = ProcessUse(name="engine", role="sut", cpu_percent_mean=110.0, cpu_percent_max=120.0, memory_bytes_max=1)
    trial = RunFolder.open(study.path / "trials" / "01")
    right = Verification(judged=True, independent=True, reference="here", expected=9, matched=9)
    update = {"processes": (use,), "environment": {"cpus": 2}, "verification": right}
    trial.write_result(trial.read_result().model_copy(update=update))
    result: Any = sit([KeyboardInterrupt()], recorded(study)[:1])
    assert result.search.limit.startswith("not found, because every tried rate held: SUT CPU 110 % of 200 %")
    assert (result.search.ended_by, result.verification) == (SearchEnd.INTERRUPTED, right)
    result = sit([KeyboardInterrupt()])
    assert result.search.limit == LIMITS[RateLimit.NOT_SEEN]


def resumed(study: RunFolder, search: dict[str, Any] | None = None, **values: Any) -> Experiment:
    """The experiment of a search that goes on."""
    return sustain_module.resumed(requested(search={"resume": str(study.path), **(search or {})}, **values))[0]


def test_going_on_is_of_the_same_search(study: RunFolder) -> None:
    """More trials may be allowed, and no fewer than it has made."""
    before = requested(search={"trials_max": 5, "quick": True})
    study.write_experiment(before)
    assert resumed(study) == before
    more = resumed(study, {"trials_max": 9}).search
    assert (more.trials_max, more.quick) == (9, True)
    record(study, [TrialOutcome(100.0, "sustained")] * 7)
    assert resumed(study, {"trials_max": 7}).search.trials_max == 7
    with pytest.raises(InputError, match=r"search.trials_max: must be at least 7"):
        resumed(study, {"trials_max": 6})


def test_what_contradicts_the_search_is_refused(study: RunFolder) -> None:
    """All at once, rather than passed over."""
    study.write_experiment(requested())
    with pytest.raises(InputError, match=r"search\.resume: must be the folder of a search.*\n.*folder of a sustain"):
        resumed(study, {"resume": str(study.path.parent)})
    with pytest.raises(InputError) as refusal:
        resumed(study, workload="identity", load={"memory": "8GiB", "seed": 3})
    problems = [(problem.setting, problem.way_out) for problem in refusal.value.problems]
    assert [setting for setting, _ in problems] == ["workload", "load.seed", "load.memory"]
    assert problems[2][1] == "leave --queue-memory out"


@pytest.mark.parametrize("text", ["", "1.2e", "null", "[]"])
def test_a_ceiling_that_cannot_be_read_is_measured_anew(study: RunFolder, text: str) -> None:
    """A kill in the midst of writing must not end the search for good."""
    (study.path / CEILING).write_text(text)
    assert [stored_ceiling(study, lambda: 1e6), stored_ceiling(study, lambda: 2e6)] == [1e6, 1e6]


def test_a_search_that_still_runs_is_not_gone_on_with(
    study: RunFolder, sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two at one folder would write over each other's trials, and checks would disturb the one that runs; that of one
    that has ended is free.
    """
    memo = (study.path / MEMO).read_text()
    with monkeypatch.context() as patch, try_lock(study.path / LOCK):
        patch.setattr(sustain_module, "check", lambda *_, **__: 1 / 0)
        with pytest.raises(InputError, match=r"search\.resume.*\n.*wait for it"):
            sit(["undecided"] * 5, recorded(study))
    assert (study.path / MEMO).read_text() == memo
    assert sit(["undecided"] * 5).verdict.value == "undecided"
    assert sit(["undecided"] * 5).verdict.value == "undecided"


def test_a_search_goes_on_from_any_working_folder(study: RunFolder, sit: Sit) -> None:
    """Its folder is there already, wherever it was made."""
    experiment = sustain_module.read_experiment(study.path / "experiment.toml")
    study.write_experiment(experiment.model_copy(update={"out": "seen/from/elsewhere"}))
    assert sit(["undecided"] * 5).verdict.value == "undecided"


@pytest.mark.parametrize(
    ("file", "values"),
    [("job.py", lambda name: {"workload": name}), ("a.csv", lambda name: {"parameters": {"data": name}})],
)
def test_files_of_a_search_are_found_from_any_working_folder(
    study: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, values: Any
) -> None:
    """Jobs and data are stored with their whole path; going on may name them as they lie from there."""
    monkeypatch.chdir(tmp_path)
    first = sustain_module.resumed(requested(**values(f"mine/{file}")))[0]
    whole = values(str(tmp_path / "mine" / file))
    assert {name: getattr(first, name) for name in whole} == whole
    study.write_experiment(first)
    (study.path / MEMO).unlink()
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path / "mine")
    assert resumed(study, **{"workload": "filter", **values(file)}) == first
    assert resumed(study, workload=first.workload) == first
    with pytest.raises(InputError, match=next(iter(whole))):
        resumed(study, **{"workload": "filter", **values(f"mine/{file}")})


def test_a_search_of_a_job_that_has_changed_is_not_gone_on_with(
    study: RunFolder, sit: Sit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trials of two versions of a job are no one search."""
    changed = SimpleNamespace(workload=SimpleNamespace(files={"job.py": "b" * 64}))
    monkeypatch.setattr(sustain_module, "check", lambda *_, **__: changed)
    study.write_result(study.read_result().model_copy(update={"job_files": {"job.py": "a" * 64}}))
    with pytest.raises(InputError, match=r"job\.py: must be unchanged.*aaa.*\n.*without --resume"):
        sit([])
