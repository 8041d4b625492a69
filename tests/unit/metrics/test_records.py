"""Reports of the driver's processes: what arrives is what was sent."""

from __future__ import annotations

import json

import pytest

from streamgauge.metrics.records import Commit, GeneratorReport, RecorderReport
from streamgauge.transports.spi import Chunk, Delivery, OutputProgress, ReadPosition

GENERATOR = GeneratorReport(
    frontier_us=5,
    overflowed=True,
    memory_full_us=None,
    ended=False,
    failed="",
    chunks=[Chunk(0, 5, 3, 6)],
    deliveries=[Delivery("purchases", 0, 5, 3, 7, 1, again=True, query="q", reader=2, shared=True, read_us=9)],
    aborted_us=[4],
    delivering=[(1, 2), (3, 4)],
)
RECORDER = RecorderReport(
    commits=[Commit("q", 1, "results", 8, 7, 3, 5, None, ["a.arrow"])],
    reads=[ReadPosition("q", 0, 1, "purchases", 0, 12, 3)],
    reached=[OutputProgress("q", 1, 5, 8)],
    rows_ignored={"results": 1},
    retried_us=[6],
    receiving=[(1, 2)],
    writing=[(2, 3)],
    stood_still=[(9, 1)],
    failed="the disk is full",
    disk_full=True,
)


def test_a_generators_report_arrives_as_it_was_sent() -> None:
    """By JSON, which knows no tuples."""
    assert GeneratorReport.from_json(json.loads(json.dumps(GENERATOR.to_json()))) == GENERATOR


def test_the_recorders_report_arrives_as_it_was_sent() -> None:
    """By JSON, which knows no tuples."""
    assert RecorderReport.from_json(json.loads(json.dumps(RECORDER.to_json()))) == RECORDER


@pytest.mark.parametrize("report", [GENERATOR, RECORDER])
def test_names_are_kept_once(report: GeneratorReport | RecorderReport) -> None:
    """A long trial has millions of records with the same few names."""
    arrived = [type(report).from_json(json.loads(json.dumps(report.to_json()))) for _ in range(2)]
    names = [one.deliveries[0].stream if isinstance(one, GeneratorReport) else one.commits[0].sink for one in arrived]
    assert names[0] is names[1]


def test_a_report_that_lacks_a_field_is_refused() -> None:
    """Both sides are of one version."""
    with pytest.raises(TypeError, match="failed"):
        GeneratorReport.from_json({name: value for name, value in GENERATOR.to_json().items() if name != "failed"})
