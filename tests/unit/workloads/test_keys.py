"""The keys that workloads declare for their streams' messages."""

import pytest

from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import IntervalJoin, Source, WindowJoin
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.random import key_texts, partitions_of
from streamgauge.loadgen.rate_profile import parse_profile
from streamgauge.workloads.registry import names
from tests.unit.workloads.helpers_cuts import job_of

KEYED = (
    "ads_analytics", "bargain_index", "click_analytics", "count", "fraud_detection", "machine_outlier",
    "reinforcement_learner", "scalability_hierarchical", "scalability_hopping", "scalability_sink",
    "scalability_tumbling", "smart_grid", "spike_detection", "traffic_monitoring", "voipstream",
    "windowed_aggregation", "windowed_join", "yahoo_streaming",
)  # fmt: skip


@pytest.mark.parametrize("name", names())
def test_events_are_in_the_partition_of_their_key(name: str) -> None:
    """Of every stream that declares a key, with the default parameters."""
    job = job_of(name, 1000.0)
    assert any(stream.key for stream in job.streams) == (name in KEYED)
    plan = Plan(job.streams, parse_profile("constant", 1000.0, 10.0), 0, 10.0, 3, 1, keyed=True)
    for number, stream in enumerate(job.streams):
        if stream.key is None:
            continue
        for partition in range(3):
            count = min(plan.count_before(number, partition, plan.end_us), 1000)
            keys = key_texts(plan.batch(number, partition, 0, count, [stream.key]).column(0)).drop_null()
            assert set(partitions_of(keys, 3).tolist()) <= {partition}


@pytest.mark.parametrize("name", names())
def test_joined_streams_share_a_key(name: str) -> None:
    """Both sides have the same key, or none, so that equal keys are in partitions of the same number."""
    job = job_of(name, 1000.0)
    kinds = {
        stream.name: [field.key_kind for field in stream.fields if field.name == stream.key] for stream in job.streams
    }
    for node in graph.operators(job.flow):
        if isinstance(node, WindowJoin | IntervalJoin):
            sources = {each.name for each in graph.walk(node) if isinstance(each, Source)}
            assert len({str(kinds[each]) for each in sources}) == 1
