"""A sweep as a document: latency against load, the knee with its rule, and every load with its verdict."""

from collections.abc import Iterator
from dataclasses import replace

from streamgauge.core.formatting import format_duration, format_percent, format_rate, format_us, resume_command
from streamgauge.report.charts.latency_curve import by_load
from streamgauge.report.document_blocks import (
    Cell,
    Document,
    Fact,
    Paragraph,
    Section,
    Table,
    blocks,
    numbers,
    table,
    texts,
)
from streamgauge.report.documents import matrix
from streamgauge.results import labels
from streamgauge.results.matrix import KNEE_LOADS_MIN, CellFigures, MatrixResult, Sweep

RULE = (
    "the load with the greatest rate / p99 latency (Kleinrock 1979), of the sustained loads below the first that was "
    "not sustained"
)
_IN_TERMINAL = ("load", "load.rate", "verdict", "event time p50", "p90", "p95", "p99", "max")


def document(result: MatrixResult) -> Document:
    """The document of the matrix, with the answer of the sweep first."""
    sweep, whole = result.sweep, matrix.document(result)
    every = whole.sections[0].blocks[-1]
    assert sweep is not None
    assert isinstance(every, Table)
    columns = (replace(one, short=None if one.heading in _IN_TERMINAL else "") for one in every.columns)
    listed = replace(every, columns=tuple(columns), terminal=True)
    search = [] if sweep.search is None else [_search(sweep.search)]
    return replace(
        whole,
        on=f"sweep on {result.engine}",
        title=f"{result.workload}, latency against load",
        headline=_headline(result, sweep),
        lead=(),
        facts=tuple(_facts(result, sweep)),
        remarks=tuple(_remarks(result, sweep)),
        sections=(
            Section("latency", "Latency against load", blocks(by_load(result), listed, search), "Latency"),
            *whole.sections[1:],
        ),
    )


def scale_text(sweep: Sweep) -> str:
    """What 100 % is."""
    if sweep.full_per_s is None:
        return "100 % is not known: " + (sweep.search.sentence if sweep.search else "a search finds it first")
    return f"100 % is {format_rate(sweep.full_per_s)}, {'found by a quick search' if sweep.search else 'as given'}"


def _headline(result: MatrixResult, sweep: Sweep) -> str:
    if sweep.full_per_s is None:
        return scale_text(sweep)
    verdicts = labels.counted_verdicts(row.verdict for row in result.cells)
    found = ", ".join(
        f"knee at {format_percent(100 * sweep.knee)} with {format_rate(row.planned_per_s)} and p99 "
        f"{format_us(row.event_time_p99_us)}"
        for row in result.cells
        if sweep.knee is not None and sweep.load_of(row) == sweep.knee
    )
    return f"{len(result.cells)} of {result.planned} loads: {verdicts}; {found or 'knee not known'}"


def _facts(result: MatrixResult, sweep: Sweep) -> Iterator[Fact]:
    if sweep.full_per_s is not None:
        yield Fact("loads", (scale_text(sweep),))
    few = f"not known: {len(sweep.candidates)} of these have a p99, and it needs {KNEE_LOADS_MIN}"
    reason = f"{few}. Give a longer --duration, or more --loads"
    yield Fact("knee", (RULE, *([reason] if result.finished and sweep.knee is None else [])))


def _remarks(result: MatrixResult, sweep: Sweep) -> Iterator[Paragraph]:
    if not result.finished or any(row.verdict in ("invalid", "undecided") for row in result.cells):
        command = resume_command("sweep", result.folder)
        text = f"`{command}` runs the loads that are missing, and repeats those that decided nothing."
        yield Paragraph(text, "advice", "next", terminal=True)
    yield from matrix.knee_notes(sweep)


def _search(search: CellFigures) -> Table:
    row = (
        Cell(labels.VERDICTS[search.verdict or "interrupted"], style=search.verdict or "", link=search.report),
        format_rate(search.sustained_per_s), format_duration(search.seconds), search.sentence,
    )  # fmt: skip
    return table("The search for 100 %", (*texts("verdict"), *numbers("sustained", "took"), *texts("why")), [row])
