"""studies/compare/command.py: planted differences are found, equal sides are not told apart, and unknown never passes.

The run folders are made up by the functions below; nothing was measured.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.options_and_settings import build
from streamgauge.core.errors import InputError
from streamgauge.core.formatting import format_percent
from streamgauge.metrics.latency.histogram import Histogram, counts_of, log_lines, read_log, slots_of
from streamgauge.report.documents import comparison as comparison_document
from streamgauge.results.comparison import Comparison, Difference
from streamgauge.results.latency import Latencies, Latency
from streamgauge.results.run import Rates, SinkResult, Verification
from streamgauge.results.search import SearchResult, TrialSummary
from streamgauge.results.verdict import Verdict
from streamgauge.studies.compare.command import compare
from streamgauge.studies.compare.gates import ANSWERS, Rule, judge, parse_rule
from streamgauge.studies.compare.metrics import comparables, resolve

Make = Callable[..., Path]
Three = Callable[..., str]
START = 1_767_323_045


def figure(comparison: Comparison, name: str) -> Difference:
    return next(one for one in comparison.figures if one.name == name)


def refused(*arguments: Any, **options: Any) -> str:
    with pytest.raises(InputError) as error:
        compare(*arguments, **options)
    return str(error.value)


# --- differences ---


def test_a_planted_slowdown_is_found_in_single_runs(make: Make) -> None:
    """Two runs of forty seconds: 20 % more latency is worse, by an interval that holds it."""
    found = compare(str(make("a", 1)), str(make("b", 2, slower=1.2)))
    p50 = figure(found, "event_time_p50")
    assert (p50.says, p50.method) == ("worse", "seconds")
    assert p50.low is not None
    assert p50.high is not None
    assert 0 < p50.low < 0.2 < p50.high < 0.35
    assert any("one run a side" in warning for warning in found.warnings)


def test_a_planted_slowdown_is_found_over_runs(three: Three) -> None:
    """Three a side: a rate 10 % lower and latency 10 % higher are found, and what is equal is not."""
    found = compare(three("a", 10), three("b", 20, slower=1.1, rate=9e4))
    for name, planted in (("ingested", -0.1), ("event_time_p99", 0.1)):
        one = figure(found, name)
        assert (one.says, one.method) == ("worse", "runs"), name
        assert one.difference == pytest.approx(planted, abs=0.04)
        assert len(one.a_runs) == len(one.b_runs) == 3
    assert figure(found, "event_time_p99").label == "event time, mean of the runs' p99"
    assert (figure(found, "ingested").label, figure(found, "event_time_mean").label) == ("ingested", "event time mean")
    assert figure(found, "memory").says == "no_difference"
    assert (found.not_the_same, found.kind) == ((), "run")


@pytest.mark.parametrize("seed", [30, 40, 50])
def test_equal_sides_are_not_told_apart(three: Three, seed: int) -> None:
    """The same made-up engine on both sides: the interval holds 0."""
    found = compare(three("a", seed), three("b", seed + 5))
    for name in ("event_time_p50", "ingested"):
        one = figure(found, name)
        assert one.low is not None
        assert one.high is not None
        assert one.low <= 0.01
        assert one.high >= -0.01


def test_better_has_a_direction(make: Make) -> None:
    """Lower latency is better; a lower rate is worse."""
    found = compare(str(make("a", 1, slower=1.3)), str(make("b", 2, rate=5e4)))
    assert figure(found, "event_time_p50").label == "event time p50"
    assert figure(found, "event_time_p50").says == "better"
    assert figure(found, "ingested").says == "worse"


def test_rates_that_were_kept_up_with_make_no_side_better(make: Make) -> None:
    """They say what was asked; the difference and its interval stand, and other figures are told apart as ever."""
    asked = {"a": 1e5, "b": 5e4}
    paths = {name: make(name, seed, slower=slower) for name, seed, slower in (("a", 1, 1.3), ("b", 2, 1.0))}
    for name, per_s in asked.items():
        rates = Rates(offered_per_s=per_s, achieved_per_s=per_s, ingested_per_s=per_s, planned_per_s=per_s)
        folder = RunFolder.open(paths[name])
        folder.write_result(folder.read_result().model_copy(update={"rate": rates}))
    found = compare(str(paths["a"]), str(paths["b"]))
    one = figure(found, "ingested")
    assert (one.says, one.difference) == ("unknown", -0.5)
    assert one.low is not None
    assert "only say what was asked" in one.reason
    assert figure(found, "event_time_p50").says == "better"
    assert "1 of" in comparison_document.sentences(found)[-1]
    assert comparison_document.sentences(found)[-1].endswith("figures do not show which side is better.")


def test_of_two_workloads_neither_is_better(make: Make) -> None:
    """A rate of another question says nothing; user jobs are named after their files, and may ask the same."""
    for files, says in (({}, set()), ({"job.py": "0" * 64}, {"better", "worse"})):
        a = make(f"a{len(files)}", 1, slower=1.3, job_files=files)
        b = make(f"b{len(files)}", 2, rate=5e4, workload="filter", job_files=files)
        found = compare(str(a), str(b))
        assert {one.says for one in found.figures} & {"better", "worse"} == says
        assert ("workloads differ" in figure(found, "ingested").reason) is not bool(files)
        assert comparison_document.headline(found).endswith("no figure shows which side is better") is not bool(files)


def test_the_folder_a_command_was_given_in_is_no_difference(make: Make) -> None:
    """Spark's warehouse lies there, and neither reads nor writes anything of ours."""
    a, b = (make(name, seed, settings={"spark.sql.warehouse.dir": name}) for seed, name in enumerate("ab"))
    assert compare(str(a), str(b)).not_the_same == ()


