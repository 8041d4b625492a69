"""The result of one run."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from streamgauge.results.base import SCHEMA_VERSION, Answer
from streamgauge.results.causes import WarningCode
from streamgauge.results.latency import Latencies
from streamgauge.results.search import SearchResult
from streamgauge.results.verdict import Verdict


class Rates(Answer):
    """Events per second over the measured span, all streams together; `shares` gives each stream's part."""

    offered_per_s: float
    achieved_per_s: float
    ingested_per_s: float
    planned_per_s: float
    generator_ceiling_per_s: float | None = None
    shares: dict[str, float] = Field(default_factory=dict)


class Backlog(Answer):
    """Events due and not yet handed out."""

    max: int
    end: int
    slope_per_s: float
    max_s: float


class Slip(Answer):
    """Time between an event's planned time and its becoming available to the SUT, chunking included."""

    p50: float
    p99: float
    max: float


class DriverResult(Answer):
    """What the driver did. Handed out counts each event once; `events_reread` were asked for again by the same reader,
    `events_shared` were read by another query, or at another place of one: work that the SUT does twice.

    `hand_out_share`, `receive_share`, `disk_share`: of the measured span, in which at least one generator was handing
    out events, in which the recorder worked on results that had come, and in which it wrote them to its disk: 0 to 1.
    Of a trial that ended before its span they are of what there was before it.
    `append_latency_us`: from an event's planned time until the broker had it, of some events of each partition, to a
    millisecond; None where there is no broker. `read_skew_us_max`: how far behind an event that was read the first of
    its stream was that was not, after a batch of the span, at most.
    """

    slip_us: Slip
    append_latency_us: Slip | None = None
    events_planned: int
    events_offered: int
    events_handed_out: int
    events_reread: int
    events_shared: int = 0
    events_committed: int
    cpu_percent: float | None = None
    memory_bytes_max: int | None = None
    recorder_stood_still_us: int = 0
    read_skew_us_max: int = 0
    hand_out_share: float = 0.0
    receive_share: float = 0.0
    disk_share: float = 0.0


class MalformedRecords(Answer):
    """How many records of a stream `rule` says are malformed, of those of warm-up and span. It is an expression over
    the stream's fields; what it is true of is kept out of the answer.
    """

    rule: str
    malformed: int
    records: int


class Verification(Answer):
    """The comparison of every answer with the reference [method 9]. Counts are rows.

    `malformed`: by stream, of those whose workload states a rule; of the input, so that a sink alone has none.
    """

    judged: bool
    independent: bool
    reference: str
    expected: int = 0
    matched: int = 0
    missing: int = 0
    extra: int = 0
    duplicate: int = 0
    wrong: int = 0
    late: int = 0
    uncommitted: int = 0
    seconds: float = 0.0
    sentence: str = ""
    examples: tuple[dict[str, Any], ...] = ()
    malformed: dict[str, MalformedRecords] = Field(default_factory=dict)

    @property
    def right(self) -> bool:
        """Everything judged, and nothing missing, extra, duplicate, wrong or wrongly late."""
        return self.judged and not (self.missing or self.extra or self.duplicate or self.wrong or self.late)


class SinkResult(Answer):
    """What arrived at one sink: how much, how late, whether it was right; `query` is the engine's that served it.

    `kind`: what results are, and so what their latency is of: `row`, `window` (when it closes), `update` (each value so
    far) or `join`; empty where results were not verified.
    """

    name: str
    rows: int
    latency: Latencies
    query: str = ""
    kind: str = ""
    verification: Verification | None = None


class ProcessUse(Answer):
    """What one process used over the measured span.

    The SUT's are one row together, of role `sut`; its rows of role `sut_part` are in that one, and in no sum again.
    """

    name: str
    role: Literal["sut", "driver", "sut_part"]
    cpu_percent_mean: float
    cpu_percent_max: float
    memory_bytes_max: int


class Operator(Answer):
    """One named operator of the flow, as the SUT reports it; what enters and leaves the flow is the driver's count.

    `batches` read events of the measured span; of `batches_unknown` of them rows in or rows out are not known, and each
    figure is of those of which its own are: `selectivity`, rows out by rows in, of those of which both are.
    `throughput_per_s`: rows that the operator took in (a source: gave) a second, and `throughput_per_s_p5` the 5th
    percentile of it over seconds. `lost`: rows that the driver's count has and the engine's has not, at a source or
    before a sink; null where only one of them counts, or did not count every batch,
    so always between two operators: what one takes in is what the one before gave.
    """

    name: str
    batches: int | None = None
    batches_unknown: int | None = None
    rows_in: int | None = None
    rows_out: int | None = None
    selectivity: float | None = None
    throughput_per_s: float | None = None
    throughput_per_s_p5: float | None = None
    lost: int | None = None

    @model_validator(mode="before")
    @classmethod
    def _without_unfilled(cls, values: Any) -> Any:
        """Results of before had three fields that no trial ever filled."""
        unfilled = ("tuple_bytes", "time_per_tuple_us_p99", "advised_instances")
        if not isinstance(values, dict):
            return values
        return {name: value for name, value in values.items() if name not in unfilled or value is not None}


