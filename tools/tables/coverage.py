"""Tables of what the four works ask for and streamgauge lacks, or does differently.

The CSV files have every requirement, and Ehrenstein's specification line by line, with its tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from tables.markdown import DOCS, described, table
from tables.results import rows_of

COVERAGE = DOCS / "research" / "coverage.csv"
CHECKLIST = DOCS / "research" / "scalability-checklist.csv"
WORKS = ("Karimov et al. 2018", "latency study of Spark Streaming", "Ehrenstein 2020", "Bordin 2017")
STATUSES = ("works", "differs", "partial", "missing")


def makers() -> dict[str, Callable[[], str]]:
    return {
        "coverage: summary": coverage_summary,
        "coverage: missing": partial(coverage_of, "missing"),
        "coverage: differs": partial(coverage_of, "differs"),
        "coverage: partial": missing_parts,
    }


def coverage_rows() -> list[dict[str, str]]:
    """What the four works ask for; ValueError where an id comes twice, or a status or its reason is not one."""
    rows = rows_of(COVERAGE)
    ids = [row["id"] for row in rows]
    for row in rows:
        if ids.count(row["id"]) > 1:
            raise ValueError(f"coverage.csv: {row['id']} must have one row")
        if row["work"] not in WORKS or row["status"] not in STATUSES:
            raise ValueError(f"coverage.csv, {row['id']}: no such work or status: {row['work']}, {row['status']}")
        if row["status"] != "works" and not row["why"]:
            raise ValueError(f"coverage.csv, {row['id']}: must say why, where the status is {row['status']}")
    return rows


def coverage_summary() -> str:
    rows = coverage_rows()

    def counts(of: Sequence[Mapping[str, str]]) -> list[int]:
        return [len(of), *(sum(row["status"] == status for row in of) for status in STATUSES)]

    lines = [(work, *counts([row for row in rows if row["work"] == work])) for work in WORKS]
    return table(
        ("work", "requirements", *STATUSES), [tuple(map(str, line)) for line in [*lines, ("all", *counts(rows))]]
    )


def coverage_of(status: str) -> str:
    """The requirements of a status, in the order of the works."""
    rows = [row for row in coverage_rows() if row["status"] == status]
    return described((row["id"], f"{row['asked']}. {_sentence(row['why'])}") for row in rows)


def missing_parts() -> str:
    """What the partial requirements lack, those that lack the same together."""
    lacks: dict[str, list[str]] = {}
    for row in coverage_rows():
        if row["status"] == "partial":
            lacks.setdefault(row["why"], []).append(row["id"])
    return described((", ".join(ids), why) for why, ids in lacks.items())


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def checklist_rows() -> list[dict[str, str]]:
    """Every line of Ehrenstein's specification; ValueError where a line has no reason, or a test does not exist."""
    rows = rows_of(CHECKLIST)
    for row in rows:
        where, (path, _, name) = f"{CHECKLIST.name}, {row['id']}", row["test"].partition("::")
        if row["status"] not in (*STATUSES, "not yet"):
            raise ValueError(f"{where}: no such status: {row['status']}")
        if row["status"] != "works" and not row["why"]:
            raise ValueError(f"{where}: must say why, where the status is {row['status']}")
        if row["status"] == "works" and not name:
            raise ValueError(f"{where}: must name a test, where the status is works")
        file = DOCS.parent / path
        if name and not (file.is_file() and f"\ndef {name}(" in file.read_text()):
            raise ValueError(f"{where}: no such test: {row['test']}")
    return rows
