"""The self-test's proofs can fail: each is shown an engine that is not as it should be."""

from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from streamgauge.core.clock import US
from streamgauge.core.errors import DriverError, InputError
from streamgauge.core.trial import TrialSnapshot
from streamgauge.engines.synthetic.main import degradation_us
from streamgauge.results.latency import Latency
from streamgauge.results.text.sentences import in_words
from streamgauge.results.verdict import Verdict
from streamgauge.studies.selftest import checks
from streamgauge.studies.selftest import selftest as selftest_module
from streamgauge.studies.selftest.testbed import View
from streamgauge.verdict.evidence import Samples
from streamgauge.verdict.verdict import judge
from tests.unit.verdict.helpers_evidence import RATE, evidence

SHORT = checks.Sizes(
    {"continuous": (2.0, 1), "windows": (9.0, 1), "jitter": (5.0, 2)}, search_windows=False, row_s=1.5, warmup_s=0.5
)
LONG = checks.Sizes({"continuous": (5.0, 1), "windows": (9.0, 1), "jitter": (5.0, 1)})


@pytest.mark.long
@pytest.mark.timeout(1800)  # beside busy neighbours trials are made up to three times
@pytest.mark.parametrize("mode", selftest_module.MODES)
def test_a_consumer_slower_than_claimed_is_found_as_what_it_is(mode: checks.Mode) -> None:
    """a: by real searches and trials in every way of reading; neither the capacity nor the verdicts are as claimed."""
    measured, verdicts = checks.capacity(mode, LONG, true_share=0.85)
    assert not measured.ok, measured.sentence
    assert measured.value == pytest.approx(-0.15, abs=0.03)
    assert not verdicts.ok, verdicts.sentence
    assert "0 of 1 sustained" in verdicts.sentence


def test_unsteady_batches_are_tried_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """a: every way in which a consumer reads, the one with jitter among them; --quick only leaves out its search."""
    start = Mock(side_effect=DriverError("nothing is started here"))
    monkeypatch.setattr(checks, "start_bench", start)
    selftest_module.selftest(only="a", quick=True)
    workloads = [(call.args[0], call.args[2].get("jitter")) for call in start.call_args_list]
    assert workloads == [("filter", None), ("windowed_aggregation", None), ("filter", "0.2")]


@pytest.mark.parametrize(
    ("mode", "low", "refused", "undecided", "ok"),
    [
        ("continuous", 99_500, 101_000, None, True),
        ("continuous", 101_900, 103_000, None, True),
        ("continuous", 97_900, 99_000, None, False),
        ("continuous", 102_100, 103_000, None, False),
        ("continuous", None, 90_000, None, False),
        ("continuous", 100_000, None, None, False),
        # Beside noise the upper end may stay undecided.
        ("jitter", 99_400, None, 101_400, True),
        ("continuous", 99_400, None, 101_400, False),
        ("jitter", 97_000, None, 99_000, False),
        ("jitter", 99_400, None, None, False),
    ],
)
def test_a_capacity_off_by_more_than_two_percent_fails(
    mode: checks.Mode, low: float | None, refused: float | None, undecided: float | None, ok: bool
) -> None:
    """a: the lower end of the bracket must be within 2 %, and something above it must have been refused."""
    assert checks.judge_capacity(mode, low, refused, 6, 0, undecided).ok is ok


@pytest.mark.parametrize(
    ("below", "above", "ok"),
    [
        (["sustained"] * 2, ["not_sustained"] * 2, True),
        (["sustained", "undecided"], ["not_sustained", "undecided"], True),
        (["sustained", "not_sustained"], ["not_sustained"] * 2, False),
        (["sustained"] * 2, ["sustained", "not_sustained"], False),
        (["undecided"] * 2, ["not_sustained"] * 2, False),
        (["sustained"] * 2, ["invalid"] * 2, False),
    ],
)
def test_a_wrong_or_missing_verdict_fails(below: list[str], above: list[str], ok: bool) -> None:
    """a: one wrong verdict fails, and so does an instrument that does not decide."""
    assert checks.judge_verdicts("windows", below, above).ok is ok


STALLED, HIDDEN = Latency(p99=1.9e6, max=2.1e6, effective_count=400), Latency(p99=1e5, max=1.1e5)


