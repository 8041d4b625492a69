"""Measured figures of result pages come from data files, and the coverage table is whole."""

import re
from pathlib import Path

import pytest

from tests.docs.helpers_pages import COVERAGE, RESULTS, TABLES
from tests.helpers_modules import ROOT

RESULT_PAGES = sorted((ROOT / "docs" / "results").glob("*.md"))
FIGURE = re.compile(r"\b[\d.,]+ ?(?:[kM]/s|[mnu]s|s|GB|MB)\b")


def typed_figures(text: str) -> list[str]:
    """Rates, times and sizes that stand in a page's tables, but in none that is made from data."""
    rows = [line for line in TABLES._BLOCK.sub("", text).splitlines() if line.startswith("|")]
    return [figure for row in rows for figure in FIGURE.findall(row)]


@pytest.mark.parametrize("page", RESULT_PAGES, ids=[page.name for page in RESULT_PAGES])
def test_measured_figures_come_from_data(page: Path) -> None:
    """Tables of measured figures are made from docs/results/data, so that none is typed in."""
    assert typed_figures(page.read_text()) == []


def test_a_typed_figure_is_found() -> None:
    """In a table by hand; one in a generated table is none."""
    made = "<!-- generated: results: summary -->\n| a | 3 ms |\n<!-- end of results: summary -->"
    assert typed_figures(f"{made}\n| rate | 250 k/s |\n| p50 | 3.5 ms |") == ["250 k/s", "3.5 ms"]


def test_data_of_results_are_whole(tmp_path: Path) -> None:
    """A row says what it is and has the head's cells, a series one figure for each row; what is shared stands once."""
    file = tmp_path / "data.csv"
    for text, message in (
        ("what,figure\na,1,2\n", "line 2: must have 2 cells"),
        ("what,figure\n,1\n", "must say its what"),
        ("what,figure\n", "must have rows"),
        ("what,series,figure\na,x,1\na,x,2\n", "one figure for each what and series"),
    ):
        file.write_text(text)
        with pytest.raises(ValueError, match=message):
            RESULTS.results(file)
    file.write_text("what,figure,floor,date,command\na,1,,2026-01-02,bench\nb,2,,2026-01-02,bench\n")
    assert RESULTS.results(file) == "| what | figure |\n| --- | --- |\n| a | 1 |\n| b | 2 |\n\n2026-01-02; `bench`"
    file.write_text("what,series,figure,date\na,x,1,2026\na,y,2,2027\nb,y,3,2027\n")
    assert RESULTS.results(file).splitlines()[2:] == ["| a | 1 | 2 |", "| b | - | 3 |", "", "- x: 2026", "- y: 2027"]


@pytest.mark.parametrize(("row", "message"), [
    ("K1,Karimov et al. 2018,b,,works,", "must have one row"), ("K2,Karimov,b,,works,", "no such work or status"),
    ("K2,Bordin 2017,b,,done,", "no such work or status"), ("K2,Bordin 2017,b,,partial,", "must say why"),
])  # fmt: skip
def test_coverage_is_whole(row: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each requirement once, of one of the works, with a status, and a reason unless it works."""
    file = tmp_path / "coverage.csv"
    file.write_text(f"id,work,asked,here,status,why\nK1,Karimov et al. 2018,a,run,works,\n{row}\n")
    monkeypatch.setattr(COVERAGE, "COVERAGE", file)
    with pytest.raises(ValueError, match=message):
        COVERAGE.coverage_rows()


SAME = {
    "R1": "E1", "R2": "E2", "R3": "E3", "R4": "E4", "R5": "E6", "R6": "E7", "R7": "E9", "R9": "E12", "R10": "E13",
    "R11": "E14", "R12": "E22", "R13": "E15", "R14": "E16", "R15": "E17", "R16": "E18", "R17": "E19", "R18": "E20",
    "R19": "E21", "R20": "E23", "R21": "E24", "R22": "E25", "R23": "E26", "R24": "E27", "R26": "E28", "E27": "E29",
    "E28": "E30", "E29": "E31", "E33": "E44", "E34": "E42", "F35": "E46", "F37": "E48", "F38": "E50", "F39": "E49",
    "F40": "E51",
}  # fmt: skip
"""Lines of Ehrenstein's specification to the requirements of the coverage table that ask the same."""


def contradictions(lines: list[dict[str, str]], requirements: list[dict[str, str]]) -> list[str]:
    """The lines whose status is not that of the same requirement."""
    status = {row["id"]: row["status"] for row in requirements}
    return [row["id"] for row in lines if row["id"] in SAME and row["status"] != status[SAME[row["id"]]]]


def test_both_tables_of_ehrenstein_agree() -> None:
    """What one calls partial cannot work in the other."""
    lines, requirements = COVERAGE.checklist_rows(), COVERAGE.coverage_rows()
    assert contradictions(lines, requirements) == []
    changed = [{**row, "status": "works"} if row["id"] in ("R1", "R2", "F40") else row for row in lines]
    assert contradictions(changed, requirements) == ["R1", "F40"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("R2,b,scale,,works,", "must name a test"),
        ("R2,b,,,not yet,", "must say why"),
        ("R2,b,,,done,why", "no such status"),
        ("R2,b,scale,tests/docs/test_result_pages.py::test_none,works,", "no such test"),
        ("R2,b,scale,tests/docs/test_none.py::test_coverage_is_whole,works,", "no such test"),
    ],
)
def test_every_test_of_the_checklist_exists(
    row: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its path and name; the checklist itself has every line of the specification."""
    assert [row["id"] for row in COVERAGE.checklist_rows()] == [
        *(f"R{n}" for n in range(1, 27)),
        *(f"E{n}" for n in range(27, 35)),
        *(f"F{n}" for n in range(35, 41)),
    ]
    file = tmp_path / "checklist.csv"
    good = "R1,a,scale,tests/docs/test_result_pages.py::test_coverage_is_whole,works,"
    file.write_text(f"id,asked,here,test,status,why\n{good}\n{row}\n")
    monkeypatch.setattr(COVERAGE, "CHECKLIST", file)
    with pytest.raises(ValueError, match=message):
        COVERAGE.checklist_rows()