def test_one_against_several_borrows_the_spread(make: Make, three: Three) -> None:
    """A single run has no spread of its own; that of the other side stands for it, and it is said."""
    found = compare(str(make("single", 1)), three("b", 20))
    assert figure(found, "event_time_p50").method == "runs"
    assert any("single run" in warning for warning in found.warnings)


@pytest.mark.parametrize(
    ("of_b_us", "said"), [(1200.0, "20% longer for B"), (1100.0, ""), (900.0, ""), (800.0, "20% less for B")]
)
def test_a_machine_that_was_another_one_is_warned_of(make: Make, of_b_us: float, said: str) -> None:
    """Whichever side it was slower on: what differs by as much may be its doing."""
    a, b = make("a", 1, reference_work_us=1000.0), make("b", 2, reference_work_us=of_b_us)
    warned = [each for each in compare(str(a), str(b)).warnings if "the machine's speed differed" in each]
    assert len(warned) == bool(said)
    assert not said or f"the reference work took {said}" in warned[0]


def test_a_figure_that_is_missing_is_unknown(make: Make) -> None:
    """A percentile that one run cannot carry has no difference, and the run is named."""
    few = Latencies(event_time_us=Latency(p50=2e5, count=10, effective_count=10))
    found = compare(str(make("a", 1)), str(make("b", 2, latency=few)))
    p99 = figure(found, "event_time_p99")
    assert (p99.says, p99.difference, p99.method) == ("unknown", None, "none")
    assert "B: 10 independent results are too few for p99 (b)" in p99.reason


def test_results_that_never_came_leave_an_end_open(make: Make) -> None:
    """B's p99 is at least what it says, so its interval has no upper end; its p50 is not touched."""
    late = Latencies(event_time_us=Latency(p50=2e5, p99=6e5, count=8000, effective_count=8000, lower_bounds=100))
    found = compare(str(make("a", 1)), str(make("b", 2, latency=late)))
    assert figure(found, "event_time_p99").high is None
    assert figure(found, "event_time_p50").high is not None


def test_wrong_answers_are_counted(make: Make) -> None:
    """A count of what was compared is no sample: one wrong row is one too many."""
    wrong = Verification(judged=True, independent=True, reference="DuckDB", expected=9, matched=8, wrong=1)
    one = figure(compare(str(make("a", 1)), str(make("b", 2, verification=wrong))), "wrong_answers")
    assert (one.difference, one.says, one.method) == (1.0, "worse", "counted")
    unjudged = figure(compare(str(make("c", 1)), str(make("d", 2, verification=None))), "wrong_answers")
    assert unjudged.says == "unknown"


