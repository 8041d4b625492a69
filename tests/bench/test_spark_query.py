"""`bench.spark_query`: what each side would start Spark with. Nothing is started."""

from __future__ import annotations

import pytest
from bench._drain import Change, ready_for, without_lineage
from bench.spark_query import alike, written_by_hand

from streamgauge.engines.seam import Edge, Edges
from streamgauge.engines.spark.main import SparkJob, Sut
from streamgauge.engines.spark.queries import queries
from streamgauge.flow import graph
from streamgauge.flow.nodes import NativeJob
from streamgauge.run.trial import rig_settings


def sut_of(change: Change) -> Sut:
    """The engine's process of one side, as far as it goes without Spark."""
    ready = ready_for("windowed_aggregation")
    made = change(ready, rig_settings(ready))
    edges = Edges((), Edge("", ""), made.columns)
    return Sut(SparkJob(made.flow, edges, made.options, "local[1]", "", ""))


def test_both_sides_have_the_same_settings_and_interval() -> None:
    """An own job would else run back to back, on files with checksums: a comparison of settings, not of queries."""
    ours, by_hand = sut_of(alike), sut_of(written_by_hand)
    assert ours._configuration() == by_hand._configuration()
    assert "RawLocalFileSystem" in by_hand._configuration()["spark.hadoop.fs.file.impl"]
    assert intervals(ours) == intervals(by_hand) == ["1400 milliseconds"]


def test_they_are_what_our_own_query_runs_with_anyway() -> None:
    """Nothing is taken from the flow's side for the sake of the comparison."""
    plain = sut_of(lambda _, settings: settings)
    assert (plain._configuration(), intervals(plain)) == (sut_of(alike)._configuration(), intervals(sut_of(alike)))


@pytest.mark.parametrize(("change", "native"), [(alike, False), (written_by_hand, True), (without_lineage, False)])
def test_each_side_has_its_own_query(change: Change, native: bool) -> None:
    """One query each, on the columns that the rig carries; only one of them is the hand-written function."""
    sut = sut_of(change)
    (query,) = queries(sut._job.flow)
    assert any(isinstance(node, NativeJob) for node in graph.operators(sut._job.flow)) == native
    assert {"price", "gem_pack_id", "event_time"} <= set(
        query.columns(sut._job.flow, sut._job.edges.columns)["purchases"]
    )


def intervals(sut: Sut) -> list[str]:
    return [sut._trigger(query) for query in queries(sut._job.flow)]
