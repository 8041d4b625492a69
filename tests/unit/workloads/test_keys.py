"""The keys that workloads declare for their streams' messages."""

import pytest

from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import IntervalJoin, Source, WindowJoin
from streamgauge.workloads.registry import names
from tests.unit.workloads.helpers_cuts import job_of


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