def test_what_is_not_the_same_is_listed(make: Make) -> None:
    """Settings, isolation, machine and load that differ stand in the answer; a seed on both sides does not."""
    other = build({"workload": "identity", "load": {"rate": "120k", "seed": 2}}).model_dump(mode="json")
    b = make("b", 2, isolation="pinned", settings={"spark.sql.shuffle.partitions": "8"}, experiment=other,
             environment={"cpu_model": "another", "cpus": 2})  # fmt: skip
    found = {one.setting: (one.a, one.b) for one in compare(str(make("a", 1)), str(b)).not_the_same}
    assert found["settings.spark.sql.shuffle.partitions"] == (("2",), ("8",))
    assert found["isolation"] == (("shared",), ("pinned",))
    assert found["environment.cpu_model"] == (("made up",), ("another",))
    assert {"load.rate", "load.seed"} <= set(found)
    assert "environment.cpus" not in found


def test_two_profiles_are_told_apart(make: Make) -> None:
    """Once, by name; results from before there were profiles are of `tuned`."""
    plain = build({"workload": "identity", "tuning": "idiomatic"}).model_dump(mode="json")
    tuned = build({"workload": "identity"}).model_dump(mode="json")
    before = {name: value for name, value in tuned.items() if name != "tuning"}
    a, b = str(make("a", 1, experiment=tuned)), str(make("b", 2, experiment=plain, tuning="idiomatic"))
    (found,) = compare(a, b).not_the_same
    assert (found.setting, found.a, found.b) == ("tuning", ("tuned",), ("idiomatic",))
    assert compare(a, str(make("c", 3, experiment=before))).not_the_same == ()


def test_two_versions_of_a_job_are_told_apart(make: Make) -> None:
    """By what is in its files, as they have one name."""
    a, b = (make(name, number, job_files={"my_job.py": name * 64}) for number, name in enumerate("ab"))
    (found,) = compare(str(a), str(b)).not_the_same
    assert (found.setting, found.a, found.b) == (
        "job_files.my_job.py",
        (f"SHA-256 {'a' * 12}",),
        (f"SHA-256 {'b' * 12}",),
    )


def test_a_side_that_is_not_of_one_kind_is_listed(make: Make) -> None:
    """Runs of different engine settings on one side are not repetitions."""
    a = f"{make('a1', 1)},{make('a2', 2, isolation='pinned')}"
    found = compare(a, f"{make('b1', 3)},{make('b2', 4, isolation='pinned')}")
    assert [one.setting for one in found.not_the_same] == ["isolation"]


def test_a_run_against_itself_is_refused(make: Make) -> None:
    """Nor may a side have one of the other's runs, or a copy of it."""
    a, b = make("a", 1), make("b", 2)
    shutil.copytree(a, a.parent / "copy")
    for other in (a, a.parent / "copy", f"{b},{a}"):
        assert "B: must be other runs than A's; this one is in A too" in refused(str(a), str(other))


# --- searches ---


def search(
    make: Make,
    name: str,
    seed: int,
    sustained: float | None,
    confirmed: bool = True,
    high_verdict: Any = "not_sustained",
    refused: float | None = None,
) -> Path:
    trial = TrialSummary(number=2, purpose="confirm", offered_per_s=sustained, verdict="sustained")
    found = SearchResult(
        sustained_per_s=sustained, low=sustained, high=sustained and 1.05 * sustained, high_verdict=high_verdict,
        relative_width=0.05, confirmed=confirmed, trials=(trial,), sentence="said so",
        **({} if refused is None else {"refused_per_s": refused}),
    )  # fmt: skip
    return make(name, seed, search=found)


