"""The result of one run."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import BeforeValidator, Field, model_validator

from streamgauge.core.engine_reports import Delivery
from streamgauge.core.former_names import with_present_names
from streamgauge.core.plugin_options import TUNED
from streamgauge.results.codes import SCHEMA_VERSION, ResultPart, WarningCode, version_field
from streamgauge.results.latency import Latencies
from streamgauge.results.search import SearchResult
from streamgauge.results.verdict import Verdict


class Rates(ResultPart):
    """Events per second over the measured span, all streams together."""

    offered_per_s: float
    """Events that were available in their planned second, or within 100 ms after it."""
    achieved_per_s: float
    """Events of batches that the SUT's sink committed."""
    ingested_per_s: float
    """Events delivered to the SUT for the first time."""
    ingested_std_per_s: float | None = None
    """Standard deviation of the events ingested in whole seconds; null below two."""
    planned_per_s: float
    """Events of the plan."""
    maximum_per_s: float | None = None
    """Maximum throughput: `achieved_per_s` of a trial that went on under overload (`--no-early-stop`). It is not
    sustained. Null in other trials."""
    generator_ceiling_per_s: float | None = None
    """What the generators can make here, measured before the run without transport; null if not measured."""
    shares: dict[str, float] = Field(default_factory=dict)
    """Each stream's part of the rate."""


class Backlog(ResultPart):
    """Events due and not yet delivered."""

    max: int
    """Most events that were due and not delivered."""
    end: int
    """The same at the span's end."""
    slope_per_s: float
    """Its growth in the span, events per second."""
    max_s: float
    """The most event time that waited, in seconds."""


class LagFigures(ResultPart):
    """Events due and not yet committed."""

    begin: float
    """At the begin of the measured span."""
    end: float
    """At its end."""
    max: float
    """The most at any whole second of it."""


class PartitionLag(LagFigures):
    """The lag of one partition of a stream."""

    stream: str
    """Its stream."""
    partition: int
    """Its number, from 0."""


class Lag(ResultPart):
    """Consumer lag at whole seconds of the measured span: the sum and the mean over all partitions, and each one's."""

    sum: LagFigures
    """The sum over all partitions of all streams."""
    mean: LagFigures
    """The mean over them."""
    partitions: tuple[PartitionLag, ...]
    """The lag of each partition, stream by stream."""


class DelayPercentiles(ResultPart):
    """A delay of the driver over the measured span, in microseconds."""

    p50: float
    """Median."""
    p99: float
    """99th percentile."""
    max: float
    """Maximum."""


class DriverResult(ResultPart):
    """The driver's own figures."""

    slip_us: DelayPercentiles
    """Schedule delay: from an event's planned time until all generators had offered it."""
    append_latency_us: DelayPercentiles | None = None
    """From an event's planned time until the broker had appended it, of 100 events of each partition. Null without a
    broker, or if records have their planned time."""
    events_planned: int
    """Events of the whole trial in the plan."""
    events_offered: int
    """Events of the whole trial that were made available."""
    events_handed_out: int
    """Deliveries: each event counts once."""
    events_reread: int
    """Redeliveries: events that the same reader requested again."""
    events_shared: int = 0
    """Events that another part of the job read too: work that the SUT does twice."""
    events_committed: int
    """Events of committed batches."""
    cpu_percent: float | None = None
    """All driver processes, without a broker, over the measured span; 100 is one core. Null if not measured."""
    memory_bytes_max: int | None = None
    """Resident memory of all driver processes together, at most in the trial; null if not measured."""
    recorder_stood_still_us: int = 0
    """How long the recorder did not run at all, beyond 100 ms each time. Results that arrived meanwhile have late
    timestamps."""
    read_skew_us_max: int = 0
    """How far apart in event time a stream's partitions were read, at most; 0 with a common frontier."""
    hand_out_share: float = 0.0
    """Share of the measured span in which a generator was delivering events."""
    receive_share: float = 0.0
    """The same share for the recorder's work on arrived results."""
    disk_share: float = 0.0
    """The same share for the recorder's writing to its disk."""


