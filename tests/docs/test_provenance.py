"""Measured figures say when, with which commit and by which command they were measured, and have one source."""

import os
import re
import subprocess
from collections.abc import Callable, Mapping

import pytest

from tests.docs.helpers_pages import RESULTS, ROOT

PROVEN = (
    "changes", "dstreams", "earlier-searches", "instrument", "kafka", "kafka-earlier", "latency-by-mode",
    "latency-by-mode-earlier", "latency-steps", "latency-tried", "limits", "real-time", "real-time-steps", "scaling",
    "search-model", "search-time", "searches", "single-figures", "stages-before-after", "stages-by-mode",
    "stages-receivers", "stages-text-records", "summary", "topologies", "whole-run",
)  # fmt: skip
"""Data files of which every row says when, with which commit and by which command it was measured."""


def unproven(rows: list[dict[str, str]]) -> list[str]:
    """The rows that lack date, commit or command."""
    return [row["what"] for row in rows if not all(row.get(key) for key in ("date", "commit", "command"))]


@pytest.mark.parametrize("name", PROVEN)
def test_measured_figures_say_where_they_come_from(name: str) -> None:
    """Each row has a date, a commit and a command."""
    assert unproven(RESULTS.rows_of(RESULTS.DATA / f"{name}.csv")) == []


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


def contradictions(summary: list[dict[str, str]], searches: list[dict[str, str]]) -> list[str]:
    """Rows of the summary about a search that are not what its row in `searches` says."""
    known = {(row["command"], row["commit"]): {row["figure"], row["took"]} for row in searches}
    commands = {row["command"] for row in searches}
    of_searches = [row for row in summary if row["command"] in commands]
    return [row["what"] for row in of_searches if row["figure"] not in known.get((row["command"], row["commit"]), ())]


def test_the_summary_of_searches_is_that_of_their_table() -> None:
    """Rates and times of a search have one source, search-time.csv."""
    summary, searches = (RESULTS.rows_of(RESULTS.DATA / f"{name}.csv") for name in ("summary", "search-time"))
    # The three searches in a row have their own table.
    assert contradictions([row for row in summary if "of three searches" not in row["what"]], searches) == []


SEARCH = {"command": "sustain", "commit": "1a1a1a1", "figure": "8 M/s", "took": "9 min"}


@pytest.mark.parametrize(("faults_of", "right", "wrong"), [
    (unproven, ({"date": "2026", "commit": "1a", "command": "run"},), (
        {"date": "", "commit": "1a", "command": "run"}, {"date": "2026", "commit": "", "command": "run"},
        {"date": "2026", "commit": "1a", "command": ""}, {"date": "2026", "commit": "1a"},
    )),
    (lambda rows: impossible(rows, {"1a1a1a1": "2026-01-02"}), (
        {"date": "2026-01-02 noon", "commit": "1a1a1a1"}, {"date": "2026-01-01", "commit": "1a1a1a1 (working copy)"},
        {"date": "2026-01-01 to 2026-01-03", "commit": "294fa47 to 1a1a1a1"},
    ), ({"date": "2026-01-01", "commit": "1a1a1a1"}, {"date": "2026-01-02", "commit": "2b2b2b2"})),
    (lambda rows: contradictions(rows, [SEARCH]), (SEARCH, {**SEARCH, "figure": "9 min"}, {**SEARCH, "command": "run"}),
     ({**SEARCH, "figure": "9 M/s"}, {**SEARCH, "commit": "2b2b2b2"})),
], ids=["no provenance", "older than its commit", "not that of its search"])  # fmt: skip
def test_faults_of_figures_are_found(
    faults_of: Callable[[list[dict[str, str]]], list[str]],
    right: tuple[dict[str, str], ...],
    wrong: tuple[dict[str, str], ...],
) -> None:
    """A working copy may be older than the commit that it became."""
    rows = [{**row, "what": str(n)} for n, row in enumerate((*right, *wrong))]
    assert [fault.partition(":")[0] for fault in faults_of(rows)] == [str(n) for n in range(len(right), len(rows))]
