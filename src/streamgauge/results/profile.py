"""The result of an operator profile: characterization.json."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from streamgauge.results.result_part import ResultPart
from streamgauge.results.verdict import VerdictValue

SCHEMA_VERSION = 2

Weights = Literal["cumulative", "immediate"]
"""Sin_i of Bordin et al. 2020, equation 3.4: input rows per event, or the selectivity of the operator before."""
MemoryBehaviour = Literal["fixed", "variable"]
MemoryLevel = Literal["low", "medium", "high"]


class ProfileInput(ResultPart):
    """The planned input: slices of equal event time, the first `warmup_slices` of them untimed."""

    slices: int
    warmup_slices: int
    slice_events: int
    rate_per_s: float
    seed: int
    start_us: int
    end_us: int


class TupleTime(ResultPart):
    """Time per tuple of an operator at one instance, over its slices; all times are microseconds.

    Attributes:
        median, p99: None if a sign test cannot tell the operator from only reading; the p99 also with too few slices.
        interval: of the median; None with too few slices, or in older files.
        slower_slices, negative_slices: slices in which the operator took more, or less, than only reading.
        baseline: what the p99 is reduced by.
        fixed_per_slice: time of the job without rows, which each slice is reduced by.
    """

    median: float | None
    p99: float | None
    interval: tuple[float, float] | None = None
    distinguishable: bool
    slices: int
    slower_slices: int
    negative_slices: int
    baseline: float
    fixed_per_slice: float
    rows_per_slice: float


class InstancesOnSpark(ResultPart):
    """Whether Spark's one setting decides how many instances an operator has, and why."""

    acts: bool
    reason: str


class PublishedInstances(ResultPart):
    """An operator of Bordin's thesis and its instances there."""

    operator: str
    instances: int


class ProfiledOperator(ResultPart):
    """A source, an operator or a sink of the flow: counts, time per tuple, advised instances.

    Attributes:
        rows_in: of each input.
        counted_as: what rows out are: `rows`, or `updates` of a key and slice.
        tuple_bytes: size of an output row; of a sink, of an input row.
        time_method: a key of `OperatorProfile.methods`.
        time_reason: why there is no time, or no p99.
        weights: Sin of each input.
        s_op_us: work per source tuple; None without a p99.
        advised_instances: by the weights that decide.
        advised_instances_interval: least and most over bootstrap samples of the slices.
        thesis: the operators of Bordin's thesis that it is.
    """

    name: str
    kind: str
    type: str
    communication: str
    inputs: tuple[str, ...]
    rows_in: tuple[int, ...]
    rows_out: int | None
    selectivity: float | None
    counted_as: str
    tuple_bytes: float | None
    time_per_tuple_us: TupleTime | None
    time_per_tuple_us_p99: float | None
    time_method: str | None
    time_reason: str | None
    weights: dict[Weights, tuple[float, ...]]
    instances_on_spark: InstancesOnSpark
    s_op_us: dict[Weights, float | None] = Field(default_factory=dict)
    advised_instances_by_weights: dict[Weights, int | None] = Field(default_factory=dict)
    advised_instances: int | None = None
    advised_instances_interval: dict[Weights, tuple[int, int] | None] = Field(default_factory=dict)
    thesis: tuple[PublishedInstances, ...] = ()


class ParallelismPlan(ResultPart):
    """Instances of all operators, in their order, multiplied by `times`."""

    times: int
    instances: tuple[int | None, ...]


class ParallelismPlans(ResultPart):
    """Plans by the three ways of Bordin's thesis; None if the way needs advice that does not exist."""

    formula: tuple[ParallelismPlan, ...] | None
    one_each: tuple[ParallelismPlan, ...] | None
    source_only: tuple[ParallelismPlan, ...] | None


class AdvisedOption(ResultPart):
    """The one setting of Spark that acts; `value` and `line` are None if nothing does, for the `reason`."""

    setting: str
    value: int | None
    line: str | None
    reason: str


class AppliedAdvice(ResultPart):
    """What `--apply` set, the file that repeats the trial with it, and the trial's run folder and verdict."""

    setting: str
    before: str
    after: str
    experiment: str
    run: str
    verdict: VerdictValue
    sentence: str


class ThesisOperator(PublishedInstances):
    """An operator of Bordin's thesis; `here`: the operators of the flow that it is."""

    here: tuple[str, ...]


class MemoryDistribution(ResultPart):
    """Resident memory of all of Spark's processes over time, bytes; `of`: whose it is, in words."""

    of: str
    min: int
    p50: int
    p95: int
    max: int
    samples: int
    interval_s: float
    behaviour: MemoryBehaviour
    level: MemoryLevel


class ProfileRequest(ResultPart):
    """What is profiled. The file holds only this until the profile is complete, with `finished` false.

    `target`: how many instances the advice distributes (K). `weights`: those that decide.
    """

    schema_version: int = SCHEMA_VERSION
    workload: str
    engine: str
    parameters: dict[str, Any]
    options: dict[str, str]
    tuning: str = "tuned"
    input: ProfileInput
    target: int
    weights: Weights
    environment: dict[str, Any]
    start_time: str
    folder: str
    finished: bool = False

    def to_json(self) -> str:
        return self.model_dump_json(indent=2)


class ProfileFigures(ResultPart):
    """What follows from counts and times. `s_app_us` is the sum of the operators' `s_op_us`."""

    operators: tuple[ProfiledOperator, ...]
    s_app_us: dict[Weights, float]
    ways: ParallelismPlans
    apply: AdvisedOption
    thesis: tuple[ThesisOperator, ...] = ()


class OperatorProfile(ProfileFigures, ProfileRequest):
    """A complete operator profile. In the file the request comes first: pydantic takes the fields of the last base
    first.

    `memory`: None if no operator was timed. `methods`: how figures were made, in words. `applied`: None without
    `--apply`, or if no advice acts.
    """

    settings: dict[str, str] = Field(default_factory=dict)
    memory: MemoryDistribution | None
    notes: tuple[str, ...] = ()
    applied: AppliedAdvice | None = None
    methods: dict[str, str]
