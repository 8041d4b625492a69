"""What several sinks begin with is computed once, and each is judged as if it had been computed for it alone."""

from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from streamgauge.config.experiment import build
from streamgauge.dataflow.builder import flow as flow_of
from streamgauge.dataflow.builder import tumble
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.rate_profile import parse_profile
from streamgauge.preflight.settings_checks import check
from streamgauge.verification import expected as module
from streamgauge.verification.expected import _compared_whole, shared_operator, shared_plans
from tests.unit.helpers_answers import PURCHASES, START, Case, faults

DEAR = PURCHASES.where("price > 50", name="dear").select(user_id="user_id", twice="price * 2", name="twice")
WINDOWS = DEAR.window(tumble("2s"), keys="user_id").aggregate(spent="sum(twice)", name="spent").sink("windows")
COUNTS = DEAR.window(tumble("2s"), keys="user_id").aggregate(n="count(*)", name="count").sink("counts")


def test_it_is_the_step_that_saves_most() -> None:
    """Row by row on a source, the last one of equally many sinks; a source alone is none, as nothing is computed there.
    Before what two sinks have in common comes what four have.
    """
    assert shared_operator(flow_of(WINDOWS, COUNTS)) == DEAR.node
    apart = PURCHASES.window(tumble("2s"), keys="user_id").aggregate(n="count(*)", name="count").sink("counts")
    assert shared_operator(flow_of(WINDOWS, apart)) is None
    assert shared_operator(WINDOWS) is None
    further = DEAR.where("twice > 150", name="dearest")
    sinks = [further.running(keys="user_id", n="count(*)", name=name).sink(name) for name in ("a", "b")]
    assert shared_operator(flow_of(WINDOWS, COUNTS, *sinks)) == DEAR.node


def test_what_follows_may_be_identified_by_events_or_not(case: Callable[..., Case], make: Any) -> None:
    """Some sinks look at windows, and one at which event was first: what they share has the columns of both."""
    first = DEAR.distinct(keys="user_id", window=tumble("2s"), name="first").select(user_id="user_id", name="kept")
    firsts = first.window(tumble("2s"), keys="user_id").aggregate(first="count(*)", name="firsts").sink("firsts")
    trial = case(flow_of(WINDOWS, COUNTS, firsts))
    assert shared_operator(_compared_whole(trial.resolved)) == DEAR.node
    answers = {name: [trial.answer(name)] for name in ("windows", "counts", "firsts")}
    found_faults = {sink.name: faults(sink.verification) for sink in trial.verified(make, **answers).sinks}
    assert found_faults == {name: {} for name in answers}


@pytest.mark.parametrize(
    "application", [pytest.param("log_processing", marks=pytest.mark.long), "click_analytics", "smart_grid"]
)
def test_each_sink_of_an_application_is_judged_as_alone(application: str, make: Any, tmp_path: Path) -> None:
    """By the reference for it alone, and by what is kept for all of them: the same answers."""
    resolved = check(build({"workload": application, "load": {"rate": 1000, "generators": 2}}))
    plan = Plan(resolved.streams(1000.0), parse_profile("constant", 1000.0, 20.0), START, 20.0, 2, 1)
    trial = Case(resolved, make.story(plan=plan).record(), tmp_path)
    sinks = [sink.name for sink in resolved.flow.sinks]
    found = trial.verified(make, **{name: [trial.answer(name)] for name in sinks}).sinks
    assert {sink.name: (faults(sink.verification), sink.verification.matched > 0) for sink in found} == dict.fromkeys(
        sinks, ({}, True)
    )


def test_what_was_computed_once_is_what_is_judged_by(
    case: Callable[..., Case], make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were rows lost from it, both sinks would have answers that nobody expects."""

    @contextmanager
    def fewer(*given: Any) -> Any:
        with shared_plans(*given) as relations:
            yield {name: f"(SELECT * FROM {kept} WHERE user_id % 2 = 0)" for name, kept in relations.items()}

    monkeypatch.setattr(module, "shared_plans", fewer)
    trial = case(flow_of(WINDOWS, COUNTS))
    for sink in trial.verified(make, windows=[trial.answer("windows")], counts=[trial.answer("counts")]).sinks:
        assert faults(sink.verification)["extra"] > 0
