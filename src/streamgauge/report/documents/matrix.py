"""A matrix of experiments as a document: one row a cell, each combination's repetitions together; also its plan."""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import ceil
from operator import attrgetter
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
from streamgauge.report.charts.matrix import combinations, usage
from streamgauge.report.document_blocks import (
    QUICK,
    Cell,
    Column,
    Document,
    Drawing,
    Paragraph,
    Section,
    Table,
    blocks,
    environment_table,
    missing_here,
    numbers,
    table,
    texts,
)
from streamgauge.results import labels
from streamgauge.results.matrix import (
    CellFigures,
    MatrixCell,
    MatrixPlan,
    MatrixResult,
    PlannedCell,
    PublishedTable,
    Sweep,
)
from streamgauge.results.text import phrases

Format = Callable[[float | None], str]
_FIGURES: tuple[tuple[str, str, Format], ...] = (
    ("sustained", "sustained_per_s", format_rate),
    ("offered", "offered_per_s", format_rate),
    ("ingested", "ingested_per_s", format_rate),
    ("maximum throughput", "maximum_per_s", format_rate),
    ("results", "results_per_s", format_rate),
    ("event time p50", "event_time_p50_us", format_us),
    ("p90", "event_time_p90_us", format_us),
    ("p95", "event_time_p95_us", format_us),
    ("p99", "event_time_p99_us", format_us),
    ("max", "event_time_max_us", format_us),
    ("processing time p50", "processing_time_p50_us", format_us),
    ("until counted p50", "until_counted_p50_us", format_us),
    ("most backlog", "backlog_max", format_count),
    ("batch waited", "scheduling_delay_us_max", format_us),
    ("faults", "faults", format_count),
    ("SUT CPU", "sut_cpu_percent", format_percent),
    ("broker CPU", "broker_cpu_percent", format_percent),
    ("SUT memory", "sut_memory_bytes", format_size),
    ("network", "loopback_bytes_per_s", lambda size: NONE if size is None else f"{format_size(size)}/s"),
)
"""Heading, field and format of the figures on the page; the tables beside it have more."""
_SUMMARISED = ("sustained_per_s", "ingested_per_s", "event_time_p50_us", "event_time_p99_us", "sut_cpu_percent")
_UNITS: Mapping[str, tuple[Format, float]] = {
    "_per_s": (format_rate, 1.0), "_ms": (format_us, 1e3), "_us": (format_us, 1.0), "_s": (format_us, 1e6),
}  # fmt: skip
"""Unit at the end of a published column's name to the format of its figures, and to the factor to our unit."""
_LATENCY = re.compile(r"latency_(avg|mean|min|max|p\d+)_[mu]?s")
_THROUGHPUT = ("throughput_per_s", "events_per_s", "messages_per_s")
_RESULTS = "sink_throughput_mean_per_s"


def document(result: MatrixResult) -> Document:
    """Every cell with its verdict and figures."""
    verdicts = labels.counted_verdicts(row.verdict for row in result.cells)
    repeated = any(row.repetition > 1 for row in result.cells)
    charts = (Drawing(lambda: combinations(result)), Drawing(lambda: usage(result)))
    sections = [Section("cells", "Cells", blocks(charts, _cells(result), _sinks(result)), "Cells")]
    if result.published is not None:
        sections += _paper(result, result.published)
    if repeated:
        sections.append(Section("repetitions", "Repetitions together", (_summary(result),), "Repetitions"))
    sections += _left_out(result.left_out, result.no_cells)
    again = f"streamgauge experiment {shlex.quote(f'{result.folder}/experiment.toml')}"
    sections.append(Section("again", "To run it again", (Paragraph(again, "code"),), "Run again"))
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
        place = f" with {_setting_texts(best.settings)}" if best.settings else ""
        late = f"; event time p50 {format_us(best.event_time_p50_us)}" if best.event_time_p50_us is not None else ""
        yield f"The highest {what} rate is {format_rate(getattr(best, field), 'events/s')}{place}{late}."


def plan_document(plan: MatrixPlan) -> Document:
    """The cells that would run, with estimated times."""
    unforeseen = sum(cell.seconds is None for cell in plan.cells)
    also = f", and {unforeseen} whose time cannot be foreseen" if unforeseen else ""
    also += f", {_in_minutes(plan.search_s)} of them for a search first" if plan.search_s else ""
    many = f"{len(plan.cells)} cell{'s' * (len(plan.cells) != 1)}"
    varied = any(_setting_texts(cell.settings) for cell in plan.cells)  # before its search a sweep has no rates
    repeated = any(cell.repetition > 1 for cell in plan.cells)
    columns = (
        *numbers("cell", *["load"] * bool(plan.sweep)),
        *[Column("settings", prose=True)] * varied,
        *numbers(*["repetition"] * repeated, "minutes"),
    )
    rows = (
        (
            str(cell.number),
            *_load(plan.sweep, cell),
            *[_setting_texts(cell.settings)] * varied,
            *[str(cell.repetition)] * repeated,
            NONE if cell.seconds is None else _in_minutes(cell.seconds),
        )
        for cell in plan.cells
    )
    return Document(
        name=plan.workload,
        on="sweep" if plan.sweep else f"matrix of {plan.command}",
        title=f"{plan.workload}, plan of a {'sweep' if plan.sweep else 'matrix'}",
        headline=f"{many}, about {_in_minutes(plan.seconds)} min{also}",
        mark=QUICK if plan.quick else "",
        lead=missing_here(plan.missing),
        sections=(
            Section("cells", "Cells", (table("Cells in their order", columns, rows, terminal=True),)),
            *_left_out(plan.left_out, plan.no_cells),
        ),
        remarks=(*knee_notes(plan.sweep), Paragraph("nothing was started", "note", terminal=True)),
    )