class MalformedRecords(ResultPart):
    """Malformed records of a stream in warm-up and span."""

    rule: str
    """An expression that is true of malformed records."""
    malformed: int
    """Records of warm-up and span for which it is true."""
    records: int
    """All records of warm-up and span."""


FAULTS = ("missing", "extra", "duplicate", "wrong", "late")
"""The kinds of faults that a verification counts, each a field of `Verification`."""


class Verification(ResultPart):
    """The comparison of every result with the reference. Counts are rows."""

    judged: bool
    """Whether results could be compared."""
    independent: bool
    """Whether the reference is another statement of the semantics."""
    reference: str
    """What the reference was."""
    expected: int = 0
    """Rows of warm-up and span that must be there."""
    matched: int = 0
    """Those that are there and equal."""
    missing: int = 0
    """Expected rows that did not come."""
    extra: int = 0
    """Rows that were not expected."""
    duplicate: int = 0
    """Rows that came more than once."""
    wrong: int = 0
    """Rows with a wrong value."""
    wrong_columns: dict[str, int] = Field(default_factory=dict)
    """Wrong rows by column."""
    late: int = 0
    """Rows that came after the deadline."""
    not_judged: int = 0
    """Earlier updates of a key whose values cannot be checked. They do not count as faults."""
    late_rows: int | None = None
    """Input rows that the engine dropped as late, by its own count; null if it does not report them."""
    uncommitted: int = 0
    """Rows of attempts that the sink did not commit."""
    seconds: float = 0.0
    """How long the comparison took."""
    sentence: str = ""
    """The counts in words."""
    examples: tuple[dict[str, Any], ...] = ()
    """Some of the faulty rows."""
    malformed: dict[str, MalformedRecords] = Field(default_factory=dict)
    """By stream: how many input records are malformed, if the workload has a rule."""
    delivery: Delivery | None = None
    """The delivery guarantee of a program, or of an engine if weaker than exactly once; else null."""
    allowed: dict[str, int] = Field(default_factory=dict)
    """By kind (`missing`, `duplicate`): rows that the guarantee allows. They do not count as faults."""

    @property
    def right(self) -> bool:
        """Whether the results were judged and have no faults."""
        return self.judged and not self.fault_count

    @property
    def faults(self) -> dict[str, int]:
        """The number of faults of each kind, without those that the promised delivery guarantee allows."""
        return {kind: getattr(self, kind) - self.allowed.get(kind, 0) for kind in FAULTS}

    @property
    def fault_count(self) -> int:
        return sum(self.faults.values())


FITTED = " is fitted to "
"""Stands in a note between a stream and its sample."""
FITS_SHOWN = 20


def shown_notes(notes: Sequence[str]) -> list[str]:
    """Notes for people: those on the first columns of samples, and all others."""
    fits = [note for note in notes if FITTED in note]
    if len(fits) <= FITS_SHOWN:
        return list(notes)
    more = f"{len(fits) - FITS_SHOWN} more columns of samples are fitted: notes in result.json"
    return [*fits[:FITS_SHOWN], more, *(note for note in notes if FITTED not in note)]


class SinkResult(ResultPart):
    """Results of one sink."""

    name: str
    """The sink's name."""
    rows: int
    """Rows committed in the whole trial, warm-up and tail included."""
    rows_per_s: float | None = None
    """Rows committed per second of the span; null without a span."""
    latency: Latencies
    """Its latencies."""
    query: str = ""
    """The engine's query that served it; sinks of one query share batches and reads."""
    kind: str = ""
    """What its results are: `row`, `window` (when it closes), `update` (each value so far), `join`; empty if results
    were not verified."""
    verification: Verification | None = None
    """What the comparison found there; null if results were not verified."""


class ProcessUse(ResultPart):
    """Resources of one process over the measured span."""

    name: str
    """Which process."""
    role: Literal["sut", "driver", "broker", "sut_part"]
    """`driver`, `broker` (the one that streamgauge started) or `sut`, the sum of the SUT's processes. For each kind of
    SUT process a row `sut_part` follows: leave these out of sums."""
    cpu_percent_mean: float
    """Mean over the measured span; 100 is one core."""
    cpu_percent_max: float
    """Maximum over the measured span; 100 is one core."""
    memory_bytes_max: int
    """Resident memory."""


