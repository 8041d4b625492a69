"""The result of an operator profile: characterization.json."""

from typing import Any, Literal

from pydantic import Field, model_validator

from streamgauge.results.codes import ResultPart, StudyHead, version_field
from streamgauge.results.verdict import VerdictValue

SCHEMA_VERSION = 2

Weights = Literal["cumulative", "immediate"]
"""Sin_i of Bordin et al. 2020, equation 3.4: input rows per event, or the selectivity of the operator before."""
MemoryBehaviour = Literal["fixed", "variable"]
MemoryLevel = Literal["low", "medium", "high"]


class ProfileInput(ResultPart):
    """The planned input, in slices of equal event time."""

    slices: int
    """Timed slices."""
    warmup_slices: int
    """Untimed slices before them, for warm-up."""
    slice_events: int
    """Events of a slice."""
    rate_per_s: float
    """Events per second of event time."""
    seed: int
    """Seed of the generated input."""
    start_us: int
    """First event time, microseconds since the epoch."""
    end_us: int
    """End of the event times, microseconds since the epoch."""


class TupleTime(ResultPart):
    """Time per tuple of an operator at one instance, over its slices, in microseconds."""

    median: float | None
    """Median; null if a sign test cannot distinguish the operator from reading."""
    p99: float | None
    """99th percentile; null if the median is, or with too few slices."""
    interval: tuple[float, float] | None = None
    """Interval of the median; null below 6 slices."""
    distinguishable: bool
    """Whether a sign test distinguishes the operator from reading."""
    slices: int
    """Timed slices."""
    slower_slices: int
    """Slices in which the operator took longer than reading."""
    negative_slices: int
    """Slices in which it took less."""
    baseline: float
    """Median time of reading, which is subtracted from the p99."""
    fixed_per_slice: float
    """Time of the job without rows, which is subtracted from each slice."""
    rows_per_slice: float
    """Rows of a slice."""


class EngineInstances(ResultPart):
    """Whether the engine's one setting decides how many instances an operator has."""

    acts: bool
    """Whether `apply.setting` decides how many it has."""
    reason: str
    """Why, or why not."""


class PublishedInstances(ResultPart):
    """An operator of Bordin 2017 and its instances there."""

    operator: str
    """An operator of Bordin 2017."""
    instances: int
    """Its instances there."""


class ProfiledOperator(ResultPart):
    """A source, an operator or a sink of the flow: counts, time per tuple, advised instances."""

    name: str
    """Its name."""
    kind: str
    """The kind of node."""
    type: str
    """The type by Bordin 2017."""
    communication: str
    """How rows reach its instances."""
    inputs: tuple[str, ...]
    """The operators that it reads."""
    rows_in: tuple[int, ...]
    """Rows of each input."""
    rows_out: int | None
    """Rows that it gives; null if not counted."""
    selectivity: float | None
    """Rows out divided by rows in; null if one is not counted."""
    counted_as: str
    """What rows out are: `rows`, or `updates` of a key and slice."""
    tuple_bytes: float | None
    """Size of what it gives; of a sink, of what it takes; null if unknown."""
    time_per_tuple_us: TupleTime | None
    """Time per tuple at one instance; null if not timed."""
    time_per_tuple_us_p99: float | None
    """The p99 alone; null without one."""
    time_method: str | None
    """A key of `methods`; null if not timed."""
    time_reason: str | None
    """Why there is no time, or no p99; null if there is one."""
    weights: dict[Weights, tuple[float, ...]]
    """Sin of each input, by both weights."""
    engine_instances: EngineInstances
    """Whether a setting of the engine acts on its instances."""
    s_op_us: dict[Weights, float | None] = Field(default_factory=dict)
    """Work per source tuple, by both weights; null without a p99, 0 if the operator cannot be distinguished from
    reading."""
    advised_instances_by_weights: dict[Weights, int | None] = Field(default_factory=dict)
    """By both weights; null without a p99, 1 if the operator cannot be distinguished from reading."""
    advised_instances: int | None = None
    """By the weights that decide (`weights` of the file); null without a p99."""
    advised_instances_interval: dict[Weights, tuple[int, int] | None] = Field(default_factory=dict)
    """By both weights: 5th and 95th percentile by bootstrap; null without advice."""
    thesis: tuple[PublishedInstances, ...] = ()
    """The operators of Bordin 2017 that it is, with their instances."""

    @model_validator(mode="before")
    @classmethod
    def _with_engine_instances(cls, values: Any) -> Any:
        """Takes `engine_instances` of older results from its name there."""
        if not isinstance(values, dict) or "instances_on_spark" not in values:
            return values
        renamed = {name: value for name, value in values.items() if name != "instances_on_spark"}
        return {**renamed, "engine_instances": values["instances_on_spark"]}


