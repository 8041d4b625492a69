"""A comparison as a document: of two groups of runs, or of two scalability studies."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from streamgauge.artifacts.atomic_write import OutputLocation, write_text
from streamgauge.core.formatting import NONE, format_percent, format_quantity, format_rate, format_signed
from streamgauge.report.charts import difference
from streamgauge.report.document_blocks import (
    Cell,
    Column,
    Document,
    Drawing,
    Fact,
    Paragraph,
    Section,
    Table,
    grouped,
    numbers,
    table,
    texts,
)
from streamgauge.report.documents.scalability import load_text, range_text, short
from streamgauge.report.page import render
from streamgauge.results import labels
from streamgauge.results.comparison import (
    ComparedSide,
    Comparison,
    Difference,
    LevelInterval,
    LoadInterval,
    NotTheSame,
    ScaleComparison,
)

HTML = OutputLocation("--html", "--html NAME.html")
SAYS = {"better": "better", "worse": "worse", "no_difference": "none shown", "unknown": "unknown"}
"""B's standing by the interval of a difference. An interval around 0 shows no difference, and proves nothing."""
SAYS_STYLES = {"better": "sustained", "worse": "not_sustained", "no_difference": "", "unknown": "undecided"}
_GATE_STYLES = {"failed": "not_sustained", "unknown": "undecided", "passed": "sustained"}
"""Worst first."""
_PERCENTILES = "percentiles: each side's is the mean of the runs' own (p99: mean of the runs' p99)"


def write_comparison(path: Path, comparison: Document) -> None:
    """Writes the page to `path` atomically; `InputError` if that cannot be written."""
    write_text(path, render(comparison), HTML)


def document(comparison: Comparison) -> Document:
    """The differences, their intervals and their possible causes."""
    states = [gate.state for gate in comparison.gates]
    badge = next((state for state in _GATE_STYLES if state in states), "")
    sides = [(name, _group_text(side, comparison.kind)) for name, side in _group_rows(comparison)]
    engines = ({run.engine for run in side.runs} for _, side in _group_rows(comparison))
    same = ", ".join(same_parts(comparison))
    return Document(
        name=comparison.workload,
        on="B against A",
        title=f"{comparison.workload}: B against A",
        headline=f"{_measured(comparison.workload, *engines)}: {headline(comparison)}",
        meta=tuple(f"{name}: {side}" for name, side in sides),
        badge=badge,
        style=_GATE_STYLES.get(badge, ""),
        lead=(
            *(Paragraph(f"{failure}.", "unusable", terminal=True) for failure in failures(comparison)),
            *map(Paragraph, sentences(comparison)),
        ),
        facts=_facts(sides, comparison.not_the_same),
        remarks=(
            *(Paragraph(warning, "warning", "warning", terminal=True) for warning in comparison.warnings),
            *([Paragraph(same, "note", "the same", terminal=True)] if same else []),
            *(Paragraph(f"{one.rule}: {one.sentence}", "", one.state, terminal=True) for one in comparison.gates),
        ),
        sections=(_side_by_side(comparison), settings_section(comparison.not_the_same), _runs(comparison)),
    )


def _measured(workload: str, a: Collection[str], b: Collection[str]) -> str:
    """The workload with the engines of both sides, once if they are the same."""
    of_a, of_b = (", ".join(sorted(side)) for side in (a, b))
    return f"{workload} on {of_a}" if of_a == of_b else f"{workload}, A on {of_a}, B on {of_b}"


PARTS = {
    "workload": ("workload",), "parameters": ("parameters.",), "load": ("load.",), "engine": ("engine",),
    "transport": ("transport", "transport_options."), "settings": ("settings.", "tuning", "options."),
    "isolation": ("isolation",), "machine": ("environment.cpu_model", "environment.cpus"),
}  # fmt: skip
"""What may be the same on both sides, with the beginnings of its settings."""


def same_parts(comparison: Comparison) -> list[str]:
    """The parts in which no setting differs."""
    names = [one.setting for one in comparison.not_the_same]
    return [part for part, begins in PARTS.items() if not any(name.startswith(begins) for name in names)]