def test_two_searches_have_their_brackets(make: Make) -> None:
    """The rate that was confirmed; the interval is what both brackets allow."""
    a, b = search(make, "a", 1, 1e6), search(make, "b", 2, 9e5)
    shutil.copytree(make("trial", 3), a / "trials" / "02")
    rate = figure(compare(str(a), str(b)), "sustained")
    assert (rate.difference, rate.method, rate.says) == (pytest.approx(-0.1), "brackets", "worse")
    assert (rate.low, rate.high) == pytest.approx((9e5 / 1.05e6 - 1, 9e5 * 1.05 / 1e6 - 1))


def test_an_upper_end_that_was_undecided_bounds_nothing(make: Make) -> None:
    """B may be as much faster as it likes where nothing was shown to fail on its side; and A, on the other one."""
    a, b = search(make, "a", 1, 1e6), search(make, "b", 2, 9e5, high_verdict="undecided")
    rate, turned = (figure(compare(str(one), str(other)), "sustained") for one, other in ((a, b), (b, a)))
    assert (rate.low, rate.high, rate.says) == (pytest.approx(9e5 / 1.05e6 - 1), None, "no_difference")
    assert (turned.low, turned.high) == (None, pytest.approx(1.05e6 / 9e5 - 1))


def test_a_refused_rate_above_an_undecided_one_bounds_a_search(make: Make) -> None:
    """B may be faster than its undecided upper end, but not than what failed there."""
    a, b = search(make, "a", 1, 1e6), search(make, "b", 2, 9e5, high_verdict="undecided", refused=1.2e6)
    rate = figure(compare(str(a), str(b)), "sustained")
    assert (rate.low, rate.high) == pytest.approx((9e5 / 1.05e6 - 1, 1.2e6 / 1e6 - 1))


def test_a_gate_on_searches_reads_the_sustained_rate(make: Make) -> None:
    """`rate` is the sustained one, and equal searches are no surer than their brackets."""
    a = ",".join(str(search(make, f"a{n}", n, 1e6)) for n in range(3))
    b = ",".join(str(search(make, f"b{n}", 10 + n, 8e5)) for n in range(3))
    found = compare(a, b, ["rate -5%"])
    assert (found.gates[0].figure, found.gates[0].state) == ("sustained", "failed")
    one = figure(found, "sustained")
    assert one.low is not None
    assert one.high is not None
    assert one.low < -0.2 < one.high


@pytest.mark.parametrize(
    ("undecided", "ends", "state"), [("b", (True, False), "passed"), ("a", (False, True), "unknown")]
)
def test_over_searches_an_upper_end_that_was_undecided_bounds_nothing(
    make: Make, undecided: str, ends: tuple[bool, bool], state: str
) -> None:
    """What A holds is a lower bound alone, so B may be far below what A sustains: that is no pass."""
    verdicts = {
        side: ["undecided" if side == undecided and n == 1 else "not_sustained" for n in range(3)] for side in "ab"
    }
    a, b = (
        ",".join(
            str(search(make, f"{side}{n}", 10 * n + (side == "b"), 1e6, high_verdict=one))
            for n, one in enumerate(verdicts[side])
        )
        for side in "ab"
    )
    found = compare(a, b, ["rate -15%"])
    one = figure(found, "sustained")
    assert (one.low is not None, one.high is not None) == ends
    assert (found.gates[0].state, one.says) == (state, "no_difference")
    assert "undecided" in one.reason
    assert "more runs" not in found.gates[0].sentence


def test_two_sides_without_a_refused_rate_cannot_be_told_apart(make: Make) -> None:
    """Two lower bounds say nothing about each other: unknown, which is not "no difference shown"."""
    a, b = (search(make, name, n, 1e6, high_verdict="undecided") for n, name in enumerate("ab"))
    rate = figure(compare(str(a), str(b)), "sustained")
    assert (rate.low, rate.high, rate.says) == (None, None, "unknown")


# --- gates ---


