"""Measured figures say when, with which commit and by which command they were measured, and have one source."""

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.docs.helpers_pages import RESULTS, ROOT

PROVEN = (
    "changes", "dstreams", "earlier-searches", "instrument", "kafka", "kafka-earlier", "latency-by-mode",
    "latency-by-mode-earlier", "latency-steps", "latency-tried", "limits", "real-time", "real-time-steps", "scaling",
    "search-model", "search-time", "searches", "single-figures", "stages-before-after", "stages-by-mode",
    "stages-receivers", "stages-text-records", "summary", "topologies", "whole-run",
)  # fmt: skip
"""Data files of which every row says when, with which commit and by which command it was measured."""


def unproven(file: Path) -> list[str]:
    """The rows of a data file that lack date, commit or command."""
    return [row["what"] for row in RESULTS.rows_of(file) if not all(row.get(n) for n in ("date", "commit", "command"))]


@pytest.mark.parametrize("name", PROVEN)
def test_measured_figures_say_where_they_come_from(name: str) -> None:
    """A row that cannot is not published."""
    assert unproven(RESULTS.DATA / f"{name}.csv") == []


def test_a_figure_without_provenance_is_found(tmp_path: Path) -> None:
    """Each of the three counts, also where the whole column is missing."""
    file = tmp_path / "data.csv"
    file.write_text("what,date,commit,command\na,2026,1a,run\nb,,1a,run\nc,2026,,run\nd,2026,1a,\n")
    assert unproven(file) == ["b", "c", "d"]
    file.write_text("what,date,commit\na,2026,1a\n")
    assert unproven(file) == ["a"]


WORKING_COPIES = ("294fa47", "4b27f79")
"""States of the code that were measured and not kept; the pages say so."""


def commit_days() -> dict[str, str]:
    """Commit to its day, of the history of this checkout; empty without a whole one."""
    git = ("git", "-C", str(ROOT))
    commands = (("rev-parse", "--is-shallow-repository"), ("log", "--format=%H %cd", "--date=format-local:%Y-%m-%d"))
    try:
        shallow, log = (
            subprocess.run(
                (*git, *words), capture_output=True, text=True, check=True, env={**os.environ, "TZ": "UTC"}
            ).stdout
            for words in commands
        )
    except (OSError, subprocess.CalledProcessError):
        return {}
    return dict(line.split() for line in log.splitlines()) if shallow.strip() == "false" else {}


def impossible(rows: list[dict[str, str]], days: Mapping[str, str]) -> list[str]:
    """The rows measured before their commit was made, or with a commit that is not in the history."""
    faults = []
    for row in rows:
        latest = max(re.findall(r"\d{4}-\d\d-\d\d", row.get("date", "")), default="")
        for short in re.findall(r"\b[0-9a-f]{7}\b", row.get("commit", "")):
            day = next((day for whole, day in days.items() if whole.startswith(short)), "9999")
            known = short in WORKING_COPIES or (day < "9999" and "working copy" in row["commit"])
            if day > latest and not known:
                faults.append(f"{row['what']}: {short}")
    return faults


def test_a_figure_is_not_older_than_its_commit() -> None:
    """Else date or commit is wrong."""
    days = commit_days()
    if not days:
        pytest.skip("the history is not here")
    files = sorted(RESULTS.DATA.glob("*.csv"))
    rows = [{"what": file.stem, **row} for file in files for row in RESULTS.rows_of(file) if "commit" in row]
    assert len(rows) > 100
    assert impossible(rows, days) == []


def test_a_figure_that_is_older_than_its_commit_is_found() -> None:
    """By a day, or by a commit that is not there; a working copy may be older than the commit that it became."""
    days = {"1a1a1a1": "2026-01-02"}
    rows = [{"what": what, "date": date, "commit": commit} for what, date, commit in (
        ("a", "2026-01-02 noon", "1a1a1a1"), ("b", "2026-01-01", "1a1a1a1"), ("c", "2026-01-02", "2b2b2b2"),
        ("d", "2026-01-01", "1a1a1a1 (working copy)"), ("e", "2026-01-01 to 2026-01-03", "294fa47 to 1a1a1a1"),
    )]  # fmt: skip
    assert impossible(rows, days) == ["b: 1a1a1a1", "c: 2b2b2b2"]


def contradictions(summary: list[dict[str, str]], searches: list[dict[str, str]]) -> list[str]:
    """Rows of the summary about a search that are not what its row in `searches` says."""
    known = {(row["command"], row["commit"]): {row["figure"], row["took"]} for row in searches}
    commands = {row["command"] for row in searches}
    return [
        row["what"]
        for row in summary
        if row["command"] in commands and row["figure"] not in known.get((row["command"], row["commit"]), set())
    ]


def test_the_summary_of_searches_is_that_of_their_table() -> None:
    """Rates and times of a search have one source, search-time.csv."""
    summary, searches = (RESULTS.rows_of(RESULTS.DATA / f"{name}.csv") for name in ("summary", "search-time"))
    # The three searches in a row have their own table.
    assert contradictions([row for row in summary if "of three searches" not in row["what"]], searches) == []


def test_a_summary_that_contradicts_its_searches_is_found() -> None:
    """By another figure, or by another commit than the table has."""
    search = {"command": "sustain", "commit": "1a", "figure": "8 M/s", "took": "9 min"}
    rows = [{"what": what, "command": "sustain", "commit": commit, "figure": figure} for what, commit, figure in (
        ("a", "1a", "8 M/s"), ("b", "1a", "9 min"), ("c", "1a", "9 M/s"), ("d", "2b", "8 M/s"),
    )]  # fmt: skip
    assert contradictions(rows, [search]) == ["c", "d"]


def test_brackets_of_applications_are_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From both rates; a row without either end is refused."""
    monkeypatch.setattr(RESULTS, "DATA", tmp_path)
    file = tmp_path / "application-rates.csv"
    file.write_text("application,holds,next rate up\na,180 k/s,259 k/s undecided\nb,1 M/s,1.2 M/s not sustained\n")
    assert "20 to 44 % above" in RESULTS.application_brackets()
    assert "1 of these upper ends was shown to fail" in RESULTS.application_brackets()
    file.write_text(file.read_text() + "c,1 M/s,no upper end was found\n")
    assert "For 1 of them no upper end was found" in RESULTS.application_brackets()
    file.write_text(file.read_text() + "d,1 M/s,\n")
    with pytest.raises(ValueError, match="must have a rate or"):
        RESULTS.application_brackets()