class Phase(Answer):
    """A span of the run by planned time, microseconds since the epoch."""

    name: str
    start_us: int
    end_us: int


class RatePiece(Answer):
    """From `start_s` after the input's start on, until the next piece: a rate that changes evenly."""

    start_s: float
    rate_per_s: float
    slope_per_s2: float = 0.0


class Input(Answer):
    """What was offered, as far as it is not in the experiment: with both, `generate --of` makes the same events again.

    All events with start <= event time < end, microseconds since the epoch: of a run that was extended, more than its
    `duration` says; of one that ended early, less.
    """

    start_us: int
    end_us: int
    generators: int
    profile: tuple[RatePiece, ...]


class DataColumn(Answer):
    """A column of a user's own file: `unreadable` values are none of its type, `empty` ones are not there; both are
    null in the stream. `numbered`: how many different keys were numbered, where they are no numbers of its type."""

    name: str
    unreadable: int
    empty: int
    numbered: int | None = None


class ReplayedData(Answer):
    """A user's own file in the place of a stream's made rows, of which `columns` are what the workload reads.

    `left_out` lines are no rows, `left_out_no_utf8` of them since they are no UTF-8. The run goes through its `rows`
    `rounds` times; `time` is the column that goes on.
    """

    stream: str
    file: str
    sha256: str
    rows: int
    left_out: int
    left_out_no_utf8: int = 0
    rounds: float
    time: str | None = None
    columns: tuple[DataColumn, ...]


class Caution(NamedTuple):
    """A warning, as a code and in words."""

    code: WarningCode | None
    sentence: str


class Result(Answer):
    """All that one run folder answers. Of several sinks, `latency` is the slowest one's, and `verification` the sum.

    `others_cpu_percent`: what neither driver nor SUT used of the machine in the measured span; 100 is one core.
    `reference_work_us`: CPU time of the same small piece of work, its median over that span: the machine's own speed.
    `job_files`: of an own job, the SHA-256 of its file and of each sample, by the name it goes by in the job.
    `warning_codes`: one for each of `warnings`; none in results of before there were codes.
    `tuning`: the tuning profile. `changed_settings`: those of `settings` that are not what the engine does by itself,
    whether the profile, an option or the measurement set them; settings of the transport are not among them.
    """

    schema_version: int = SCHEMA_VERSION
    run_id: str
    start_time: str
    workload: str
    engine: str
    isolation: str
    tuning: str = "tuned"
    experiment: dict[str, Any]
    environment: dict[str, Any] = Field(default_factory=dict)
    settings: dict[str, str] = Field(default_factory=dict)
    changed_settings: tuple[str, ...] = ()
    verdict: Verdict
    rate: Rates | None = None
    latency: Latencies = Latencies()
    sinks: tuple[SinkResult, ...] = ()
    backlog: Backlog | None = None
    driver: DriverResult | None = None
    verification: Verification | None = None
    search: SearchResult | None = None
    operators: tuple[Operator, ...] = ()
    processes: tuple[ProcessUse, ...] = ()
    others_cpu_percent: float | None = None
    reference_work_us: float | None = None
    phases: tuple[Phase, ...] = ()
    input: Input | None = None
    data: tuple[ReplayedData, ...] = ()
    job_files: dict[str, str] = Field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    warning_codes: tuple[WarningCode | None, ...] = ()
    notes: tuple[str, ...] = ()
    folder: str = ""

    def warned(self, *cautions: Caution) -> Self:
        """The same with more warnings; one that is there already is not repeated."""
        there = zip_longest(self.warning_codes, self.warnings)
        found = dict.fromkeys((*(Caution(*each) for each in there), *cautions))
        return self.model_copy(update={
            "warnings": tuple(one.sentence for one in found), "warning_codes": tuple(one.code for one in found),
        })  # fmt: skip

    def warning(self, code: WarningCode) -> str:
        """The sentence of the first warning with that code; empty where there is none."""
        found = (text for one, text in zip(self.warning_codes, self.warnings, strict=False) if one == code)
        return next(found, "")

    @property
    def slowest_sink(self) -> str:
        """The sink that `latency` is that of, where there are several; else the empty text."""
        found = [sink.name for sink in self.sinks if sink.latency == self.latency]
        return found[0] if len(self.sinks) > 1 and found else ""

    def to_json(self) -> str:
        return self.model_dump_json(indent=2)
