"""`bench.sustained`: what its baseline is given, and what a search that found nothing says. Nothing is started."""

from __future__ import annotations

import json
import subprocess

import numpy as np
import pytest
from bench._drain import ready_for
from bench.spark_query import alike
from bench.sustained import AGGREGATION, BASELINE, LANES, columns, configuration, packs_by_lane, sustained_per_s

from streamgauge.engines.seam import Edge, Edges
from streamgauge.engines.spark.main import SparkJob, Sut
from streamgauge.load.keys import probabilities
from streamgauge.run.trial import rig_settings


def test_the_baseline_runs_on_the_settings_of_a_run() -> None:
    """Same configuration, heap included: on Spark's defaults it would lose by its settings."""
    ready = ready_for("windowed_aggregation")
    made = alike(ready, rig_settings(ready))
    edges = Edges(tuple(Edge("", "") for _ in range(ready.generators)), Edge("", ""), made.columns)
    of_a_run = Sut(SparkJob(made.flow, edges, {}, "local[2]", "", ""))._configuration()
    assert configuration(ready) == of_a_run
    assert "spark.driver.memory" in of_a_run
    assert "our settings" in BASELINE


def test_its_gem_packs_are_distributed_as_the_workloads() -> None:
    """Each pack has its share of the lanes, none is left out."""
    ready = ready_for("windowed_aggregation")
    counts = np.bincount(packs_by_lane(ready), minlength=1000)
    assert counts.min() >= 1
    assert np.abs(counts / LANES - probabilities("normal", 1000)).max() < 2 / LANES
    assert "3,3" in columns(ready)[0]


def test_a_search_that_failed_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    """It counts as 0, and its last lines are shown: a crash is else taken for a slow engine."""
    said = "\n".join(f"line {number}" for number in range(100))
    assert sustained_per_s(AGGREGATION, subprocess.CompletedProcess([], 3, "", said)) == 0
    told = capsys.readouterr().err
    assert "windowed_aggregation: no result, exit code 3" in told
    assert "line 99" in told
    assert "line 9\n" not in told
    undecided = json.dumps({"verdict": {"value": "undecided"}, "search": {"sustained_per_s": 5.0}})
    assert sustained_per_s(AGGREGATION, subprocess.CompletedProcess([], 1, undecided, "why")) == 0
    assert "undecided, exit code 1" in capsys.readouterr().err


def test_what_a_search_found_is_its_rate(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is said then."""
    found = json.dumps({"verdict": {"value": "sustained"}, "search": {"sustained_per_s": 2e6}})
    assert sustained_per_s(AGGREGATION, subprocess.CompletedProcess([], 0, found, "progress")) == 2e6
    assert capsys.readouterr().err == ""
