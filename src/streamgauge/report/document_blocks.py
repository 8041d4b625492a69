"""A report as a document: built once from a result, rendered for the terminal (`terminal`) and as HTML (`html`).

Text between backticks is code. What is `terminal` is shown there too; everything else has room on the page only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from streamgauge.core.formatting import flatten, format_fact


@dataclass(frozen=True)
class Key:
    """One entry of a legend: `style` is line, dash, area, dot or cross."""

    label: str
    colour: str
    style: str = "line"


@dataclass(frozen=True)
class Figure:
    """A drawn chart: both renderings, what it shows in words (read aloud), its legend and remarks under it."""

    name: str
    title: str
    wide: str
    narrow: str
    words: str
    keys: tuple[Key, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Drawing:
    """A chart that is drawn only where it can be shown; None of `draw` where there is nothing to show."""

    draw: Callable[[], Figure | None]


@dataclass(frozen=True)
class Cell:
    """`note` is small print below; `style` a verdict, or the state of a check (`state-ok`); `code`: as typed."""

    text: str
    note: str = ""
    style: str = ""
    link: str = ""
    code: bool = False


@dataclass(frozen=True)
class Column:
    """`short` is the heading in the terminal, "" where the terminal leaves the column out, None where it is the same.

    `width`: characters in a table that grows line by line.
    """

    heading: str
    number: bool = False
    short: str | None = None
    prose: bool = False
    width: int = 0


@dataclass(frozen=True)
class Row:
    """`strong`: it decided, or is the one to look at; `matters`: a short listing shows it too."""

    cells: tuple[Cell, ...]
    strong: bool = False
    matters: bool = True


@dataclass(frozen=True)
class Table:
    """Columns with their unit in heading or cells; `notes` stand below."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    terminal: bool = False


@dataclass(frozen=True)
class Paragraph:
    """`kind`: note, warning, unusable, because, advice, heading, code or nothing; `label` comes before the text."""

    text: str
    kind: str = ""
    label: str = ""
    terminal: bool = False


@dataclass(frozen=True)
class Fact:
    """A named figure; of its parts those at `strong` are the ones that runs are compared by.

    `terminal` and `page`: where it is shown; what a page says in a section of its own is not said above it too.
    """

    name: str
    parts: tuple[str, ...]
    strong: tuple[int, ...] = (0,)
    terminal: bool = True
    page: bool = True

    @property
    def main(self) -> tuple[str, ...]:
        return tuple(part for n, part in enumerate(self.parts) if n in self.strong)

    @property
    def rest(self) -> tuple[str, ...]:
        return tuple(part for n, part in enumerate(self.parts) if n not in self.strong)


@dataclass(frozen=True)
class Facts:
    """Figures side by side."""

    facts: tuple[Fact, ...]
    terminal: bool = False


Block = Paragraph | Table | Figure | Drawing | Facts


@dataclass(frozen=True)
class Section:
    """`nav`: what a link to it is called, "" for none."""

    id: str
    title: str
    blocks: tuple[Block, ...]
    nav: str = ""


@dataclass(frozen=True)
class Document:
    """What a person reads, in its order: the answer, why, its figures, remarks; then everything else in sections."""

    name: str
    on: str
    title: str
    headline: str
    meta: tuple[str, ...] = ()
    badge: str = ""
    style: str = ""
    bounds: tuple[str, ...] = ()
    lead: tuple[Paragraph, ...] = ()
    checks: Table | None = None
    facts: tuple[Fact, ...] = ()
    remarks: tuple[Paragraph, ...] = ()
    sections: tuple[Section, ...] = ()


def blocks(*parts: Block | Iterable[Block] | None) -> tuple[Block, ...]:
    """What there is of `parts`, in their order; None is left out."""
    found: list[Block] = []
    for part in parts:
        if isinstance(part, Block):
            found.append(part)
        elif part is not None:
            found += part
    return tuple(found)


def table(caption: str, columns: Iterable[Column], rows: Iterable[Iterable[Cell | str]], **more: Any) -> Table:
    """A table of rows that are all alike."""
    return Table(caption, tuple(columns), tuple(Row(cells(row)) for row in rows), **more)


def cells(row: Iterable[Cell | str]) -> tuple[Cell, ...]:
    return tuple(cell if isinstance(cell, Cell) else Cell(cell) for cell in row)


def texts(*headings: str) -> tuple[Column, ...]:
    """Columns of words."""
    return tuple(map(Column, headings))


def numbers(*headings: str) -> tuple[Column, ...]:
    """Columns of numbers."""
    return tuple(Column(heading, number=True) for heading in headings)


def grouped(reasons: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Each reason once with the names that it holds for: `p99, p99.9: too few results`; empty reasons are none."""
    found: dict[str, dict[str, None]] = {}
    for name, reason in reasons:
        if reason:
            found.setdefault(reason, {})[name] = None
    return tuple(f"{', '.join(names)}: {reason}" for reason, names in found.items())


def environment_table(environment: Mapping[str, Any]) -> Table:
    """The machine, and what ran on it."""
    rows = ((name, format_fact(name, value)) for name, value in flatten(environment).items())
    return table("Machine and versions", texts("what", "found"), rows)