class ParallelismPlan(ResultPart):
    """Instances of all operators at one multiplier."""

    times: int
    """Multiplier."""
    instances: tuple[int | None, ...]
    """Instances in the order of `operators`; null without advice."""


class ParallelismPlans(ResultPart):
    """Plans by the three ways of Bordin's thesis."""

    formula: tuple[ParallelismPlan, ...] | None
    """The advised instances times the multiplier; null without advice."""
    one_each: tuple[ParallelismPlan, ...] | None
    """As many instances as the multiplier for every operator; null if not planned."""
    source_only: tuple[ParallelismPlan, ...] | None
    """The advised instances, for sources times the multiplier; null without advice."""


class AdvisedOption(ResultPart):
    """The one setting of the engine that acts."""

    setting: str
    """The setting."""
    value: int | None
    """The advised value; null if nothing acts."""
    line: str | None
    """The option to type; null if nothing acts."""
    reason: str
    """Why it acts, or why nothing does."""


class AppliedAdvice(ResultPart):
    """The trial with the advice."""

    setting: str
    """What `--apply` set."""
    before: str
    """Its value before."""
    after: str
    """Its value in the trial."""
    experiment: str
    """The file that repeats the trial."""
    run: str
    """Its run folder."""
    verdict: VerdictValue
    """What it found."""
    sentence: str
    """The same in words."""


class ThesisOperator(PublishedInstances):
    """An operator of Bordin 2017 beside those of the flow."""

    here: tuple[str, ...]
    """The operators of the flow that it is."""


class MemoryDistribution(ResultPart):
    """Resident memory of all of the engine's processes over time, in bytes."""

    of: str
    """The processes whose memory it is."""
    min: int
    """Minimum."""
    p50: int
    """Median."""
    p95: int
    """95th percentile."""
    max: int
    """Maximum."""
    samples: int
    """Number of samples."""
    interval_s: float
    """Seconds between two samples."""
    behaviour: MemoryBehaviour
    """`fixed` or `variable`."""
    level: MemoryLevel
    """`low`, `medium` or `high`."""


class ProfileRequest(StudyHead):
    """What is profiled. The file holds only this until the profile is complete."""

    schema_version: int = version_field(SCHEMA_VERSION)
    """Version of this layout."""
    parameters: dict[str, Any]
    """Parameters of the workload."""
    options: dict[str, str]
    """Engine options."""
    tuning: str = "tuned"
    """The tuning profile."""
    input: ProfileInput
    """The planned input."""
    target: int
    """How many instances the advice distributes (K)."""
    weights: Weights
    """The weights that decide."""


class ProfileFigures(ResultPart):
    """What follows from counts and times."""

    operators: tuple[ProfiledOperator, ...]
    """Every source, operator and sink, in the order in which rows meet them."""
    s_app_us: dict[Weights, float]
    """The sum of the operators' `s_op_us`, by both weights."""
    ways: ParallelismPlans
    """Numbers of instances by three methods."""
    apply: AdvisedOption
    """What acts on the engine."""
    thesis: tuple[ThesisOperator, ...] = ()
    """The application's rows in Bordin 2017."""


class OperatorProfile(ProfileFigures, ProfileRequest):
    """A complete operator profile. In the file the request comes first: pydantic takes the fields of the last base
    first.
    """

    settings: dict[str, str] = Field(default_factory=dict)
    """Settings of the engine in force."""
    memory: MemoryDistribution | None
    """Memory while operators are timed; null if none was timed."""
    notes: tuple[str, ...] = ()
    """What a reader must know."""
    applied: AppliedAdvice | None = None
    """The trial of `--apply`; null without it, or if nothing acts."""
    methods: dict[str, str]
    """How figures were made, in words."""
