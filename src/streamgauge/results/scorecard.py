"""A scorecard: systems rated by criteria, from the cells of matrices."""

from typing import Literal

from streamgauge.results.codes import SCHEMA_VERSION, ResultPart, version_field
from streamgauge.results.matrix import PublishedTable

CellKind = Literal["small windows", "large windows", "single key", "fluctuating rate"]
Grade = Literal["good", "fair", "poor", "unknown"]
Doubt = Literal[
    "",
    "no_cell",
    "no_figure",
    "quick_look",
    "updates",
    "no_reference",
    "not_sustained",
    "undecided",
    "invalid",
    "interrupted",
]
"""Why a rating is unknown: no such cell, none with the figure, a look that searches no rate, results that are updates
(whose latency is another), nothing to divide by, or the verdict of the cell.
"""


class Criterion(ResultPart):
    """A criterion. A rating is `good` or `fair` up to its limit, which is included, and else `poor`."""

    name: str
    """Its name."""
    rule: str
    """What is rated, in words."""
    kind: CellKind
    """Which cells are rated."""
    figure: str
    """The field of a cell that is rated; with `slide`, less the cell's mean."""
    reference: Literal["best", "own", "mean", "slide"]
    """What it is divided by: the best system's figure, the system's own rate with small windows and many keys, the
    cell's mean latency, or its window's slide."""
    unit: Literal["share", "times", "slides"]
    """Unit of the quotient."""
    good: float
    """Limit of `good`."""
    fair: float
    """Limit of `fair`."""
    higher_is_better: bool
    """Whether limits are minima."""
    use_case: str
    """Whom it matters to."""
    pick: str
    """By which figure a use case picks a system."""


class ScoredStudy(ResultPart):
    """A matrix that was read."""

    given: str
    """As it was named."""
    start_time: str
    """When it began, UTC."""
    quick: bool
    """Whether `--quick` made it."""
    cells: int
    """Its cells."""
    used: int
    """Those that some criterion is about."""


class Measured(ResultPart):
    """A figure of a cell."""

    study: int
    """Its study, from 1."""
    cell: int
    """Its number."""
    value: float | None
    """Events per second or microseconds."""


class Rating(ResultPart):
    """A system by one criterion."""

    criterion: str
    """The criterion."""
    workload: str
    """The workload."""
    system: str
    """The engine, with the settings in which its cells differ."""
    grade: Grade
    """`good`, `fair`, `poor` or `unknown`."""
    figure: float | None = None
    """`measured` divided by `reference`."""
    measured: Measured | None = None
    """The rated figure."""
    reference: Measured | None = None
    """What it is divided by."""
    doubt: Doubt = ""
    """Why it is unknown."""
    quick: bool = False
    """Whether its cell is a quick look's."""


class Pick(ResultPart):
    """The systems for a use case."""

    criterion: str
    """The criterion."""
    workload: str
    """The workload."""
    systems: tuple[str, ...]
    """The best one first, and those within 10 % of it."""
    quick: bool
    """Whether a cell of theirs is a quick look's."""


class Scorecard(ResultPart):
    """The output of `scorecard --json`."""

    schema_version: int = version_field(SCHEMA_VERSION)
    """Version of this layout."""
    studies: tuple[ScoredStudy, ...]
    """The matrices."""
    criteria: tuple[Criterion, ...]
    """The criteria."""
    ratings: tuple[Rating, ...]
    """Every system by every criterion, workload by workload."""
    picks: tuple[Pick, ...]
    """The systems for each use case."""
    published: PublishedTable
    """Ratings of the paper. No rating here uses them."""
