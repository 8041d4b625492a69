"""The tests of every engine: what it refuses, what it answers, and how it dies.

`pytest --streamgauge-engine NAME` collects this module. A test module of your own may import its tests, and name the
engines in `STREAMGAUGE_ENGINES`.
"""

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeVar

import pytest

from streamgauge.conformance.cases import CASES, KINDS, kinds
from streamgauge.conformance.plugin import TRIAL
from streamgauge.conformance.trials import Kill, Restart, Subject, check_answers, check_results, started
from streamgauge.core.errors import InputError
from streamgauge.dataflow.graph import with_early_firing
from streamgauge.engines.conformance import EVERY_CASE, Gap
from streamgauge.engines.spi import StartRequest
from streamgauge.system.child_processes import wait_until

__all__ = [
    "test_a_case_is_let_through",
    "test_a_killed_engine_ends_the_trial_and_leaves_nothing",
    "test_a_parallelism_is_taken_where_the_engine_says_so",
    "test_answers_are_right_across_a_restart",
    "test_answers_are_right_over_every_transport",
    "test_answers_are_right_with_any_parallelism",
    "test_declared_nodes_are_those_that_it_runs",
    "test_every_answer_is_right",
    "test_every_gap_is_refused_with_a_reason_and_a_way_out",
    "test_gaps_name_cases",
    "test_partitions_are_refused_where_late_rows_are_not_counted",
    "test_unknown_options_are_refused",
]
TOGETHER = 6
"""The most cases that share a trial, on an engine with several sinks."""
GONE_S = 20.0
"""How long a killed engine's other processes may take to end."""
Test = TypeVar("Test", bound=Callable[..., None])
Parameters = Iterable[Any]


def with_each(*names: str, values: Callable[[Subject], Parameters]) -> Callable[[Test], Test]:
    """How the plug-in makes tests of one: names of arguments, and their values for an engine."""

    def mark(test: Test) -> Test:
        test.streamgauge_parameters = (names, values)  # type: ignore[attr-defined]
        return test

    return mark


def parameters(of: Subject, *values: Any, text: str = "", gap: Gap | None = None, trial: bool = False) -> Any:
    """One test of an engine; with a gap it must fail."""
    marks = [getattr(pytest.mark, TRIAL)] if trial else []
    if gap is not None:
        marks.append(pytest.mark.xfail(reason=f"{gap.kind}: {gap.reason}", raises=AssertionError, strict=True))
    return pytest.param(of, *values, marks=marks, id="-".join(filter(None, [of.engine, text])).replace(" ", "_"))


def once(of: Subject) -> Parameters:
    return [parameters(of)]


def every_case(of: Subject) -> Parameters:
    return [parameters(of, case, text=case, gap=of.conf.gap(case)) for case in CASES]


def trials(of: Subject) -> Parameters:
    """Cases over the same streams share a trial, if the engine has several sinks."""
    size = TOGETHER if of.capabilities.several_sinks else 1
    for streams in dict.fromkeys(case.streams for case in CASES.values()):
        names = [name for name in of.cases if CASES[name].streams == streams]
        for first in range(0, len(names), size):
            cases = tuple(names[first : first + size])
            yield parameters(of, cases, text=cases[0], trial=True)


def one_trial(of: Subject) -> Parameters:
    """One trial of the case that every engine of flows runs."""
    return [parameters(of, trial=True)] if "source" in of.cases else []


def restarts(of: Subject) -> Parameters:
    """Where rows may be read twice, `source` shows what is lost, and windows whether state is that of the offsets."""
    cases = {"source": of.conf.restart}
    if of.capabilities.delivery == "at_least_once" and "hopping window" in of.cases:
        cases = {"source": None, "hopping window": of.conf.restart}
    return [parameters(of, each, text=each, gap=cases[each], trial=True) for each in cases if each in of.cases]


def other_ways(of: Subject) -> Parameters:
    """Each transport, and each encoding with edge rows, except the first of both."""
    ways = [(each, "", "source") for each in of.transports[1:]]
    ways += [("kafka", each, "edge rows") for each in of.capabilities.encodings[1:] if "kafka" in of.transports]
    return [
        parameters(of, transport, encoding, case, text="-".join(filter(None, [transport, encoding])), trial=True)
        for transport, encoding, case in ways
        if case in of.cases
    ]


def parallelisms(of: Subject) -> Parameters:
    if not of.capabilities.sets_parallelism or "hopping window" not in of.cases:
        return []
    return [parameters(of, each, text=str(each), trial=True) for each in of.conf.parallelisms]


@with_each("subject", "case", values=every_case)
def test_a_case_is_let_through(subject: Subject, case: str) -> None:
    """By the checks before a run. A gap fails here, and the test fails when the engine closes it."""
    assert subject.problems(case) == ()


@with_each("subject", values=once)
def test_every_gap_is_refused_with_a_reason_and_a_way_out(subject: Subject) -> None:
    """Nothing is refused by a crash at the start."""
    for case in CASES.keys() - set(subject.cases):
        for problem in subject.problems(case):
            assert problem.rule, case
            assert problem.way_out, case