def test_gates_pass_fail_or_are_unknown(three: Three) -> None:
    """Within the limit, beyond it, across it: only the first passes."""
    a, b = three("a", 10), three("b", 20, slower=1.2)
    states = [gate.state for gate in compare(a, b, ["p50 +60%", "p50 +5%", "p50 +20%", "rate -5%"]).gates]
    assert states == ["passed", "failed", "unknown", "passed"]
    assert compare(a, b, ["p50 +60%"]).passed
    assert not compare(a, b, ["p50 +60%", "p50 +20%"]).passed


def test_a_gate_on_a_missing_figure_is_unknown(three: Three) -> None:
    """Nothing measured is nothing passed."""
    a, b = three("a", 10), three("b", 20, latency=Latencies())
    found = compare(a, b, ["p99 +10%", "closing_delay_p50 +10%"])
    assert [gate.state for gate in found.gates] == ["unknown", "unknown"]
    assert "B: event time does not apply, or was not measured" in found.gates[0].sentence
    assert not found.passed


def offered(rate: str, profile: str = "constant") -> dict[str, Any]:
    """What a run keeps of a load that was asked for."""
    return build({"workload": "identity", "load": {"rate": rate, "profile": profile}}).model_dump(mode="json")


def test_no_gate_is_decided_between_different_workloads(three: Three) -> None:
    """Neither passed nor failed, on any figure; user jobs are named after their files, and may ask the same."""
    rules = ["rate -5%", "p50 +60%", "p50 +0.1%", "cpu +10%", "wrong_answers +0"]
    of_jobs = ["passed", "passed", "failed", "passed", "passed"]
    for name, files, states in (("b", {}, ["unknown"] * 5), ("c", {"job.py": "0" * 64}, of_jobs)):
        a = three(f"a{name}", 10, job_files=files)
        found = compare(a, three(name, 20, workload="filter", job_files=files, slower=1.2), rules)
        assert [gate.state for gate in found.gates] == states
        assert all("the workloads differ" in gate.sentence for gate in found.gates) is not bool(files)
        assert not found.passed


def test_no_gate_on_latency_is_decided_between_results_of_different_kinds(three: Three) -> None:
    """A window's value so far counts from another event than its last one; rates and answers stay what they are."""
    of_kind = {
        kind: (SinkResult(name="revenue", rows=9, latency=Latencies(), kind=kind),) for kind in ("window", "update")
    }
    a = three("a", 10, sinks=of_kind["window"])
    found = compare(
        a, three("b", 20, sinks=of_kind["update"], slower=1.2), ["p50 +60%", "cpu +60%", "wrong_answers +0"]
    )
    assert [gate.state for gate in found.gates] == ["unknown", "passed", "passed"]
    assert "results are of different kinds" in found.gates[0].sentence
    assert "results are of different kinds" in figure(found, "event_time_p50").reason
    alike = compare(a, three("c", 30, sinks=of_kind["window"]), ["p50 +60%"])
    assert alike.gates[0].state == "passed"


def took_in(side: str, offered_per_s: float, ingested_per_s: float) -> str:
    """The runs of a folder, with other rates."""
    rates = Rates(
        offered_per_s=offered_per_s, achieved_per_s=ingested_per_s, ingested_per_s=ingested_per_s,
        planned_per_s=offered_per_s,
    )  # fmt: skip
    for path in Path(side).iterdir():
        folder = RunFolder.open(path)
        folder.write_result(folder.read_result().model_copy(update={"rate": rates}))
    return side


def test_no_gate_on_latency_is_decided_between_different_loads(three: Three) -> None:
    """Less to do makes every latency shorter: said by how much, in the gate and as a warning. Answers count anyhow."""
    b = took_in(three("b", 20, experiment=offered("69k")), 69e3, 69e3)
    found = compare(three("a", 10), b, ["p50 +60%", "cpu +60%", "rate -60%", "wrong_answers +0"])
    assert [gate.state for gate in found.gates] == ["unknown", "unknown", "unknown", "passed"]
    less = f"B was offered {format_percent(31)} less"
    assert all(less in gate.sentence for gate in found.gates[:3])
    assert "only say what was asked" in found.gates[2].sentence
    assert any(less in warning for warning in found.warnings)


