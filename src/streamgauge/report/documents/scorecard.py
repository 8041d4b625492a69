"""A scorecard as a document: ratings with rules and cells, what use cases pick, and the paper's ratings."""

from collections.abc import Iterator

from streamgauge.core.formatting import NONE, format_digits, format_percent, format_rate, format_us
from streamgauge.report.document_blocks import (
    QUICK,
    Cell,
    Column,
    Document,
    Paragraph,
    Section,
    Table,
    numbers,
    table,
    texts,
)
from streamgauge.results import labels
from streamgauge.results.scorecard import Criterion, Measured, Rating, Scorecard

GRADES = {"good": "good", "fair": "fair", "poor": "poor", "unknown": "not known"}
_STYLES = {"good": "sustained", "fair": "", "poor": "not_sustained", "unknown": "undecided"}
_DOUBTS = {
    "no_cell": "no cell is about it",
    "no_figure": "the cell lacks the figure",
    "quick_look": "a quick look searches no rate",
    "updates": "its results are updates, whose latency cannot be compared",
    "no_reference": "what to divide it by is not known",
    **labels.VERDICTS,
}
LOOK = " (a look)"


def document(card: Scorecard) -> Document:
    """All ratings, with the rule of each."""
    known = sum(one.grade != "unknown" for one in card.ratings)
    return Document(
        name="scorecard",
        on=f"{len(card.studies)} studies",
        title="Scorecard",
        headline=f"scorecard: {known} of {len(card.ratings)} ratings are known",
        mark=QUICK if all(one.quick for one in card.studies) else "",
        sections=(
            Section("ratings", "Ratings", (_overview(card),), "Ratings"),
            Section("rules", "Rules and cells", tuple(_rules(card)), "Rules"),
            Section("picks", "By use case", (_heading("By use case"), _picks(card)), "By use case"),
            Section("published", "Published", tuple(_published(card)), "Published"),
            Section("studies", "Studies", (_heading("Studies"), _studies(card)), "Studies"),
        ),
    )


def _heading(text: str) -> Paragraph:
    return Paragraph(text, "heading", terminal=True)


def _overview(card: Scorecard) -> Table:
    """The systems of each grade, a row for each criterion and workload."""
    rows = (
        (
            criterion.name,
            workload,
            *(
                ", ".join(
                    f"{one.system} {_figure(criterion, one)}".removesuffix(f" {NONE}") + LOOK * one.quick
                    for one in card.ratings
                    if (one.criterion, one.workload, one.grade) == (criterion.name, workload, grade)
                )
                or NONE
                for grade in GRADES
            ),
        )
        for criterion in card.criteria
        for workload in dict.fromkeys(one.workload for one in card.ratings)
    )
    notes = (
        "A rating needs a sustained cell. Of several cells of a system the best is rated, of repetitions the worst.",
    )
    columns = texts("criterion", "workload", *GRADES.values())
    return table("Systems by grade", columns, rows, notes=notes, terminal=True)


def _rules(card: Scorecard) -> Iterator[Paragraph | Table]:
    """Each criterion with its limits, and the cells that gave each rating."""
    for criterion in card.criteria:
        side = "at least" if criterion.higher_is_better else "at most"
        limits = (f"{name}: {side} {_in_unit(criterion, getattr(criterion, name))}" for name in ("good", "fair"))
        yield _heading(f"{criterion.name}: {criterion.rule}. {'; '.join(limits)}; else poor.")
        columns = (*texts("system", "workload", "rating"), *numbers("figure"), Column("from", prose=True))
        rows = (
            (
                one.system,
                one.workload,
                Cell(GRADES[one.grade] + LOOK * one.quick, style=_STYLES[one.grade]),
                _figure(criterion, one),
                _from(criterion, one),
            )
            for one in card.ratings
            if one.criterion == criterion.name
        )
        yield table(f"Ratings by {criterion.name}", columns, rows, terminal=True)


def _from(criterion: Criterion, one: Rating) -> str:
    """`450 k events/s in study 1 cell 3, by 900 k events/s in study 2 cell 1`; of an unknown rating the reason."""
    if one.doubt:
        where = f"study {one.measured.study} cell {one.measured.cell}: " if one.measured else ""
        return f"{where}{_DOUBTS[one.doubt]}"
    return ", by ".join(_measured(criterion, each) for each in (one.measured, one.reference) if each)


def _measured(criterion: Criterion, one: Measured) -> str:
    figure = format_rate(one.value, "events/s") if criterion.unit == "share" else format_us(one.value)
    return f"{figure} in study {one.study} cell {one.cell}"


def _figure(criterion: Criterion, one: Rating) -> str:
    return NONE if one.figure is None else _in_unit(criterion, one.figure)


def _in_unit(criterion: Criterion, figure: float) -> str:
    if criterion.unit == "share":
        return format_percent(100 * figure)
    digits = format_digits(figure)
    return f"{digits} {criterion.unit.removesuffix('s') if digits == '1' else criterion.unit}"


def _picks(card: Scorecard) -> Table:
    """What the scorecard picks for each use case."""
    by_name = {one.name: one for one in card.criteria}
    rows = (
        (
            by_name[one.criterion].use_case,
            one.workload,
            ", ".join(one.systems) + LOOK * one.quick if one.systems else GRADES["unknown"],
            by_name[one.criterion].pick,
        )
        for one in card.picks
    )
    notes = ("The best system, and those within 10 % of it. A system that is not rated cannot be picked.",)
    return table("Picks", texts("use case", "workload", "systems", "by"), rows, notes=notes, terminal=True)


def _published(card: Scorecard) -> Iterator[Paragraph | Table]:
    """The paper's ratings, apart from ours."""
    paper = card.published
    yield _heading(f"Published: {paper.work}, {paper.table}. Measured on {paper.hardware}.")
    notes = (
        "Ratings of the paper. No rating above uses them.",
        "The paper's own rules for use cases (section VI-C) are not among the reference figures of this project.",
    )
    rows = ([text or NONE for text in row] for row in paper.rows)
    yield table("Ratings of the paper", texts(*paper.columns), rows, notes=notes, terminal=True, style="published")


def _studies(card: Scorecard) -> Table:
    columns = (*numbers("study"), *texts("named", "began"), *numbers("cells", "used"))
    rows = (
        (str(n), one.given, one.start_time + LOOK * one.quick, str(one.cells), str(one.used))
        for n, one in enumerate(card.studies, 1)
    )
    return table("Studies", columns, rows, terminal=True)
