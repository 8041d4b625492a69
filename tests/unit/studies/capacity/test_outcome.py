"""What a search's result says, of studies whose trials were made by rule."""

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.engines.spark.options import NEAR_LIMIT
from streamgauge.engines.spi import CLUSTER_CORES
from streamgauge.results.codes import Cause, NextStep, RateLimit, SearchEnd, WarningCode
from streamgauge.results.latency import Latencies, Latency
from streamgauge.results.run import ProcessUse, Rates, Verification
from streamgauge.results.search import SearchResult, TrialSummary
from streamgauge.results.text.search import next_step
from streamgauge.results.verdict import Remark, Verdict, VerdictValue
from streamgauge.studies.capacity import outcome
from streamgauge.studies.capacity.outcome import limit_of, trial_shown, warnings_of, wrong_answers
from streamgauge.studies.capacity.search import Search, Settings, TrialOutcome, TrialRequest
from streamgauge.studies.capacity.sustain import recorded
from tests.unit.studies.helpers_studies import FAILED_PER_S, HELD_PER_S, remember

QUICK = Settings(ceiling_per_s=1e6, start_per_s=HELD_PER_S, quick=True)


def test_a_search_that_went_on_shows_the_trial_that_held(study: RunFolder) -> None:
    """From its folder, although this process has made no trial; never the figures of a rate that failed. One that
    found nothing shows its last trial, and none before the first.
    """
    result = Search(QUICK, recorded(study)).result()
    shown: Any = trial_shown(study, result)
    assert result.sustained_per_s == HELD_PER_S
    assert [check.name for check in shown.verdict.checks] == [f"of {HELD_PER_S:g}"]
    assert limit_of(shown) is None
    settings = replace(QUICK, start_per_s=FAILED_PER_S)
    assert trial_shown(study, Search(settings).result()) is None
    shown = trial_shown(study, Search(settings, recorded(study)[1:]).result())
    assert [check.name for check in shown.verdict.checks] == [f"of {FAILED_PER_S:g}"]


def test_a_trial_whose_folder_was_cleared_away_ends_no_search(study: RunFolder) -> None:
    """The one before that held at the rate is shown; where none is left, none is."""
    remember(study, 3, HELD_PER_S, "sustained")
    result = Search(QUICK, recorded(study)[:2]).result()
    last = result.trials[0].model_copy(update={"folder": "t/03"})
    result = result.model_copy(update={"trials": (*result.trials, last)})
    shown: list[Any] = []
    for number in ("none", "03", "01"):
        shutil.rmtree(study.path / "trials" / number, ignore_errors=True)
        shown.append(trial_shown(study, result))
    assert [trial and trial.run_id for trial in shown] == [*(trial.run_id for trial in shown[:2]), None]
    assert shown[0].run_id != shown[1].run_id


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
    held, failed = recorded(study)
    result = Search(QUICK, [held, replace(failed, wrong_answers="3 missing")]).result()
    assert (result.sustained_per_s, result.ended_by) == (None, SearchEnd.WRONG_ANSWERS)
    shown: Any = trial_shown(study, result)
    user_job = shown.model_copy(update={"job_files": {"job.py": "0" * 64}})
    verdict = outcome._verdict(result, shown, None, study)
    assert (verdict.value, verdict.cause) == ("not_sustained", Cause.WRONG_ANSWERS)
    steps = [outcome._next_step(result, one, study) for one in (shown, user_job, None)]
    assert [step.code for step in steps] == [NextStep.REPORT_WRONG, NextStep.CORRECT_JOB, NextStep.CORRECT_JOB]
    assert [step.facts["folder"] for step in steps] == [str(trial.path)] * 2 + [f"{study.path}/trials"]


