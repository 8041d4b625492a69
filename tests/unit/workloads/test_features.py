"""What a workload says that it exercises is what its flow does."""

import re
from typing import Any

import pytest

from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import (  # fmt: skip
    Distinct,
    Explode,
    Flow,
    IntervalJoin,
    Lookup,
    Node,
    Process,
    RunningAggregate,
    Select,
    Source,
    TopN,
    Where,
    WindowAggregate,
    WindowJoin,
)
from streamgauge.dataflow.schema import STATEFUL
from streamgauge.workloads import registry
from streamgauge.workloads.registry import MEANING, Feature
from tests.unit.workloads.helpers_cuts import job_of

LONG = 1000
"""Letters of an expression that has a table in it: no rule that a person writes is so long."""


def flow_of(name: str, feature: Any = None) -> Flow:
    """A workload's flow by default, or with what the feature needs."""
    needed = registry.get(name).features_with
    return job_of(name, 100_000.0, **dict([needed[feature]] if feature in needed else [])).flow


def is_constant(node: Node, column: str) -> bool:
    """Whether a column is the same in every row, as far back as the operator that writes it."""
    for each in reversed(list(graph.walk(node))):
        if isinstance(each, Select) and column in dict(each.columns) and dict(each.columns)[column] != column:
            return re.fullmatch(r"'[^']*'|[0-9]+", dict(each.columns)[column]) is not None
    return False


def is_global(node: Node) -> bool:
    """Whether all its rows, or all of a window, have one key."""
    keys = getattr(node, "keys", ())
    if isinstance(node, TopN):
        return not keys
    keyed = isinstance(node, (Process, *STATEFUL)) and bool(keys)
    return keyed and all(key == "window_start" or is_constant(node, key) for key in keys)


def gathers(node: Node) -> bool:
    """Whether rows that come of one row meet again: a join of a stream with itself, or rows by key where several came
    of one.
    """
    if isinstance(node, IntervalJoin | WindowJoin):
        left, right = ({one for one in graph.walk(side) if isinstance(one, Source)} for side in (node.left, node.right))
        return bool(left & right)
    before = (one for one in graph.walk(node) if one != node)
    several = any(isinstance(one, Explode) or (isinstance(one, Process) and one.several) for one in before)
    return isinstance(node, Process) and bool(node.keys) and several


def visible_features(flow: Flow) -> set[Feature]:
    """The features that a flow shows without doubt: each must be stated, and none of these where it is not seen."""
    nodes = tuple(graph.operators(flow))
    processes = [node for node in nodes if isinstance(node, Process)]
    parameters = [dict(node.parameters) for node in processes]
    kinds = {type(node) for node in nodes}
    shown = {
        Feature.FLAT_MAP: Explode in kinds or any(node.several for node in processes),
        Feature.COUNT_WINDOW: any(
            node.keys and isinstance(given.get("window"), int)
            for node, given in zip(processes, parameters, strict=True)
        ),
        Feature.WINDOW: bool(kinds & {WindowAggregate, WindowJoin})
        or any("window_start" in dict(node.gives) for node in processes),
        Feature.GLOBAL: any(map(is_global, nodes)),
        Feature.TWO_STREAMS: len(graph.sources(flow)) > 1,
        Feature.SINKS: len(flow.sinks) > 1,
        Feature.PYTHON: any(node.keys for node in processes),
        Feature.PROBABILISTIC: any(
            type(value).__name__ == "Filter" for given in parameters for value in given.values()
        ),
        Feature.NOTHING: kinds == {Source},
        Feature.ROWS: kinds == {Source, Select},
    }
    assert shown.keys() == SEEN
    return {feature for feature, is_shown in shown.items() if is_shown}


def possible(flow: Flow) -> set[Feature]:
    """The features that a flow may have, by its operators, but what a class does inside is not seen."""
    nodes = tuple(graph.operators(flow))
    kinds = {type(node) for node in nodes}
    long = any(len(text) > LONG for node in nodes if isinstance(node, Select) for _, text in node.columns)
    maybe = {
        Feature.FILTER: kinds & {Process, Where},
        Feature.COUNTER: kinds & {RunningAggregate, Distinct, Process},
        Feature.SELF_JOIN: any(map(gathers, nodes)),
        Feature.LOOKUP: long or kinds & {Process, Lookup},
    }
    return {feature for feature, is_possible in maybe.items() if is_possible}


OWED = {RunningAggregate: Feature.COUNTER, Lookup: Feature.LOOKUP, Explode: Feature.FLAT_MAP}
SEEN = {
    Feature.FLAT_MAP, Feature.COUNT_WINDOW, Feature.WINDOW, Feature.GLOBAL, Feature.TWO_STREAMS, Feature.SINKS,
    Feature.PYTHON, Feature.PROBABILISTIC, Feature.NOTHING, Feature.ROWS,
}  # fmt: skip


@pytest.mark.parametrize("name", registry.names())
def test_what_is_stated_is_what_is_there(name: str) -> None:
    """Of what a flow shows nothing is missing and nothing is made up; the rest is possible by its operators."""
    stated, flow = registry.get(name).features, flow_of(name)
    assert len(set(stated)) == len(stated) > 0
    assert set(stated) & SEEN == visible_features(flow)
    assert set(stated) - SEEN <= possible(flow)
    assert {feature for node in graph.operators(flow) for kind, feature in OWED.items() if isinstance(node, kind)} <= {
        *stated
    }


@pytest.mark.parametrize("name", registry.names())
def test_what_needs_a_setting_is_there_with_it_alone(name: str) -> None:
    """It is no feature of the workload as it is by default."""
    for feature in registry.get(name).features_with:
        assert feature in visible_features(flow_of(name, feature)) | possible(flow_of(name, feature))
        assert feature not in registry.get(name).features


@pytest.mark.parametrize(
    ("name", "lie"),
    [
        ("word_count", Feature.WINDOW),
        ("word_count", Feature.SINKS),
        ("filter", Feature.PYTHON),
        ("filter", Feature.LOOKUP),
        ("trending_topics", Feature.SELF_JOIN),
        ("yahoo_streaming", Feature.COUNTER),
        ("spike_detection", Feature.TWO_STREAMS),
        ("voipstream", Feature.PROBABILISTIC),
        ("count", Feature.BROADCAST),
        ("reinforcement_learner", Feature.FEEDBACK),
    ],
)
def test_a_lie_would_be_seen(name: str, lie: Feature) -> None:
    """Each of these stands in no flow of that workload, and the rules above say so."""
    assert lie not in visible_features(flow_of(name)) | possible(flow_of(name))


def test_every_feature_has_a_meaning_and_nearly_every_one_a_workload() -> None:
    """The two that no flow has say so themselves."""
    assert list(MEANING) == list(Feature)
    used = {feature for name in registry.names() for feature in registry.get(name).exercises().values()}
    assert set(Feature) - used == {Feature.BROADCAST, Feature.FEEDBACK}
    assert all("No flow here has it" in MEANING[feature] for feature in set(Feature) - used)


def test_a_feature_that_needs_a_setting_is_named_with_it() -> None:
    """So that a reader can have it."""
    assert "probabilistic structures (--set filter=bloom)" in registry.get("voipstream").exercises()
    (row,) = registry.catalogue(name="word_count")
    assert [each["name"] for each in row["features"]] == [
        "flat-map", "unbounded keyed counter", "event-time window (--set window=10s)",
    ]  # fmt: skip