class Operator(ResultPart):
    """One named operator of the flow, as the SUT reports it. The driver counts what enters and leaves the flow.

    Figures come from the batches that read events of the measured span. Operators between sources and sinks are null
    unless the engine counts rows (Spark with `--option probes=on`).
    """

    name: str
    """The operator's name in the flow."""
    batches: int | None = None
    """Batches that read events of the measured span; null if unknown."""
    batches_unknown: int | None = None
    """Batches without a count of rows."""
    rows_in: int | None = None
    """Rows that it read in these batches; null if not counted."""
    rows_out: int | None = None
    """Rows that it gave in these batches; null if not counted."""
    selectivity: float | None = None
    """Rows out divided by rows in, over batches with both; null if one is not counted."""
    throughput_per_s: float | None = None
    """Rows in per second (of a source: rows out); null if not counted."""
    throughput_per_s_p5: float | None = None
    """5th percentile of the same over seconds; null below 20 seconds."""
    lost: int | None = None
    """Rows lost between driver and source, or between sink and driver; null if only one side counts."""

    @model_validator(mode="before")
    @classmethod
    def _without_unfilled(cls, values: Any) -> Any:
        """Drops three fields of older results that were never filled."""
        unfilled = ("tuple_bytes", "time_per_tuple_us_p99", "advised_instances")
        if not isinstance(values, dict):
            return values
        return {name: value for name, value in values.items() if name not in unfilled or value is not None}


class Phase(ResultPart):
    """A phase of the run in planned time."""

    name: str
    """`warm-up`, `measured`, `tail` or `drain`."""
    start_us: int
    """Its start, microseconds since the epoch."""
    end_us: int
    """Its end, microseconds since the epoch."""


class RatePiece(ResultPart):
    """A linear piece of the rate, until the next piece."""

    start_s: float
    """Seconds after the input's start at which the piece begins."""
    rate_per_s: float
    """The rate there, events per second."""
    slope_per_s2: float = 0.0
    """Its change per second."""


class Input(ResultPart):
    """The offered input. With the experiment, `generate --of` generates the same events again.

    An extended run has more than its `duration`, and one that ended early has less.
    """

    start_us: int
    """First event time, microseconds since the epoch, extensions included."""
    end_us: int
    """End of the event times, microseconds since the epoch."""
    generators: int
    """Generator processes. Each writes partitions of its own."""
    partitions: int | None = None
    """Partitions of each stream."""
    keyed: bool = False
    """Whether the keys of messages decided their partitions."""
    profile: tuple[RatePiece, ...]
    """The rate over time, in linear pieces."""


class DataColumn(ResultPart):
    """A column of a user's file."""

    name: str
    """The column's name in the file."""
    unreadable: int
    """Rows whose value does not fit the column's type: null in the stream."""
    empty: int
    """Rows without a value: null in the stream."""
    numbered: int | None = None
    """How many different text keys were replaced by numbers; null if keys were kept."""


class ReplayedData(ResultPart):
    """A user's file that replaces a stream's generated rows."""

    stream: str
    """The stream whose generated rows were replaced."""
    file: str
    """The file."""
    sha256: str
    """The file's SHA-256."""
    rows: int
    """Rows of the file."""
    left_out: int
    """Lines that are not rows."""
    left_out_no_utf8: int = 0
    """How many of these are not UTF-8."""
    rounds: float
    """How often the rows were repeated: events offered divided by rows."""
    time: str | None = None
    """The column that continues from round to round; null if no column does."""
    columns: tuple[DataColumn, ...]
    """The columns that the workload reads."""


class Caution(NamedTuple):
    """A warning: its code and its sentence."""

    code: WarningCode | None
    sentence: str