def limit(
    sut: float = 110.0,
    driver: float = 20.0,
    broker: float | None = None,
    isolation: str = "shared",
    others: float | None = None,
    settings: dict[str, str] | None = None,
    **experiment: Any,
) -> Remark | None:
    used = {"sut": sut, "driver": driver, "broker": broker}
    shown: Any = SimpleNamespace(
        processes=[SimpleNamespace(role=role, cpu_percent_mean=used[role]) for role in used if used[role] is not None],
        isolation=isolation, environment={"cpus": 2}, experiment=experiment, settings=settings or {},
        others_cpu_percent=others, engine="spark",
    )  # fmt: skip
    return limit_of(shown)


@pytest.mark.parametrize(("verdict", "above"), [("sustained", "held"), ("invalid", "invalid")])
def test_invalid_trials_are_not_reported_as_held(study: RunFolder, verdict: VerdictValue, above: str) -> None:
    """Without an upper end: either every rate held, or nothing is known of the rates above."""
    result = Search(QUICK, recorded(study)[:1]).result()
    higher = TrialSummary(
        number=2, purpose="bracket", offered_per_s=1.2 * HELD_PER_S, verdict=verdict, folder="trials/02"
    )
    result = result.model_copy(update={"trials": (*result.trials, higher)})
    use = ProcessUse(name="engine", role="sut", cpu_percent_mean=110.0, cpu_percent_max=120.0, memory_bytes_max=1)
    shown: Any = trial_shown(study, result)
    shown = shown.model_copy(update={"processes": (use,), "environment": {"cpus": 2}, "engine": "spark"})
    found = outcome._limit(shown, result, stopped=False)
    assert found is not None
    assert (found.code, found.facts["above"]) == (RateLimit.NOT_CPU, above)


CLUSTER = "spark://127.0.0.1:7077"


@pytest.mark.parametrize(
    ("used", "code", "allowed"),
    [
        ({"sut": 180.0, "driver": 15.0}, RateLimit.ENGINE_CPU, 200),
        # A driver that takes the processors from the engine is not called the engine's limit; nor is it blamed for
        # what the broker took.
        ({"driver": 75.0}, RateLimit.SHARED_CPU, 200),
        ({"driver": 15.0, "broker": 60.0}, RateLimit.SHARED_CPU, 200),
        ({"driver": 75.0, "isolation": "pinned"}, RateLimit.NOT_CPU, 200),
        ({"sut": 80.0}, RateLimit.NOT_CPU, 200),
        # One core of two that is used up is no idle machine, and this machine shows nothing of executors elsewhere.
        ({"master": "local[1]"}, RateLimit.ALLOWANCE, 100),
        ({"master": "local[2]"}, RateLimit.NOT_CPU, 200),
        ({"master": "yarn"}, RateLimit.ELSEWHERE, None),
        # Executors of a cluster of this machine are processes of the system under test.
        ({"master": CLUSTER, "settings": {CLUSTER_CORES: "1"}}, RateLimit.ALLOWANCE, 100),
        ({"master": CLUSTER, "settings": {CLUSTER_CORES: "2"}}, RateLimit.NOT_CPU, 200),
        ({"parallelism": 1}, RateLimit.ALLOWANCE, 100),
        ({"parallelism": 8}, RateLimit.NOT_CPU, 200),
        # Only an engine at its master's allowance, below the whole machine, is limited by that beside background load.
        ({"others": 60.0}, RateLimit.BACKGROUND_LOAD, 200),
        ({"sut": 172.0, "others": 25.0}, RateLimit.BACKGROUND_LOAD, 200),
        ({"sut": 172.0, "others": 8.0}, RateLimit.ENGINE_CPU, 200),
        ({"sut": 98.0, "others": 60.0, "master": "local[1]"}, RateLimit.ALLOWANCE, 100),
    ],
)
def test_the_limit_names_what_used_the_processors(
    monkeypatch: pytest.MonkeyPatch, used: dict[str, Any], code: RateLimit, allowed: float | None
) -> None:
    monkeypatch.setattr(outcome, "machine_percent", lambda: 200.0)
    found = limit(**used)
    assert found is not None
    assert (found.code, found.facts.get("allowed")) == (code, allowed)
    assert found.facts["broker"] == used.get("broker", 0.0)
    assert found.facts.get("single", True) is (used.get("sut", 110.0) >= 85)


