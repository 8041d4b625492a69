"""Measured figures say when, with which commit and by which command they were measured, and have one source."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.helpers_pages import TABLES

PROVEN = (
    "changes", "dstreams", "earlier-searches", "instrument", "kafka", "latency-by-mode", "latency-by-mode-earlier",
    "latency-steps", "limits", "search-time", "searches", "stages-by-mode", "stages-receivers", "stages-text-records",
    "summary", "whole-run",
)  # fmt: skip
"""Data files of which every row says when, with which commit and by which command it was measured."""


def unproven(file: Path) -> list[str]:
    """The rows of a data file that lack date, commit or command."""
    return [row["what"] for row in TABLES.rows_of(file) if not all(row.get(n) for n in ("date", "commit", "command"))]


@pytest.mark.parametrize("name", PROVEN)
def test_measured_figures_say_where_they_come_from(name: str) -> None:
    """A row that cannot stands in without-provenance.csv, whose section says not to cite it."""
    assert unproven(TABLES.DATA / f"{name}.csv") == []


def test_a_figure_without_provenance_is_found(tmp_path: Path) -> None:
    """Each of the three counts, also where the whole column is missing."""
    file = tmp_path / "data.csv"
    file.write_text("what,date,commit,command\na,2026,1a,run\nb,,1a,run\nc,2026,,run\nd,2026,1a,\n")
    assert unproven(file) == ["b", "c", "d"]
    file.write_text("what,date,commit\na,2026,1a\n")
    assert unproven(file) == ["a"]


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
    summary, searches = (TABLES.rows_of(TABLES.DATA / f"{name}.csv") for name in ("summary", "search-time"))
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
    monkeypatch.setattr(TABLES, "DATA", tmp_path)
    file = tmp_path / "application-rates.csv"
    file.write_text("application,holds,next rate up\na,180 k/s,259 k/s undecided\nb,1 M/s,1.2 M/s not sustained\n")
    assert "20 to 44 % above" in TABLES.application_brackets()
    assert "1 of these upper ends was shown to fail" in TABLES.application_brackets()
    file.write_text(file.read_text() + "c,1 M/s,no upper end was found\n")
    assert "For 1 of them no upper end was found" in TABLES.application_brackets()
    file.write_text(file.read_text() + "d,1 M/s,\n")
    with pytest.raises(ValueError, match="must have a rate or"):
        TABLES.application_brackets()
