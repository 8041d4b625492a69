"""A matrix of experiments as a document: one row a cell, each combination's repetitions together; also its plan."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from streamgauge.core.formatting import (
    NONE,
    format_count,
    format_duration,
    format_percent,
    format_rate,
    format_size,
    format_us,
    format_value,
    resume_command,
)
from streamgauge.report.charts.matrix import combinations
from streamgauge.report.document_blocks import (
    QUICK,
    Cell,
    Column,
    Document,
    Paragraph,
    Section,
    Table,
    blocks,
    environment_table,
    numbers,
    table,
    texts,
)
from streamgauge.results import labels
from streamgauge.results.matrix import MatrixCell, MatrixPlan, MatrixResult, PlannedCell

_FIGURES: tuple[tuple[str, str, Callable[[float | None], str]], ...] = (
    ("sustained", "sustained_per_s", format_rate),
    ("offered", "offered_per_s", format_rate),
    ("ingested", "ingested_per_s", format_rate),
    ("event time p50", "event_time_p50_us", format_us),
    ("p99", "event_time_p99_us", format_us),
    ("until counted p50", "until_counted_p50_us", format_us),
    ("most backlog", "backlog_max", format_count),
    ("faults", "faults", format_count),
    ("SUT CPU", "sut_cpu_percent", format_percent),
    ("broker CPU", "broker_cpu_percent", format_percent),
    ("SUT memory", "sut_memory_bytes", format_size),
)
"""Heading, field and format of the figures on the page; the tables beside it have more."""
_SUMMARISED = ("sustained_per_s", "ingested_per_s", "event_time_p50_us", "event_time_p99_us", "sut_cpu_percent")


def document(result: MatrixResult) -> Document:
    """Every cell with its verdict and figures."""
    verdicts = labels.counted_verdicts(row.verdict for row in result.cells)
    repeated = any(row.repetition > 1 for row in result.cells)
    chart = combinations(result)
    sections = [Section("cells", "Cells", blocks(chart, _cells(result)), "Cells")]
    if repeated:
        sections.append(Section("repetitions", "Repetitions together", (_summary(result),), "Repetitions"))
    sections += _left_out(result.left_out)
    sections.append(Section("environment", "Environment", (environment_table(result.environment),), "Environment"))
    engine = "" if "engine" in result.varied else f" on {result.engine}"
    cells = f"{len(result.cells)} of {result.planned} cells"
    return Document(
        name=result.workload,
        on=f"matrix of {result.command}{engine}",
        title=f"{result.workload}, matrix",
        headline=f"{cells}: {verdicts}" if verdicts else cells,
        style="" if result.finished else "interrupted",
        mark=QUICK if result.quick else "",
        meta=(" · ".join((result.start_time, result.folder)),),
        lead=tuple(map(Paragraph, _sentences(result))),
        remarks=tuple(_remarks(result)),
        sections=tuple(sections),
    )


def _sentences(result: MatrixResult) -> Iterator[str]:
    """What was varied, and where the highest rate was reached."""
    yield f"Varied: {', '.join(result.varied) or 'nothing'}."
    searched = any(row.sustained_per_s is not None for row in result.cells)
    what, field = ("sustained", "sustained_per_s") if searched else ("ingested", "ingested_per_s")
    good = [row for row in result.cells if row.verdict in ("sustained", None) and getattr(row, field) is not None]
    if good and not result.quick:  # its rates were given
        best = max(good, key=lambda row: float(getattr(row, field)))
        place = f" with {_setting_texts(best)}" if best.settings else ""
        late = f"; event time p50 {format_us(best.event_time_p50_us)}" if best.event_time_p50_us is not None else ""
        yield f"The highest {what} rate is {format_rate(getattr(best, field), 'events/s')}{place}{late}."


def plan_document(plan: MatrixPlan) -> Document:
    """The cells that would run, with estimated times."""
    unforeseen = sum(cell.seconds is None for cell in plan.cells)
    also = f", and {unforeseen} whose time cannot be foreseen" if unforeseen else ""
    many = f"{len(plan.cells)} cell{'s' * (len(plan.cells) != 1)}"
    columns = (*numbers("cell"), *texts(*plan.varied), *numbers("repetition", "minutes"))
    rows = (
        (
            str(cell.number),
            *_settings(plan.varied, cell),
            str(cell.repetition),
            NONE if cell.seconds is None else _in_minutes(cell.seconds),
        )
        for cell in plan.cells
    )
    return Document(
        name=plan.workload,
        on=f"matrix of {plan.command}",
        title=f"{plan.workload}, plan of a matrix",
        headline=f"{many}, about {_in_minutes(plan.seconds)} min{also}",
        mark=QUICK if plan.quick else "",
        sections=(
            Section("cells", "Cells", (table("Cells in their order", columns, rows, terminal=True),)),
            *_left_out(plan.left_out),
        ),
        remarks=(Paragraph("nothing was started", "note", terminal=True),),
    )


def _left_out(left_out: Sequence[Mapping[str, Any]]) -> Iterator[Section]:
    """The cells that a quick look leaves out, if there are any."""
    if left_out:
        names = dict.fromkeys(name for one in left_out for name in one)
        rows = (tuple(format_value(one.get(name)) for name in names) for one in left_out)
        many = Paragraph(f"The quick look leaves {len(left_out)} out:", terminal=True)
        listed = table("Cells that the quick look leaves out", texts(*names), rows, terminal=True)
        yield Section("left-out", "Left out", (many, listed), "Left out")


def cell_line(row: MatrixCell, planned: int) -> str:
    """`3 of 12   load.rate=10k   sustained   ingested 10 k/s   event time p50 12 ms, p99 -   41 s   reason`."""
    rate = f"sustained {format_rate(row.sustained_per_s)}" if row.sustained_per_s else ""
    latency = f"event time p50 {format_us(row.event_time_p50_us)}, p99 {format_us(row.event_time_p99_us)}"
    parts = [
        f"{row.number} of {planned}",
        _setting_texts(row),
        f"repetition {row.repetition}" if row.repetition > 1 else "",
        _verdict(row),
        rate or (f"ingested {format_rate(row.ingested_per_s)}" if row.ingested_per_s is not None else ""),
        latency if row.ingested_per_s is not None else "",
        format_duration(row.seconds),
        "" if row.verdict == "sustained" else row.sentence,
    ]
    return "   ".join(part for part in parts if part)


def _setting_texts(row: MatrixCell) -> str:
    return ", ".join(f"{name}={format_value(value)}" for name, value in row.settings.items())


def _remarks(result: MatrixResult) -> Iterator[Paragraph]:
    if not result.finished:
        command = resume_command("experiment", result.folder)
        yield Paragraph(f"`{command}` runs the cells that are missing.", "advice", "next", terminal=True)
    if again := [str(row.number) for row in result.cells if row.verdict in ("invalid", "undecided")]:
        command = f"{resume_command('experiment', result.folder)} --cells {','.join(again)}"
        yield Paragraph(f"`{command}` repeats what decided nothing.", "advice", "next", terminal=True)


def _cells(result: MatrixResult) -> Table:
    shown = _shown(result)
    columns = (
        *numbers("cell"), *texts(*result.varied), *numbers("repetition"), *texts("verdict"),
        *numbers(*(heading for heading, _, _ in shown), "took"), Column("why", prose=True),
    )  # fmt: skip
    rows: list[tuple[Cell | str, ...]] = [
        (
            Cell(str(row.number), link=row.report),
            *_settings(result.varied, row),
            str(row.repetition),
            Cell(_verdict(row), style=row.verdict or ""),
            *(format_(getattr(row, field)) for _, field, format_ in shown),
            format_duration(row.seconds),
            row.sentence or NONE,
        )
        for row in result.cells
    ]
    notes = ("`cells.csv` and `cells.parquet` hold these and further figures, one row a cell.",)
    return table("Every cell that was run", columns, rows, notes=notes)


def _shown(result: MatrixResult) -> list[tuple[str, str, Callable[[float | None], str]]]:
    """The figures that some cell has."""
    return [one for one in _FIGURES if any(getattr(row, one[1]) is not None for row in result.cells)]


def _summary(result: MatrixResult) -> Table:
    """One row for each combination: how many repetitions were sustained, and each figure's median and range."""
    groups: dict[str, list[MatrixCell]] = {}
    for row in result.cells:
        groups.setdefault(repr(row.settings), []).append(row)
    shown = [one for one in _shown(result) if one[1] in _SUMMARISED]
    columns = (*texts(*result.varied), *numbers("sustained", *(heading for heading, _, _ in shown)))
    rows: list[tuple[Cell | str, ...]] = [
        (
            *_settings(result.varied, group[0]),
            f"{sum(row.verdict == 'sustained' for row in group)} of {len(group)}",
            *(_spread(group, field, format_) for _, field, format_ in shown),
        )
        for group in groups.values()
    ]
    notes = ("Median, and least to most, of the repetitions that are not invalid.",)
    return table("Repetitions of each combination together", columns, rows, notes=notes)


def _spread(rows: Sequence[MatrixCell], field: str, format_: Callable[[float | None], str]) -> Cell:
    values = (getattr(row, field) for row in rows if row.verdict not in ("invalid", "interrupted"))
    known = [value for value in values if value is not None]
    if not known:
        return Cell(NONE)
    span = f"{format_(min(known))} to {format_(max(known))}" if len(known) > 1 else ""
    return Cell(format_(median(known)), span)


def _settings(varied: Sequence[str], cell: MatrixCell | PlannedCell) -> Iterator[str]:
    """The cell's values."""
    return (format_value(cell.settings.get(name)) for name in varied)


def _verdict(row: MatrixCell) -> str:
    return labels.VERDICTS[row.verdict] if row.verdict else "done"


def _in_minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f}"
