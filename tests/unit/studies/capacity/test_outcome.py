"""What a search's result says, of studies whose trials were made by rule."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.engines.spi import CLUSTER_CORES
from streamgauge.results.codes import Cause, SearchEnd, WarningCode
from streamgauge.results.run import ProcessUse, Verification
from streamgauge.results.search import SearchResult, TrialSummary
from streamgauge.results.verdict import Verdict, VerdictValue
from streamgauge.studies.capacity import outcome
from streamgauge.studies.capacity.outcome import limit_of, trial_shown, warnings_of, with_interference, wrong_answers
from streamgauge.studies.capacity.saved_search import recorded
from streamgauge.studies.capacity.search import Search, Settings, replay
from tests.unit.studies.helpers_studies import FAILED_PER_S, HELD_PER_S, remember


def test_a_search_that_went_on_shows_the_trial_that_held(study: RunFolder) -> None:
    """From its folder, although this process has made no trial; never the figures of a rate that failed."""
    settings = Settings(ceiling_per_s=1e6, start_per_s=HELD_PER_S, quick=True)
    found = replay(settings, recorded(study)).result()
    assert found.sustained_per_s == HELD_PER_S
    shown = trial_shown(study, found)
    assert shown is not None
    assert [check.name for check in shown.verdict.checks] == [f"of {HELD_PER_S:g}"]
    assert limit_of(shown) == ""


def test_a_trial_whose_folder_was_cleared_away_ends_no_search(study: RunFolder) -> None:
    """The one before that held at the rate is shown; where none is left, none is."""
    remember(study, 3, HELD_PER_S, "sustained")
    found = replay(Settings(ceiling_per_s=1e6, start_per_s=HELD_PER_S, quick=True), recorded(study)[:2]).result()
    found = found.model_copy(update={"trials": (*found.trials, found.trials[0].model_copy(update={"folder": "t/03"}))})
    shown = []
    for number in ("none", "03", "01"):
        shutil.rmtree(study.path / "trials" / number, ignore_errors=True)
        result = trial_shown(study, found)
        shown.append(Path(result.folder).name if result and result.folder else result and result.run_id)
    assert shown[2] is None
    assert None not in shown[:2]
    assert shown[0] != shown[1]


WRONG = Verification(judged=True, independent=True, reference="", expected=3000, matched=2997, missing=3)


@pytest.mark.parametrize(
    ("decided_by", "message"),
    [(("answers",), "3 missing of 3,000 expected results (0.10%)"), (("backlog_trend", "answers"), "")],
)
def test_wrong_answers_of_a_trial_that_keeps_up_are_no_overload(
    study: RunFolder, decided_by: tuple[str, ...], message: str
) -> None:
    """A trial that falls behind may owe results for that; the search goes on then."""
    verdict = Verdict(value="not_sustained", decided_by=decided_by, sentence="")
    result = study.read_result().model_copy(update={"verdict": verdict, "verification": WRONG})
    assert wrong_answers(result).replace("\u202f", ",") == message


def test_a_search_that_wrong_answers_ended_says_where_to_look(study: RunFolder) -> None:
    """No rate, not sustained, and the trial with the examples."""
    trial = RunFolder.open(study.path / "trials" / "02")
    verdict = Verdict(value="not_sustained", decided_by=("answers",), sentence="")
    trial.write_result(trial.read_result().model_copy(update={"verdict": verdict, "verification": WRONG}))
    settings = Settings(ceiling_per_s=1e6, start_per_s=HELD_PER_S, quick=True)
    held, failed = recorded(study)
    found = replay(settings, [held, replace(failed, wrong_answers="3 missing")]).result()
    shown = outcome._verdict(found, trial_shown(study, found), None, study)
    assert (found.sustained_per_s, shown.value) == (None, "not_sustained")
    assert (found.ended_by, shown.cause) == (SearchEnd.WRONG_ANSWERS, Cause.WRONG_ANSWERS)
    assert shown.advice.startswith(f"look at the examples in {trial.path}/verification.json; the workload is built in")
    own = trial_shown(study, found)
    assert own is not None
    own = own.model_copy(update={"job_files": {"job.py": "0" * 64}})
    assert "correct the job or a setting" in outcome._verdict(found, own, None, study).advice
    assert outcome._verdict(found, None, None, study).cause == Cause.WRONG_ANSWERS


def limit_message(
    sut: float,
    driver: float,
    isolation: str = "shared",
    master: str | None = None,
    others: float | None = None,
    parallelism: int | None = None,
    broker: float | None = None,
    **settings: str,
) -> str:
    processes = [
        SimpleNamespace(role="sut", cpu_percent_mean=sut),
        SimpleNamespace(role="driver", cpu_percent_mean=driver),
        *([] if broker is None else [SimpleNamespace(role="broker", cpu_percent_mean=broker)]),
    ]
    shown: Any = SimpleNamespace(
        processes=processes,
        isolation=isolation,
        environment={"cpus": 2},
        experiment={"master": master, "parallelism": parallelism},
        settings=settings,
        others_cpu_percent=others,
    )
    return limit_of(shown)


@pytest.mark.parametrize(
    ("above", "message"),
    [
        ("sustained", "not found, because every tried rate held: SUT"),
        ("invalid", "the trials at higher rates were invalid"),
    ],
)
def test_invalid_trials_are_not_said_to_have_held(study: RunFolder, above: VerdictValue, message: str) -> None:
    """Without an upper end: either every rate held, or nothing is known of the rates above."""
    held = recorded(study)[0]
    found = replay(Settings(ceiling_per_s=1e6, start_per_s=held.rate_per_s, quick=True), [held]).result()
    rate_per_s = 1.2 * held.rate_per_s
    higher = TrialSummary(number=2, purpose="bracket", offered_per_s=rate_per_s, verdict=above, folder="trials/02")
    found = found.model_copy(update={"trials": (*found.trials, higher)})
    use = ProcessUse(name="engine", role="sut", cpu_percent_mean=110.0, cpu_percent_max=120.0, memory_bytes_max=1)
    shown = trial_shown(study, found)
    assert shown is not None
    shown = shown.model_copy(update={"processes": (use,), "environment": {"cpus": 2}})
    assert message in outcome._limit(shown, found)


@pytest.mark.parametrize(
    ("sut", "driver", "isolation", "message"),
    [
        (180.0, 15.0, "shared", "the engine is CPU bound"),
        (110.0, 75.0, "shared", "engine and driver together"),
        (110.0, 75.0, "pinned", "a single busy task uses only one core"),
        (80.0, 20.0, "shared", "not all of the CPU: look at the engine's batches;"),
    ],
)
def test_the_limit_names_who_used_the_processors(sut: float, driver: float, isolation: str, message: str) -> None:
    """A driver that takes the processors from the engine is not called the engine's limit."""
    assert message in limit_message(sut, driver, isolation)