def test_another_profile_is_another_load(three: Three) -> None:
    """Though it begins at the same rate."""
    found = compare(three("a", 30), three("b", 40, experiment=offered("100k", "ramp:200k")), ["p50 +60%"])
    assert found.gates[0].state == "unknown"
    assert "A and B were offered different loads" in found.gates[0].sentence


@pytest.mark.parametrize(("a_per_s", "state"), [(8e4, "failed"), (1e5, "unknown")])
def test_a_rate_that_neither_side_kept_up_with_is_its_own(three: Three, a_per_s: float, state: str) -> None:
    """Whatever was offered; where one side kept up, what it took in is no limit of its system."""
    a, b = took_in(three("a", 10), 1e5, a_per_s), took_in(three("b", 20, experiment=offered("200k")), 2e5, 6e4)
    assert compare(a, b, ["rate -5%"]).gates[0].state == state


def test_a_gate_on_wrong_answers(three: Three) -> None:
    """None more than before."""
    wrong = Verification(judged=True, independent=True, reference="DuckDB", expected=9, matched=8, wrong=1)
    a = three("a", 10)
    assert compare(a, three("b", 20), ["wrong_answers +0"]).passed
    assert not compare(a, three("c", 30, verification=wrong), ["wrong_answers +0"]).passed


WRONG = Verification(judged=True, independent=True, reference="DuckDB", expected=9, matched=8, missing=1)


@pytest.mark.parametrize(
    ("verification", "state", "said"),
    [(WRONG, "failed", "n-2: wrong answers (1 missing)"), (None, "unknown", "n-2: answers not judged")],
)
def test_no_gate_passes_a_job_that_answers_wrongly(
    make: Make, three: Three, verification: Verification | None, state: str, said: str
) -> None:
    """One run of three on side B is enough, whatever is asked; on side A it is not the gate's business."""
    a, b = three("a", 10), three("b", 20)
    odd = make("c/n-2", 30, verification=verification)
    found = compare(a, f"{b},{odd}", ["rate -5%", "p50 +60%"])
    assert [(gate.rule, gate.state) for gate in found.gates] == [
        ("rate -5%", "passed"), ("p50 +60%", "passed"), (ANSWERS, state),
    ]  # fmt: skip
    assert said in found.gates[-1].sentence
    assert not found.passed
    assert compare(f"{a},{odd}", b, ["rate -5%"]).passed
    assert compare(a, f"{b},{odd}").gates == ()


def test_a_wrong_answer_fails_beside_answers_that_nobody_judged(make: Make, three: Three) -> None:
    """It is known to be wrong, whatever is not known of another run; both are told."""
    b = ",".join(
        [three("b", 20), *(str(make(f"c/n-{n}", 30 + n, verification=one)) for n, one in enumerate((WRONG, None)))]
    )
    (*_, gate) = compare(three("a", 10), b, ["rate -5%"]).gates
    assert (gate.rule, gate.state) == (ANSWERS, "failed")
    assert "n-0: wrong answers (1 missing); n-1: answers not judged" in gate.sentence


@pytest.mark.parametrize(("n_a", "n_b"), [(1, 3), (2, 3), (3, 2), (2, 2)])
def test_fewer_than_three_a_side_cannot_gate(make: Make, n_a: int, n_b: int) -> None:
    """It is refused, and said why; without a gate the same sides are compared."""
    a, b = (
        ",".join(str(make(f"{s}{n}", 10 * n + (s == "b"))) for n in range(many)) for s, many in (("a", n_a), ("b", n_b))
    )
    said = refused(a, b, ["rate -5%"])
    assert "at least 3 runs a side" in said
    assert f"A has {n_a}, B has {n_b}" in said
    assert compare(a, b).gates == ()


ends = st.floats(-0.9, 2)


