"""The thesis's instances: each of its operators is one of ours where the application is there."""

import pytest

from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import Source
from streamgauge.studies.operator_profile.published import INSTANCES, Reported, best_on_one_node, of_operator, reported
from streamgauge.workloads.registry import get, names


@pytest.mark.parametrize("name", INSTANCES)
def test_every_operator_of_the_thesis_is_one_here(name: str) -> None:
    """A renamed operator, or workload, would lose its figure without a word."""
    workload = get(name)
    flow = workload.build(workload.parameters(), 10_000.0).flow
    there = {node.name for node in graph.operators(flow) if not isinstance(node, Source)}
    assert {here for each in INSTANCES[name] for here in each.here} <= there


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


def test_operators_are_found_by_what_they_are() -> None:
    """Sources and sinks by their role, two operators of the thesis that are one here both, others not at all."""
    assert [each.instances for each in of_operator("word_count", "sentences", "source")] == [1]
    assert [each.instances for each in of_operator("word_count", "counts", "sink")] == [3]
    assert [each.operator for each in of_operator("trending_topics", "ranker", "operator")] == [
        "intermediate_ranker", "total_ranker",
    ]  # fmt: skip
    assert of_operator("word_count", "sentences", "operator") == ()
    assert of_operator("identity", "purchases", "source") == ()


def test_latencies_are_as_they_were_printed() -> None:
    """All rows of tables 4.3 to 4.5; Word Count's first is the one that everybody quotes."""
    rows = {name: reported(name) for name in ("word_count", "log_processing", "traffic_monitoring", "identity")}
    assert {name: len(found) for name, found in rows.items()} == {
        "word_count": 24, "log_processing": 3 * 32, "traffic_monitoring": 6, "identity": 0,
    }  # fmt: skip
    assert rows["word_count"][0] == Reported("4.3", "Spark", "n1_x1_x5_x6_x3", "", 23625.8, 2897.59)
    assert Reported("4.4", "Storm", "n8_x8_x2_x1_x4_x2", "geo", 3546.93, 690.336) in rows["log_processing"]
    assert rows["traffic_monitoring"][-1] == Reported("4.5", "Storm", "n4_x8_x2_x2", "", 109005.0, 9.44531)
    assert {row.sink for row in rows["log_processing"]} == {"status", "volume", "geo"}


def test_the_best_on_one_node_is_chosen() -> None:
    """By its p95, of several sinks that of the slowest; as people write it."""
    reports = {name: [str(row) for row in best_on_one_node(name, "Spark")] for name in names()}
    assert reports["word_count"] == ["23.6 s at 2.9 k/s"]
    assert reports["log_processing"] == ["status 9.4 s at 31.9/s", "volume 2.57 s at 5.07/s", "geo 6.86 s at 7.59/s"]
    assert [name for name, lines in reports.items() if lines] == ["log_processing", "traffic_monitoring", "word_count"]
