"""The thesis's instances: each of its operators is one of ours where the application is there."""

from __future__ import annotations

import pytest

from streamgauge.flow import graph
from streamgauge.flow.nodes import Source
from streamgauge.stats.instances import sums_possible
from streamgauge.studies.published import INSTANCES, of_operator
from streamgauge.workloads.base import get


@pytest.mark.parametrize("name", INSTANCES)
def test_every_operator_of_the_thesis_is_one_here(name: str) -> None:
    """A renamed operator, or workload, would lose its figure without a word."""
    workload = get(name)
    flow = workload.build(workload.parameters(), 10_000.0).flow
    there = {node.name for node in graph.operators(flow) if not isinstance(node, Source)}
    wanted = {here for each in INSTANCES[name] for here in each.here}
    assert wanted <= there


PRINTED = {
    "word_count": [1, 5, 6, 3],
    "log_processing": [4, 1, 2, 4, 2, 4],
    "traffic_monitoring": [1, 2, 2, 1],
    "machine_outlier": [6, 1, 1, 4, 1],
    "sentiment_analysis": [1] * 9,
    "spam_filter": [1, 10, 1, 1, 1],
    "trending_topics": [9, 2, 1, 1, 1, 1],
    "click_analytics": [2, 2, 2, 5, 1, 1],
    "fraud_detection": [8, 3, 2],
    "spike_detection": [7, 3, 2, 1],
}
"""Table 3.4 of the thesis, source first, sink last."""


def test_rows_are_as_they_were_printed() -> None:
    """All of them, in the thesis's order."""
    assert {name: [each.instances for each in row] for name, row in INSTANCES.items()} == PRINTED
    assert all((row[0].role, row[-1].role) == ("source", "sink") for row in INSTANCES.values())


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
