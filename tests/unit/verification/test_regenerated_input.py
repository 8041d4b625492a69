"""Malformed records are counted by their rule, each once, in the input that verification makes again."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow.compute as pc
import pytest

from streamgauge.core.clock import US
from streamgauge.core.errors import InputError
from streamgauge.dataflow.builder import flow as flow_of
from streamgauge.loadgen.plan import Plan
from streamgauge.results.run import MalformedRecords
from streamgauge.verification.expected import verify
from streamgauge.workloads.registry import Job
from tests.unit.helpers_answers import ROWS, START, WINDOWS, Case, faults, without

RULES = {"purchases": "price > 90 OR user_id < 5", "ads": "price <= 50"}
SPAN_END = START + 15 * US


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


def test_every_record_of_warm_up_and_span_is_counted_once(case: Callable[..., Case], make: Any) -> None:
    """Of fields and streams that no sink reads, too. Answers are found wrong as ever beside it."""
    trial = with_rules(case(flow_of(ROWS, WINDOWS)), RULES)
    found = trial.verified(make, rows=[without(trial.answer("rows"), 0)], windows=[trial.answer("windows")])
    assert faults(found.verification) == {"missing": 1}
    assert found.verification.malformed == planned(trial.record.trial_log.plan, SPAN_END)
    assert all(0 < one.malformed < one.records for one in found.verification.malformed.values())


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
