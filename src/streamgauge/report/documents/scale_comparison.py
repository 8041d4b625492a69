"""A comparison of two scalability studies as a document: capacity of each level, demand of each load, settings."""

from __future__ import annotations

from collections.abc import Iterator

from streamgauge.core.formatting import format_signed
from streamgauge.report.document_blocks import (
    Cell,
    Column,
    Document,
    Fact,
    Paragraph,
    Section,
    Table,
    numbers,
    table,
    texts,
)
from streamgauge.report.documents.comparison import SAYS, SAYS_STYLES, settings_section
from streamgauge.report.documents.scalability import load_text, short
from streamgauge.results.comparison import LevelInterval, LoadInterval, ScaleComparison


def document(comparison: ScaleComparison) -> Document:
    """Each level and each load; B is better or worse only where the intervals do not overlap."""
    sides = {"A": comparison.a, "B": comparison.b}
    return Document(
        name=comparison.workload,
        on="B against A",
        title=f"{comparison.workload}, scalability: B against A",
        headline=headline(comparison),
        meta=tuple(f"{name}: {side.folder}, {side.start_time}" for name, side in sides.items()),
        facts=(
            *(Fact(name, (side.folder,), page=False) for name, side in sides.items()),
            *(
                Fact("not the same", (one.setting, f"A {' | '.join(one.a)}", f"B {' | '.join(one.b)}"), page=False)
                for one in comparison.not_the_same
            ),
        ),
        remarks=tuple(Paragraph(warning, "warning", "warning", terminal=True) for warning in comparison.warnings),
        sections=(
            Section("capacity", "Capacity and demand", (_capacities(comparison), _demands(comparison)), "Capacity"),
            settings_section(comparison.not_the_same),
        ),
    )


def headline(of: ScaleComparison) -> str:
    """`capacity: B is better with parallelism 2, 4, and worse with 1`, or that no difference is shown."""
    found = {says: [str(one.resources) for one in of.capacities if one.says == says] for says in ("better", "worse")}
    parts = [f"{says} with {short(of.resource)} {', '.join(levels)}" for says, levels in found.items() if levels]
    return f"{of.metric}: B is {' and '.join(parts)}" if parts else f"{of.metric}: no difference shown"


def _capacities(of: ScaleComparison) -> Table:
    columns = (*texts(short(of.resource)), *numbers(f"A: {of.metric}", "B", "B to A"), Column("B is"))
    rows = (
        (
            str(one.resources),
            _load(one.a, of),
            _load(one.b, of),
            f"{_end(one.low)} to {_end(one.high)}",
            _says(one.says),
        )
        for one in of.capacities
    )
    notes = ("An interval goes from the hardest load that was sustained to the easiest that was shown to fail.",)
    return table("Capacity of each level", columns, rows, notes=notes, terminal=True)


def _load(one: LoadInterval, of: ScaleComparison) -> str:
    held, failed = ("open" if load is None else load_text(load, of.load_unit) for load in (one.held, one.failed))
    return f"{'none' if one.held is None else held} to {failed}"


def _end(share: float | None) -> str:
    return "open" if share is None else format_signed(share, True, "")


def _demands(of: ScaleComparison) -> Table:
    """One row for each run of loads with the same demands."""
    columns = (*texts(f"load: {short(of.dimension)}"), *numbers(f"A: least {short(of.resource)}", "B"), Column("B is"))
    return table("Demand of each load that both studies have", columns, list(_demand_rows(of)), terminal=True)


def _demand_rows(of: ScaleComparison) -> Iterator[tuple[Cell | str, ...]]:
    first = last = None
    for one in (*of.demands, None):
        if one is not None and first is not None and (one.a, one.b) == (first.a, first.b):
            last = one
            continue
        if first is not None and last is not None:
            loads = (load_text(load, of.load_unit) for load in dict.fromkeys((first.load, last.load)))
            yield " to ".join(loads), _levels(first.a), _levels(first.b), _says(first.says)
        first = last = one


def _levels(one: LevelInterval) -> str:
    """`2 (above 1)`, or `more than 4` if no level sustains the load."""
    if one.most is None:
        return f"more than {one.above}" if one.above else "unknown"
    return f"{one.most} (above {one.above})" if one.above else str(one.most)


def _says(says: str) -> Cell:
    return Cell(SAYS[says], style=SAYS_STYLES[says])
