"""The thesis's instances: each of its operators is one of ours where the application is there."""

from __future__ import annotations

import pytest

from streamgauge.flow import graph
from streamgauge.flow.nodes import Source
from streamgauge.stats.instances import sums_possible
from streamgauge.studies.published import INSTANCES, of_operator
from streamgauge.workloads.base import get, names

THERE = [name for name in INSTANCES if name in names()]


@pytest.mark.parametrize("name", THERE)
def test_every_operator_of_the_thesis_is_one_here(name: str) -> None:
    """A renamed operator would lose its figure without a word."""
    workload = get(name)
    flow = workload.build(workload.parameters(), 10_000.0).flow
    there = {node.name for node in graph.operators(flow) if not isinstance(node, Source)}
    wanted = {here for each in INSTANCES[name] for here in each.here}
    assert wanted <= there


def test_rows_are_as_they_were_printed() -> None:
    """Source first, sink last."""
    printed = {name: [each.instances for each in row] for name, row in INSTANCES.items()}
    assert printed["word_count"] == [1, 5, 6, 3]
    assert printed["log_processing"] == [4, 1, 2, 4, 2, 4]
    assert printed["trending_topics"] == [9, 2, 1, 1, 1, 1]
    assert printed["click_analytics"] == [2, 2, 2, 5, 1, 1]
    assert printed["fraud_detection"] == [8, 3, 2]
    assert printed["spike_detection"] == [7, 3, 2, 1]


def test_half_of_the_rows_are_not_of_the_formula() -> None:
    """As it is printed, with ten shared out among all operators of a row."""
    outside = set()
    for name, row in INSTANCES.items():
        least, greatest = sums_possible(len(row))
        if not least <= sum(each.instances for each in row) <= greatest:
            outside.add(name)
    assert outside == {"word_count", "log_processing", "fraud_detection", "traffic_monitoring", "sentiment_analysis"}


def test_operators_are_found_by_what_they_are() -> None:
    """Sources and sinks by their role, two operators of the thesis that are one here both, others not at all."""
    assert [each.instances for each in of_operator("word_count", "sentences", "source")] == [1]
    assert [each.instances for each in of_operator("word_count", "counts", "sink")] == [3]
    assert [each.operator for each in of_operator("trending_topics", "ranker", "operator")] == [
        "intermediate_ranker", "total_ranker",
    ]  # fmt: skip
    assert of_operator("word_count", "sentences", "operator") == ()
    assert of_operator("identity", "purchases", "source") == ()
