"""The result of a latency breakdown: anatomy.json."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, SerializationInfo, field_serializer, field_validator

from streamgauge.results.result_part import ResultPart
from streamgauge.results.verdict import VerdictValue

SCHEMA_VERSION = 2


class StageFigures(ResultPart):
    """One stage of a trial's latency; a percentile is null if too few independent observations carry it.

    `share`: of the mean latency.
    """

    name: str
    share: float
    mean_us: float
    p50_us: float | None = None
    p90_us: float | None = None
    p99_us: float | None = None


class LatencyFigures(ResultPart):
    """Latencies of `results` results; a percentile is null if too few independent observations carry it."""

    mean_us: float
    p50_us: float | None = None
    p90_us: float | None = None
    p99_us: float | None = None
    results: int


class TrialLatency(LatencyFigures):
    """`contradicted_share`: how far timestamps of a result contradict each other's order, as a share of its latency."""

    contradicted_share: float


class TrialConditions(ResultPart):
    """What one trial offered, and how it ended.

    Attributes:
        record_bytes: None if the workload has no record size.
        chunk_us: event time that travels in one record batch.
        batch_window: interval of batches in force, as the engine writes it; empty without batches.
        batch_window_s: the requested interval; None if none was requested.
        run: the run folder; empty if the trial did not start.
        clock_moved_us: how far the machine's clock moved within the trial.
    """

    rate_per_s: float
    record_bytes: int | None = None
    chunk_us: int
    batch_window: str = ""
    batch_window_s: float | None = None
    run: str = ""
    verdict: VerdictValue
    sentence: str = ""
    clock_moved_us: int | None = None


class Decomposition(ResultPart):
    """The stages of one trial's latency; with a `reason`, everything else is empty or None.

    Attributes:
        latency: of all results of the span; in the file an empty object without one.
        first_of_batch: of each batch's first result; in the file an empty object without batches.
        sampled: number of results that the stages come from.
        remainder_share: the trial's own mean latency minus the stages' sum, as a share of it.
        cdf_us: quantiles of the latency from 0 to 1, in hundredths.
        left_out: results without some timestamp.
        contradicting_batches, contradicting_results: how many have timestamps that contradict the driver's, by at most
            `contradiction_us_max`.
        tasks_share: time of all tasks, as a share of the time of their batches.
        commit_after_us: mean time from a result to its batch's commit.
        doubts: why stages may be wrong.
    """

    reason: str = ""
    latency: TrialLatency | None = None
    first_of_batch: LatencyFigures | None = None
    stages: tuple[StageFigures, ...] = ()
    sampled: int | None = None
    remainder_share: float | None = None
    cdf_us: tuple[float | None, ...] = ()
    batches: int | None = None
    left_out: int | None = None
    contradicting_batches: int | None = None
    contradicting_results: int | None = None
    contradiction_us_max: int | None = None
    tasks_share: float | None = None
    commit_after_us: float | None = None
    doubts: tuple[str, ...] = ()

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
    def of(cls, conditions: TrialConditions, decomposition: Decomposition) -> Self:
        return cls(**dict(conditions), **dict(decomposition))


class LatencyBreakdown(ResultPart):
    """A latency breakdown, as far as it goes; `finished` once it has every trial.

    `options` and `load` are those of the first trial. `stages`: each stage's name and what its time is spent on.
    """

    schema_version: int = SCHEMA_VERSION
    workload: str
    engine: str
    transport: str
    transport_options: dict[str, str] = Field(default_factory=dict)
    parameters: dict[str, Any]
    options: dict[str, str]
    tuning: str = "tuned"
    load: dict[str, Any] = Field(default_factory=dict)
    environment: dict[str, Any]
    start_time: str
    folder: str
    stages: dict[str, str]
    published: tuple[str, ...]
    published_work_share: float | None = None
    trials: tuple[BreakdownTrial, ...] = ()
    finished: bool = False

    def with_trial(self, trial: BreakdownTrial) -> Self:
        return self.model_copy(update={"trials": (*self.trials, trial)})

    def to_json(self) -> str:
        return self.model_dump_json(indent=2)
