"""A scalability study as a document: capacity of each level, demand of each load, fits, and every trial."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby

from streamgauge.core.formatting import (
    NONE,
    format_count,
    format_digits,
    format_duration,
    format_rate,
    format_us,
    format_value,
    resume_command,
)
from streamgauge.report.charts import scalability as charts
from streamgauge.report.document_blocks import (
    Cell,
    Column,
    Document,
    Drawing,
    Fact,
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
from streamgauge.results.scalability import Capacity, Demand, Figure, Fit, ScaleCell, ScaleResult
from streamgauge.results.text.narrative import capital

Format = Callable[[float], str]
_LAWS = {"linear": "straight line", "universal": "Universal Scalability Law"}
_PARAMETERS = {
    "intercept": "with no resources",
    "slope": "for each unit of resources",
    "rate": "one unit of resources",
    "contention": "contention: share of the work that is serial",
    "coherency": "coherency: share by which units wait for each other",
}


def document(result: ScaleResult) -> Document:
    """The answer, its charts, and every trial."""
    return Document(
        name=result.workload,
        on=f"scale of {short(result.dimension)} over {result.resource} on {result.engine}",
        title=f"{result.workload}, scalability",
        headline=headline(result),
        style="" if result.finished else "interrupted",
        meta=(" · ".join((result.start_time, result.folder)),),
        lead=tuple(_lead(result)),
        facts=tuple(_facts(result)),
        remarks=tuple(_remarks(result)),
        sections=(
            *([_answer(result)] if result.finished else []),
            *([Section("fits", "Fitted laws", tuple(_fit_blocks(result)), "Laws")] if result.fits else []),
            Section("trials", "Trials", (_grid(result), _trials(result)), "Trials"),
            Section("environment", "Environment", (environment_table(result.environment),), "Environment"),
        ),
    )


def headline(result: ScaleResult) -> str:
    """`capacity: 1: 8.19 k/s, 2: 16.4 k/s, 4: >= 32.8 k/s`."""
    if wrong := next((cell for cell in result.cells if cell.wrong_answers), None):
        where = f"{short(result.resource)} {wrong.resources} and {load_text(wrong.load, result.load_unit)}"
        return f"ended: with {where} the answers are wrong, although the system keeps up"
    if not result.finished:
        return f"not finished: {len(result.cells)} trials"
    found = ", ".join(f"{one.resources}: {capacity_of(result, one)}" for one in result.capacities)
    return f"{_metric(result)} by {short(result.resource)}: {found}"


def cell_line(result: ScaleResult, cell: ScaleCell) -> str:
    """`trial 3   2 with 8.19 k/s   sustained   ingested 8.19 k/s   event time p50 12 ms   41 s   reason`."""
    load = load_text(cell.load, result.load_unit)
    parts = (
        f"trial {cell.number}",
        f"{short(result.resource)} {cell.resources}, {short(result.dimension)} {load}",
        f"repetition {cell.repetition}" if cell.repetition > 1 else "",
        labels.VERDICTS[cell.outcome],
        f"ingested {format_rate(cell.ingested_per_s)}" if cell.ingested_per_s is not None else "",
        f"event time p50 {format_us(cell.event_time_p50_us)}" if cell.event_time_p50_us is not None else "",
        format_duration(cell.seconds),
        brief(cell),
    )
    return "   ".join(filter(None, parts))


def brief(cell: ScaleCell) -> str:
    """Why a trial ended so: the checks of its run that decided, else the sentence of the criterion."""
    if cell.decided_by:
        return ", ".join(map(labels.check, cell.decided_by.split(", ")))
    return "" if cell.outcome == "sustained" and cell.lag_growth is None else cell.sentence


def capacity_of(result: ScaleResult, one: Capacity) -> str:
    """A capacity as text; `>=` if the level may sustain more, `<=` where smaller is harder."""
    if one.load is None:
        return "none" if one.decided else "unknown"
    return (f"{_at_least(result)} " if one.is_bound else "") + load_text(one.load, result.load_unit)


def _at_least(result: ScaleResult) -> str:
    return "<=" if result.loads[0] > result.loads[-1] else ">="


def load_text(load: float, unit: str) -> str:
    if unit == "events/s":
        return format_rate(load)
    return format_us(1e6 * load) if unit == "s" else format_value(load)


def range_text(first: float, last: float, unit: str) -> str:
    """`1 k/s to 4 k/s`, or one load alone."""
    return " to ".join(load_text(load, unit) for load in dict.fromkeys((first, last)))


def short(setting: str) -> str:
    """A setting's name without its section."""
    return setting.rpartition(".")[2]


