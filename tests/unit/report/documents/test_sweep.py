"""A sweep shown: latency against load, the knee, and loads that are not sustained."""

from typing import Any

import pytest

from streamgauge.report.charts.latency_curve import by_load
from streamgauge.report.document_blocks import Document
from streamgauge.report.documents.sweep import document
from streamgauge.report.page import render
from streamgauge.results.matrix import CellFigures, MatrixCell, MatrixResult, Sweep

SEARCH = CellFigures(
    verdict="sustained", sustained_per_s=1e5, seconds=400.0, sentence="100 k/s held", folder="cells/000/run",
    report="cells/000/run/report.html",
)  # fmt: skip


def cell(number: int, load: float, **changes: Any) -> MatrixCell:
    """A load that is sustained, with the latencies of a queue."""
    values = {
        "verdict": "sustained", "report": f"cells/{number:03d}/run/report.html", "seconds": 61.0, "sentence": "said so",
        "planned_per_s": 1e5 * load, "ingested_per_s": 1e5 * load, "event_time_p50_us": 2e4,
        "event_time_p99_us": 2e4 / (1.2 - load), "event_time_max_us": 1e6,
    }  # fmt: skip
    return MatrixCell(number=number, settings={"load.rate": 1e5 * load}, repetition=1, **{**values, **changes})


def sweep(*cells: MatrixCell, loads: tuple[float, ...] = (0.2, 0.6, 0.8, 1.1), **changes: Any) -> MatrixResult:
    values = {"loads": loads, "full_per_s": 1e5, "search": SEARCH, "knee": 0.6, "candidates": loads[:-1], **changes}
    return MatrixResult(
        command="sweep", workload="identity", engine="spark", varied=("load.rate",), planned=len(loads),
        environment={"cpus": 2}, start_time="2026-01-01T00:00:00+00:00", folder="runs/s", cells=cells,
        finished=len(cells) == len(loads), sweep=Sweep(**values),
    )  # fmt: skip


def whole(**changes: Any) -> MatrixResult:
    """Three loads are sustained, one of which withholds its p99, and the last is not."""
    last = cell(4, 1.1, verdict="not_sustained", event_time_p99_us=9e6)
    return sweep(cell(1, 0.2), cell(2, 0.6), cell(3, 0.8, event_time_p99_us=None), last, **changes)


def words_of(shown: Document) -> str:
    """The answer in words."""
    facts = (str(part) for fact in shown.facts for part in fact.parts)
    return "\n".join((shown.headline, *facts, *(remark.text for remark in shown.remarks)))


def test_loads_that_are_not_sustained_look_different() -> None:
    """The line joins the others; a withheld percentile has no mark."""
    found, all_sustained = by_load(whole()), by_load(sweep(*(cell(n, n / 5) for n in (1, 2, 3, 4))))
    assert found is not None
    assert all_sustained is not None
    labels = [key.label for key in found.keys]
    assert labels == ["p50", "p99", "not sustained", "knee: 60 %"]
    assert "not sustained" not in [key.label for key in all_sustained.keys]
    assert "load (% of 100 k/s)" in found.wide
    assert by_load(sweep(cell(1, 0.2, event_time_p50_us=None, event_time_p99_us=None))) is None


def test_the_page_has_the_knee_and_its_rule_and_no_number_for_what_is_withheld() -> None:
    words, page = words_of(document(whole())), render(document(whole()))
    assert "3 sustained, 1 not sustained; knee at 60 % with 60 k/s and p99 33.3 ms" in words
    assert "greatest rate / p99 latency (Kleinrock 1979)" in words
    assert "found by a quick search" in words
    assert 'href="cells/000/run/report.html"' in page
    assert "None" not in page


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"knee": None, "candidates": (0.2, 0.6)}, "not known: 2 of these have a p99, and it needs 3"),
        ({"knee": None, "candidates": (), "p99_needs_s": 400.0}, "needs `--duration 400s`"),
        ({"full_per_s": None, "knee": None}, "100 % is not known: 100 k/s held"),
        ({"full_per_s": None, "knee": None, "search": None}, "100 % is not known: a search finds it first"),
    ],
)
def test_what_is_not_known_has_its_reason(changes: dict[str, Any], words: str) -> None:
    """And the way to know it."""
    result = whole(**changes) if changes.get("full_per_s", 1) else sweep(**changes)
    assert words in words_of(document(result))
