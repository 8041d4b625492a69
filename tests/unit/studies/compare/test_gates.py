"""studies/compare/compare.py: rules that pass, fail or stay unknown."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.errors import InputError
from streamgauge.core.exit_codes import ExitCode
from streamgauge.core.formatting import format_percent
from streamgauge.results.comparison import Difference
from streamgauge.results.latency import Latencies
from streamgauge.results.run import SinkResult, Verification
from streamgauge.studies.compare.compare import ANSWERS, GateRule, compare, judge, parse_rule
from tests.unit.studies.compare.helpers_compare import Make, Three, asked, ends, figure, refused


def test_gates_pass_fail_or_are_unknown(three: Three) -> None:
    """Within the limit, beyond it, across it: only the first passes."""
    a, b = three("a", 10), three("b", 20, slower=1.2)
    states = [gate.state for gate in compare(a, b, ["p50 +60%", "p50 +5%", "p50 +20%", "rate -5%"]).gates]
    assert states == ["passed", "failed", "unknown", "passed"]
    assert compare(a, b, ["p50 +60%"]).exit_code == ExitCode.HOLDS
    assert compare(a, b, ["p50 +60%", "p50 +20%"]).exit_code == ExitCode.UNDECIDED
    assert compare(a, b, ["p50 +5%", "p50 +20%"]).exit_code == ExitCode.FAILS


def test_a_gate_on_a_missing_figure_is_unknown(three: Three) -> None:
    """Nothing measured is nothing passed."""
    a, b = three("a", 10), three("b", 20, latency=Latencies())
    comparison = compare(a, b, ["p99 +10%", "closing_delay_p50 +10%"])
    assert [gate.state for gate in comparison.gates] == ["unknown", "unknown"]
    assert "B: event time does not apply, or was not measured" in comparison.gates[0].sentence
    assert comparison.exit_code == ExitCode.UNDECIDED


def test_no_gate_is_decided_between_different_workloads(three: Three) -> None:
    """Neither passed nor failed, on any figure; user jobs are named after their files, and may ask the same."""
    rules = ["rate -5%", "p50 +60%", "p50 +0.1%", "cpu +10%", "wrong_answers +0"]
    of_jobs = ["passed", "passed", "failed", "passed", "passed"]
    for name, files, states in (("b", {}, ["unknown"] * 5), ("c", {"job.py": "0" * 64}, of_jobs)):
        a = three(f"a{name}", 10, job_files=files)
        comparison = compare(a, three(name, 20, workload="filter", job_files=files, slower=1.2), rules)
        assert [gate.state for gate in comparison.gates] == states
        assert all("the workloads differ" in gate.sentence for gate in comparison.gates) is not bool(files)
        assert comparison.exit_code == (ExitCode.FAILS if files else ExitCode.UNDECIDED)


def test_no_gate_on_latency_is_decided_between_results_of_different_kinds(three: Three) -> None:
    """A window's value so far counts from another event than its last one; rates and answers stay what they are."""
    of_kind = {
        kind: (SinkResult(name="revenue", rows=9, latency=Latencies(), kind=kind),) for kind in ("window", "update")
    }
    a = three("a", 10, sinks=of_kind["window"])
    comparison = compare(
        a, three("b", 20, sinks=of_kind["update"], slower=1.2), ["p50 +60%", "cpu +60%", "wrong_answers +0"]
    )
    assert [gate.state for gate in comparison.gates] == ["unknown", "passed", "passed"]
    assert "results are of different kinds" in comparison.gates[0].sentence
    assert "results are of different kinds" in figure(comparison, "event_time_p50").reason
    assert compare(a, three("c", 30, sinks=of_kind["window"]), ["p50 +60%"]).gates[0].state == "passed"


def test_no_gate_on_latency_is_decided_between_different_loads(three: Three) -> None:
    """Less to do makes every latency shorter: the gate and a warning show by how much. Answers count anyhow."""
    b = three("b", 20, experiment=asked(load={"rate": "69k"}), rate=69e3, offered=69e3)
    comparison = compare(three("a", 10), b, ["p50 +60%", "cpu +60%", "rate -60%", "wrong_answers +0"])
    assert [gate.state for gate in comparison.gates] == ["unknown", "unknown", "unknown", "passed"]
    less = f"B was offered {format_percent(31)} less"
    assert all(less in gate.sentence for gate in comparison.gates[:3])
    assert "only say what was asked" in comparison.gates[2].sentence
    assert any(less in warning for warning in comparison.warnings)


