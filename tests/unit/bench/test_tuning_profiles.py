"""bench/studies/tuning_profiles.py: each search once, both profiles side by side. No search is made."""

import csv
import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from bench.studies import tuning_profiles as study
from streamgauge.config.experiment import build

TRIAL = {"verdict": "sustained", "offered_per_s": 9e4, "event_time_p50_us": 1e6, "event_time_p99_us": 2.5e6}
AT_90 = {"verdict": "sustained", "offered_per_s": 8e4, "event_time_p50_us": 1e6, "event_time_p99_us": 2e6}


def result(cell: study.Cell, per_s: float | None, verdict: str = "sustained") -> dict[str, Any]:
    searches: dict[str, Any] = {
        "trials": [TRIAL], "sustained_per_s": per_s, "low": per_s, "high": 3e5, "high_verdict": "not_sustained",
        "limit": "the CPU", "seconds": 60.0,
    }  # fmt: skip
    request = {"command": "sustain", "workload": cell.workload, "transport": cell.transport, "tuning": cell.tuning}
    experiment = build({**request, "search": {"quick": True, "tolerance": 0.2}, "out": "elsewhere"})
    return {
        "workload": cell.workload, "experiment": experiment.model_dump(mode="json"), "tuning": cell.tuning,
        "search": searches, "verdict": {"value": verdict}, "start_time": "2026-01-02T03:04:05+00:00", "run_id": "r",
        "environment": {"cpu_model": "made up", "cpus": 2, "streamgauge": "1.0+abc"},
    }  # fmt: skip


def test_what_was_searched_is_not_searched_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither the driver's failures nor what could not be made stand for a search."""
    done, failed, absent = study.EVERY[:3]
    for name, (cell, verdict) in {"1": (done, "sustained"), "2": (failed, "invalid")}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "result.json").write_text(json.dumps(result(cell, 1e5, verdict)))
    made: list[study.Cell] = []

    def make(cell: study.Cell, *_: Any) -> dict[str, Any] | None:
        made.append(cell)
        return None if cell == absent else result(cell, 2e5)

    searches = dict(study.searched(tmp_path, study.EVERY[:3], make=make))
    assert made == [failed, absent]
    assert {cell: each["search"]["sustained_per_s"] for cell, each in searches.items()} == {done: 1e5, failed: 2e5}
    assert capsys.readouterr().err.splitlines() == [
        "search 1 of 2: windowed_aggregation memory tuned, about 1 min; all: 2 min left",
        "search 2 of 2: windowed_aggregation kafka idiomatic, about 1 min; all: 1 min left",
    ]
    assert study.progress(done, study.EVERY, []).endswith("about 8 min; all: 96 min left")


def test_a_stopped_study_keeps_and_shows_what_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table holds the searches made before, and the same command goes on."""
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "result.json").write_text(json.dumps(result(study.EVERY[0], 1e5)))
    monkeypatch.setattr(study, "run_search", Mock(side_effect=KeyboardInterrupt))
    study.command([str(tmp_path), "--", "--tolerance", "20%"])
    rows = list(csv.DictReader((tmp_path / study.TABLE).read_text().splitlines()))
    assert [(row["workload"], row["transport"], row["tuning"]) for row in rows] == [study.EVERY[0]]
    printed = capsys.readouterr()
    assert "windowed_aggregation  memory     100,000" in printed.out
    assert "the same command continues" in printed.err


def test_options_of_sustain_follow_those_of_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "run_search", search := Mock(return_value=None))
    study.command([str(tmp_path), "--only", "word_count,kafka,tuned", "--", "--tolerance", "20%"])
    assert [call.args[1][-2:] for call in search.call_args_list] == [["--tolerance", "20%"]]


def test_a_row_says_how_its_figure_was_made() -> None:
    """With the latency at 90 % of the rate, or in a quick search that of the highest trial that held; without paths."""
    quick = result(study.EVERY[0], 1e5)
    quick["search"]["trials"] += [
        {**TRIAL, "offered_per_s": 5e4},
        {**TRIAL, "verdict": "undecided", "offered_per_s": 2e5},
    ]
    confirmed = {**quick, "search": {**quick["search"], "at_90_percent": AT_90}}
    first, second = csv.DictReader(study.as_csv([(study.EVERY[0], each) for each in (quick, confirmed)]).splitlines())
    assert (first["p99_us"], first["latency_at_per_s"]) == ("2500000.0", "90000.0")
    assert (second["p99_us"], second["latency_at_per_s"]) == ("2000000.0", "80000.0")
    assert (first["tolerance"], first["date"], first["commit"]) == ("0.2", "2026-01-02", "1.0+abc")
    assert first["machine"] == "made up, 2 processors"
    made = "streamgauge sustain windowed_aggregation --tuning idiomatic --tolerance 20% --quick"
    assert sorted(first["command"].split()) == sorted(made.split())


def test_both_profiles_stand_side_by_side() -> None:
    """With how many times as much `tuned` sustains, where both are known; the CSV has a line for each search."""
    cells = [study.Cell("word_count", "kafka", "idiomatic"), study.Cell("word_count", "kafka", "tuned"), study.EVERY[0]]
    searches = [(cell, result(cell, rate)) for cell, rate in zip(cells, (1e5, 2.5e5, None), strict=True)]
    lines = [line.split() for line in study.as_table(searches).splitlines()]
    assert ["word_count", "kafka", "100,000", "250,000", "2.50"] in lines
    assert ["windowed_aggregation", "memory", "0", "-", "-"] in lines
    rows = list(csv.DictReader(study.as_csv(searches).splitlines()))
    assert [(row["tuning"], row["sustained_per_s"], row["limit"]) for row in rows[:2]] == [
        ("idiomatic", "100000.0", "the CPU"), ("tuned", "250000.0", "the CPU"),
    ]  # fmt: skip
    assert tuple(rows[0]) == study.HEAD
