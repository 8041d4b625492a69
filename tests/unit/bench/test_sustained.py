"""`bench.spark.sustained`: what its baseline is given, and what a search that found nothing says. Starts nothing."""

import json
import subprocess
from unittest.mock import Mock

import numpy as np
import pytest

from bench.spark import sustained
from bench.spark.spark_query import alike
from bench.spark.sustained import (
    AGGREGATION,
    BASELINES,
    LANES,
    Found,
    baseline_rows,
    columns,
    configuration,
    jvm_options,
    packs_by_lane,
    rate_source,
    rows_of,
    sustained_per_s,
)
from bench.support.drain_rate import ready_for
from streamgauge.core.errors import EngineError
from streamgauge.engines.spark import main
from streamgauge.engines.spark.job_settings import JobSettings
from streamgauge.engines.spark.launch import SparkJob
from streamgauge.engines.spi import Edge, Edges
from streamgauge.loadgen.random import probabilities
from streamgauge.trial.conductor import testbed_settings


def test_the_baseline_runs_on_the_settings_of_a_search() -> None:
    """Same configuration, heap included: on Spark's defaults it would lose by its settings."""
    resolved = ready_for("windowed_aggregation")
    made = alike(resolved, testbed_settings(resolved))
    edges = Edges(tuple(Edge("", "") for _ in range(resolved.generators)), Edge("", ""), made.columns)
    of_a_run = JobSettings(SparkJob(made.flow, edges, {}, "local[2]", "", "")).configuration()
    assert configuration(resolved) == of_a_run
    assert "spark.driver.memory" in of_a_run
    assert all("our settings, heap and JVM options" in name for name in BASELINES.values())


def test_the_baselines_jvm_has_the_options_of_that_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it would lose to `jit=late`, and not to us."""
    opened = Mock(side_effect=EngineError("nothing is started here"))
    monkeypatch.setattr(main, "open_checked", opened)
    monkeypatch.setattr(sustained, "open_session", opened)
    resolved = ready_for("windowed_aggregation")
    edges = Edges((Edge("", ""),), Edge("", ""), resolved.columns)
    for start in (
        main.Sut(JobSettings(SparkJob(resolved.lineage_flow, edges, {}, "local[2]", "", ""))).start,
        lambda: rate_source("panes"),
    ):
        with pytest.raises(EngineError):
            start()
    options = [next(each for each in call.args if isinstance(each, tuple)) for call in opened.call_args_list]
    assert options == [jvm_options(resolved)] * 2
    assert "-XX:Tier4InvocationThreshold=200000" in options[0]


def test_every_baseline_names_its_lowering_and_the_reference_work_beside_it() -> None:
    """Figures of two hours are of two machines, as far as that work differs."""
    drained, searches = [Found(2e6, 1300.0), Found(2e6, 1500.0)], [Found(4e6, None, 5.0), Found(6e6, 1400.0, 7.0)]
    rows = {way: baseline_rows(way, drained, searches) for way in BASELINES}
    for way, (base, work, ratio) in rows.items():
        assert [base["value"], work["value"], ratio["value"]] == [2e6, 1400.0, 2.5]
        assert all(way in line["what"] for line in (base, work, ratio))
        assert "reference work" in work["what"]
    assert [rows[way][2]["floor"] for way in ("by hand", "panes")] == [1.0, None]
    rate, work, minutes = rows_of(AGGREGATION, searches)
    assert (rate["value"], work["value"], minutes["value"]) == (5e6, 1400.0, 6.0)
    assert len(rows_of(AGGREGATION, searches[:1])) == 2


def test_its_gem_packs_are_distributed_as_the_workloads() -> None:
    """Each pack has its share of the lanes, none is left out."""
    resolved = ready_for("windowed_aggregation")
    counts = np.bincount(packs_by_lane(resolved), minlength=1000)
    assert counts.min() >= 1
    assert np.abs(counts / LANES - probabilities("normal", 1000)).max() < 2 / LANES
    assert "3,3" in columns(resolved)[0]


def test_a_search_that_failed_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    """It counts as 0, and its exit code is shown: a crash is else taken for a slow engine."""
    assert sustained_per_s(AGGREGATION, subprocess.CompletedProcess([], 3, "")) == 0
    assert "windowed_aggregation: no result, exit code 3" in capsys.readouterr().err
    undecided = json.dumps({"verdict": {"value": "undecided"}, "search": {"sustained_per_s": 5.0}})
    assert sustained_per_s(AGGREGATION, subprocess.CompletedProcess([], 1, undecided)) == 0
    assert "undecided, exit code 1" in capsys.readouterr().err