def test_another_profile_is_another_load(three: Three) -> None:
    """Though it begins at the same rate."""
    comparison = compare(
        three("a", 30), three("b", 40, experiment=asked(load={"rate": "100k", "profile": "ramp:200k"})), ["p50 +60%"]
    )
    assert comparison.gates[0].state == "unknown"
    assert "A and B were offered different loads" in comparison.gates[0].sentence


@pytest.mark.parametrize(("a_per_s", "state"), [(8e4, "failed"), (1e5, "unknown")])
def test_a_rate_that_neither_side_kept_up_with_is_its_own(three: Three, a_per_s: float, state: str) -> None:
    """Whatever was offered; where one side kept up, what it took in is no limit of its system."""
    a = three("a", 10, rate=a_per_s)
    b = three("b", 20, experiment=asked(load={"rate": "200k"}), rate=6e4, offered=2e5)
    assert compare(a, b, ["rate -5%"]).gates[0].state == state


WRONG = Verification(judged=True, independent=True, reference="DuckDB", expected=9, matched=8, missing=1)


@pytest.mark.parametrize(
    ("answers", "state", "message"),
    [
        ([WRONG], "failed", "n-0: wrong answers (1 missing)"),
        ([None], "unknown", "n-0: answers not judged"),
        ([WRONG, None], "failed", "n-0: wrong answers (1 missing); n-1: answers not judged"),
    ],
)
def test_no_gate_passes_a_job_that_answers_wrongly(
    make_run: Make, three: Three, answers: list[Any], state: str, message: str
) -> None:
    """One run on side B is enough, whatever is requested; on side A it is not the gate's business. An answer is known
    to be wrong, whatever is not known of another run.
    """
    a, b = three("a", 10), three("b", 20)
    odd = ",".join(str(make_run(f"c/n-{n}", 30 + n, verification=one)) for n, one in enumerate(answers))
    comparison = compare(a, f"{b},{odd}", ["rate -5%", "p50 +60%"])
    assert [(gate.rule, gate.state) for gate in comparison.gates] == [
        ("rate -5%", "passed"), ("p50 +60%", "passed"), (ANSWERS, state),
    ]  # fmt: skip
    assert message in comparison.gates[-1].sentence
    assert comparison.exit_code == (ExitCode.FAILS if state == "failed" else ExitCode.UNDECIDED)
    assert compare(f"{a},{odd}", b, ["rate -5%"]).exit_code == ExitCode.HOLDS
    assert compare(a, f"{b},{odd}").gates == ()


@pytest.mark.parametrize(("n_a", "n_b"), [(1, 3), (2, 3), (3, 2), (2, 2)])
def test_fewer_than_three_a_side_cannot_gate(make_run: Make, n_a: int, n_b: int) -> None:
    """It is refused, with the reason; without a gate the same sides are compared."""
    a, b = (
        ",".join(str(make_run(f"{s}{n}", 10 * n + (s == "b"))) for n in range(many))
        for s, many in (("a", n_a), ("b", n_b))
    )
    message = refused(a, b, ["rate -5%"])
    assert ("at least 3 runs a side" in message, f"A has {n_a}, B has {n_b}" in message) == (True, True)
    assert compare(a, b).gates == ()


@given(first=ends, second=ends, limit=st.floats(-0.9, 0.9), better=st.sampled_from(["higher", "lower"]))
def test_a_gate_passes_only_if_the_whole_interval_keeps_the_limit(
    first: float, second: float, limit: float, better: Any
) -> None:
    """Property: passed and failed exclude each other, and neither is reported of an interval across the limit."""
    low, high = sorted((first, second))
    limit = abs(limit) if better == "lower" else -abs(limit)
    one = Difference(
        name="x", label="x", unit="us", better=better, a=1, b=1, difference=low, low=low, high=high, method="runs"
    )
    state = judge(GateRule("x", "x", limit), one).state
    within = [end <= limit if better == "lower" else end >= limit for end in (low, high)]
    assert state == ("passed" if all(within) else "unknown" if any(within) else "failed")
    opened = judge(
        GateRule("x", "x", limit), one.model_copy(update={"high" if better == "lower" else "low": None})
    ).state
    assert opened != "passed"


@pytest.mark.parametrize(
    ("text", "message"),
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
def test_a_rule_that_means_nothing_is_refused(text: str, message: str) -> None:
    """Each with the choices or a rule that would do."""
    with pytest.raises(InputError, match="--fail-if") as refusal:
        parse_rule(text, "run")
    assert message in str(refusal.value)


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