@pytest.mark.parametrize(
    ("event", "naive", "ok"),
    [
        (STALLED, HIDDEN, True),
        (HIDDEN, HIDDEN, False),
        (STALLED, STALLED, False),
        (STALLED.model_copy(update={"p99": 1e5}), HIDDEN, False),
        (STALLED.model_copy(update={"p99": None, "p95": 1.9e6}), HIDDEN, False),
        (STALLED, HIDDEN.model_copy(update={"p99": None, "p95": 1e5}), False),
        (STALLED, HIDDEN.model_copy(update={"max": 1.5e6}), False),
    ],
    ids=["as it must", "in neither", "in both", "not in p99", "no p99", "no naive p99", "in the naive maximum"],
)
def test_a_stall_must_show_in_the_p99_of_event_time_alone(event: Latency, naive: Latency, ok: bool) -> None:
    """b: a p99 that too few reads carry proves nothing, whatever p95 says."""
    made = checks.judge_stall(event, naive)
    assert made.ok is ok, made.sentence
    assert ("not given" in made.sentence) is (event.p99 is None or naive.p99 is None)


@pytest.mark.long
def test_without_a_stall_its_proof_fails() -> None:
    """b: nothing was planted, so nothing shows."""
    made: Any = checks.stall(SHORT, planted=False)
    assert (made.ok, made.value < 0.75 * checks.STALL_S) == (False, True)


@pytest.mark.process
def test_a_planted_stall_is_seen() -> None:
    """b: event time shows it, in a p99 that enough reads carry; beside other tests they may be too few at first."""
    found = (value for _ in range(3) if (value := checks.stall(SHORT).value) is not None)
    seen_s = next(found, 0.0)
    assert seen_s >= checks.STALL_SHARE_MIN * checks.STALL_S


@pytest.mark.long
def test_a_stall_that_shows_counted_from_the_delivery_too_fails_its_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    """b: a consumer hardly faster than the load works for long on what it reads after the stall."""
    monkeypatch.setattr(checks, "FAST", "25k")
    made: Any = checks.stall(SHORT)
    assert not made.ok, made.sentence
    assert made.value >= checks.STALL_SHARE_MIN * checks.STALL_S


@pytest.mark.long
@pytest.mark.parametrize("planted", [True, False])
def test_real_batches_that_take_longer_and_longer_are_distinguished_from_others(planted: bool) -> None:
    """b: by the trends of a whole trial."""
    made = checks.degradation(SHORT, planted)
    assert made.ok is planted, made.sentence


def of_slowing(slowing: float, seed: int, backlog_growth: float = 0.0) -> Verdict:
    """The verdict on the proof's trial beside neighbours that delay each batch by 50 ms or so; its batches are those
    that the engine would make.
    """
    random, begun = np.random.default_rng(seed), np.arange(0, checks.DEGRADATION_S)
    work_s = checks.ROW_RATE_PER_S / 400_000 + random.exponential(0.05, begun.size)
    cuts_us = ((begun + SHORT.warmup_s) * US).astype(int)
    lengths = work_s + [degradation_us(slowing, 0, int(cut_us)) / US for cut_us in cuts_us]
    backlog = Samples(begun, 1 + backlog_growth * begun + random.exponential(0.05, begun.size))
    later = {"output_lag_at_commits": Samples(begun + lengths, lengths), "latency": Samples(begun, lengths)}
    return in_words(judge(evidence(backlog=backlog, interval_s=1.0, **later)))


@pytest.mark.usefixtures("quick_draws")
@pytest.mark.parametrize("planted", [True, False])
def test_busy_neighbours_neither_hide_slowing_nor_make_it_up(planted: bool) -> None:
    """b: the growth that is planted is far above what they add to a batch."""
    slowing = checks.DEGRADATION if planted else 0.0
    made = [checks.judge_degradation(of_slowing(slowing, seed)) for seed in range(40)]
    assert [one.sentence for one in made if one.ok is not planted] == []


@pytest.mark.usefixtures("quick_draws")
def test_what_shows_in_the_backlog_is_no_proof_of_slowing() -> None:
    """b: it is to be seen before anything waits."""
    made = checks.judge_degradation(of_slowing(checks.DEGRADATION, 1, backlog_growth=0.1))
    assert (made.ok, "the backlog grew" in made.sentence) == (False, True)


@pytest.mark.process
@pytest.mark.parametrize(
    "proof", [lambda: checks.fault("drop", SHORT, planted=False), lambda: checks.clock(SHORT, planted=False)]
)
def test_without_a_fault_its_proof_fails(proof: Any) -> None:
    """c, e: finding nothing is no proof where nothing was planted; an honest clock has no negative latency."""
    made = proof()
    assert (made.ok, made.value) == (False, 0)