@given(first=ends, second=ends, limit=st.floats(-0.9, 0.9), better=st.sampled_from(["higher", "lower"]))
def test_a_gate_passes_only_if_the_whole_interval_keeps_the_limit(
    first: float, second: float, limit: float, better: Any
) -> None:
    """Property: passed and failed exclude each other, and neither is said of an interval across the limit."""
    low, high = sorted((first, second))
    limit = abs(limit) if better == "lower" else -abs(limit)
    one = Difference(
        name="x", label="x", unit="us", better=better, a=1, b=1, difference=low, low=low, high=high, method="runs"
    )
    state = judge(Rule("x", "x", limit), one).state
    kept = [end <= limit if better == "lower" else end >= limit for end in (low, high)]
    assert state == ("passed" if all(kept) else "unknown" if any(kept) else "failed")
    opened = judge(Rule("x", "x", limit), one.model_copy(update={"high" if better == "lower" else "low": None})).state
    assert opened != "passed"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must be FIGURE"),
        ("rate", "must be FIGURE"),
        ("rate 5%", "must be FIGURE"),
        ("rate -5%%", "must be FIGURE"),
        ("rate <5%", "must be FIGURE"),
        ("speed -5%", "FIGURE must be one of rate, p50"),
        ("p9 +5%", '--fail-if "p99 +5%"'),
        ("ingest -5%", '--fail-if "ingested -5%"'),
        ("p98 +5%", "FIGURE must be one of"),
        ("rate +5%", "only - can fail"),
        ("p99 -10%", "only + can fail"),
        ("rate -100%", "never fail"),
        ("p99 +10", "with %"),
        ("wrong_answers +1%", "without %"),
    ],
)
def test_a_rule_that_means_nothing_is_refused(text: str, said: str) -> None:
    """Each with the choices or a rule that would do."""
    with pytest.raises(InputError, match="--fail-if") as error:
        parse_rule(text, "run")
    assert said in str(error.value)
    assert "try: --fail-if" in str(error.value)


@pytest.mark.parametrize(
    ("text", "name", "limit"),
    [
        ("rate -5%", "ingested", -0.05),
        ("p99+10%", "event_time_p99", 0.1),
        ("  p99.9 + 10 % ", "event_time_p99_9", 0.1),
        ("processing_time_p50 +2.5%", "processing_time_p50", 0.025),
        ("sustained \u22125%", "sustained", -0.05),
        ("wrong_answers +0", "wrong_answers", 0.0),
    ],
)
def test_rules_are_read_as_people_write_them(text: str, name: str, limit: float) -> None:
    """Spaces, the short names, a true minus sign."""
    rule = parse_rule(text, "run")
    assert (rule.figure, rule.limit) == (name, pytest.approx(limit))


def test_every_short_name_is_of_a_figure() -> None:
    """What `choices` promises is there."""
    for name in ("rate", "p50", "p90", "p95", "p99", "p99.9", "mean", "cpu", "memory", "closing_delay_p99"):
        assert resolve(name, "run") in comparables()
    assert resolve("rate", "search") == "sustained"


# --- sides ---


def test_sides_may_be_named_in_four_ways(make: Make) -> None:
    """A folder, a file in it, a folder of folders, several with commas."""
    a = make("runs/one", 1)
    make("runs/two", 2)
    b = str(make("b", 3))
    for given_as, many in ((a, 1), (a / "result.json", 1), (a.parent, 2), (f"{a}, {a.parent / 'two'}", 2)):
        assert len(compare(str(given_as), b).a.runs) == many


@pytest.mark.parametrize("value", ["invalid", "interrupted"])
def test_unusable_runs_are_refused_with_the_reason(make: Make, three: Three, value: Any) -> None:
    """Not left out in silence: each is named."""
    folder = three("a", 10)
    make("a/bad", 4, verdict=Verdict(value=value, sentence="the disk was full."))
    said = refused(folder, str(make("b", 2)))
    assert f"and not {value} (the disk was full)" in said
    assert "bad" in said


def test_what_is_wrong_with_many_runs_is_told_once(make: Make) -> None:
    """With the names of all, side by side."""
    full, other = (Verdict(value="invalid", sentence=f"{why}.") for why in ("the disk was full", "the clock stood"))
    a = ",".join(str(make(f"a{n}", n, verdict=other if n == 3 else full)) for n in range(4))
    said = refused(a, str(make("b", 9)))
    assert said.count("the disk was full") == said.count("the clock stood") == 1
    assert all(name in said for name in a.split(","))


