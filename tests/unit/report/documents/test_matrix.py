"""A matrix shown: on its page, cell by cell in the terminal, and as a plan."""

import csv
import io
from pathlib import Path
from typing import Any

from rich.console import Console

from streamgauge.core.trial import TrialSnapshot
from streamgauge.report.charts.matrix import combinations, usage
from streamgauge.report.document_blocks import Document, Table
from streamgauge.report.documents.matrix import cell_line, document
from streamgauge.report.page import render
from streamgauge.report.terminal.studies import MatrixView
from streamgauge.results.matrix import CellFigures, MatrixCell, MatrixResult, PublishedTable, SinkFigures
from streamgauge.studies.matrix.cells import rows_table, write_tables


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


def test_a_chart_has_a_row_for_each_combination() -> None:
    """Of sustained rates, if cells have them; without a rate, and with too many combinations, a table does."""
    found = combinations(matrix(cell(1), cell(2, repetition=2), cell(3, "20k", verdict="undecided")))
    assert found is not None
    assert [(text, found.wide.count(f">{text}<")) for text in ("10k, tuned", "20k, tuned")] == [
        ("10k, tuned", 2), ("20k, tuned", 2),
    ]  # fmt: skip
    assert [key.label for key in found.keys] == [
        "sustained",
        "undecided",
        "event-time latency: p50, p95 (thin) and up to p99, as far as known",
    ]
    searched = combinations(matrix(cell(1, sustained_per_s=5e3), cell(2, "20k", ingested_per_s=None)))
    assert searched is not None
    assert ("20k, tuned" in searched.wide, "sustained rate" in searched.words) == (False, True)
    assert combinations(matrix(cell(1, ingested_per_s=None))) is None
    assert combinations(matrix(*(cell(number, f"{number}k") for number in range(1, 50)))) is None


def test_bars_of_what_combinations_used_stand_in_panels() -> None:
    """One for each figure that some cell has, with its unit; a cell that was not sustained has another colour."""
    used = {"event_time_p95_us": 3e6, "sut_cpu_percent": 150.0, "sut_memory_bytes": 2**31}
    failed = cell(2, "20k", verdict="not_sustained", sut_cpu_percent=90.0)
    drawn = usage(matrix(cell(1, **used), failed, cell(3, "30k")))
    assert drawn is not None
    headings = ("event time p95 (s)", "SUT CPU (% of a core)", "SUT memory (GiB)")
    assert [picture.count(f">{text}<") for picture in (drawn.wide, drawn.narrow) for text in headings] == [1] * 6
    assert ">network" not in drawn.wide
    assert [drawn.wide.count(f">{name}k, tuned<") for name in (10, 20, 30)] == [2, 2, 0]
    assert [drawn.narrow.count(f">{name}k, tuned<") for name in (10, 20, 30)] == [3, 3, 0]
    assert [drawn.wide.count(f'fill="var(--{name})"') for name in ("sustained", "not-sustained")] == [3, 1]
    assert [key.label for key in drawn.keys] == ["sustained", "not sustained"]
    traffic = usage(matrix(cell(1, loopback_bytes_per_s=2**21)))
    assert traffic is not None
    assert ">network (MiB/s)<" in traffic.wide
    assert usage(matrix(cell(1))) is None
    assert usage(matrix(*(cell(number, f"{number}k", **used) for number in range(1, 50)))) is None


ON_PAGE = {
    "sustained": "sustained_per_s", "offered": "offered_per_s", "ingested": "ingested_per_s",
    "maximum throughput": "maximum_per_s", "results": "results_per_s", "event time p50": "event_time_p50_us",
    "p95": "event_time_p95_us", "p99": "event_time_p99_us", "until counted p50": "until_counted_p50_us",
    "most backlog": "backlog_max", "faults": "faults", "SUT CPU": "sut_cpu_percent",
    "broker CPU": "broker_cpu_percent", "SUT memory": "sut_memory_bytes", "network": "loopback_bytes_per_s",
}  # fmt: skip
SINKS_ON_PAGE = {name: ON_PAGE[name] for name in ("results", "event time p50", "p95", "p99")}
IN_TERMINAL = ("sustained", "maximum throughput", "event time p50", "p99")


def first_row(shown: Document, caption: str) -> dict[str, str]:
    """The first row of a table of the section of cells, by heading."""
    (found,) = (one for one in shown.sections[0].blocks if isinstance(one, Table) and one.caption == caption)
    return {column.heading: one.text for column, one in zip(found.columns, found.rows[0].cells, strict=True)}