def _facts(sides: Sequence[tuple[str, str]], not_the_same: Sequence[NotTheSame]) -> tuple[Fact, ...]:
    """The sides and the settings that differ; the page has sections for them. Settings of one side are only counted."""
    alone = [one for one in not_the_same if one.setting.startswith("settings.") and (NONE,) in (one.a, one.b)]
    of_a = sum(one.b == (NONE,) for one in alone)
    counted = f"A {of_a}, B {len(alone) - of_a}; --html and --json have them"
    return (
        *(Fact(name, (side,), page=False) for name, side in sides),
        *(
            Fact("not the same", (one.setting, f"A {' | '.join(one.a)}", f"B {' | '.join(one.b)}"), page=False)
            for one in not_the_same
            if one not in alone
        ),
        *([Fact("not the same", ("settings of one side only", counted), page=False)] if alone else []),
    )


def _group_rows(comparison: Comparison) -> tuple[tuple[str, ComparedSide], ...]:
    return ("A", comparison.a), ("B", comparison.b)


def _group_text(of: ComparedSide, kind: str) -> str:
    """The names and number of a side's runs."""
    names = ", ".join(run.run_id for run in of.runs)
    many = f"{len(of.runs)} {'searches' if kind == 'search' else 'runs'}: " if len(of.runs) > 1 else ""
    return f"{many}{names}"


def failures(of: Comparison) -> list[str]:
    """Failures, shown before any figure: `B failed: wrong answers (30 missing), 2 of 3 runs`, or several reasons."""
    return [
        f"{name} failed: {why}" + (f", {n} of {len(side.runs)} runs" if len(side.runs) > 1 else "")
        for name, side in _group_rows(of)
        for why, n in Counter(run.failed for run in side.runs if run.failed).items()
    ]


def headline(of: Comparison) -> str:
    """The answer: the side that failed, then the figures that differ."""
    failed = [name for name, side in _group_rows(of) if any(run.failed for run in side.runs)]
    before = f"{' and '.join(failed)} failed; " if failed else ""
    named = [one.setting for one in of.not_the_same if one.setting in ("workload", "transport", "load.rate")]
    differing = list(dict.fromkeys([*named, *of.asked_otherwise]))
    other = f"{labels.different_settings(differing)}; " if differing else ""
    return before + other + _how_many_differ(of)


def _how_many_differ(of: Comparison) -> str:
    counts = Counter(one.says for one in of.figures)
    parts = [
        f"B is {says} in {counts[says]} of {len(of.figures)} figures" for says in ("better", "worse") if counts[says]
    ]
    other = any(one.setting == "workload" for one in of.not_the_same)
    if parts and of.warnings:
        parts[-1] += ", with the warnings below"
    return "; ".join(parts) or ("no figure shows which side is better" if other else "no difference shown")


def sentences(of: Comparison) -> Iterator[str]:
    """Each figure that differs, with its difference; then the number of undecided ones."""
    for says in ("worse", "better"):
        if differing := [f"{one.label} {labels.difference(one)}" for one in of.figures if one.says == says]:
            yield f"B is {says}: {'; '.join(differing)}."
    unknown = [one for one in of.figures if one.says == "unknown"]
    without = sum(one.low is None and one.high is None for one in unknown)
    for number, what in ((without, "have no interval"), (len(unknown) - without, "do not show which side is better")):
        if number:
            yield f"{number} of {len(of.figures)} figures {what}."


def _side_by_side(comparison: Comparison) -> Section:
    by_chance = round(1 / (1 - comparison.confidence))
    note = (
        "An interval that contains 0 shows no difference, but is no proof of equality. About one figure in "
        f"{by_chance} shows a difference by chance."
    )
    picture = Drawing(lambda: difference.differences(comparison.figures, comparison.gates))
    found = (picture, _figures(comparison), Paragraph(note, "note"))
    return Section("side-by-side", "Side by side", found, "Side by side")


def _figures(comparison: Comparison) -> Table:
    """The figures in 80 columns, with the reasons below."""
    interval = f"{format_percent(100 * comparison.confidence)} interval"
    columns = (*texts("figure"), *numbers("A", "B", "B to A", interval), Column("B is"))
    rows = (
        (
            _label(one),
            _amount(one.a, one.unit),
            _amount(one.b, one.unit),
            format_signed(one.difference, one.share, one.unit),
            labels.difference_interval(one),
            _says(one.says),
        )
        for one in comparison.figures
    )
    several = any(labels.OF_THE_RUNS in one.label for one in comparison.figures)
    notes = (*([_PERCENTILES] if several else []), *grouped((_label(one), one.reason) for one in comparison.figures))
    caption = f"Every figure on both sides{', means over the runs' if several else ''}"
    return table(caption, columns, rows, notes=notes, terminal=True)


def _label(of: Difference) -> str:
    return labels.short_label(of).replace(labels.LATENCIES["processing_time"], "processing")