def _metric(result: ScaleResult) -> str:
    """What a capacity is: `capacity`, `greatest height`, `smallest period for a range of 1m`."""
    windows = result.load_unit == "s" and result.loads[0] > result.loads[-1] and "range" in result.parameters
    return result.metric + (f" for a range of {result.parameters['range']:g} s" if windows else "")


def _lead(result: ScaleResult) -> Iterator[Paragraph]:
    criterion = {
        "slope": "a load is sustained if all checks of its run hold",
        "ehrenstein": "a load is sustained if the lag grows by less than 100 records, mean over partitions",
    }[result.criterion]
    again = f"; {result.repeat} trials decide a cell" if result.repeat > 1 else ""
    yield Paragraph(f"{result.resource}: {', '.join(map(str, result.resources))}; {criterion}{again}.")
    if result.finished and (bounds := _bounds(result)):
        yield Paragraph(bounds)
    for note in result.notes:
        yield Paragraph(note, "warning", "note", terminal=True)


def _bounds(result: ScaleResult) -> str:
    """For each level the easiest load that a trial showed to fail; empty without one."""
    failed = [
        f"{load_text(one.refused, result.load_unit)} with {one.resources}"
        for one in result.capacities
        if one.refused is not None and one.decided
    ]
    return f"The next load was not sustained: {', '.join(failed)}." if failed else ""


def _facts(result: ScaleResult) -> Iterator[Fact]:
    """What the terminal shows below the headline."""
    ended = labels.counted_verdicts(cell.outcome for cell in result.cells)
    count = len(result.loads) * len(result.resources)
    cells = f"{len(result.cells)} for {count} cell{'s' * (count != 1)}"
    yield Fact("trials", (cells, ended, format_duration(sum(cell.seconds for cell in result.cells))))
    for fit in result.fits:
        yield Fact(_LAWS[fit.law], tuple(_fit_words(fit, result)))


def _fit_words(fit: Fit, result: ScaleResult) -> Iterator[str]:
    if fit.reason:
        yield f"none: {fit.reason}"
        return
    if fit.law == "linear":
        yield f"{_quantity('slope', fit.parameters['slope'], result)} for each unit"
    else:
        for name in ("contention", "coherency"):
            yield f"{name} {_quantity(name, fit.parameters[name], result)}"
    if fit.peak is not None:
        yield f"peak at {format_digits(fit.peak.value)} ({_interval(fit.peak, format_digits)})"
    if fit.note:
        yield fit.note


def _remarks(result: ScaleResult) -> Iterator[Paragraph]:
    for cell in result.cells:
        if cell.wrong_answers:
            text = f"trial {cell.number} has {cell.wrong_answers}. Correct the job first: a lower load would hide this."
            yield Paragraph(text, "unusable", terminal=True)
    if not result.decided:
        what = "goes on" if not result.finished else "repeats the cells that are not decided"
        yield Paragraph(f"`{resume_command('scale', result.folder)}` {what}.", "advice", "next", terminal=True)
    for sentence in result.contradictions:
        text = f"{sentence}: one of both trials misleads. Use --repeat 3."
        yield Paragraph(text, "warning", "contradiction", terminal=True)
    if any(one.refused is None and one.load is not None for one in result.capacities):
        text = f"`{_at_least(result)}`: no load exceeded this capacity. Give harder --loads to find its end."
        yield Paragraph(text, "note", terminal=True)


def _answer(result: ScaleResult) -> Section:
    parts = blocks(
        Drawing(lambda: charts.capacity(result)),
        _capacities(result),
        Drawing(lambda: charts.demand(result)),
        _demands(result),
        _published(result) if result.published else None,
    )
    return Section("capacities", "Capacity and demand", parts, "Capacity")


def _capacities(result: ScaleResult) -> Table:
    return table(
        "Capacity: the hardest load that each level sustains",
        (*texts(short(result.resource)), *numbers(_metric(result), "not sustained"), *texts("shown by")),
        (_capacity_cells(result, one) for one in result.capacities),
    )


def _capacity_cells(result: ScaleResult, one: Capacity) -> tuple[Cell | str, ...]:
    shown_by, style = ("a trial" if one.measured else "a lower level"), "sustained"
    if one.load is None:
        shown_by, style = NONE, ""
    refused = NONE
    if one.refused is not None and one.decided:
        refused = load_text(one.refused, result.load_unit)
    return str(one.resources), Cell(capacity_of(result, one), style=style), refused, shown_by


def _demands(result: ScaleResult) -> Table:
    """One row for each run of loads with the same demand; `<=` if a lower level may sustain them too."""
    columns = (*texts(f"load: {short(result.dimension)}"), *numbers(f"least {short(result.resource)}"))
    runs = [list(run) for _, run in groupby(result.demands, lambda one: (one.resources, one.decided))]
    rows = ((range_text(run[0].load, run[-1].load, result.load_unit), _demand_text(run[0])) for run in runs)
    return table("Demand: the least resources that sustain each load", columns, rows, terminal=True)


