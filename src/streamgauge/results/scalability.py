"""The result of a scalability study: scale.json. Also its plan, which `--dry-run` prints."""

from typing import Any

from pydantic import Field

from streamgauge.core.former_names import TransportName
from streamgauge.results.codes import ResultPart, StudyHead, version_field
from streamgauge.results.matrix import CellFigures
from streamgauge.results.verdict import VerdictValue

SCHEMA_VERSION = 1


class ScaleCell(CellFigures):
    """A trial of the study. Its `verdict` is that of the run; `outcome` is that of the study's criterion."""

    number: int
    """Its number, in the order of the trials."""
    resources: int
    """Its level of resources."""
    load: float
    """Its load, in the unit of `load_unit`."""
    repetition: int
    """Which trial of this load and these resources it is, from 1."""
    outcome: VerdictValue
    """How it ended by the criterion."""
    wrong_answers: str = ""
    """Faults in the answers of a trial that otherwise kept up; empty for any other trial."""
    lag_growth: float | None = None
    """Growth of the lag in the span, mean over partitions; null unless the criterion is `ehrenstein`, or if unknown."""
    busy_share: float | None = None
    """Share of the time that the engine's batches needed; null if unknown."""


class Capacity(ResultPart):
    """The capacity of a level of resources."""

    resources: int
    """The level."""
    load: float | None
    """The hardest load that it sustained; null if it sustained none."""
    refused: float | None
    """The next harder load, which was not sustained; null if `load` is the hardest of all."""
    measured: bool
    """Whether `load` was tried with this level; else a lower level sustained it."""
    decided: bool
    """Whether a trial showed that `refused` is not sustained, or no load is harder."""

    @property
    def is_bound(self) -> bool:
        """Whether the level may sustain more."""
        return self.refused is None or not self.decided


class Demand(ResultPart):
    """The demand of a load."""

    load: float
    """The load."""
    resources: int | None
    """The least level of resources that sustains it; null if none does."""
    decided: bool = True
    """Whether a trial showed that the next lower level does not sustain it, or no level is lower."""


class Figure(ResultPart):
    """A fitted figure with its interval."""

    value: float
    """The figure."""
    low: float
    """Lower end of its 95 % interval."""
    high: float | None
    """Upper end of its 95 % interval; null if it has none."""


class FittedPoint(Figure):
    """The capacity that a law expects."""

    resources: float
    """With these resources."""


class Fit(ResultPart):
    """A law fitted to the capacities."""

    law: str
    """`linear` or `universal` (the Universal Scalability Law)."""
    reason: str = ""
    """Why there is no fit; empty if there is one."""
    note: str = ""
    """What the intervals leave out."""
    parameters: dict[str, Figure] = Field(default_factory=dict)
    """Linear: `intercept` and `slope`. Universal: `rate` of one unit, `contention` and `coherency`."""
    r_squared: float | None = None
    """Share of the variance that it explains; null without a fit, or if all capacities are equal."""
    peak: Figure | None = None
    """Universal: resources beyond which capacity falls; null if it does not."""
    curve: tuple[FittedPoint, ...] = ()
    """The law from the least level to twice the greatest. Beyond the greatest it extrapolates."""


class PublishedCapacity(ResultPart):
    """A capacity that a paper reports, of other hardware and another engine."""

    resources: int
    """Instances."""
    per_s: float
    """Messages per second."""


class ScaleAxes(ResultPart):
    """What a scalability study varies: of its plan and of its result."""

    workload: str
    """What is measured."""
    resource: str
    """The setting that the levels of resources set."""
    resources: tuple[int, ...]
    """The levels, ascending."""
    dimension: str
    """The setting that the loads set."""
    load_unit: str
    """Unit of the loads: `events/s`, `s`, or empty for a number."""
    loads: tuple[float, ...]
    """The loads, from easy to hard."""
    rates: tuple[float, ...] = ()
    """Events per second of each load. With a fixed frequency they follow from the number of keys."""


class ScaleResult(ScaleAxes, StudyHead):
    """A scalability study, as far as it was run."""

    schema_version: int = version_field(SCHEMA_VERSION)
    """Version of this layout."""
    transport: TransportName
    """How events travelled."""
    parameters: dict[str, Any]
    """Parameters of the workload, except those that differ between trials."""
    options: dict[str, str]
    """Options of the engine."""
    metric: str = "capacity"
    """What `capacities` are: `capacity` in events/s, or the extreme of the dimension, such as `greatest height` or
    `smallest period`."""
    criterion: str
    """`slope` or `ehrenstein`."""
    repeat: int
    """Trials of each cell that decide it."""
    job_files: dict[str, str] = Field(default_factory=dict)
    """SHA-256 of user jobs, samples and data at the start. A resumed study refuses changed files."""
    notes: tuple[str, ...] = ()
    """What to know of the figures."""
    cells: tuple[ScaleCell, ...] = ()
    """The trials, in their order."""
    decided: bool = False
    """Whether it came to its end, every cell that it tried was decided, and no answers were wrong."""
    capacities: tuple[Capacity, ...] = ()
    """The capacity of each level; empty until the search is finished."""
    demands: tuple[Demand, ...] = ()
    """The demand of each load; empty until the search is finished."""
    contradictions: tuple[str, ...] = ()
    """Cells that contradict each other: more resources, or less load, did worse."""
    fits: tuple[Fit, ...] = ()
    """Laws fitted to the capacities."""
    published: tuple[PublishedCapacity, ...] = ()
    """Capacities of Ehrenstein 2020, figure 5; empty for another workload or other axes."""


class ScalePlan(ScaleAxes):
    """The size of a scalability study before it runs."""

    cells: int
    """Cells of the grid."""
    trials_max: int
    """The most trials that the search needs."""
    seconds: float
    """Time of so many trials."""
    seconds_max: float
    """Time of so many trials, each extended to its longest."""
