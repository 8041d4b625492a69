"""A report as a document: built once from a result, rendered for the terminal (`terminal`) and as HTML (`html`).

Text between backticks is code. The terminal shows only blocks marked `terminal`; the page shows all of them.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from streamgauge.core.formatting import NONE, flatten, format_fact

GLOSSARY = "what these words mean: docs/reference/glossary.md"
"""The manual's page with the terms of a result."""
QUICK = "quick look: one short trial a cell, no search"
"""The mark of everything that `experiment --quick` made."""


@dataclass(frozen=True)
class Key:
    """One entry of a legend: `style` is line, dash, area, dot, cross, diamond, square or triangle."""

    label: str
    colour: str
    style: str = "line"


@dataclass(frozen=True)
class Figure:
    """A drawn chart: both renderings, a description for screen readers, its legend, and remarks under it."""

    name: str
    title: str
    wide: str
    narrow: str
    words: str
    keys: tuple[Key, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Drawing:
    """A chart that is drawn only if the output can show it; `draw` gives None without data."""

    draw: Callable[[], Figure | None]


@dataclass(frozen=True)
class Cell:
    """`note`: small print below; `style`: a verdict or a check's state (`state-ok`); `code`: set as code."""

    text: str
    note: str = ""
    style: str = ""
    link: str = ""
    code: bool = False


@dataclass(frozen=True)
class Column:
    """`short` is the heading in the terminal: "" leaves the column out, None keeps the heading.

    `width`: characters in a table that grows line by line.
    """

    heading: str
    number: bool = False
    short: str | None = None
    prose: bool = False
    width: int = 0


@dataclass(frozen=True)
class Row:
    """`strong`: the deciding row; `matters`: a short listing shows it too."""

    cells: tuple[Cell, ...]
    strong: bool = False
    matters: bool = True


@dataclass(frozen=True)
class Table:
    """Columns with their unit in the heading or the cells; `notes` go below. `style`: a class of the page's table."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    terminal: bool = False
    style: str = ""


@dataclass(frozen=True)
class Paragraph:
    """`kind`: note, warning, unusable, because, advice, heading, code or nothing; `label` comes before the text."""

    text: str
    kind: str = ""
    label: str = ""
    terminal: bool = False


@dataclass(frozen=True)
class Measure:
    """A figure that readers compare between runs; `unit` completes it where its line says the unit once, at the end."""

    label: str
    figure: str
    unit: str = ""

    def __str__(self) -> str:
        return f"{self.label} {self.figure}"


@dataclass(frozen=True)
class Fact:
    """One line in the terminal. On the page each known measure is a tile; a fact without measures is a line there too.

    `page`: whether the page shows it beside the answer, because no sentence or section has it.
    """

    name: str
    parts: tuple[str | Measure, ...]
    page: bool = True

    @property
    def measures(self) -> tuple[Measure, ...]:
        return tuple(part for part in self.parts if isinstance(part, Measure))

    @property
    def tiles(self) -> tuple[tuple[str, str], ...]:
        """The name and the figure of each tile, in the words of the line."""
        known = (one for one in self.measures if one.figure != NONE)
        return tuple((f"{self.name} {one.label}", f"{one.figure} {one.unit}".rstrip()) for one in known)


Block = Paragraph | Table | Figure | Drawing


@dataclass(frozen=True)
class Section:
    """`nav`: text of the link to it, "" for no link."""

    id: str
    title: str
    blocks: tuple[Block, ...]
    nav: str = ""


@dataclass(frozen=True)
class Document:
    """A report in reading order: the answer, its reasons, its figures and remarks; then sections.

    `mark`: what qualifies all of it, which titles and the answer repeat.
    """

    name: str
    on: str
    title: str
    headline: str
    meta: tuple[str, ...] = ()
    badge: str = ""
    style: str = ""
    mark: str = ""
    bounds: tuple[str, ...] = ()
    lead: tuple[Paragraph, ...] = ()
    checks: Table | None = None
    facts: tuple[Fact, ...] = ()
    remarks: tuple[Paragraph, ...] = ()
    sections: tuple[Section, ...] = ()


def blocks(*parts: Block | Iterable[Block] | None) -> tuple[Block, ...]:
    """The parts in order, without None."""
    several = ((part,) if isinstance(part, Block) else part for part in parts if part is not None)
    return tuple(chain.from_iterable(several))


def table(caption: str, columns: Iterable[Column], rows: Iterable[Iterable[Cell | str]], **more: Any) -> Table:
    """A table of plain rows."""
    return Table(caption, tuple(columns), tuple(Row(cells(row)) for row in rows), **more)


def cells(row: Iterable[Cell | str]) -> tuple[Cell, ...]:
    return tuple(cell if isinstance(cell, Cell) else Cell(cell) for cell in row)


def texts(*headings: str) -> tuple[Column, ...]:
    """Columns of words."""
    return tuple(map(Column, headings))


def numbers(*headings: str) -> tuple[Column, ...]:
    """Columns of numbers."""
    return tuple(Column(heading, number=True) for heading in headings)


def missing_here(missing: Iterable[str]) -> tuple[Paragraph, ...]:
    """What this machine lacks for a plan, which stands before it."""
    return tuple(Paragraph(f"missing here: {one}", "warning", terminal=True) for one in missing)


def grouped(reasons: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Each reason once, with its names: `p99, p99.9: too few results`. Empty reasons are left out."""
    found: dict[str, dict[str, None]] = {}
    for name, reason in reasons:
        if reason:
            found.setdefault(reason, {})[name] = None
    return tuple(f"{', '.join(names)}: {reason}" for reason, names in found.items())


def environment_table(environment: Mapping[str, Any]) -> Table:
    """The machine and the versions of the software on it."""
    rows = ((name, format_fact(name, value)) for name, value in flatten(environment).items())
    return table("Machine and versions", texts("what", "found"), rows)
