"""What is answered: the objects that `result.json` is made of, frozen, and the rules by which they combine.

History of `schema_version`:
    1   first
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Any, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from streamgauge.causes import Cause, WarningCode

SCHEMA_VERSION = 1

VerdictValue = Literal["sustained", "not_sustained", "undecided", "invalid", "interrupted"]
CheckState = Literal["ok", "failed", "undecided", "invalid", "not_judged"]


class Answer(BaseModel):
    """Base of everything in a result: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Check(Answer):
    """One named reason for a verdict: its number, its limit, and whether it holds (`ok` is null where undecided).

    `state` says what a check that is not ok means: `failed` speaks against the SUT, `invalid` against the driver,
    `undecided` that the evidence does not carry a decision, `not_judged` that nothing could be compared. `code` says
    why; null in results of before there were codes.
    """

    name: str
    code: Cause | None = None
    value: float | None
    limit: float | None
    unit: str
    ok: bool | None
    state: CheckState
    sentence: str
    low: float | None = None
    high: float | None = None


class Verdict(Answer):
    """What the checks say together; `decided_by` names the checks that decided it, `cause` is the first one's code, or
    the verdict's own. Null in results of before there were codes.
    """

    value: VerdictValue
    cause: Cause | None = None
    checks: tuple[Check, ...] = ()
    decided_by: tuple[str, ...] = ()
    sentence: str = ""
    advice: str = ""


PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99_9": 0.999}
"""Name to the share of the results that are at most that late; the only list of them."""
STATISTICS = ("min", "mean", *PERCENTILES, "max")


class Latency(Answer):
    """One latency over the measured span, microseconds. A percentile that `effective_count` cannot carry is null.

    `lower_bounds` counts expected results still missing at the deadline; they are in here as "at least this late", so
    wherever it is above 0 every figure is a lower bound itself.
    """

    min: float | None = None
    mean: float | None = None
    p50: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None
    p99_9: float | None = None
    max: float | None = None
    count: int = 0
    effective_count: int = 0
    lower_bounds: int = 0
    note: str = ""


class Latencies(Answer):
    """Every kind of latency of one sink; null where the kind does not apply (the reason is in `notes`).

    `uncorrected_us` counts from the real hand-over to the queue instead of the plan: what a tool that waits for the
    system under test would report. `match_time_us` is the row-wise maximum of a join's two events.
    `until_counted_us` is of updates alone, whose other latencies are of the newest event in each: from every event to
    the results of the batch that took it in. Where nobody knows that, its figures are null and its `note` says why.
    """

    event_time_us: Latency | None = None
    until_counted_us: Latency | None = None
    processing_time_us: Latency | None = None
    closing_delay_us: Latency | None = None
    match_time_us: Latency | None = None
    uncorrected_us: Latency | None = None
    notes: tuple[str, ...] = ()

    def of(self, kind: str) -> Latency | None:
        """One of `LATENCY_KINDS`."""
        found: Latency | None = getattr(self, f"{kind}_us")
        return found


LATENCY_KINDS = tuple(name.removesuffix("_us") for name in Latencies.model_fields if name.endswith("_us"))
"""`event_time` and the others, in the order in which they are shown."""


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


class TrialSummary(Answer):
    """One line of a search; `verdict` is null for an overload trial, which is not judged.

    `others_cpu_percent`, `reference_work_us`: as in the trial's own result; null where it has none.
    """

    number: int
    purpose: str
    offered_per_s: float | None
    verdict: VerdictValue | None
    event_time_p50_us: float | None = None
    event_time_p99_us: float | None = None
    until_counted_p50_us: float | None = None
    until_counted_p99_us: float | None = None
    backlog_slope_share: float | None = None
    why: str = ""
    seconds: float = 0.0
    folder: str = ""
    engine_start: int = 0
    others_cpu_percent: float | None = None
    reference_work_us: float | None = None


