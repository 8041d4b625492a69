"""bench/studies/tuning_profiles.py: each search once, both profiles side by side. No search is made."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from bench.studies import tuning_profiles as study
from bench.studies.tuning_profiles import Cell


def result(cell: Cell, per_s: float | None, verdict: str = "sustained") -> dict[str, Any]:
    found: dict[str, Any] = {
        "trials": [{}],
        "sustained_per_s": per_s,
        "low": per_s,
        "high": None,
        "limit": "the CPU",
        "seconds": 60.0,
    }
    return {
        "workload": cell.workload, "experiment": {"transport": cell.transport}, "tuning": cell.tuning, "search": found,
        "verdict": {"value": verdict}, "environment": {"cpu_model": "made up"}, "start_time": "now", "run_id": "r",
    }  # fmt: skip


def test_twelve_searches_of_which_some_can_be_chosen() -> None:
    """By names that all have to fit; another name is refused."""
    assert len(set(study.EVERY)) == 12
    assert study.chosen(None) == list(study.EVERY)
    assert [cell.tuning for cell in study.chosen("windowed_join,kafka")] == ["idiomatic", "tuned"]
    assert study.chosen("word_count, flight, tuned") == [Cell("word_count", "flight", "tuned")]
    with pytest.raises(SystemExit, match="kafak"):
        study.chosen("kafak")


def test_what_was_searched_is_not_searched_again(tmp_path: Path) -> None:
    """Neither the driver's failures nor what could not be made stand for a search."""
    done, failed, absent = study.EVERY[:3]
    for name, (cell, verdict) in {"1": (done, "sustained"), "2": (failed, "invalid")}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "result.json").write_text(json.dumps(result(cell, 1e5, verdict)))
    asked: list[Cell] = []

    def make(cell: Cell, *_: Any) -> dict[str, Any] | None:
        asked.append(cell)
        return None if cell == absent else result(cell, 2e5)

    found = dict(study.searched(tmp_path, study.EVERY[:3], make=make))
    assert asked == [failed, absent]
    assert {cell: each["search"]["sustained_per_s"] for cell, each in found.items()} == {done: 1e5, failed: 2e5}


def test_both_profiles_stand_side_by_side() -> None:
    """With how many times as much `tuned` sustains, where both are known; the CSV has a line for each search."""
    cells = [Cell("word_count", "kafka", "idiomatic"), Cell("word_count", "kafka", "tuned"), study.EVERY[0]]
    found = [(cell, result(cell, rate)) for cell, rate in zip(cells, (1e5, 2.5e5, None), strict=True)]
    lines = [line.split() for line in study.as_table(found).splitlines()]
    assert ["word_count", "kafka", "100,000", "250,000", "2.50"] in lines
    assert ["windowed_aggregation", "flight", "0", "-", "-"] in lines
    rows = list(csv.DictReader(study.as_csv(found).splitlines()))
    assert [(row["tuning"], row["sustained_per_s"], row["limit"]) for row in rows[:2]] == [
        ("idiomatic", "100000.0", "the CPU"), ("tuned", "250000.0", "the CPU"),
    ]  # fmt: skip
    assert tuple(rows[0]) == study.HEAD