def test_a_search_names_what_ran_beside_its_trials(study: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trial that is shown may have been quiet while the one that the upper end rests on was not. One warning."""
    monkeypatch.setattr(outcome, "machine_percent", lambda: 200.0)
    shares = (None, 80.0, 90.0)
    trials = [TrialSummary(number=n, purpose="", offered_per_s=1, verdict=None, others_cpu_percent=one)
              for n, one in enumerate(shares, 1)]  # fmt: skip
    (warning,) = warnings_of(searched_at(1000.0, trials=trials))
    assert (warning.code, warning.facts) == (
        WarningCode.TRIAL_BACKGROUND_LOAD, {"trials": (2, 3), "shares": (0.4, 0.45), "limit": 0.1},
    )  # fmt: skip


@pytest.mark.parametrize(("slow_us", "warned"), [(1100.0, False), (1200.0, True)])
def test_a_search_warns_if_the_machine_was_not_the_same(study: RunFolder, slow_us: float, warned: bool) -> None:
    """The same small work took longer in one trial: its rate is of another machine."""
    outcomes = [replace(one, reference_work_us=us) for one, us in zip(recorded(study), (1000.0, slow_us), strict=True)]
    differing = {"fast": 1, "fast_us": 1000.0, "slow": 2, "slow_us": 1200.0}
    assert [one.facts for one in warnings_of(Search(QUICK, outcomes).result())] == [differing] * warned


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
ENDS: list[tuple[dict[str, Any], NextStep]] = [
    ({}, NextStep.MEASURE_LATENCY),
    ({"high_verdict": "undecided", "relative_width": None}, NextStep.DECIDE_UPPER_END),
    ({"high_verdict": "invalid", "relative_width": None}, NextStep.SEPARATE_DRIVER),
    ({"high": None, "high_verdict": None}, NextStep.MORE_GENERATORS),
    (WITH_LOW, NextStep.CONFIRM),
    ({"at_90_percent": None}, NextStep.DECIDE_AT_90),
    (NONE_HELD, NextStep.PROVE_A_RATE),
    (NONE_HELD | {"ended_by": SearchEnd.WRONG_ANSWERS}, NextStep.CORRECT_JOB),
    (WITH_LOW | {"ended_by": SearchEnd.FAILED}, NextStep.READ_ENGINE_LOG),
    (NONE_HELD | {"ended_by": SearchEnd.DRIVER_FAILED}, NextStep.READ_DRIVER_LOGS),
    (NONE_HELD | {"ended_by": SearchEnd.NOTHING_DRAINED}, NextStep.START_LOW),
    (WITH_LOW | {"ended_by": SearchEnd.INVALID_TWICE}, NextStep.MEND_AND_SEARCH),
    (NONE_HELD | {"ended_by": SearchEnd.NO_RATE_HELD}, NextStep.TRY_LOW_RATE),
    (WITH_LOW | {"ended_by": SearchEnd.TRIALS_USED_UP}, NextStep.MORE_TRIALS),
]


@pytest.mark.parametrize(("changes", "step"), ENDS)
def test_every_end_of_a_search_says_what_to_do_next(changes: dict[str, Any], step: NextStep) -> None:
    """In the verdict, whose advice is a line of terminal and report; a stop tells how to go on, before any rate held
    too.
    """
    result = searched_at(1000.0, **changes)
    found = outcome._next_step(result, None, ONE)
    assert found.code == step
    assert outcome._verdict(result, None, None, ONE).advice == next_step(found)
    assert found.facts.get("go_on", RESUME) == RESUME
    stopped = outcome._verdict(result, None, KeyboardInterrupt(), ONE)
    assert (stopped.value, stopped.advice) == ("interrupted", next_step(Remark(NextStep.GO_ON, {"go_on": RESUME})))


def test_a_search_that_invalid_trials_ended_has_the_advice_of_the_last(study: RunFolder) -> None:
    """What made it invalid differs: a queue without memory needs no quiet machine. A confirmation may follow it."""
    trial = RunFolder.open(study.path / "trials" / "02")
    verdict = Verdict(value="invalid", sentence="", advice="give the queue more memory (--queue-memory)")
    trial.write_result(trial.read_result().model_copy(update={"verdict": verdict}))
    last = TrialSummary(number=2, purpose="bisect", offered_per_s=1.0, verdict="invalid", folder="elsewhere/trials/02")
    confirming = last.model_copy(update={"number": 3, "verdict": "sustained", "folder": "elsewhere/trials/03"})
    result = searched_at(1000.0, trials=(last, confirming), ended_by=SearchEnd.INVALID_TWICE, **WITH_LOW)
    step = outcome._next_step(result, None, study)
    assert step.facts["advice"] == verdict.advice
    assert step.facts["invalid"] == str(trial.path)


@pytest.mark.parametrize(("duration_s", "longer_s"), [(30.0, 120.0), (120.0, 240.0)])
def test_longer_trials_are_longer_than_those_before(study: RunFolder, duration_s: float, longer_s: float) -> None:
    """Two minutes, or twice the length."""
    chosen = RunFolder.open(study.path / "trials" / "02").read_result()
    chosen = chosen.model_copy(update={"experiment": {"load": {"duration": duration_s}}})
    result = searched_at(1000.0, high_verdict="undecided", relative_width=None)
    step = outcome._next_step(result, chosen, study)
    assert (step.code, step.facts["longer_s"]) == (NextStep.DECIDE_UPPER_END, longer_s)


def test_no_end_of_a_search_lacks_its_advice() -> None:
    """A new end needs one too. A stop has it in the verdict."""
    ends = {changes["ended_by"] for changes, _ in ENDS if "ended_by" in changes}
    assert ends | {SearchEnd.INTERRUPTED} == set(SearchEnd)


WITHOUT_BATCHES: Any = SimpleNamespace(engine=SimpleNamespace(has_batch_ids=False, near_limit=NEAR_LIMIT))
"""An experiment whose engine's results belong to no batches, so its busy share is unknown."""


def outcome_in(study: RunFolder, early_stop: str = "", verdict: Verdict | None = None, **changes: Any) -> TrialOutcome:
    """The outcome of a trial, with the result of `study` but for its changes."""
    changes |= {} if verdict is None else {"verdict": verdict}
    record = SimpleNamespace(early_stop=early_stop, trial_log=SimpleNamespace(by_query=lambda: ()))
    trial: Any = SimpleNamespace(result=study.read_result().model_copy(update=changes), record=record)
    return outcome.outcome_of(WITHOUT_BATCHES, TrialRequest(HELD_PER_S, "bisect", fresh=False), trial, study)


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
    monkeypatch.setattr(outcome, "busy_share", lambda resolved, record: share)
    rates = Rates(offered_per_s=1e5, achieved_per_s=9e4, ingested_per_s=ingested_per_s, planned_per_s=1e5)
    changes: Any = {"verdict": Verdict(value=verdict, cause=cause, sentence=""), "rate": rates, "isolation": isolation}
    for master, local in ((None, True), ("local[2]", True), ("spark://elsewhere:7077", False)):
        shown = outcome_in(study, engine="spark", experiment={"master": master}, **changes)
        assert (shown.starved, shown.busy_share) == (starved and local, share)


def test_a_trial_of_updates_has_the_wait_of_every_event_too(study: RunFolder) -> None:
    """Beside that of the newest event in each update; null where results are none."""
    latency = Latencies(event_time_us=Latency(p50=8e5), until_counted_us=Latency(p50=2.8e6, p99=4.8e6))
    shown = outcome_in(study, latency=latency)
    assert (shown.event_time_p50_us, shown.until_counted_p50_us, shown.until_counted_p99_us) == (
        8e5,
        2.8e6,
        4.8e6,
    )
    assert outcome_in(study).until_counted_p50_us is None