@pytest.mark.process
@pytest.mark.parametrize(
    ("kind", "of"),
    [
        ("alter", "windows"),
        *(pytest.param(*each, marks=pytest.mark.long) for each in (("late", "events"), ("invent", "windows"))),
    ],
)
def test_a_planted_fault_is_counted(kind: str, of: checks.Rows) -> None:
    """c: as many as were planted, and nothing else; windows by key and border, not by an event's id."""
    made = checks.fault(kind, SHORT, of=of)
    assert made.ok, made.sentence
    assert made.value == made.limit != 0


@pytest.mark.process
@pytest.mark.parametrize("planted", [True, pytest.param(False, marks=pytest.mark.long)])
def test_a_search_of_a_system_that_loses_results_ends_without_a_rate(planted: bool) -> None:
    """c: one in a thousand; where nothing is lost the rate is found, and the proof fails."""
    made = checks.search_with_wrong_answers(SHORT, planted)
    assert made.ok is planted, made.sentence
    assert (made.value is None) is planted
    assert ("expected results (0." in made.sentence) is planted


def test_the_faults_are_planted_in_events_and_in_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """c: each kind in both."""
    fault, search = (Mock(return_value=checks.CheckResult("", True, None, None, "")) for _ in range(2))
    monkeypatch.setattr(checks, "fault", fault)
    monkeypatch.setattr(checks, "search_with_wrong_answers", search)
    selftest_module.selftest(only="c")
    planted = [(call.args[0], call.kwargs["of"]) for call in fault.call_args_list]
    assert planted == [(kind, of) for of in ("events", "windows") for kind in checks.FAULTS]


ONE_SECOND_HALF = np.where(np.arange(60) == 30, 0.5, 1.0) * RATE


@pytest.mark.parametrize(
    ("changes", "ok"),
    [
        ({}, False),
        ({"offered_per_s": ONE_SECOND_HALF}, True),
        ({"schedule_delay_us_p99": 5 * US}, True),
        ({"core_wait_us": 1e6}, False),
        ({"negative_latencies": 1}, False),
        ({"sut_alive": False}, False),
        ({"offered_per_s": ONE_SECOND_HALF, "interrupted": True}, False),
    ],
    ids=["kept", "not offered", "late", "starved", "clock", "engine died", "interrupted"],
)
def test_only_a_plan_that_was_not_kept_proves_it(changes: dict[str, Any], ok: bool) -> None:
    """d: an invalid trial is not enough, it must be so by its plan; and one that is not invalid proves nothing."""
    made = checks.judge_generator(in_words(judge(evidence(**changes))), 5e6, 1e6)
    assert made.ok is ok, made.sentence
    assert made.sentence.startswith("planned 5 M/s with a ceiling of 1 M/s: ")


@pytest.mark.long
@pytest.mark.parametrize("planted", [True, False])
def test_a_real_generator_that_keeps_its_plan_fails_the_proof(planted: bool) -> None:
    """d: and one that is requested five times what it can make does not."""
    made = checks.generator(SHORT, planted)
    assert made.ok is planted, made.sentence


def test_another_seed_fails_the_proof() -> None:
    """f: the input of two seeds is not the same."""
    assert checks.seed(SHORT).ok
    assert not checks.seed(SHORT, planted=False).ok


def test_a_proof_that_breaks_down_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of ours is a failed item with the reason, never a traceback nor a pass."""
    monkeypatch.setattr(checks, "seed", Mock(side_effect=DriverError("the recorder ended")))
    (item,) = selftest_module.selftest(only="f")
    assert (item.ok, "the recorder ended" in item.sentence) == (False, True)


@pytest.mark.process
def test_what_goes_on_is_reported() -> None:
    """From the start of the engine to the comparison: a proof is silent at no time for longer than a look takes."""
    lines, shown = list[str](), list[TrialSnapshot]()
    made = checks.fault("drop", SHORT, view=View(lines.append, shown.append))
    assert made.ok, made.sentence
    phases = [each.phase for each in shown]
    assert phases[0] == "start"
    assert {"measured", "verification"} <= set(phases)
    assert "waiting for the rows that the engine delays" in {each.note for each in shown}


def test_unknown_letters_are_refused() -> None:
    """The message names the choices."""
    with pytest.raises(InputError, match="must be of a, b"):
        selftest_module.letters("a,x")
    assert selftest_module.letters("e, a") == ("a", "e")
    assert selftest_module.letters(None) == tuple("abcdef")
