"""The plan of a run, of a search or of a scalability study, which `--dry-run` prints."""

from streamgauge.results.codes import ResultPart
from streamgauge.results.scalability import ScalePlan


class PlannedProcesses(ResultPart):
    """What would be started."""

    role: str
    """Role: `generator`, `recorder`, `broker` or `sut`."""
    count: int
    """How many there are; for `sut` the engine counts as one, whatever processes it starts."""
    detail: str
    """What they are."""


class PlannedData(ResultPart):
    """A file whose rows would replace a stream's generated ones."""

    stream: str
    """The stream."""
    file: str
    """The file."""
    rows: int
    """Its rows that can be read."""


class Unavailable(ResultPart):
    """A check or a figure that this run cannot have."""

    name: str
    """The check, the latency or the percentile."""
    reason: str
    """Why not."""
    way_out: str
    """What to type to have it."""


class TrialPlan(ResultPart):
    """What a run or a search would do. Nothing of it was started."""

    command: str
    """`run` or `sustain`."""
    workload: str
    """What would be measured."""
    engine: str
    """The engine under test."""
    tuning: str
    """The tuning profile."""
    transport: str
    """How events would travel."""
    rate_per_s: float | None
    """Requested rate; null where a search finds its first one."""
    generator_ceiling_per_s: float
    """How many events the generators can make here, without transport and SUT."""
    starts: tuple[PlannedProcesses, ...]
    """The processes of a trial."""
    data: tuple[PlannedData, ...] = ()
    """The files of data that would be replayed."""
    warmup_s: float
    """Warm-up of a trial on a fresh engine."""
    duration_s: float
    """Measured span of a trial."""
    events: int | None = None
    """Events of the measured span, if they determine its length; else null."""
    tail_s: float
    """Tail of a trial."""
    trials: int
    """Usual number of trials."""
    trials_max: int
    """Greatest number of trials."""
    seconds: float
    """Estimated time, starts and verification included."""
    seconds_max: float
    """Estimated time if there are as many trials as there may be, each extended as far as it may be."""
    unavailable: tuple[Unavailable, ...]
    """What cannot be had."""
    fetches: tuple[str, ...]
    """What a first run fetches and keeps."""
    missing: tuple[str, ...]
    """What this machine lacks; the run would be refused."""
    not_checked: tuple[str, ...]
    """What only the run finds out."""


class ScaleTrialPlan(ScalePlan, TrialPlan):
    """What a scalability study would do. What a trial starts is that of the most resources."""