def knee_notes(sweep: Sweep | None) -> Iterator[Paragraph]:
    """That the span is too short for a p99 and so for a knee, if it is."""
    if sweep is not None and sweep.knee is None and sweep.p99_needs_s is not None:
        text = f"a p99, and so the knee, needs `--duration {ceil(sweep.p99_needs_s)}s`"
        yield Paragraph(text, "note", terminal=True)


def _load(sweep: Sweep | None, cell: MatrixCell | PlannedCell) -> tuple[str, ...]:
    """The load of a sweep's cell; nothing in any other matrix."""
    return () if sweep is None else (format_percent(100 * sweep.load_of(cell)),)


def _left_out(left_out: Sequence[Mapping[str, Any]], no_cells: Mapping[str, str]) -> Iterator[Section]:
    """The cells that a quick look leaves out, and what has no cell, if there are any."""
    if no_cells:
        reasons = (Paragraph(f"No cell has {name}: {why}.", terminal=True) for name, why in no_cells.items())
        yield Section("no-cells", "No cell for", tuple(reasons), "No cell for")
    if left_out:
        many = Paragraph(f"The quick look leaves {len(left_out)} out:", terminal=True)
        columns, rows = (Column("settings", prose=True),), ((_setting_texts(one),) for one in left_out)
        listed = table("Cells that the quick look leaves out", columns, rows, terminal=True)
        yield Section("left-out", "Left out", (many, listed), "Left out")


def cell_line(row: MatrixCell, planned: int) -> str:
    """`3 of 12   load.rate=10k   sustained   ingested 10 k/s   event time p50 12 ms, p99 -   41 s   reason`."""
    rate = f"sustained {format_rate(row.sustained_per_s)}" if row.sustained_per_s else ""
    p50, p99 = (phrases.at_least(value, row.lower_bounds) for value in (row.event_time_p50_us, row.event_time_p99_us))
    parts = [
        f"{row.number} of {planned}",
        _setting_texts(row.settings),
        f"repetition {row.repetition}" if row.repetition > 1 else "",
        _verdict(row),
        rate or (f"ingested {format_rate(row.ingested_per_s)}" if row.ingested_per_s is not None else ""),
        f"maximum throughput {format_rate(row.maximum_per_s)}" if row.maximum_per_s is not None else "",
        f"event time p50 {p50}, p99 {p99}" if row.ingested_per_s is not None else "",
        format_duration(row.seconds),
        "" if row.verdict == "sustained" else row.sentence,
    ]
    return "   ".join(part for part in parts if part)


def _setting_texts(settings: Mapping[str, Any]) -> str:
    """`load.rate=10k, transport=kafka`: a cell has at most a few settings, and columns of all would be narrow."""
    return ", ".join(f"{name}={format_value(value)}" for name, value in settings.items() if value is not None)


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
        *numbers("cell", *["load"] * bool(result.sweep)), *texts(*result.varied),
        *numbers("repetition"), *texts("verdict"),
        *numbers(*(heading for heading, _, _ in shown), "took"), Column("why", prose=True),
    )  # fmt: skip
    rows: list[tuple[Cell | str, ...]] = [
        (
            Cell(str(row.number), link=row.report),
            *_load(result.sweep, row),
            *_settings(result.varied, row),
            str(row.repetition),
            Cell(_verdict(row), style=row.verdict or ""),
            *(_figure_text(row, field, format_) for _, field, format_ in shown),
            format_duration(row.seconds),
            row.sentence or NONE,
        )
        for row in result.cells
    ]
    notes = ("`cells.csv` and `cells.parquet` hold these and further figures, one row a cell.",)
    return table("Every cell that was run", columns, rows, notes=notes)


def _sinks(result: MatrixResult) -> Table | None:
    """Each sink of the cells that have several."""
    columns = (
        *numbers("cell"), *texts(*result.varied, "sink"), *numbers("results", "event time p50", "p95", "p99")
    )  # fmt: skip
    rows: list[tuple[Cell | str, ...]] = [
        (
            Cell(str(row.number), link=row.report),
            *_settings(result.varied, row),
            sink.name,
            format_rate(sink.results_per_s),
            *(
                phrases.at_least(value, sink.lower_bounds)
                for value in (sink.event_time_p50_us, sink.event_time_p95_us, sink.event_time_p99_us)
            ),
        )
        for row in result.cells
        for sink in row.sinks
    ]
    return table("Each sink of every cell", columns, rows) if rows else None


