"""The result of one run."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from streamgauge.core.plugin_options import TUNED
from streamgauge.results.causes import WarningCode
from streamgauge.results.latency import Latencies
from streamgauge.results.result_part import SCHEMA_VERSION, ResultPart
from streamgauge.results.search import SearchResult
from streamgauge.results.verdict import Verdict


class Rates(ResultPart):
    """Events per second over the measured span, all streams together; `shares` gives each stream's part."""

    offered_per_s: float
    achieved_per_s: float
    ingested_per_s: float
    planned_per_s: float
    generator_ceiling_per_s: float | None = None
    shares: dict[str, float] = Field(default_factory=dict)


class Backlog(ResultPart):
    """Events due and not yet delivered."""

    max: int
    end: int
    slope_per_s: float
    max_s: float


class DelayPercentiles(ResultPart):
    """Schedule delay: from an event's planned time until it is available to the SUT, chunking included."""

    p50: float
    p99: float
    max: float


class DriverResult(ResultPart):
    """The driver's own figures.

    Attributes:
        append_latency_us: from an event's planned time until the broker had it, for a sample of each partition, at a
            resolution of a millisecond; None without a broker.
        events_handed_out: delivered events, each counted once.
        events_reread: events that the same reader requested again (redelivery).
        events_shared: events also read by another query, or elsewhere in the same query: the SUT reads them twice.
        read_skew_us_max: largest event-time distance, after a batch of the span, between an event that was read and
            the first event of its stream that was not.
        hand_out_share, receive_share, disk_share: share (0 to 1) of the measured span in which a generator delivered
            events, the recorder processed results, and it wrote them to its disk. For a trial that ended before its
            span, the share of the time before it.
    """

    slip_us: DelayPercentiles
    append_latency_us: DelayPercentiles | None = None
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


class MalformedRecords(ResultPart):
    """Malformed records of a stream in warm-up and span. `rule` is an expression over the stream's fields; verification
    excludes the records for which it is true.
    """

    rule: str
    malformed: int
    records: int


FAULTS = ("missing", "extra", "duplicate", "wrong", "late")
"""The kinds of faults that a verification counts, each a field of `Verification`."""


class Verification(ResultPart):
    """The comparison of every result with the reference. Counts are rows.

    `malformed`: by stream, if the workload has a rule; it concerns the input, so a single sink has none.
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
        """Whether the results were judged and none is missing, extra, duplicate, wrong or wrongly late."""
        return self.judged and not self.fault_count

    @property
    def faults(self) -> dict[str, int]:
        """The number of faults of each kind."""
        return {kind: getattr(self, kind) for kind in FAULTS}

    @property
    def fault_count(self) -> int:
        return sum(self.faults.values())


class SinkResult(ResultPart):
    """Results of one sink: count, latency, verification; `query` is the engine's query that served it.

    `kind`: `row`, `window` (at its close), `update` (each value so far) or `join`; empty without verification.
    """

    name: str
    rows: int
    latency: Latencies
    query: str = ""
    kind: str = ""
    verification: Verification | None = None


class ProcessUse(ResultPart):
    """Resources of one process over the measured span.

    The row of role `sut` is the sum of the SUT's processes; its rows of role `sut_part` are parts of that sum.
    """

    name: str
    role: Literal["sut", "driver", "sut_part"]
    cpu_percent_mean: float
    cpu_percent_max: float
    memory_bytes_max: int


class Operator(ResultPart):
    """One named operator of the flow, as reported by the SUT. The driver counts what enters and leaves the flow.

    Attributes:
        batches: batches that read events of the measured span.
        batches_unknown: batches without a count of rows in or rows out; each figure uses the batches that have it.
        selectivity: rows out divided by rows in, over batches with both.
        throughput_per_s: rows in per second (of a source: rows out); `throughput_per_s_p5` is the 5th percentile over
            seconds.
        lost: rows in the driver's count that the engine's lacks, at a source or before a sink; null if only one side
            counts, or not in every batch. Always null between two operators.
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
        """Drops three fields of older results that were never filled."""
        unfilled = ("tuple_bytes", "time_per_tuple_us_p99", "advised_instances")
        if not isinstance(values, dict):
            return values
        return {name: value for name, value in values.items() if name not in unfilled or value is not None}


class Phase(ResultPart):
    """A phase of the run in planned time, microseconds since the epoch."""

    name: str
    start_us: int
    end_us: int


class RatePiece(ResultPart):
    """A linear piece of the rate, from `start_s` seconds after the input's start to the next piece."""

    start_s: float
    rate_per_s: float
    slope_per_s2: float = 0.0


class Input(ResultPart):
    """The offered input. With the experiment, `generate --of` generates the same events again.

    All events with start <= event time < end, in microseconds since the epoch. An extended run has more than its
    `duration`, and one that ended early has less.
    """

    start_us: int
    end_us: int
    generators: int
    profile: tuple[RatePiece, ...]


class DataColumn(ResultPart):
    """A column of a user's file. `unreadable` values do not have its type, `empty` ones are missing; both become null.
    `numbered`: number of distinct keys that were numbered because they are not numbers of its type.
    """

    name: str
    unreadable: int
    empty: int
    numbered: int | None = None


class ReplayedData(ResultPart):
    """A user's file that replaces a stream's generated rows; `columns` are those that the workload reads.

    `left_out`: lines that are not rows, `left_out_no_utf8` of them because they are not UTF-8. The run repeats the
    `rows` `rounds` times; the column `time` continues from round to round.
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
    """A warning: its code and its sentence."""

    code: WarningCode | None
    sentence: str


class Result(ResultPart):
    """The result of a run. For several sinks, `latency` is that of the slowest and `verification` the sum.

    Attributes:
        others_cpu_percent: mean CPU used by neither driver nor SUT in the measured span; 100 is one core.
        reference_work_us: median CPU time of a fixed piece of work over the span: the machine's speed.
        job_files: SHA-256 of a user job's file and of each sample, by the name that the job uses.
        warning_codes: one for each of `warnings`; empty in results older than the codes.
        tuning: the tuning profile.
        changed_settings: those of `settings` that differ from the engine's defaults, whether the profile, an option or
            the measurement set them. Settings of the transport are not among them.
    """

    schema_version: int = SCHEMA_VERSION
    run_id: str
    start_time: str
    workload: str
    engine: str
    isolation: str
    tuning: str = TUNED
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
        """The result with more warnings, without duplicates."""
        present = zip_longest(self.warning_codes, self.warnings)
        merged = dict.fromkeys((*(Caution(*each) for each in present), *cautions))
        return self.model_copy(update={
            "warnings": tuple(one.sentence for one in merged), "warning_codes": tuple(one.code for one in merged),
        })  # fmt: skip

    def warning(self, code: WarningCode) -> str:
        """The sentence of the first warning with that code, or ""."""
        sentences = (text for one, text in zip(self.warning_codes, self.warnings, strict=False) if one == code)
        return next(sentences, "")

    @property
    def slowest_sink(self) -> str:
        """The sink behind `latency` if there are several, else ""."""
        slowest = [sink.name for sink in self.sinks if sink.latency == self.latency]
        return slowest[0] if len(self.sinks) > 1 and slowest else ""

    def to_json(self) -> str:
        return self.model_dump_json(indent=2)