@pytest.mark.parametrize(("sustained", "confirmed"), [(None, False), (1e6, False)])
def test_a_search_without_a_confirmed_rate_is_refused(make: Make, sustained: float | None, confirmed: bool) -> None:
    """What was not confirmed is a guess."""
    said = refused(str(search(make, "a", 1, sustained, confirmed)), str(search(make, "b", 2, 1e6)))
    assert "confirmed a rate; said so" in said


def test_a_run_and_a_search_are_two_things(make: Make) -> None:
    assert "runs on both sides, or searches" in refused(str(make("a", 1)), str(search(make, "b", 2, 1e6)))


def test_the_same_run_counts_once(make: Make) -> None:
    """Named twice, or copied: neither is another observation."""
    a, b = make("a", 1), make("b", 2)
    shutil.copytree(a, a.parent / "copy")
    for twice in (f"{a},{a}", f"{a},{a.parent / 'copy'}"):
        assert "is there twice" in refused(twice, str(b))


def test_everything_wrong_is_told_at_once(make: Make, tmp_path: Path) -> None:
    """Both sides, the rule and the confidence."""
    (tmp_path / "empty").mkdir()
    said = refused("nowhere", str(tmp_path / "empty"), ["speed -5%"], 1.5)
    for part in (
        "A: must be there",
        "B: must hold a result.json",
        "--fail-if: FIGURE",
        "--confidence: must be from 50%",
    ):
        assert part in said


def test_a_log_that_cannot_be_read_is_refused(make: Make) -> None:
    """A damaged histogram is no histogram of zeros."""
    a = make("a", 1)
    (a / "latency.hlog").write_text("Tag=event_time,1.0,1.0,1.0,HISTnonsense\n")
    assert "latency.hlog must be an HdrHistogram log" in refused(str(a), str(make("b", 2)))


def test_a_second_of_nothing_is_no_second(make: Make) -> None:
    """A second that holds only errors of the clocks has an empty histogram; it weighs nothing."""
    a, b = make("a", 1), make("b", 2)
    before = figure(compare(str(a), str(b)), "event_time_p50")
    path = a / "latency.hlog"
    path.write_text(path.read_text() + log_lines({START + 99: Histogram()}, "event_time"))
    assert figure(compare(str(a), str(b)), "event_time_p50") == before


def test_of_several_sinks_the_slowest_ones_seconds_are_compared(make: Make) -> None:
    """Its latency is the run's; lines of the other sink are not mixed in."""
    a, b = make("a", 1), make("b", 2)
    before = figure(compare(str(a), str(b)), "event_time_p50")
    for path in (a, b):
        result = RunFolder(path).read_result()
        quick = SinkResult(name="quick", rows=9, latency=Latencies())
        slow = SinkResult(name="slow", rows=9, latency=result.latency)
        RunFolder(path).write_result(result.model_copy(update={"sinks": (quick, slow)}))
        log = (path / "latency.hlog").read_text()
        other = log_lines({START: Histogram(counts_of([7, 7]))}, "event_time/quick")
        (path / "latency.hlog").write_text(other + log.replace("Tag=event_time,", "Tag=event_time/slow,"))
    assert figure(compare(str(a), str(b)), "event_time_p50") == before


# --- histograms by second ---


def test_a_log_comes_back_as_it_went() -> None:
    """Tags, seconds and counts."""
    there = {START + n: Histogram(counts_of([100 * (n + 1), 5_000_000])) for n in range(3)}
    text = log_lines(there, "event_time") + log_lines(there, "processing_time")
    assert list(read_log(text)) == [(tag, s, h) for tag in ("event_time", "processing_time") for s, h in there.items()]
    counts, values = slots_of(there.values())
    assert counts.sum(axis=1).tolist() == [2, 2, 2]
    assert [int(values[row.nonzero()[0][0]]) for row in counts] == [histogram.min for histogram in there.values()]