def _demand_text(one: Demand) -> str:
    if one.resources is None:
        return "none of them" if one.decided else "unknown"
    return f"{one.resources}" if one.decided else f"<= {one.resources}"


def _published(result: ScaleResult) -> Table:
    return table(
        "Published, beside",
        (*texts("instances"), *numbers("sustained messages")),
        ((str(one.resources), format_rate(one.per_s)) for one in result.published),
        style="published",
        notes=("Ehrenstein 2020, figure 5: topology 1 on Kafka Streams, four nodes, doublings only. Other hardware.",),
    )


def _fit_blocks(result: ScaleResult) -> Iterator[Table | Paragraph]:
    for fit in result.fits:
        if fit.reason:
            yield Paragraph(f"{_LAWS[fit.law]}: no fit, because it {fit.reason}.")
            continue
        figures: dict[str, tuple[Figure, Format]] = {
            _PARAMETERS[name]: (one, partial(_amount, name, result)) for name, one in fit.parameters.items()
        }
        if fit.peak is not None:
            figures["resources beyond which capacity falls"] = (fit.peak, format_digits)
        rows = [(label, format_(one.value), _interval(one, format_)) for label, (one, format_) in figures.items()]
        r_squared = f"R² {format_digits(fit.r_squared)}. " if fit.r_squared is not None else ""
        notes = (
            f"{r_squared}Beyond the greatest level a law is a guess within its interval.",
            *([f"{capital(fit.note)}."] if fit.note else []),
        )
        yield table(_LAWS[fit.law], (*texts("parameter"), *numbers("value", "95 % interval")), rows, notes=notes)


def _quantity(name: str, one: Figure, result: ScaleResult) -> str:
    format_ = partial(_amount, name, result)
    return f"{format_(one.value)} ({_interval(one, format_)})"


def _amount(parameter: str, result: ScaleResult, value: float) -> str:
    """A parameter of a law: a share, or a load."""
    if parameter in ("contention", "coherency"):
        return f"{format_digits(round(100 * value, 2))} %"
    unit = result.load_unit if result.load_unit == "events/s" else ""
    return ("-" if value < 0 else "") + load_text(abs(value), unit)


def _interval(one: Figure, format_: Format) -> str:
    return f"{format_(one.low)} to {'more' if one.high is None else format_(one.high)}"


def _grid(result: ScaleResult) -> Table:
    """Loads over levels, with how each tried cell ended."""
    by_cell: dict[tuple[float, int], list[ScaleCell]] = {}
    for cell in result.cells:
        by_cell.setdefault((cell.load, cell.resources), []).append(cell)
    tried = [load for load in reversed(result.loads) if any((load, level) in by_cell for level in result.resources)]
    columns = (*texts(short(result.dimension)), *texts(*(f"{short(result.resource)} {n}" for n in result.resources)))
    rows: list[tuple[Cell | str, ...]] = [
        (load_text(load, result.load_unit), *(_ended(by_cell.get((load, level), ())) for level in result.resources))
        for load in tried
    ]
    return table("Tried cells; the others follow from them", columns, rows)


def _ended(cells: Sequence[ScaleCell]) -> Cell:
    if not cells:
        return Cell("")
    outcome, count = Counter(cell.outcome for cell in cells).most_common(1)[0]
    several = f" {count} of {len(cells)}" if len(cells) > 1 else ""
    return Cell(labels.VERDICTS[outcome] + several, style=outcome)


def _trials(result: ScaleResult) -> Table:
    columns = (
        *texts("trial"), *numbers(short(result.resource), short(result.dimension)), *texts("outcome"),
        *numbers("ingested", "event time p50", "p99", "most backlog", "SUT CPU", "took"), Column("why", prose=True),
    )  # fmt: skip
    rows: list[tuple[Cell | str, ...]] = [
        (
            Cell(str(cell.number), link=cell.report),
            str(cell.resources),
            load_text(cell.load, result.load_unit),
            Cell(labels.VERDICTS[cell.outcome], style=cell.outcome),
            format_rate(cell.ingested_per_s),
            format_us(cell.event_time_p50_us),
            format_us(cell.event_time_p99_us),
            format_count(cell.backlog_max),
            NONE if cell.sut_cpu_percent is None else f"{format_digits(cell.sut_cpu_percent)} %",
            format_duration(cell.seconds),
            brief(cell) or NONE,
        )
        for cell in result.cells
    ]
    notes = ("`trials.csv` and `trials.parquet` hold these and further figures, one row a trial.",)
    return table("Every trial, in its order", columns, rows, notes=notes)
