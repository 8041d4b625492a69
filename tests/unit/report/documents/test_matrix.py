"""A matrix shown: on its page, cell by cell in the terminal, and as a plan."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from rich.console import Console

from streamgauge.artifacts.run_folder import MATRIX, write_study
from streamgauge.core.trial import TrialSnapshot
from streamgauge.report.documents.matrix import cell_line, document, plan_document
from streamgauge.report.documents.study_pages import rerender_study
from streamgauge.report.page import render
from streamgauge.report.terminal.studies import MatrixView, show_matrix, show_plan
from streamgauge.results.matrix import MatrixCell, MatrixPlan, MatrixResult, PlannedCell


def cell(number: int, rate: str = "10k", repetition: int = 1, **changes: Any) -> MatrixCell:
    values = {
        "verdict": "sustained", "folder": f"cells/{number:03d}/run", "report": f"cells/{number:03d}/run/report.html",
        "seconds": 61.0, "ingested_per_s": 10_000.0 * number, "offered_per_s": 1e4, "event_time_p50_us": 20_000.0,
    }  # fmt: skip
    return MatrixCell(
        number=number, settings={"load.rate": rate, "tuning": "tuned"}, repetition=repetition, **{**values, **changes}
    )


def matrix(*cells: MatrixCell, **changes: Any) -> MatrixResult:
    values = {
        "command": "run", "workload": "identity", "engine": "spark", "varied": ("load.rate", "tuning"), "planned": 3,
        "environment": {"cpus": 2}, "start_time": "2026-01-01T00:00:00+00:00", "folder": "runs/m", "cells": cells,
    }  # fmt: skip
    return MatrixResult(**{**values, **changes})


def shown(show: Any, what: Any) -> str:
    output = io.StringIO()
    show(what, Console(file=output, width=200))
    return " ".join(output.getvalue().split())


def test_the_page_has_a_row_for_each_cell_with_its_report() -> None:
    """Its settings, verdict and figures; figures that no cell has are left out."""
    page = render(
        document(matrix(cell(1), cell(2, "20k", verdict="not_sustained", sentence="grew <1 %"), finished=True))
    )
    parts = (
        '<a href="cells/001/run/report.html">1</a>', '<td class="not_sustained">not sustained</td>', "grew &lt;1 %",
        "20 k/s", "2 of 3 cells: 1 sustained, 1 not sustained",
    )  # fmt: skip
    absent = ["most backlog", "Repetitions of each combination"]
    assert [part for part in (*parts, *absent) if part not in page] == absent


def test_repetitions_are_summed_up() -> None:
    """How many were sustained, and the median with its range; an invalid one is in no figure."""
    cells = [cell(n, repetition=n) for n in (1, 2, 3)] + [cell(4, repetition=4, verdict="invalid", ingested_per_s=9e9)]
    page = render(document(matrix(*cells, planned=4)))
    assert "3 of 4" in page
    assert "20 k/s<small>10 k/s to 30 k/s</small>" in " ".join(page.split())


def test_what_is_left_to_do_is_reported() -> None:
    """Missing cells can be run, and those that decided nothing repeated."""
    text = shown(show_matrix, matrix(cell(1), cell(3, verdict="undecided")))
    assert "streamgauge experiment --resume runs/m runs the cells that are missing" in text
    assert "streamgauge experiment --resume runs/m --cells 3 repeats what decided nothing" in text
    assert "report runs/m/report.html" in text
    assert "next" not in shown(show_matrix, matrix(cell(1), finished=True, planned=1))


def test_a_cell_is_a_line() -> None:
    """With its settings, verdict, rate, latency and time; the reason only where it is not sustained."""
    assert cell_line(cell(1, sentence="all checks hold"), 3) == (
        "1 of 3   load.rate=10k, tuning=tuned   sustained   ingested 10 k/s   event time p50 20 ms, p99 -   1 min 1 s"
    )
    nothing = dict.fromkeys(("ingested_per_s", "offered_per_s", "event_time_p50_us"))
    line = cell_line(cell(2, repetition=2, verdict="invalid", sentence="no port", **nothing), 3)
    assert line == "2 of 3   load.rate=10k, tuning=tuned   repetition 2   invalid   1 min 1 s   no port"
    assert "sustained 50 k/s" in cell_line(cell(1, sustained_per_s=5e4), 3)
    assert "   done   " in cell_line(cell(1, verdict=None), 3)


def test_the_view_lists_earlier_cells_and_then_each_that_ended() -> None:
    """The progress of the current one stands below."""
    output = io.StringIO()
    with MatrixView(Console(file=output, width=200)) as view:
        view.begin(matrix(cell(1)), 2)
        view.progress(TrialSnapshot("measured", 1.0, 9.0, note="rising"))
        view.cell(cell(2))
    lines = output.getvalue().splitlines()
    assert lines[:2] == ["identity   matrix of run, 2 of 3 cells   varied: load.rate, tuning", "folder   runs/m"]
    first, earlier, progress, second = lines[2:6]
    assert first.startswith("  1 of 3   load.rate=10k")
    assert (earlier, "rising" in progress) == ("  1 earlier cell, 1 min 1 s", True)
    assert second.startswith("  2 of 3   load.rate=10k")


def test_a_plan_shows_its_cells_and_minutes() -> None:
    """And that nothing was started."""
    cells = [PlannedCell(number=n, settings={"load.rate": f"{n}k"}, repetition=1, seconds=90.0) for n in (2, 1)]
    plan = MatrixPlan(workload="identity", command="run", varied=("load.rate",), cells=tuple(cells))
    text = shown(show_plan, plan)
    assert "2 cells, about 3.0 min" in text
    assert "2 2k 1 1.5 1 1k 1 1.5" in text
    assert "nothing was started" in text
    unforeseen = plan.model_copy(update={"cells": (*cells, cells[0].model_copy(update={"seconds": None}))})
    headline = plan_document(unforeseen).headline
    assert headline == "3 cells, about 3.0 min, and 1 whose time cannot be foreseen"


def test_a_page_is_made_again(tmp_path: Path) -> None:
    """Of what the folder holds, even before its first cell."""
    write_study(tmp_path, MATRIX, matrix())
    assert rerender_study(tmp_path) == tmp_path / "report.html"
    assert (tmp_path / "report.html").read_text() == render(document(matrix()))
    assert "0 of 3 cells" in (tmp_path / "report.html").read_text()
