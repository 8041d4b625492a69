"""tools/docs_applications.py: tables out of characterizations, refused where they are not whole."""

from __future__ import annotations

import importlib.util
import json
import types
from pathlib import Path
from typing import Any

import pytest

from streamgauge.config.experiment import Characterize
from streamgauge.engines.spark.user_job.batch_slices import Slice
from streamgauge.studies.operator_profile.operator_io import OperatorIO
from streamgauge.studies.operator_profile.profile import Timings, profile_figures
from streamgauge.workloads.registry import get

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "results" / "applications.md"


def load() -> types.ModuleType:
    spec = importlib.util.spec_from_file_location("loaded_applications", ROOT / "tools" / "docs_applications.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGE = load()


def characterization(workload: str = "word_count", **changes: Any) -> dict[str, Any]:
    """Made-up counts and times of a workload."""
    from streamgauge.dataflow import graph

    flow = get(workload).build(get(workload).parameters(), 1000.0).flow
    counted = {
        node: OperatorIO(node, node, tuple(10 for _ in graph.inputs(node)), 10, 8.0) for node in graph.operators(flow)
    }
    slices = {node.name: [Slice(10, 2e-5, 0.0)] * 100 for node in graph.operators(flow) if graph.inputs(node)}
    made = profile_figures(workload, flow, counted, Timings(slices), Characterize())
    memory = {"min": 2**20, "p50": 2**20, "p95": 2**20, "max": 2**21, "behaviour": "fixed", "level": "low"}
    asked = {"slices": 100, "warmup_slices": 20, "slice_events": 10, "rate_per_s": 1e4, "seed": 1}
    here = {"cpu_model": "made up", "cpus": 2, "java": "17", "pyspark": "4"}
    whole = {"workload": workload, "finished": True, "input": asked, "environment": here, "memory": memory}
    return {**whole, **made, **changes}


def test_every_operator_has_a_row() -> None:
    """Applications by name, each once; the memory, what applies, and how all of it was made."""
    text = PAGE.tables([characterization(), characterization("fraud_detection")])
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")]
    operators = [row[1] for row in rows if len(row) == 11]
    assert operators == [
        "operator", "---", "`transactions`", "`predictor`", "`outliers`", "`sentences`", "`splitter`", "`lower_case`",
        "`counter`", "`counts`",
    ]  # fmt: skip
    (splitter,) = [row for row in rows if row[1] == "`splitter`"]
    assert splitter[6:8] == ["2 us", "2 us"]
    assert splitter[10].rstrip(" |") == "5"
    assert "| `word_count` | 1 MiB | 1 MiB | 1 MiB | 2 MiB | fixed | low |" in text
    assert "--option spark.sql.shuffle.partitions=" in text
    assert text.count("made up") == 1


def test_what_is_not_whole_is_refused(tmp_path: Path) -> None:
    """One that was killed, one that is none, and two of one application."""
    killed = tmp_path / "killed"
    killed.mkdir()
    (killed / PAGE.FILE).write_text(json.dumps({"workload": "word_count", "finished": False}))
    with pytest.raises(SystemExit, match="was not finished"):
        PAGE.read(killed)
    with pytest.raises(SystemExit, match="must be a folder"):
        PAGE.read(tmp_path)
    with pytest.raises(SystemExit, match="two of word_count"):
        PAGE.tables([characterization(), characterization()])


def search(workload: str, **changes: Any) -> dict[str, Any]:
    """A made-up result of a search."""
    found = {"low": 2e5, "sentence": "200 k/s holds; 240 k/s was undecided; not confirmed (quick)", "limit": "the CPU"}
    latency = {"event_time_us": {"p50": 3e5, "p95": 4e5, "p99": None, "max": 9e5}}
    here = {"cpu_model": "made up", "cpus": 2, "streamgauge": "0.1.0+abc"}
    whole = {"workload": workload, "start_time": "2026-01-02T03:04:05+00:00", "environment": here, "latency": latency}
    return {**whole, "search": found, "reference_work_us": 2500.0, **changes}


def test_every_search_has_a_row() -> None:
    """What it exercises is what the workload states."""
    text = PAGE.rates([search("word_count"), search("smart_grid", latency={"event_time_us": None})])
    head, _, grid, words = (line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| "))
    assert len(head) == len(grid) == len(words)
    assert words[:3] == ["`word_count`", "4", "flat-map, unbounded keyed counter"]
    assert words[3] == "200 k/s holds; 240 k/s was undecided"
    assert words[4:11] == ["300 ms", "400 ms", "-", "900 ms", "23.6 s at 2.9 k/s", "the CPU", "2.5 ms"]
    assert words[11:] == ["2026-01-02, made up, 2 processors", "0.1.0+abc"]
    assert grid[2] == "filter, event-time window, global operator, several sinks, keyed operator in Python"
    assert grid[4:9] == ["-"] * 5


def test_other_applications_keep_their_rows() -> None:
    """One that is given again is written anew; a table of other columns is not mixed with rows of these."""
    before = PAGE.rates([search("word_count"), search("smart_grid")])
    slower = {"low": 1e5, "sentence": "100 k/s holds", "limit": "the CPU"}
    after = PAGE.rates([search("word_count", search=slower), search("ads_analytics")], before)
    rows = [line.split(" | ") for line in after.splitlines()[2:]]
    assert [row[0] for row in rows] == ["| `ads_analytics`", "| `smart_grid`", "| `word_count`"]
    assert [row[3] for row in rows] == ["200 k/s holds; 240 k/s was undecided"] * 2 + ["100 k/s holds"]
    with pytest.raises(SystemExit, match="other columns"):
        PAGE.rates([search("word_count")], "| `smart_grid` | 4 |")


def test_searches_are_told_from_characterizations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has its own place on the page; where only one kind is given, the other's stays."""
    page, folder = tmp_path / "page.md", tmp_path / "found"
    page.write_text(DOCUMENT.read_text())
    monkeypatch.setattr(PAGE, "PAGE", page)
    folder.mkdir()
    (folder / PAGE.SEARCH).write_text(json.dumps(search("word_count")))
    before = page.read_text()
    assert PAGE.main([str(folder)]) == 0
    after = page.read_text()
    assert "200 k/s holds" in after
    assert after.partition("## Characterized")[2] == before.partition("## Characterized")[2]
    (folder / PAGE.SEARCH).write_text(json.dumps({"workload": "word_count", "search": None}))
    with pytest.raises(SystemExit, match="is no search"):
        PAGE.main([str(folder)])


@pytest.mark.parametrize("block", ["applications", "rates"])
def test_the_page_has_a_place_for_the_tables(block: str) -> None:
    """What stands around it stays."""
    text = DOCUMENT.read_text()
    found = PAGE.renewed(text, "| new |", block)
    assert "| new |\n<!-- end of measured -->" in found
    assert found.startswith("# Applications")
    with pytest.raises(ValueError, match="no place"):
        PAGE.renewed("nothing", "new")


def test_what_was_characterized_whole_is_not_measured_again(tmp_path: Path) -> None:
    """The latest of each; one that was stopped is made anew."""
    for folder, workload, finished in (("1", "a", True), ("2", "a", True), ("3", "b", False)):
        (tmp_path / folder).mkdir()
        found = {"workload": workload, "finished": finished}
        (tmp_path / folder / "characterization.json").write_text(json.dumps(found))
    (tmp_path / "4").mkdir()
    assert PAGE.whole(tmp_path) == {"a": str(tmp_path / "2")}