def test_a_broker_that_used_up_the_processors_is_named() -> None:
    """Beside the driver, which is not blamed for it."""
    said = limit_message(110.0, 15.0, broker=60.0)
    assert said.endswith("engine, driver and broker together have used up the CPU; driver used 15 %, broker 60 %")
    assert "broker" not in limit_message(110.0, 75.0)


@pytest.mark.parametrize(
    ("master", "message"),
    [
        ("local", "110 % of 100 %: the engine has used up what its master allows it"),
        ("local[1]", "110 % of 100 %: the engine has used up what its master allows it"),
        ("local[1, 4]", "110 % of 100 %"),
        ("local[2]", "110 % of 200 %: not all"),
        ("local[8]", "110 % of 200 %: not all"),
        ("local[*]", "110 % of 200 %: not all"),
        ("spark://far:7077", "110 % on this machine: not known, because executors run elsewhere"),
        ("yarn", "not known, because executors run elsewhere"),
    ],
)
def test_the_limit_is_what_the_master_may_use(master: str, message: str) -> None:
    """One core of two that is used up is no idle machine, and this machine says nothing of executors elsewhere."""
    assert message in limit_message(110.0, 20.0, master=master)


@pytest.mark.parametrize(("cores", "message"), [
    ("1", "110 % of 100 %: the engine has used up what its master allows it"), ("2", "110 % of 200 %: not all"),
])  # fmt: skip
def test_the_limit_on_a_cluster_of_this_machine_is_its_workers_cores(cores: str, message: str) -> None:
    """Its executors are processes of the system under test."""
    assert message in limit_message(110.0, 20.0, master="spark://127.0.0.1:7077", **{CLUSTER_CORES: cores})


def test_a_parallelism_below_the_machine_s_cores_is_the_limit() -> None:
    assert "110 % of 100 %: the engine has used up" in limit_message(110.0, 20.0, parallelism=1)
    assert "110 % of 200 %: not all" in limit_message(110.0, 20.0, parallelism=8)


