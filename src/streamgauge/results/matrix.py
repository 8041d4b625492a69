"""The result of a matrix of experiments: matrix.json. Also its plan, which `--dry-run` prints."""

from typing import Any, Self

from pydantic import Field

from streamgauge.core.exit_codes import VERDICT_CODES, ExitCode
from streamgauge.results.codes import ResultPart, StudyHead, version_field
from streamgauge.results.verdict import VerdictValue

SCHEMA_VERSION = 1
KNEE_LOADS_MIN = 3
"""Loads that a knee needs. With two there is only a first and a last one."""


class SinkFigures(ResultPart):
    """What a cell found of one sink, over the measured span."""

    name: str
    """The sink's name."""
    results_per_s: float | None = None
    """Results per second."""
    event_time_p50_us: float | None = None
    """Event-time latency: median."""
    event_time_p95_us: float | None = None
    """95th percentile."""
    event_time_p99_us: float | None = None
    """99th percentile."""
    lower_bounds: int = 0
    """Results that had not arrived."""


class CellFigures(ResultPart):
    """What a cell found. A figure is null if its command has none or it is unknown; a rate is events per second."""

    verdict: VerdictValue | None = None
    """Its verdict, of several trials the worst; null for `characterize` and `generate`."""
    sentence: str = ""
    """Why, in words."""
    decided_by: str = ""
    """Names of the checks that decided, with commas."""
    exit_code: int | None = None
    """The exit code that its command alone would have."""
    folder: str = ""
    """Its folder, relative to the matrix; empty if the cell never started."""
    report: str = ""
    """Its report, from the same folder; empty without one."""
    seconds: float = 0.0
    """How long it took."""
    sustained_per_s: float | None = None
    """Highest sustained rate of a search."""
    planned_per_s: float | None = None
    """Planned rate; of a search, of its best trial, like all figures below."""
    offered_per_s: float | None = None
    """Rate that was offered in time."""
    ingested_per_s: float | None = None
    """Rate that was delivered to the SUT."""
    ingested_std_per_s: float | None = None
    """Standard deviation of that rate by second."""
    achieved_per_s: float | None = None
    """Rate of the input whose results the SUT committed."""
    maximum_per_s: float | None = None
    """Maximum throughput, of a trial that went on under overload; not sustained."""
    results_per_s: float | None = None
    """Results per second, of all sinks."""
    event_time_mean_us: float | None = None
    """Mean event-time latency. Null for an anatomy with several trials, like its percentiles."""
    event_time_min_us: float | None = None
    """Minimum."""
    event_time_p50_us: float | None = None
    """Its median; null with too few results, like every percentile."""
    event_time_p90_us: float | None = None
    """90th percentile."""
    event_time_p95_us: float | None = None
    """95th percentile."""
    event_time_p99_us: float | None = None
    """99th percentile."""
    event_time_max_us: float | None = None
    """Maximum."""
    lower_bounds: int = 0
    """Results that had not arrived; above 0, event-time latencies are lower bounds."""
    processing_time_p50_us: float | None = None
    """Processing-time latency: median."""
    processing_time_p99_us: float | None = None
    """99th percentile."""
    until_counted_p50_us: float | None = None
    """Updates only: median of the time until every event was included in results."""
    until_counted_p99_us: float | None = None
    """99th percentile."""
    backlog_max: int | None = None
    """Most events that waited."""
    faults: int | None = None
    """Missing, extra, duplicate, wrong and late rows; null if results were not compared."""
    sut_cpu_percent: float | None = None
    """CPU of the SUT, mean over the span; 100 is one core."""
    sut_memory_bytes: int | None = None
    """Most resident memory of the SUT."""
    broker_cpu_percent: float | None = None
    """CPU of a broker between driver and SUT."""
    driver_cpu_percent: float | None = None
    """CPU of the driver."""
    driver_memory_bytes: int | None = None
    """Most resident memory of the driver."""
    others_cpu_percent: float | None = None
    """CPU of all other processes."""
    loopback_bytes_per_s: float | None = None
    """Traffic over the loopback per second."""
    scheduling_delay_us_max: int | None = None
    """Longest time that a batch waited after it was due."""
    reference_work_us: float | None = None
    """The machine's own speed meanwhile."""
    sinks: tuple[SinkFigures, ...] = ()
    """Each sink, if there are several."""

    @property
    def code(self) -> ExitCode:
        """Its exit code; that of its verdict where none is stored."""
        if self.exit_code is not None:
            return ExitCode(self.exit_code)
        return ExitCode.HOLDS if self.verdict is None else VERDICT_CODES[self.verdict]


