"""Measured figures of result pages come from data files, and the coverage table is whole."""

import re
from pathlib import Path

import pytest

from tests.docs.helpers_pages import COVERAGE, TABLES
from tests.helpers_modules import ROOT

RESULT_PAGES = sorted((ROOT / "docs" / "results").glob("*.md"))
FIGURE = re.compile(r"\b[\d.,]+ ?(?:[kM]/s|[mnu]s|s|GB|MB)\b")


@pytest.mark.parametrize("page", RESULT_PAGES, ids=[page.name for page in RESULT_PAGES])
def test_measured_figures_come_from_data(page: Path) -> None:
    """Tables of measured figures are made from docs/results/data, so that none is typed in."""
    rows = [line for line in TABLES._BLOCK.sub("", page.read_text()).splitlines() if line.startswith("|")]
    assert [figure for row in rows for figure in FIGURE.findall(row)] == []


SAME = {
    "R1": "E1", "R2": "E2", "R3": "E3", "R4": "E4", "R5": "E6", "R6": "E7", "R7": "E9", "R9": "E12", "R10": "E13",
    "R11": "E14", "R12": "E22", "R13": "E15", "R14": "E16", "R15": "E17", "R16": "E18", "R17": "E19", "R18": "E20",
    "R19": "E21", "R20": "E23", "R21": "E24", "R22": "E25", "R23": "E26", "R24": "E27", "R26": "E28", "E27": "E29",
    "E28": "E30", "E29": "E31", "E33": "E44", "E34": "E42", "F35": "E46", "F37": "E48", "F38": "E50", "F39": "E49",
    "F40": "E51",
}  # fmt: skip
"""Lines of Ehrenstein's specification to the requirements of the coverage table that ask the same."""


def test_both_tables_of_ehrenstein_agree() -> None:
    """What one calls partial cannot work in the other. The checklist has every line of the specification, and each test
    that it names exists.
    """
    lines, status = COVERAGE.checklist_rows(), {row["id"]: row["status"] for row in COVERAGE.coverage_rows()}
    assert [row["id"] for row in lines if row["id"] in SAME and row["status"] != status[SAME[row["id"]]]] == []
    assert [row["id"] for row in lines] == [
        *(f"R{n}" for n in range(1, 27)),
        *(f"E{n}" for n in range(27, 35)),
        *(f"F{n}" for n in range(35, 41)),
    ]
