"""tools/docs_applications.py: data out of searches and operator profiles, refused where they are not whole."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from streamgauge.config.experiment import Characterize
from streamgauge.engines.operator_profiler import Slice
from streamgauge.engines.spark.operator_profiler import SparkOperatorProfiler
from streamgauge.results.profile import OperatorProfile
from streamgauge.studies.operator_profile.characterize import distribution
from streamgauge.studies.operator_profile.operator_io import OperatorIO
from streamgauge.studies.operator_profile.profile import Timings, profile_figures
from streamgauge.workloads.registry import get
from tests.helpers_modules import ROOT, load
from tests.helpers_study_results import operator_profile

PAGE = load(ROOT / "tools" / "docs_applications.py")


def characterization(workload: str = "word_count") -> OperatorProfile:
    """Made-up counts and times of a workload."""
    from streamgauge.dataflow import graph

    flow = get(workload).build(get(workload).parameters(), 1000.0).flow
    counted = {
        node: OperatorIO(node, node, tuple(10 for _ in graph.inputs(node)), 10, 8.0) for node in graph.operators(flow)
    }
    slices = {node.name: [Slice(10, 2e-5, 0.0)] * 100 for node in graph.operators(flow) if graph.inputs(node)}
    made = profile_figures(workload, flow, counted, Timings(slices), Characterize(), SparkOperatorProfiler())
    memory = distribution([2**20] * 99 + [2**21], "the test")
    here = {"cpu_model": "made up", "cpus": 2, "java": "17", "pyspark": "4"}
    return operator_profile(workload=workload, environment=here, memory=memory, **dict(made))


def test_every_operator_has_a_row() -> None:
    """Applications by name, each once; the memory, what applies, and how all of it was made."""
    files = PAGE.profiles([characterization(), characterization("fraud_detection")])
    head, *rows = files["operator-profiles.csv"]
    assert all(len(row) == len(head) for row in rows)
    assert [row[1] for row in rows] == [
        "transactions", "predictor", "outliers", "sentences", "splitter", "lower_case", "counter", "counts",
    ]  # fmt: skip
    (splitter,) = [row for row in rows if row[1] == "splitter"]
    assert splitter[6:8] == ("2 us", "2 us")
    assert splitter[10] == "5"
    assert ("word_count", "1 MiB", "1 MiB", "1 MiB", "2 MiB", "fixed", "low") in files["operator-memory.csv"]
    assert files["operator-advice.csv"][1][1].startswith("--option spark.sql.shuffle.partitions=")
    (run,) = files["operator-runs.csv"][1:]
    assert (run[0], run[5]) == ("fraud_detection, word_count", "made up, 2 processors; 17, PySpark 4")


def test_what_is_not_whole_is_refused(tmp_path: Path) -> None:
    """One that was killed, one that is none, and two of one application."""
    killed = tmp_path / "killed"
    killed.mkdir()
    (killed / PAGE.PROFILE).write_text(json.dumps({"workload": "word_count", "finished": False}))
    twice = [characterization(), characterization()]
    for refuse, argument, message in (
        (PAGE.read, killed, "was not finished"), (PAGE.read, tmp_path, "must be a folder"),
        (PAGE.profiles, twice, "two of word_count"),
    ):  # fmt: skip
        with pytest.raises(SystemExit, match=message):
            refuse(argument)


def search(workload: str, **changes: Any) -> dict[str, Any]:
    """A made-up result of a search."""
    trials = [{"verdict": None}, {"verdict": "sustained"}, {"verdict": "undecided"}]
    bracket = {"low": 2e5, "high": 2.4e5, "high_verdict": "undecided", "trials": trials, "limit": "the CPU"}
    latency = {"event_time_us": {"p50": 3e5, "p95": 4e5, "p99": None, "max": 9e5}}
    here = {"cpu_model": "made up", "cpus": 2, "streamgauge": "0.1.0+abc"}
    whole = {"workload": workload, "start_time": "2026-01-02T03:04:05+00:00", "environment": here, "latency": latency}
    return {**whole, "search": bracket, "reference_work_us": 2500.0, **changes}


def test_every_search_has_a_row() -> None:
    """What it exercises is what the workload states; a search that found nothing has no rate."""
    none: dict[str, Any] = {"low": None, "high": None, "high_verdict": None, "trials": [], "limit": ""}
    grid, words = PAGE.rates([search("word_count"), search("smart_grid", search=none, latency={"event_time_us": None})])
    assert len(PAGE.RATES) == len(grid) == len(words)
    assert words == (
        "word_count", "4", "flat-map, unbounded keyed counter", "200 k/s", "240 k/s undecided", "2", "300 ms", "400 ms",
        "", "900 ms", "23.6 s at 2.9 k/s", "the CPU", "2.5 ms", "2026-01-02", "made up, 2 processors", "0.1.0+abc",
    )  # fmt: skip
    assert grid[2] == "filter, event-time window, global operator, several sinks, keyed operator in Python"
    assert grid[3:10] == ("", "", "0", "", "", "", "")


def test_other_applications_keep_their_rows() -> None:
    """One that is given again is written anew; rows of other columns are not mixed with these."""
    before = PAGE.rates([search("word_count"), search("smart_grid")])
    slower = {**search("word_count")["search"], "low": 1e5}
    rows = PAGE.rates([search("word_count", search=slower), search("ads_analytics")], before)
    assert [row[0] for row in rows] == ["ads_analytics", "smart_grid", "word_count"]
    assert [row[3] for row in rows] == ["200 k/s", "200 k/s", "100 k/s"]
    with pytest.raises(SystemExit, match="other columns"):
        PAGE.rates([search("word_count")], [("smart_grid", "4")])


def test_the_data_have_the_columns_that_are_written() -> None:
    """Files in the repository can be extended: their heads are those of the program."""
    heads = {"application-rates.csv": PAGE.RATES, **{name: rows[0] for name, rows in PAGE.profiles([]).items()}}
    for name, head in heads.items():
        with (PAGE.DATA / name).open(newline="") as file:
            assert tuple(next(csv.reader(file))) == head, name