def _shown(result: MatrixResult) -> list[tuple[str, str, Format]]:
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


def _paper(result: MatrixResult, published: PublishedTable) -> Iterator[Section]:
    """The paper's figures, and the cells in its columns. They are two tables, so that no row has figures of both."""
    paper = f"{published.work}, {published.table}"
    columns = (Column(_heading(name), number=_unit(name) != "") for name in published.columns)
    rows = (map(_published_text, published.columns, row) for row in published.rows)
    note = "These are figures of the paper. None of them was measured here."
    theirs = table(f"Measured by the paper on {published.hardware}", columns, rows, notes=(note,), style="published")
    yield Section("published", f"Published: {paper}", (theirs,), "Published")
    yield Section("paper-form", "In the paper's form", (_in_form(result, published, paper),), "In the paper's form")


def _unit(column: str) -> str:
    """The unit at the end of a published column's name; empty without one."""
    return next((unit for unit in _UNITS if column.endswith(unit)), "")


def _heading(column: str) -> str:
    return column.removesuffix(_unit(column)).replace("_", " ")


def _published_text(column: str, text: str) -> str:
    """A published figure in its unit; any other text unchanged."""
    if unit := _unit(column):
        format_, factor = _UNITS[unit]
        with suppress(ValueError):
            return format_(factor * float(text))
    return text or NONE


def _in_form(result: MatrixResult, published: PublishedTable, paper: str) -> Table:
    """The measured cells, each search with its trial at 90 %, under those of the paper's columns that cells have."""
    figures = {column: figure for column in published.columns if (figure := _figure(column)) is not None}
    settings = [name for name in result.varied if name != "engine"]
    columns = (
        *numbers("cell"), *texts("system", *settings, "load", "verdict"), *numbers(*map(_heading, figures))
    )  # fmt: skip
    rows: list[tuple[Cell | str, ...]] = [
        (
            Cell(str(cell.number), link=found.report),
            format_value(cell.settings.get("engine", result.engine)),
            *_settings(settings, cell),
            load,
            Cell(_verdict(found), style=found.verdict or ""),
            *(_figure_in_form(found, column, figure) for column, figure in figures.items()),
        )
        for cell in result.cells
        for load, found in _loads(cell)
    ]
    notes = ("Latency is event-time latency. The machine is not the paper's: see the environment below.",)
    return table(f"Measured here, under the columns of {paper}", columns, rows, notes=notes)


def _loads(cell: MatrixCell) -> Iterator[tuple[str, CellFigures]]:
    """The loads of a cell in the paper's words, with the figures there."""
    best_per_s, trial = cell.sustained_per_s, cell.at_90_percent
    if cell.ingested_per_s is not None:
        yield ("maximum" if best_per_s is not None else format_rate(cell.planned_per_s)), cell
    if trial is not None and trial.planned_per_s is not None and best_per_s:
        yield labels.share_of(trial.planned_per_s, best_per_s), trial


def _figure(column: str) -> Callable[[CellFigures], float | None] | None:
    """The figure of a cell that a published column is about; None if cells have none."""
    if column in _THROUGHPUT:
        return lambda found: found.ingested_per_s if found.sustained_per_s is None else found.sustained_per_s
    match = _LATENCY.fullmatch(column)
    statistic = match[1].replace("avg", "mean") if match else ""
    name = "results_per_s" if column == _RESULTS else f"event_time_{statistic}_us"
    if name not in CellFigures.model_fields:
        return None
    if match is None:
        return attrgetter(name)
    # Updates have no latency of a closed window, which is what papers give.
    return lambda found: getattr(found, name) if found.until_counted_p50_us is None else None


def _figure_in_form(found: CellFigures, column: str, figure: Callable[[CellFigures], float | None]) -> str:
    if _LATENCY.fullmatch(column):
        return phrases.at_least(figure(found), found.lower_bounds)
    return _UNITS[_unit(column)][0](figure(found))


def _figure_text(found: CellFigures, field: str, format_: Format) -> str:
    if field.startswith("event_time_"):
        return phrases.at_least(getattr(found, field), found.lower_bounds)
    return format_(getattr(found, field))


def _spread(rows: Sequence[MatrixCell], field: str, format_: Format) -> Cell:
    values = (getattr(row, field) for row in rows if row.verdict not in ("invalid", "interrupted"))
    known = [value for value in values if value is not None]
    if not known:
        return Cell(NONE)
    span = f"{format_(min(known))} to {format_(max(known))}" if len(known) > 1 else ""
    return Cell(format_(median(known)), span)


def _settings(varied: Sequence[str], cell: MatrixCell | PlannedCell) -> Iterator[str]:
    """The cell's values."""
    return (format_value(cell.settings.get(name)) for name in varied)


def _verdict(row: CellFigures) -> str:
    return labels.VERDICTS[row.verdict] if row.verdict else "done"


def _in_minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f}"
