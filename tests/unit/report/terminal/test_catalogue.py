"""Lists for people."""

import re
from typing import Any

import pytest

from streamgauge.engines.registry import matrix
from streamgauge.report.terminal.catalogue import (
    MORE,
    MORE_OF_ENGINE,
    TRUTH,
    show_engine,
    show_engines,
    show_workload,
    show_workloads,
)


def engine_row(**more: Any) -> dict[str, Any]:
    """An engine as the capability matrix has it."""
    option = {"name": "trigger", "default": "auto", "meaning": "how often", "choices": []}
    return {
        "name": "spark", "summary": "rows in batches", "streams": True, "truth": False, "several_sinks": True,
        "nodes": ["Select"], "sink_modes": ["append"], "transports": ["memory"], "tuning_profiles": ["tuned"],
        "options": [option], "encodings": ["json"], "delivery": "at_least_once",
        "delivery_of_windows": None, "fetches": [], **more,
    }  # fmt: skip


@pytest.mark.parametrize("rows", [[engine_row()], matrix()], ids=["one", "all"])
def test_engines_are_listed_without_broken_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], rows: list[dict[str, Any]]
) -> None:
    """In 80 columns; the options are for those who ask for one engine."""
    monkeypatch.setenv("COLUMNS", "80")
    show_engines(rows)
    shown = capsys.readouterr().out
    known = {word for row in rows for key in ("transports", "sink_modes") for word in row[key]}
    table = shown.partition("\n\n")[2].partition(TRUTH)[0]
    assert set(re.findall(r"[\w-]+", table)) >= known | {row["name"] for row in rows}
    assert max(map(len, table.splitlines())) <= 80
    assert shown.splitlines()[-2:] == [TRUTH, MORE_OF_ENGINE]
    assert "--option" not in shown


def test_all_of_an_engine_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """With its options, those of its transports, and the size of what it fetches; nothing is fetched for the list."""
    jar = {"name": "connector:1.0", "bytes": 3 * 2**20, "needed_with": "--transport memory"}
    option = {"name": "frames", "default": "1", "meaning": "how many", "choices": ["1", "2"]}
    transports = [{"name": name, "options": [option | {"name": name}]} for name in ("memory", "pigeon")]
    show_engine(engine_row(fetches=[jar]), transports)
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert {"operators: Select", "promised delivery: at least once", "--option trigger=auto", "how often"} < set(lines)
    assert "--transport-option memory=1 (1 | 2)" in lines
    assert "pigeon" not in " ".join(lines)
    assert lines[-2:] == ["connector:1.0 (3 MiB)", "with --transport memory"]


def test_an_engine_lists_the_encodings_that_it_reads(capsys: pytest.CaptureFixture[str]) -> None:
    """Not all of its transport's; and another promise for windows, if it has one."""
    option = {"name": "encoding", "default": "compact", "meaning": "m", "choices": ["compact", "json", "avro"]}
    row = engine_row(encodings=["compact", "json"], delivery_of_windows="at_most_once")
    show_engine(row, [{"name": "memory", "options": [option]}])
    shown = capsys.readouterr().out
    assert "encoding=compact (compact | json)" in shown
    assert "at least once, of windows at most once" in shown


def workload_row(**more: Any) -> dict[str, Any]:
    """A workload as the catalogue has it."""
    return {
        "name": "made", "title": "made", "summary": "what is said of it", "source": "[K §IV]",
        "features": [{"name": "join of branches", "meaning": "rows meet again"}],
        "parameters": [{"name": "range", "default": "8s", "meaning": "length of a window"}],
        "streams": [
            {"name": "purchases", "share": 0.5, "fields": {"user_id": "int", "price": "int"}, "malformed": "price < 0"},
            {"name": "ads", "share": 0.5, "fields": {"user_id": "int"}, "malformed": ""},
        ],
        "sinks": [{"name": "matches", "mode": "append"}],
        "flow": [
            {"name": "purchases", "kind": "source", "label": "purchases", "inputs": [], "columns": {}},
            {"name": "dear", "kind": "where", "label": "where price > 9", "inputs": ["purchases"], "columns": {}},
            {"name": "matches", "kind": "sink", "label": "append to matches", "inputs": ["dear"], "columns": {}},
        ],
        **more,
    }  # fmt: skip


def test_workloads_are_listed_briefly(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Name, sentence and source, streams and sinks; brackets are text; parameters are for those who ask for one."""
    monkeypatch.setenv("COLUMNS", "80")
    show_workloads([workload_row(), workload_row(name="other", source="thesis §3.3.1")])
    assert [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()] == [
        "made what is said of it [K §IV]", "purchases, ads -> matches",
        "other what is said of it [thesis §3.3.1]", "purchases, ads -> matches", MORE,
    ]  # fmt: skip


def test_a_name_is_whole_in_a_narrow_list(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """What is reported of it is folded beside it."""
    monkeypatch.setenv("COLUMNS", "40")
    show_workloads([workload_row(name="reinforcement_learner", summary="which page to show each session so far")])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("reinforcement_learner")
    assert max(len(line) for line in lines if line != MORE) <= 40


@pytest.mark.parametrize("columns", ["40", "200"])
def test_all_of_a_workload_is_shown_and_no_setting_is_folded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: str
) -> None:
    """Streams with their fields, operators but for the sources, and parameters that can be copied at any width."""
    monkeypatch.setenv("COLUMNS", columns)
    long = {"name": "distribution", "default": "30/12,60/30,80/30,90/20,95/10,97/5,99/2", "meaning": "[of] rewards"}
    show_workload(workload_row(parameters=[*workload_row()["parameters"], long]))
    text = capsys.readouterr().out
    lines = [line.rstrip() for line in text.splitlines()]
    assert "  range=8s" in lines
    assert "  distribution=30/12,60/30,80/30,90/20,95/10,97/5,99/2" in lines
    words = " ".join(text.split())
    for reported in (
        "made: what is said of it [K §IV]", "purchases 50% of the rate: user_id int, price int; malformed: price < 0",
        "ads 50% of the rate: user_id int operators",
        "dear where: where price > 9; reads purchases", "matches sink: append to matches; reads dear",
        "range=8s length of a window", "[of] rewards",
    ):  # fmt: skip
        assert reported in words
    assert "source: " not in words
