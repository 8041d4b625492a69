"""Measured figures of result pages come from data files, and the coverage table is whole."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.docs.helpers_pages import COVERAGE, RESULTS, TABLES
from tests.helpers_modules import ROOT

RESULT_PAGES = sorted((ROOT / "docs" / "results").glob("*.md"))
FIGURE = re.compile(r"\b[\d.,]+ ?(?:[kM]/s|[mnu]s|s|GB|MB)\b")


MADE = "<!-- generated: results: summary -->\n| a | 3 ms |\n<!-- end of results: summary -->"


@pytest.mark.parametrize(("text", "typed"), [
    *((page.read_text(), []) for page in RESULT_PAGES),
    (f"{MADE}\n| rate | 250 k/s |\n| p50 | 3.5 ms |", ["250 k/s", "3.5 ms"]),
], ids=[*(page.name for page in RESULT_PAGES), "planted"])  # fmt: skip
def test_measured_figures_come_from_data(text: str, typed: list[str]) -> None:
    """Tables of measured figures are made from docs/results/data, so that none is typed in."""
    rows = [line for line in TABLES._BLOCK.sub("", text).splitlines() if line.startswith("|")]
    assert [figure for row in rows for figure in FIGURE.findall(row)] == typed


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
    """What one calls partial cannot work in the other. The checklist has every line of the specification, and each test
    that it names exists.
    """
    lines, requirements = COVERAGE.checklist_rows(), COVERAGE.coverage_rows()
    assert contradictions(lines, requirements) == []
    changed = [{**row, "status": "works"} if row["id"] in ("R1", "R2", "F40") else row for row in lines]
    assert contradictions(changed, requirements) == ["R1", "F40"]
    assert [row["id"] for row in lines] == [
        *(f"R{n}" for n in range(1, 27)),
        *(f"E{n}" for n in range(27, 35)),
        *(f"F{n}" for n in range(35, 41)),
    ]


READERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "coverage": (
        lambda _: COVERAGE.coverage_rows(), "id,work,asked,here,status,why\nK1,Karimov et al. 2018,a,run,works,",
    ),
    "checklist": (lambda _: COVERAGE.checklist_rows(), (
        "id,asked,here,test,status,why\nR1,a,scale,tests/docs/test_result_pages.py::test_faults_of_data_are_found,works,"
    )),
    "figures": (RESULTS.results, "what,series,figure\na,x,1"),
}  # fmt: skip
"""What reads a data file, with a right beginning of that file."""


@pytest.mark.parametrize(("name", "row", "message"), [
    ("coverage", "K1,Karimov et al. 2018,b,,works,", "must have one row"),
    ("coverage", "K2,Karimov,b,,works,", "no such work or status"),
    ("coverage", "K2,Bordin 2017,b,,done,", "no such work or status"),
    ("coverage", "K2,Bordin 2017,b,,partial,", "must say why"),
    ("checklist", "R2,b,scale,,works,", "must name a test"), ("checklist", "R2,b,,,not yet,", "must say why"),
    ("checklist", "R2,b,,,done,why", "no such status"),
    ("checklist", "R2,b,scale,tests/docs/test_result_pages.py::test_none,works,", "no such test"),
    ("checklist", "R2,b,scale,tests/none.py::test_faults_of_data_are_found,works,", "no such test"),
    ("figures", "a,y", "line 3: must have 3 cells"), ("figures", ",x,1", "must say its what"),
    ("figures", "a,x,2", "one figure for each what and series"),
])  # fmt: skip
def test_faults_of_data_are_found(
    name: str, row: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A requirement stands once, is one of the works', and has a status, and a reason unless it works."""
    read, right = READERS[name]
    file = tmp_path / "data.csv"
    for constant in ("COVERAGE", "CHECKLIST"):
        monkeypatch.setattr(COVERAGE, constant, file)
    file.write_text(f"{right}\n")
    read(file)
    file.write_text(f"{right}\n{row}\n")
    with pytest.raises(ValueError, match=message):
        read(file)