class Result(ResultPart):
    """The result of a run."""

    schema_version: int = version_field(SCHEMA_VERSION)
    """Version of this layout."""
    run_id: str
    """The folder's name, for a trial with the study's name before it."""
    start_time: str
    """When the plan's first event was due, UTC; `generate --start` takes it."""
    workload: str
    """What was measured."""
    question: str = ""
    """The built-in workload that a program answers; empty if it is the workload."""
    engine: str
    """The engine under test."""
    quick: bool = False
    """Whether it is a trial of `experiment --quick`."""
    isolation: str
    """How driver and SUT share the cores: `shared` or `pinned`."""
    tuning: str = TUNED
    """The tuning profile."""
    experiment: Annotated[dict[str, Any], BeforeValidator(with_present_names)]
    """The whole experiment, defaults included."""
    environment: dict[str, Any] = Field(default_factory=dict)
    """Processor, memory, system, versions, number of generators, chunk length, and processors of both sides
    (`driver_cpus`, `sut_cpus`, `shared_cpus`)."""
    settings: dict[str, str] = Field(default_factory=dict)
    """Settings of the engine and the transport in force."""
    changed_settings: tuple[str, ...] = ()
    """Names of the engine's `settings` that differ from its defaults."""
    verdict: Verdict
    """Whether the rate was sustained, and why."""
    rate: Rates | None = None
    """Rates of the measured span; null if the run ended before its verdict."""
    latency: Latencies = Latencies()
    """Latencies of the results; with several sinks, of the slowest."""
    sinks: tuple[SinkResult, ...] = ()
    """Results of each sink."""
    backlog: Backlog | None = None
    """Events that waited; null if the run ended before its verdict."""
    lag: Lag | None = None
    """Consumer lag; null if the run ended before its verdict."""
    driver: DriverResult | None = None
    """The driver's own figures; null if the run ended before its verdict."""
    verification: Verification | None = None
    """The comparison with the reference, the sum of all sinks; null if the run ended before it."""
    search: SearchResult | None = None
    """The search behind the result; null for a single trial."""
    operators: tuple[Operator, ...] = ()
    """Figures of each operator; empty with `--option probes=off`."""
    processes: tuple[ProcessUse, ...] = ()
    """What each process used."""
    others_cpu_percent: float | None = None
    """CPU of all other processes over the measured span, steal included; 100 is one core. Null if not measured."""
    loopback_bytes_per_s: float | None = None
    """Mean traffic over the loopback; null if not measured."""
    scheduling_delay_us_max: int | None = None
    """Longest time that a batch of the measured span waited after it was due; null if the engine reports none."""
    reference_work_us: float | None = None
    """CPU time of a fixed piece of work, once a second, median over the span: the machine's own speed. Null if not
    measured."""
    phases: tuple[Phase, ...] = ()
    """Warm-up, measured, tail, drain; of a run that ended early, as far as events were offered."""
    input: Input | None = None
    """What was offered; null if the run ended before its verdict."""
    data: tuple[ReplayedData, ...] = ()
    """What could be read of each file of your own data; empty if all rows were generated."""
    job_files: dict[str, str] = Field(default_factory=dict)
    """The SHA-256 of a user job's file and of each sample, by name; empty for a workload."""
    warnings: tuple[str, ...] = ()
    """What a reader of the figures must also know."""
    warning_codes: tuple[WarningCode | None, ...] = ()
    """The code of each warning, in the same order."""
    notes: tuple[str, ...] = ()
    """What was assumed, fitted to a sample or not compared of a user job, and `data` in words."""
    folder: str = ""
    """Where the run folder was written."""

    def warned(self, *cautions: Caution) -> Self:
        """The result with more warnings, without duplicates."""
        present = zip_longest(self.warning_codes, self.warnings)
        merged = dict.fromkeys((*(Caution(*each) for each in present), *cautions))
        return self.model_copy(update={
            "warnings": tuple(one.sentence for one in merged), "warning_codes": tuple(one.code for one in merged),
        })  # fmt: skip

    def warning(self, code: WarningCode) -> str:
        """The sentence of the first warning with that code, or ""."""
        return next((text for one, text in zip(self.warning_codes, self.warnings, strict=False) if one == code), "")

    @property
    def slowest_sink(self) -> str:
        """The sink behind `latency` if there are several, else ""."""
        several = self.sinks if len(self.sinks) > 1 else ()
        return next((sink.name for sink in several if sink.latency == self.latency), "")