@with_each("subject", values=once)
def test_gaps_name_cases(subject: Subject) -> None:
    """Each gap is of a case of the suite, with a kind and a reason."""
    assert set(subject.conf.gaps) - set(CASES) - {EVERY_CASE} == set()
    for each in (*subject.conf.gaps.values(), *filter(None, [subject.conf.restart])):
        assert each.kind in ("notimpl", "notyet", "never")
        assert each.reason


@with_each("subject", values=once)
def test_declared_nodes_are_those_that_it_runs(subject: Subject) -> None:
    """Each node kind that the capabilities declare is in a case that is no gap, and has a lowering; a kind that has a
    lowering is declared, or its refusal has a reason.
    """
    capabilities, runs = subject.capabilities, set[str]()
    for case in subject.cases:
        flow = CASES[case].flow
        runs |= {kind.__name__ for kind in kinds(with_early_firing(flow) if capabilities.early_firing else flow)}
    ours = {kind.__name__ for kind in KINDS}
    declared = ours & set(capabilities.nodes)
    assert declared & set(capabilities.unsupported_reasons) == set(), "declared, and refused with a reason"
    if EVERY_CASE not in subject.conf.gaps:
        assert declared - runs == set(), "declared, and every case with it is a gap"
        assert ours & runs - declared == set(), "not declared, and in a case that is no gap"
    if subject.conf.lowered is not None:
        lowered = ours & {kind.__name__ for kind in subject.conf.lowered()}
        assert declared - lowered == set(), "declared without a lowering"
        undeclared = lowered - declared - set(capabilities.unsupported_reasons)
        assert undeclared == set(), "lowered, and neither declared nor refused with a reason"


@with_each("subject", values=once)
def test_a_parallelism_is_taken_where_the_engine_says_so(subject: Subject) -> None:
    """By any engine, for a flow of one operator."""
    for parallelism in subject.conf.parallelisms:
        refused = [
            each for each in subject.problems("source", parallelism=parallelism) if each.setting == "parallelism"
        ]
        assert bool(refused) != subject.capabilities.sets_parallelism, (parallelism, refused)


@with_each("subject", values=once)
def test_unknown_options_are_refused(subject: Subject) -> None:
    """By name."""
    with pytest.raises(InputError, match="no_such_option"):
        subject.plugin.check(StartRequest(None, {"no_such_option": "1"}, None, "common"))


@with_each("subject", values=once)
def test_partitions_are_refused_where_late_rows_are_not_counted(subject: Subject) -> None:
    """Partitions of a broker may lag, and windows close meanwhile."""
    capabilities = subject.capabilities
    if "kafka" not in capabilities.transports or "WindowAggregate" not in capabilities.nodes:
        return
    request = StartRequest(
        CASES["hopping window"].flow, dict(subject.conf.options), None, "common", transport="kafka", partitions=4
    )
    refused = pytest.raises(InputError, match="partitions")
    with nullcontext() if subject.conf.counts_late_rows else refused:
        subject.plugin.check(request)


@with_each("subject", "cases", values=trials)
def test_every_answer_is_right(tmp_path: Path, subject: Subject, cases: tuple[str, ...]) -> None:
    """Every result that the plan implies comes once, and every event is read once."""
    with started(subject, tmp_path, *cases) as running:
        judged = running.trial()
    check_answers(judged, cases)


@with_each("subject", "transport", "encoding", "case", values=other_ways)
def test_answers_are_right_over_every_transport(
    tmp_path: Path, subject: Subject, transport: str, encoding: str, case: str
) -> None:
    """And in every encoding. Over the first, all cases are tried."""
    with started(subject, tmp_path, case, transport=transport, encoding=encoding) as running:
        judged = running.trial()
    check_answers(judged, [case])


@with_each("subject", "parallelism", values=parallelisms)
def test_answers_are_right_with_any_parallelism(tmp_path: Path, subject: Subject, parallelism: int) -> None:
    """Windows, because their rows go from task to task. The result says how many instances it was started with."""
    with started(subject, tmp_path, "hopping window", parallelism=parallelism) as running:
        judged = running.trial()
    check_answers(judged, ["hopping window"])
    assert judged.result.environment["parallelism"] == parallelism


@with_each("subject", "case", values=restarts)
def test_answers_are_right_across_a_restart(tmp_path: Path, subject: Subject, case: str) -> None:
    """The engine is killed in mid-trial and started again: nothing is wrong, lost or given twice, beyond what the
    delivery that it promises allows.
    """
    with started(subject, tmp_path, case) as running:
        restart = running.conductor.observe = Restart(running.conductor.testbed)
        judged = running.trial()
    restart.check(judged)
    check_results(judged, CASES[case].least)


@with_each("subject", values=one_trial)
def test_a_killed_engine_ends_the_trial_and_leaves_nothing(tmp_path: Path, subject: Subject) -> None:
    """The check `connected` fails with the engine's reason, and no process of it is left."""
    with started(subject, tmp_path, "source") as running:
        kill = running.conductor.observe = Kill(running.conductor.testbed)
        assert kill.pids
        judged = running.trial()
    assert kill.done
    assert judged.record.engine_failed
    connected = next(each for each in judged.result.verdict.checks if each.name == "connected")
    assert connected.state == "failed", connected.sentence
    assert judged.record.engine_failed in connected.sentence
    assert judged.result.verdict.value in ("not_sustained", "invalid")
    assert wait_until(lambda: not kill.alive(), GONE_S), kill.alive()
