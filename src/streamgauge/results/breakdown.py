"""The result of a latency breakdown: anatomy.json."""

from typing import Any, Self

from pydantic import Field, SerializationInfo, field_serializer, field_validator

from streamgauge.core.former_names import TransportName
from streamgauge.results.codes import ResultPart, StudyHead, version_field
from streamgauge.results.verdict import VerdictValue

SCHEMA_VERSION = 2


class StageFigures(ResultPart):
    """One stage of a trial's latency."""

    name: str
    """The stage's name."""
    share: float
    """Share of the mean latency."""
    mean_us: float
    """Mean."""
    p50_us: float | None = None
    """Median; null with too few independent observations, like every percentile."""
    p90_us: float | None = None
    """90th percentile."""
    p99_us: float | None = None
    """99th percentile."""


class LatencyFigures(ResultPart):
    """Latencies of some results."""

    mean_us: float
    """Mean."""
    p50_us: float | None = None
    """Median; null with too few batches or independent results, like every percentile."""
    p90_us: float | None = None
    """90th percentile."""
    p99_us: float | None = None
    """99th percentile."""
    results: int
    """How many results these are."""


class TrialLatency(LatencyFigures):
    """The latency of a trial, and how far its evidence agrees."""

    contradicted_share: float
    """How far stamps of a result contradict each other's order, as a share of the latency."""


class TrialConditions(ResultPart):
    """What one trial offered, and how it ended."""

    rate_per_s: float
    """The rate."""
    record_bytes: int | None = None
    """The record size; null if the workload has no record size."""
    chunk_us: int
    """How much event time travels in one record batch."""
    batch_window: str = ""
    """The interval of batches, as the engine writes it; empty without batches."""
    batch_window_s: float | None = None
    """The requested interval in seconds; null if none was requested."""
    run: str = ""
    """The trial's run folder; empty if the trial did not start."""
    verdict: VerdictValue
    """What the trial found."""
    sentence: str = ""
    """The same in words."""
    exit_code: int | None = None
    """Exit code of what kept the trial from starting; null if it started."""
    clock_moved_us: int | None = None
    """How far the machine's clock moved within the trial; null if unknown."""


class Decomposition(ResultPart):
    """The stages of one trial's latency; with a `reason`, everything else is empty or null."""

    reason: str = ""
    """Why the trial has no stages; else empty."""
    latency: TrialLatency | None = None
    """The latency of all results of the span; an empty object without one."""
    first_of_batch: LatencyFigures | None = None
    """The latency of each batch's first result; an empty object without batches."""
    stages: tuple[StageFigures, ...] = ()
    """The stages in their order."""
    sampled: int | None = None
    """Results that the stages come from: over a broker, a sample. Null if unknown."""
    remainder_share: float | None = None
    """Difference between the stages' sum and the mean latency, as a share of it; null if unknown."""
    cdf_us: tuple[float | None, ...] = ()
    """The latency's quantiles from 0 to 1, in hundredths; null with too few batches."""
    batches: int | None = None
    """How many batches gave the results; null without batches."""
    left_out: int | None = None
    """Results with an unknown timestamp."""
    contradicting_batches: int | None = None
    """Batches whose moments by Spark contradict the driver's; null in real-time mode."""
    contradicting_results: int | None = None
    """In real-time mode: results that contradict the broker's moments; else null."""
    contradiction_us_max: int | None = None
    """By how much they contradict at most; null if unknown."""
    tasks_share: float | None = None
    """Task time divided by the time of their batches; null without batches."""
    commit_after_us: float | None = None
    """Mean time from a result to its batch's commit; null without batches."""
    doubts: tuple[str, ...] = ()
    """Why the stages may be wrong, if their evidence does not agree."""

    @field_validator("latency", "first_of_batch", mode="before")
    @classmethod
    def _none_if_empty(cls, value: Any) -> Any:
        return value or None

    @field_validator("first_of_batch", mode="before")
    @classmethod
    def _without_contradictions(cls, value: Any) -> Any:
        """Schema version 1 had `contradicted_share` here too."""
        if not isinstance(value, dict):
            return value
        return {name: figure for name, figure in value.items() if name != "contradicted_share"}

    @field_serializer("latency", "first_of_batch")
    def _empty_if_none(self, figures: LatencyFigures | None, info: SerializationInfo) -> dict[str, Any]:
        return {} if figures is None else figures.model_dump(mode=info.mode)


class BreakdownTrial(Decomposition, TrialConditions):
    """One trial of a breakdown. In the file its conditions come first: pydantic takes the fields of the last base
    first.
    """

    @classmethod
    def from_parts(cls, conditions: TrialConditions, decomposition: Decomposition) -> Self:
        return cls(**dict(conditions), **dict(decomposition))


class LatencyBreakdown(StudyHead):
    """A latency breakdown, as far as it goes."""

    schema_version: int = version_field(SCHEMA_VERSION)
    """Version of this layout."""
    quick: bool = False
    """Whether it is a trial of `experiment --quick`."""
    transport: TransportName
    """How events travelled."""
    transport_options: dict[str, str] = Field(default_factory=dict)
    """Options of the transport."""
    parameters: dict[str, Any]
    """Parameters of the workload."""
    options: dict[str, str]
    """Engine options of the first trial."""
    tuning: str = "tuned"
    """The tuning profile."""
    load: dict[str, Any] = Field(default_factory=dict)
    """The load of the first trial."""
    stages: dict[str, str]
    """Each stage's name, and what its time is spent on."""
    published: tuple[str, ...]
    """Published findings on Spark's latency."""
    published_work_share: float | None = None
    """The greatest published share of useful work; null if none applies."""
    trials: tuple[BreakdownTrial, ...] = ()
    """The trials in order."""
