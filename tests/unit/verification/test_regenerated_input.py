"""Malformed records are counted by their rule, each once, in the input that verification makes again."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow.compute as pc
import pytest

from streamgauge.core.clock import US
from streamgauge.core.errors import InputError
from streamgauge.core.schema import EVENT_TIME
from streamgauge.dataflow.builder import flow as flow_of
from streamgauge.dataflow.nodes import Flow
from streamgauge.loadgen.plan import Plan
from streamgauge.results.run import MalformedRecords
from streamgauge.verification.expected import verify
from streamgauge.verification.regenerated_input import MalformedCount, counting
from streamgauge.workloads.registry import Job
from tests.helpers_recording import append_and_return
from tests.unit.helpers_answers import ROWS, START, UPDATES, WINDOWS, Case, faults, without

RULES = {"purchases": "price > 90 OR user_id < 5", "ads": "price <= 50"}
SPAN_END = START + 15 * US
SINKS = pytest.mark.parametrize(
    "flow", [ROWS, WINDOWS, UPDATES, flow_of(ROWS, WINDOWS)], ids=["slices", "whole", "twice", "several sinks"]
)


def planned(plan: Plan, until_us: int, rules: Mapping[str, str] = RULES) -> dict[str, MalformedRecords]:
    """The records of each stream before a time, and those that are malformed, by making all of them."""
    found = {}
    for number, stream in enumerate(plan.streams):
        if stream.name not in rules:
            continue
        parts = [
            plan.batch(number, each, 0, plan.count_before(number, each, until_us)) for each in range(plan.partitions)
        ]
        malformed = 0
        for part in parts:
            price, user = part.column("price"), part.column("user_id")
            mask = (
                pc.or_(pc.greater(price, 90), pc.less(user, 5))
                if stream.name == "purchases"
                else pc.less_equal(price, 50)
            )
            malformed += pc.sum(mask).as_py()
        records = sum(part.num_rows for part in parts)
        found[stream.name] = MalformedRecords(rule=rules[stream.name], malformed=malformed, records=records)
    return found


def with_rules(trial: Case, rules: Mapping[str, str]) -> Case:
    """The trial, of a workload that has these rules."""
    job = Job(trial.resolved.flow, trial.record.trial_log.plan.streams, rules)
    trial.resolved = replace(trial.resolved, workload=replace(trial.resolved.workload, build=lambda _, __: job))
    return trial


@SINKS
def test_every_record_of_warm_up_and_span_is_counted_once(case: Callable[..., Case], make: Any, flow: Flow) -> None:
    """In slices, in one piece, read twice or for each sink; with fields and streams that the flow does not read."""
    trial = with_rules(case(flow), RULES)
    found = trial.verified(make, **{sink.name: [] for sink in flow.sinks})
    assert found.verification.malformed == planned(trial.record.trial_log.plan, SPAN_END)
    assert all(0 < one.malformed < one.records for one in found.verification.malformed.values())
    if len(flow.sinks) > 1:
        assert [sink.verification.malformed for sink in found.sinks] == [{}, {}]


def test_what_the_system_under_test_gave_changes_no_count(case: Callable[..., Case], make: Any) -> None:
    """Answers are found wrong as ever beside it."""
    trial = with_rules(case(ROWS), RULES)
    found = trial.verified(make, rows=[without(trial.answer(), 0)]).verification
    assert faults(found) == {"missing": 1}
    assert found.malformed == planned(trial.record.trial_log.plan, SPAN_END)


def test_a_run_that_ended_early_has_what_it_offered(case: Callable[..., Case], make: Any) -> None:
    """No record is counted that was never there."""
    trial = with_rules(case(ROWS, drained=False, engine_failed="the engine died"), RULES)
    trial.receive(make, rows=[trial.answer()])
    until = min(trial.record.offered_until(), SPAN_END)
    assert verify(trial.resolved, trial.record).verification.malformed == planned(trial.record.trial_log.plan, until)


def test_no_rule_no_count(case: Callable[..., Case], make: Any) -> None:
    """And zero is a count."""
    trial = with_rules(case(ROWS), {})
    assert trial.verified(make, rows=[trial.answer()]).verification.malformed == {}
    trial = with_rules(trial, {"purchases": "price < 0"})
    assert verify(trial.resolved, trial.record).verification.malformed["purchases"].malformed == 0


@pytest.mark.parametrize("order", ["pieces", "overlapping", "with a gap", "again", "nothing"])
def test_pieces_in_any_form_are_counted_once(make: Any, order: str) -> None:
    """What was not seen, or not with all that the rule asks for, is made for it; nothing past the border counts."""
    plan, until = make.plan(), START + 7 * US
    rules = {"purchases": RULES["purchases"]}
    pieces = {
        "pieces": [(0, 1000), (1000, 4000)],
        "overlapping": [(0, 1000), (500, 1500), (1400, 9000)],
        "with a gap": [(0, 1000), (1200, 1500)],
        "again": [(0, 2000), (0, 2000)],
        "nothing": [],
    }
    with counting(plan, rules, until) as counted:
        for first, last in pieces[order]:
            counted.see(0, 0, first, plan.batch(0, 0, first, last))
            counted.see(0, 1, first, plan.batch(0, 1, first, last, ["price", EVENT_TIME]))
        assert counted.counts() == planned(plan, until, rules)


def test_what_was_seen_is_not_made_again(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The count is nearly free where verification has the records at hand."""
    plan = make.plan(partitions=1)
    count, until = plan.count_before(0, 0, SPAN_END), SPAN_END
    batch = plan.batch(0, 0, 0, count)
    with counting(plan, {"purchases": RULES["purchases"]}, until) as counted:
        counted.see(0, 0, 0, batch)
        monkeypatch.setattr(MalformedCount, "see", lambda *_: pytest.fail("was made again"))
        assert counted.counts()["purchases"].records == count


def test_verification_makes_no_record_for_the_count_alone(
    case: Callable[..., Case], make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the flow reads what the rule asks for, as many batches are made with a rule as without."""
    made, batch = list[Any](), Plan.batch
    monkeypatch.setattr(Plan, "batch", lambda plan, *args: append_and_return(made, args, batch(plan, *args)))
    calls = []
    for rules in ({}, {"purchases": RULES["purchases"]}):
        trial = with_rules(case(ROWS), rules)
        trial.receive(make, rows=[])
        made.clear()
        verify(trial.resolved, trial.record)
        calls.append(list(made))
    assert calls[0] == calls[1] != []


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"clicks": "price > 1"}, "must be of a stream of the job"),
        ({"purchases": "cost > 1"}, "column cost"),
        ({"purchases": "price + 1"}, "must be a condition"),
        ({"purchases": "count(*) > 1"}, "must be a condition"),
        ({"purchases": "1 = 1"}, "must be a condition"),
        ({"purchases": "hash(price) = 1"}, "is not allowed"),
    ],
)
def test_a_rule_that_is_none_is_refused(make: Any, rules: Mapping[str, str], message: str) -> None:
    """By the same binder as all expressions."""
    with pytest.raises(InputError, match=message):
        Job(ROWS, make.plan(streams=2).streams, rules).check_rules()