def test_figures_of_page_json_csv_and_terminal_agree(tmp_path: Path) -> None:
    """Each figure of a cell and of its sink has a number of its own, which stands under its heading everywhere."""
    fields = {name: 101.0 + n for n, name in enumerate(ON_PAGE.values())} | {"sut_memory_bytes": 201 * 2**20,
              "loopback_bytes_per_s": 202 * 2**20}  # fmt: skip
    sink = SinkFigures(name="alerts", **{name: 301.0 + n for n, name in enumerate(SINKS_ON_PAGE.values())})
    result = matrix(cell(1, **fields, sinks=(sink, SinkFigures(name="x"))))
    write_tables(tmp_path, "cells", rows_table({}, result.cells))
    with (tmp_path / "cells.csv").open(newline="") as lines:
        (in_csv,) = csv.DictReader(lines)
    read = MatrixResult.model_validate_json(result.model_dump_json())
    on_page = first_row(document(read), "Every cell that was run")
    of_sink = first_row(document(read), "Each sink of every cell")
    in_terminal = cell_line(read.cells[0], 3)
    for shown, headings, of_json, prefix in (
        (on_page, ON_PAGE, read.cells[0], ""), (of_sink, SINKS_ON_PAGE, read.cells[0].sinks[0], "sinks.alerts."),
    ):  # fmt: skip
        for heading, field in headings.items():
            number = float(shown[heading].split()[0]) * (2**20 if "MiB" in shown[heading] else 1)
            assert (number, number) == (float(in_csv[prefix + field]), getattr(of_json, field)), heading
    assert in_csv["sinks.x.results_per_s"] == ""
    assert [f"{name} {on_page[name]}" in in_terminal for name in IN_TERMINAL] == [True] * len(IN_TERMINAL)


def test_latencies_of_which_results_are_missing_are_lower_bounds_in_every_table() -> None:
    figures = {"event_time_p50_us": 5e3, "event_time_p95_us": 6e3, "processing_time_p50_us": 7e3, "lower_bounds": 8}
    sink = SinkFigures(name="alerts", event_time_p95_us=6e3, lower_bounds=8)
    shown = document(matrix(cell(1, **figures, sinks=(sink, SinkFigures(name="x"))), published=PUBLISHED))
    of_cell = first_row(shown, "Every cell that was run")
    assert [of_cell["p95"], of_cell["processing time p50"]] == [">= 6 ms", "7 ms"]
    assert first_row(shown, "Each sink of every cell")["p95"] == ">= 6 ms"
    in_form = next(one.blocks[0] for one in shown.sections if one.id == "paper-form")
    assert isinstance(in_form, Table)
    assert ">= 6 ms" in [one.text for one in in_form.rows[0].cells]
    assert "event time p50 >= 5 ms, p99 -" in cell_line(matrix(cell(1, **figures)).cells[0], 1)


PUBLISHED = PublishedTable(
    work="Paper 2018", table="table I", hardware="two nodes",
    columns=("system", "nodes", "throughput_per_s", "latency_avg_s", "latency_p95_s"),
    rows=(("Storm", "2", "400000", "1.4", "2.7"), ("Flink", "2", "1200000", "0.5", "")),
)  # fmt: skip


def matrix_of_paper() -> MatrixResult:
    """Two searches, one of which has a trial at 90 %, and a cell without figures, beside a paper's table."""
    at_90 = CellFigures(verdict="undecided", report="cells/001/trials/4/report.html", planned_per_s=4.5e4,
                        ingested_per_s=4.4e4, event_time_mean_us=1.5e6)  # fmt: skip
    figures = {"sustained_per_s": 5e4, "event_time_mean_us": 2e6, "event_time_p95_us": 3e6}
    nothing = cell(3, "30k", verdict="invalid", ingested_per_s=None, offered_per_s=None, event_time_p50_us=None)
    return matrix(
        cell(1, at_90_percent=at_90, **figures), cell(2, "20k", verdict="not_sustained", planned_per_s=2e4), nothing,
        command="sustain", published=PUBLISHED, finished=True,
    )  # fmt: skip


def test_no_row_has_figures_of_the_paper_and_of_here() -> None:
    """Each search has a row at its maximum and one at 90 %; the paper's table is marked on the page."""
    sections = {section.id: section for section in document(matrix_of_paper()).sections}
    (theirs,), (here,) = sections["published"].blocks, sections["paper-form"].blocks
    assert isinstance(theirs, Table)
    assert isinstance(here, Table)
    assert [[one.text for one in row.cells] for row in theirs.rows] == [
        ["Storm", "2", "400 k/s", "1.4 s", "2.7 s"], ["Flink", "2", "1.2 M/s", "500 ms", "-"],
    ]  # fmt: skip
    assert [one.heading for one in here.columns][-5:] == ["load", "verdict", "throughput", "latency avg", "latency p95"]
    assert [[one.text for one in row.cells][4:] for row in here.rows] == [
        ["maximum", "sustained", "50 k/s", "2 s", "3 s"],
        ["90 %", "undecided", "44 k/s", "1.5 s", "-"],
        ["20 k/s", "not sustained", "20 k/s", "-", "-"],
    ]  # fmt: skip
    assert '<div class="scroll published"' in render(document(matrix_of_paper()))
    assert "published" not in {section.id for section in document(matrix(cell(1))).sections}


def test_updates_have_no_latency_in_the_form_of_a_paper() -> None:
    """Papers time windows that have closed."""
    updates = cell(1, until_counted_p50_us=5.0, event_time_mean_us=2e6, event_time_p95_us=3e6, planned_per_s=1e4)
    (here,) = next(
        section.blocks
        for section in document(matrix(updates, published=PUBLISHED)).sections
        if section.id == "paper-form"
    )
    assert isinstance(here, Table)
    assert [one.text for one in here.rows[0].cells][-2:] == ["-", "-"]


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
