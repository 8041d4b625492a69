"""The answer of a scalability study from its trials: outcomes, capacities, demands, fits and contradictions."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from streamgauge.core.formatting import format_value
from streamgauge.results.scalability import ScaleCell, ScaleResult
from streamgauge.results.verdict import VerdictValue
from streamgauge.studies.scalability import monotone_search as search
from streamgauge.studies.scalability.monotone_search import DECIDED, Grid, Outcomes, Point
from streamgauge.studies.scalability.scaling_laws import fit_line, fit_universal_law

INVALID_MAX = 2
"""Invalid trials of a cell, after which it stays undecided."""


def outcomes_of(result: ScaleResult) -> dict[Point, VerdictValue]:
    """The outcome of each cell that has enough trials."""
    return {
        point: outcome
        for point, cells in _by_point(result).items()
        if (outcome := _outcome(cells, result.repeat)) is not None
    }


def with_shares(grid: Grid, result: ScaleResult) -> Grid:
    """The grid with the busy shares of its trials: the mean of each cell's, without those of invalid trials."""
    shares = {
        point: [cell.busy_share for cell in cells if cell.busy_share is not None and cell.outcome != "invalid"]
        for point, cells in _by_point(result).items()
    }
    return replace(grid, shares={point: fmean(known) for point, known in shares.items() if known})


def next_point(result: ScaleResult, grid: Grid) -> Point | None:
    """The cell to try next; None once the search is finished, or if answers were wrong.

    A lower load would only hide that fault, because a trial then has too few results to show it.
    """
    return None if has_wrong_answers(result) else search.next_point(with_shares(grid, result), outcomes_of(result))


def without_undecided(result: ScaleResult) -> tuple[ScaleCell, ...]:
    """The trials without those that decided nothing or gave wrong answers: a resumed study makes them again.

    All trials of a cell that is decided stay. If as many repetitions held as failed, they decided nothing together, and
    all of them are made again.
    """
    outcomes = outcomes_of(result)
    kept = []
    for point, cells in _by_point(result).items():
        is_decided, decided = outcomes.get(point) in DECIDED, [cell for cell in cells if cell.outcome in DECIDED]
        is_tie = outcomes.get(point) == "undecided" and decided == cells
        kept += cells if is_decided else [] if is_tie else decided
    return tuple(sorted((cell for cell in kept if not cell.wrong_answers), key=lambda cell: cell.number))


def has_wrong_answers(result: ScaleResult) -> bool:
    return any(cell.wrong_answers for cell in result.cells)


def answered(result: ScaleResult, grid: Grid) -> ScaleResult:
    """The result with everything that follows from its trials. Laws are of loads that get harder as they grow."""
    grid, outcomes = with_shares(grid, result), outcomes_of(result)
    finished = next_point(result, grid) is None and not has_wrong_answers(result)
    update: dict[str, Any] = {
        "contradictions": tuple(_contradictions(result, outcomes)),
        "finished": finished,
        "decided": finished and "undecided" not in outcomes.values(),
    }
    if finished:
        capacities, levels = search.capacities(grid, outcomes), result.resources
        update |= {"capacities": capacities, "demands": search.demands(grid, outcomes)}
        if result.loads[0] <= result.loads[-1]:
            update["fits"] = fit_line(capacities, levels), fit_universal_law(capacities, levels)
    return result.model_copy(update=update)


def _by_point(result: ScaleResult) -> Mapping[Point, list[ScaleCell]]:
    """The trials of each cell that ended, in their order."""
    found: dict[Point, list[ScaleCell]] = {}
    for cell in result.cells:
        if cell.outcome != "interrupted":
            found.setdefault(point_of(result, cell), []).append(cell)
    return found


def point_of(result: ScaleResult, cell: ScaleCell) -> Point:
    """A trial's place in the grid of its study."""
    return Point(result.loads.index(cell.load), result.resources.index(cell.resources))


def _outcome(cells: Sequence[ScaleCell], repeat: int) -> VerdictValue | None:
    """The outcome of a cell's trials; None if it needs another one."""
    verdicts = [cell.outcome for cell in cells if cell.outcome != "invalid"]
    outcome = search.combine(verdicts, repeat)
    is_open = outcome == "undecided" and len(verdicts) < repeat and len(cells) - len(verdicts) < INVALID_MAX
    return None if is_open else outcome


def _contradictions(result: ScaleResult, outcomes: Outcomes) -> list[str]:
    def words(point: Point) -> str:
        return f"{format_value(result.loads[point.load])} with {result.resources[point.resources]}"

    return [
        f"{words(held)} was sustained, and {words(failed)} was not" for held, failed in search.contradictions(outcomes)
    ]