class SearchResult(Answer):
    """The highest sustained rate: `low` held, `high` did not (null where nothing was found).

    `high_verdict` is that of the trial that `high` rests on. Undecided is no proof that it fails: then the bracket is
    not tested at both ends, and has no `relative_width`. `refused_per_s` is the least rate above `low` that a trial has
    shown to fail: `high` itself, or one above it where `high` was undecided.
    """

    sustained_per_s: float | None
    low: float | None
    high: float | None
    high_verdict: VerdictValue | None = None
    refused_per_s: float | None = None
    relative_width: float | None
    confirmed: bool
    at_90_percent: TrialSummary | None = None
    trials: tuple[TrialSummary, ...] = ()
    seconds: float = 0.0
    sentence: str = ""
    limit: str = ""

    @model_validator(mode="before")
    @classmethod
    def _with_refused(cls, values: Any) -> Any:
        """Results of before this was kept: the upper end, where a trial has shown that it fails."""
        if not isinstance(values, dict) or "refused_per_s" in values or values.get("high_verdict") == "undecided":
            return values
        return {**values, "refused_per_s": values.get("high")}


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
    """

    schema_version: int = SCHEMA_VERSION
    run_id: str
    start_time: str
    workload: str
    engine: str
    isolation: str
    experiment: dict[str, Any]
    environment: dict[str, Any] = Field(default_factory=dict)
    settings: dict[str, str] = Field(default_factory=dict)
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


class ComparedRun(Answer):
    """One run, or one search, of a side; `failed`: why its figures are not those of a job that did its work."""

    run_id: str
    folder: str
    start_time: str
    verdict: VerdictValue
    failed: str = ""


class ComparedSide(Answer):
    """What stands on one side of a comparison; `given` as it was named."""

    given: str
    runs: tuple[ComparedRun, ...]


class NotTheSame(Answer):
    """A setting in which the sides, or the runs of one side, differ: its values there."""

    setting: str
    a: tuple[str, ...]
    b: tuple[str, ...]


class Difference(Answer):
    """One figure on both sides; over several runs, `a` and `b` are means of the runs' own figures.

    `difference`, `low` and `high` are shares, B / A - 1, or B - A where `share` is false. An end that is null has no
    known bound. `method`: where the interval comes from, `none` where there is none, for `reason`.
    """

    name: str
    label: str
    unit: str
    better: Literal["higher", "lower"]
    share: bool = True
    a: float | None
    b: float | None
    a_runs: tuple[float | None, ...] = ()
    b_runs: tuple[float | None, ...] = ()
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    method: Literal["runs", "seconds", "brackets", "counted", "none"] = "none"
    says: Literal["better", "worse", "no_difference", "unknown"] = "unknown"
    reason: str = ""


class Gate(Answer):
    """A rule that B must keep (`--fail-if`); `unknown` where the interval crosses the limit, or there is none.

    The rule `answers` comes with every other one where B's answers are not right: `failed`, or `unknown` if not judged.
    """

    rule: str
    figure: str
    limit: float
    state: Literal["passed", "failed", "unknown"]
    sentence: str


class Comparison(Answer):
    """Two sides compared: what `compare --json` prints.

    `asked_otherwise`: the settings by which the sides were not asked the same, by which no gate is decided but that on
    wrong answers; what answers (engine, options, versions) is none of them.
    """

    schema_version: int = SCHEMA_VERSION
    workload: str
    kind: Literal["run", "search"]
    confidence: float
    a: ComparedSide
    b: ComparedSide
    not_the_same: tuple[NotTheSame, ...] = ()
    asked_otherwise: tuple[str, ...] = ()
    figures: tuple[Difference, ...] = ()
    gates: tuple[Gate, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether no gate failed and none is unknown."""
        return all(gate.state == "passed" for gate in self.gates)

    def to_json(self) -> str:
        return self.model_dump_json(indent=2)