def _amount(value: float | None, unit: str) -> str:
    return format_rate(value) if unit == "events/s" else format_quantity(value, unit)


def settings_section(not_the_same: Sequence[NotTheSame]) -> Section:
    """Settings and facts that differ."""
    rows = [(one.setting, ", ".join(one.a), ", ".join(one.b)) for one in not_the_same]
    differing = (
        Paragraph("Any of these may be the cause of a difference."),
        table("Settings and facts about the machine that differ", texts("what", "A", "B"), rows),
    )
    same = (Paragraph(f"The same in all runs: {', '.join(PARTS)}."),)
    return Section("settings", "What is not the same", differing if rows else same, "What is not the same")


def _runs(comparison: Comparison) -> Section:
    columns = texts("side", comparison.kind, "began", "verdict")
    rows = (
        (
            name,
            Cell(run.run_id, run.folder),
            run.start_time,
            Cell(labels.VERDICTS[run.verdict], run.failed, run.verdict),
        )
        for name, side in _group_rows(comparison)
        for run in side.runs
    )
    return Section("runs", "Runs", (table("The runs of each side", columns, rows),), "Runs")


def scale_document(comparison: ScaleComparison) -> Document:
    """Each level and each load; B is better or worse only where the intervals do not overlap."""
    sides = {"A": comparison.a, "B": comparison.b}
    engines = ({side.engine} for side in sides.values())
    return Document(
        name=comparison.workload,
        on="B against A",
        title=f"{comparison.workload}, scalability: B against A",
        headline=f"{_measured(comparison.workload, *engines)}: {scale_headline(comparison)}",
        meta=tuple(f"{name}: {side.folder}, {side.start_time}" for name, side in sides.items()),
        facts=_facts([(name, side.folder) for name, side in sides.items()], comparison.not_the_same),
        remarks=tuple(Paragraph(warning, "warning", "warning", terminal=True) for warning in comparison.warnings),
        sections=(
            Section("capacity", "Capacity and demand", (_capacities(comparison), _demands(comparison)), "Capacity"),
            settings_section(comparison.not_the_same),
        ),
    )


def scale_headline(of: ScaleComparison) -> str:
    """`capacity: B is better with parallelism 2, 4, and worse with 1`, or that no difference is shown."""
    found = {says: [str(one.resources) for one in of.capacities if one.says == says] for says in ("better", "worse")}
    parts = [f"{says} with {short(of.resource)} {', '.join(levels)}" for says, levels in found.items() if levels]
    return f"{of.metric}: B is {' and '.join(parts)}" if parts else f"{of.metric}: no difference shown"


def _capacities(of: ScaleComparison) -> Table:
    return table(
        "Capacity of each level",
        (*texts(short(of.resource)), *numbers(f"A: {of.metric}", "B", "B to A"), Column("B is")),
        (
            (
                str(one.resources),
                _load(one.a, of),
                _load(one.b, of),
                f"{_end(one.low)} to {_end(one.high)}",
                _says(one.says),
            )
            for one in of.capacities
        ),
        notes=("An interval goes from the hardest load that was sustained to the easiest that was shown to fail.",),
        terminal=True,
    )


def _load(one: LoadInterval, of: ScaleComparison) -> str:
    held, failed = ("open" if load is None else load_text(load, of.load_unit) for load in (one.held, one.failed))
    return f"{'none' if one.held is None else held} to {failed}"


def _end(share: float | None) -> str:
    return "open" if share is None else format_signed(share, True, "")


def _demands(of: ScaleComparison) -> Table:
    """One row for each run of loads with the same demands."""
    columns = (*texts(f"load: {short(of.dimension)}"), *numbers(f"A: least {short(of.resource)}", "B"), Column("B is"))
    runs = [list(run) for _, run in groupby(of.demands, lambda one: (one.a, one.b))]
    rows = (
        (range_text(run[0].load, run[-1].load, of.load_unit), _levels(run[0].a), _levels(run[0].b), _says(run[0].says))
        for run in runs
    )
    return table("Demand of each load that both studies have", columns, rows, terminal=True)


def _levels(one: LevelInterval) -> str:
    """`2 (above 1)`, or `more than 4` if no level sustains the load."""
    if one.most is None:
        return f"more than {one.above}" if one.above else "unknown"
    return f"{one.most} (above {one.above})" if one.above else str(one.most)


def _says(says: str) -> Cell:
    return Cell(SAYS[says], style=SAYS_STYLES[says])