class SearchFigures(CellFigures):
    """What a cell that is a search found."""

    at_90_percent: CellFigures | None = None
    """The same figures of a search's trial near 90 %: `planned_per_s` over `sustained_per_s`."""


class MatrixCell(SearchFigures):
    """A cell that was run."""

    number: int
    """Its number, which `--cells` takes."""
    settings: dict[str, Any]
    """The varied settings and their values."""
    repetition: int
    """Which repetition of its combination it is, from 1."""


class PublishedTable(ResultPart):
    """Rows of a table that a paper published, of other hardware."""

    work: str
    """The paper and its year."""
    table: str
    """Its table."""
    hardware: str
    """What it was measured on."""
    columns: tuple[str, ...]
    """Its columns. Names end with units."""
    rows: tuple[tuple[str, ...], ...]
    """Its rows, as texts."""


class Sweep(ResultPart):
    """What a sweep is beside a matrix over the rate. A load is a share of one rate; 1 is 100 %."""

    loads: tuple[float, ...]
    """The load of each cell, by number."""
    full_per_s: float | None
    """Events per second of 100 %; null until it is found."""
    p99_needs_s: float | None = None
    """Span that a p99 needs; null if the trials have it, or if not known."""
    search: CellFigures | None = None
    """The search for 100 %; null without one."""
    candidates: tuple[float, ...] = ()
    """Sustained loads with a p99, below the first that failed; empty until all have ended."""
    knee: float | None = None
    """The candidate with the greatest rate / p99 latency; null below three candidates."""

    def load_of(self, cell: "MatrixCell | PlannedCell") -> float:
        return self.loads[cell.number - 1]


class MatrixResult(StudyHead):
    """The cells of a matrix, as far as they were run."""

    schema_version: int = version_field(SCHEMA_VERSION)
    """Version of this layout."""
    command: str
    """The command of every cell, or `sweep`."""
    experiment: dict[str, Any] = Field(default_factory=dict)
    """The settings that all cells share; empty in older results."""
    varied: tuple[str, ...]
    """The settings that cells vary."""
    planned: int
    """How many cells the matrix has."""
    quick: bool = False
    """Whether `--quick` made it."""
    left_out: tuple[dict[str, Any], ...] = ()
    """The cells that it left out."""
    no_cells: dict[str, str] = Field(default_factory=dict)
    """What has no cell, with the reason, as the file says it."""
    job_files: dict[str, str] = Field(default_factory=dict)
    """SHA-256 of user jobs, samples and data at the start. A resumed matrix refuses changed files."""
    published: PublishedTable | None = None
    """The rows of `[paper]`; null without it."""
    cells: tuple[MatrixCell, ...] = ()
    """The cells that were run, by number."""
    sweep: Sweep | None = None
    """Loads and knee of a sweep."""

    def with_cell(self, cell: MatrixCell) -> Self:
        """The result with a cell, instead of an earlier attempt at it."""
        others = [one for one in self.cells if one.number != cell.number]
        cells = tuple(sorted([*others, cell], key=lambda one: one.number))
        ended = [one for one in cells if one.verdict != "interrupted"]
        return self.model_copy(update={"cells": cells, "finished": len(ended) == self.planned})


class PlannedCell(ResultPart):
    """A cell before it runs."""

    number: int
    """Its number."""
    settings: dict[str, Any]
    """Every varied setting with its value."""
    repetition: int
    """Which repetition it is."""
    seconds: float | None
    """Estimated time; null if it cannot be foreseen."""


class MatrixPlan(ResultPart):
    """The cells that would run, in their order."""

    workload: str
    """What is measured."""
    command: str
    """The command of every cell."""
    varied: tuple[str, ...]
    """The settings that cells vary."""
    cells: tuple[PlannedCell, ...]
    """The cells."""
    quick: bool = False
    """Whether `--quick` made it."""
    left_out: tuple[dict[str, Any], ...] = ()
    """The cells that it left out."""
    no_cells: dict[str, str] = Field(default_factory=dict)
    """What has no cell, with the reason, as the file says it."""
    sweep: Sweep | None = None
    """The loads of a sweep; null for any other matrix."""
    search_s: float | None = None
    """Estimated time of a search before the cells; null without one."""
    missing: tuple[str, ...] = ()
    """What this machine lacks; the cells would be refused."""

    @property
    def seconds(self) -> float:
        """Estimated time of a search, and of the cells whose time can be foreseen."""
        return (self.search_s or 0.0) + sum(cell.seconds or 0.0 for cell in self.cells)