@pytest.mark.parametrize(
    ("sut", "others", "master", "message"),
    [
        (110.0, 60.0, None, "background processes used 60 %, so the limit is not known. Close them"),
        (172.0, 25.0, None, "background processes used 25 %, so the limit is not known"),
        (172.0, 8.0, None, "the engine is CPU bound; background processes used 8 %"),
        (98.0, 60.0, "local[1]", "used up what its master allows it; background processes used 60 %"),
    ],
)
def test_no_system_is_blamed_for_cpu_that_others_used(
    monkeypatch: pytest.MonkeyPatch, sut: float, others: float, master: str | None, message: str
) -> None:
    """Only an engine at its master's allowance, below the whole machine, is limited by that all the same."""
    monkeypatch.setattr(outcome, "machine_percent", lambda: 200.0)
    found = limit_message(sut, 15.0, master=master, others=others)
    assert message in found
    assert ("not known" in found) != ("CPU bound" in found or "allows" in found)


def test_a_search_says_what_ran_beside_each_of_its_trials(study: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trial that is shown may have been quiet while the one that the upper end rests on was not."""
    monkeypatch.setattr(outcome, "machine_percent", lambda: 200.0)
    busy = RunFolder.open(study.path / "trials" / "02")
    busy.write_result(busy.read_result().model_copy(update={"others_cpu_percent": 80.0}))
    settings = Settings(ceiling_per_s=1e6, start_per_s=HELD_PER_S, quick=True)
    found = with_interference(study, replay(settings, recorded(study)).result())
    assert [trial.others_cpu_percent for trial in found.trials] == [None, 80.0]
    assert [one.sentence for one in warnings_of(found)] == ["trial 2: background processes used 40% of the CPU"]
    shutil.rmtree(busy.path)
    assert with_interference(study, replay(settings, recorded(study)).result()).trials[1].others_cpu_percent is None


@pytest.mark.parametrize(("slow_us", "message"), [(1100.0, False), (1200.0, True)])
def test_a_search_says_where_the_machine_was_not_the_same(study: RunFolder, slow_us: float, message: bool) -> None:
    """The same small work took longer in one trial: its rate is of another machine."""
    for number, took_us in (("01", 1000.0), ("02", slow_us)):
        trial = RunFolder.open(study.path / "trials" / number)
        trial.write_result(trial.read_result().model_copy(update={"reference_work_us": took_us}))
    settings = Settings(ceiling_per_s=1e6, start_per_s=HELD_PER_S, quick=True)
    found = with_interference(study, replay(settings, recorded(study)).result())
    assert [trial.reference_work_us for trial in found.trials] == [1000.0, slow_us]
    warned = [one for one in warnings_of(found) if one.code == WarningCode.MACHINE_CHANGED]
    assert len(warned) == message
    assert not warned or "1 ms in trial 1, 1.2 ms in trial 2" in warned[0].sentence


def test_a_search_that_found_nothing_shows_its_last_trial(study: RunFolder) -> None:
    """There is no better one; and none at all before the first."""
    settings = Settings(ceiling_per_s=1e6, start_per_s=FAILED_PER_S, quick=True)
    assert trial_shown(study, Search(settings).result()) is None
    failed = recorded(study)[1]
    shown = trial_shown(study, replay(settings, [failed]).result())
    assert shown is not None
    assert [check.name for check in shown.verdict.checks] == [f"of {FAILED_PER_S:g}"]


def searched_at(rate_per_s: float, number: int = 1, **changes: Any) -> SearchResult:
    """A search with one trial, which came to its end with both ends and a confirmed rate unless `changes` say else."""
    trial = TrialSummary(number=number, purpose="at 90 %", offered_per_s=0.9 * rate_per_s, verdict="sustained")
    values = {
        "sustained_per_s": rate_per_s, "low": rate_per_s, "high": 1.04 * rate_per_s, "high_verdict": "not_sustained",
        "relative_width": 0.04, "confirmed": True, "at_90_percent": trial, "trials": (trial,), "sentence": "said",
    }  # fmt: skip
    return SearchResult(**values | changes)


NONE_HELD: dict[str, Any] = {"sustained_per_s": None, "low": None, "confirmed": False, "at_90_percent": None}
WITH_LOW = {"confirmed": False, "at_90_percent": None}
ONE = RunFolder(Path("runs/one"))
RESUME = "streamgauge sustain --resume runs/one"
ENDS: list[tuple[dict[str, Any], str]] = [
    ({}, "measure the latency at the rate that you plan for: streamgauge run WORKLOAD --rate RATE"),
    ({"high_verdict": "undecided", "relative_width": None}, "the upper end is open: longer trials (--duration 120s)"),
    ({"high_verdict": "invalid", "relative_width": None}, "the upper end is open: give the driver CPUs of its own"),
    ({"high": None, "high_verdict": None}, "the generators are the limit, not the engine: use more"),
    (WITH_LOW, "search again without --quick"),
    ({"at_90_percent": None}, "the rate at 90 % is open: longer trials (--duration 120s)"),
    (NONE_HELD, "no rate was proven: longer trials (--duration 120s)"),
    (NONE_HELD | {"ended_by": SearchEnd.WRONG_ANSWERS}, "look at the examples in runs/one/trials/verification.json"),
    (WITH_LOW | {"ended_by": SearchEnd.FAILED}, f"read the engine's log in runs/one/engine and remove the cause; then "
     f"go on: {RESUME}"),
    (NONE_HELD | {"ended_by": SearchEnd.DRIVER_FAILED}, "the driver failed, not the engine"),
    (NONE_HELD | {"ended_by": SearchEnd.NOTHING_DRAINED}, "read the engine's log in runs/one/engine; then search from"),
    (WITH_LOW | {"ended_by": SearchEnd.INVALID_TWICE}, "close background processes or separate the driver's"),
    (NONE_HELD | {"ended_by": SearchEnd.NO_RATE_HELD}, "read in runs/one why not even that"),
    (WITH_LOW | {"ended_by": SearchEnd.TRIALS_USED_UP}, f"go on with more trials: {RESUME} --trials-max 9"),
    (WITH_LOW | {"ended_by": SearchEnd.INTERRUPTED}, f"to go on: {RESUME}"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), ENDS)
def test_every_end_of_a_search_says_what_to_do_next(changes: dict[str, Any], message: str) -> None:
    """In the verdict, whose advice is a line of terminal and report."""
    found = searched_at(1000.0, **changes)
    verdict = outcome._verdict(found, None, None, ONE)
    assert verdict.advice.startswith(message)


def test_a_search_that_invalid_trials_ended_has_the_advice_of_the_last(study: RunFolder) -> None:
    """What made it invalid differs: a queue without memory needs no quiet machine. A confirmation may follow it."""
    trial = RunFolder.open(study.path / "trials" / "02")
    verdict = Verdict(value="invalid", sentence="", advice="give the queue more memory (--memory)")
    trial.write_result(trial.read_result().model_copy(update={"verdict": verdict}))
    last = TrialSummary(number=2, purpose="bisect", offered_per_s=1.0, verdict="invalid", folder="elsewhere/trials/02")
    confirming = last.model_copy(update={"number": 3, "verdict": "sustained", "folder": "elsewhere/trials/03"})
    found = searched_at(1000.0, trials=(last, confirming), ended_by=SearchEnd.INVALID_TWICE, **WITH_LOW)
    message = outcome._verdict(found, None, None, study).advice
    assert message == f"give the queue more memory (--memory); then search again (the reason: {trial.path})"


@pytest.mark.parametrize(("duration_s", "longer"), [(30.0, "120s"), (120.0, "240s")])
def test_longer_trials_are_longer_than_those_before(study: RunFolder, duration_s: float, longer: str) -> None:
    """Two minutes, or twice the length."""
    chosen = RunFolder.open(study.path / "trials" / "02").read_result()
    chosen = chosen.model_copy(update={"experiment": {"load": {"duration": duration_s}}})
    found = searched_at(1000.0, high_verdict="undecided", relative_width=None)
    advice = outcome._verdict(found, chosen, None, study).advice
    assert advice == f"the upper end is open: longer trials (--duration {longer}) may decide it"


def test_no_end_of_a_search_lacks_its_advice() -> None:
    """A new end needs one too."""
    assert {changes["ended_by"] for changes, _ in ENDS if "ended_by" in changes} == set(SearchEnd)


def test_a_search_that_was_stopped_says_how_to_go_on() -> None:
    """Also before any rate held."""
    searched = SearchResult(
        sustained_per_s=None, low=None, high=None, confirmed=False, relative_width=None, sentence="nothing yet"
    )
    stopped = outcome._verdict(searched, None, KeyboardInterrupt(), ONE)
    ended = outcome._verdict(searched, None, None, ONE)
    assert (stopped.value, stopped.advice) == ("interrupted", "to go on: streamgauge sustain --resume runs/one")
    assert ended.advice.startswith("no rate was proven")


def test_the_command_that_goes_on_can_be_pasted() -> None:
    """Also where the folder's name has a blank; the advice names that folder in whole."""
    folder = RunFolder(Path("my runs/one"))
    found = searched_at(1000.0, ended_by=SearchEnd.FAILED, **WITH_LOW)
    message = outcome._verdict(found, None, None, folder).advice
    assert "read the engine's log in my runs/one/engine and" in message
    assert message.endswith("streamgauge sustain --resume 'my runs/one'")
