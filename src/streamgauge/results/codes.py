"""The base of all result models, and the codes of verdicts, checks and warnings.

Sentences are for people and may change; programs use the code. `docs/reference/result-files.md` lists all codes.
"""

from enum import StrEnum, unique
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field

SCHEMA_VERSION = 1


def version_field(newest: int) -> Any:
    """The version of a layout. Newer ones are refused."""
    return Field(default=newest, ge=1, le=newest)


class ResultPart(BaseModel):
    """Base of every part of a result: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def to_json(self) -> str:
        """The part as it is written to a file."""
        return self.model_dump_json(indent=2)


class StudyHead(ResultPart):
    """What the file of every study begins with."""

    schema_version: int
    """Version of this layout."""
    workload: str
    """What was measured."""
    engine: str
    """The engine under test."""
    environment: dict[str, Any]
    """As in result.json."""
    start_time: str
    """When it began, UTC."""
    folder: str
    """Where it was written."""
    finished: bool = False
    """False until it came to its end."""


class _Code(StrEnum):
    """A code with its meaning."""

    meaning: str

    def __new__(cls, value: str, meaning: str) -> Self:
        code = str.__new__(cls, value)
        code._value_, code.meaning = value, meaning
        return code


class Cause(_Code):
    """The cause of a check or a verdict. A verdict has the cause of its first deciding check, or its own."""

    ALL_CHECKS_HOLD = "all_checks_hold", "every check holds"
    BACKGROUND_LOAD = (
        "background_load",
        "background processes used the CPU, so a slow or undecided trial says nothing about the system",
    )
    DRIVER_SLOWED_BY_BACKGROUND_LOAD = (
        "driver_slowed_by_background_load",
        "background processes used the CPU, and the driver was late",
    )
    INTERRUPTED = "interrupted", "a person or the operating system stopped the run"
    STOPPED_AT_START = "stopped_at_start", "the run was stopped before the measurement"
    UNFINISHED = "unfinished", "the run still goes on, or it was killed"
    UNJUDGED = "unjudged", "the run ended after its measured span and before its verdict"
    START_FAILED = "start_failed", "the engine or the driver did not start"
    RATE_HELD = "rate_held", "a search found a sustained rate"
    NO_RATE_HELD = "no_rate_held", "a search found no sustained rate"
    SEARCH_FAILED = "search_failed", "a search ended by a failure or by invalid trials"

    OK = "ok", "the check holds"
    CHECK_FAILED_TO_RUN = "check_failed_to_run", "the check crashed, or its number is unknown"
    DISK_FULL = "disk_full", "a disk is full"

    DRIVER_FAILED = "driver_failed", "a process of the driver failed"
    DRIVER_SILENT = "driver_silent", "a generator offered nothing of its plan"
    LIMIT_REACHED = "limit_reached", "a limit of memory, processes or CPU time ended a process"
    NO_EVENT_DUE = "no_event_due", "the trial ended before its measured span"
    PLAN_NOT_KEPT = "plan_not_kept", "generators offered less than the plan in some second"
    SCHEDULE_DELAY = "schedule_delay", "events became available too late after their planned time"
    NEGATIVE_LATENCY = "negative_latency", "results have times before their events: a clock is wrong"
    DELIVERY_BUSY = "hand_out_busy", "generators delivered events for too much of the span"
    RECORDER_BUSY = "recorder_busy", "the recorder processed results for too much of the span"
    RECORDER_DISK_BUSY = "recorder_disk_busy", "the recorder waited for its disk for too much of the span"
    RECORDER_STALLED = "recorder_stalled", "the recorder stood still for too much of the span"
    DRIVER_STARVED = "driver_starved", "a driver process waited too long for a core"

    SUT_DIED = "sut_died", "a process of the system under test died or does not answer"
    NO_RESULTS = "no_results", "no result could be read; the sentence says what to change"
    PROGRESS_UNKNOWN = "progress_unknown", "nothing showed how far the program had read; the sentence says what to add"
    READS_ABORTED = "reads_aborted", "reads of the system under test were aborted"
    TASKS_RETRIED = "tasks_retried", "tasks of the system under test were retried"

    BACKLOG_GROWS = "backlog_grows", "the backlog grows"
    RESULTS_FALL_BEHIND = "results_fall_behind", "results fall behind the plan"
    BATCHES_FILL_INTERVAL = "batches_fill_interval", "batches seem to grow, and would soon fill their interval"
    LATENCY_GROWS = "latency_grows", "results come later and later"
    RATE_VARIES = "rate_varies", "the rate varies, so latencies have no trend"
    TREND_UNDECIDED = "trend_undecided", "the interval of a slope contains its limit"
    TREND_TURNED = "trend_turned", "a quantity first fell, and surely grows in the later half"
    TOO_FEW_OBSERVATIONS = "too_few_observations", "too few observations for a trend"

    QUEUE_FULL = "queue_full", "the backlog reached the bound of the queue"
    QUEUE_FULL_AT_START = "queue_full_at_start", "the queue was full before the engine had begun to read"
    QUEUE_CUT_BY_MEMORY = "queue_cut_by_memory", "memory made the queue too short to judge the system"
    DRIVER_MEMORY_FULL = "driver_memory_full", "the driver's memory was full of events in flight"

    WRONG_ANSWERS = "wrong_answers", "results are missing, extra, duplicate, wrong or late"
    ANSWERS_NOT_COMPARED = "answers_not_compared", "the results could not be compared; the sentence has the reason"
    NO_REFERENCE = "no_reference", "there is no reference answer, or the trial ended before the comparison"
    NO_RESULT_DUE = "no_result_due", "no result was due"

    TOO_FEW_BATCHES = "too_few_batches", "too few batches in the span"
    TOO_FEW_WINDOWS = "too_few_windows", "too few windows closed in the span"
    SPAN_TOO_SHORT = "span_too_short", "the span is shorter than the windows that a verdict needs"
    START_BACKLOG = "start_backlog", "the span began while the start-up backlog was still draining"

    LIMIT_EXCEEDED = "limit_exceeded", "a latency is above its limit"
    RESULTS_OUTSTANDING = "results_outstanding", "a latency is a lower bound, because results had not arrived"
    NO_LATENCY = "no_latency", "no result has a latency of that kind"
    TOO_FEW_RESULTS = "too_few_results", "too few independent results for that percentile"


@unique
class Detail(StrEnum):
    """What else a check says, and what ends or extends a phase of a trial."""

    NUMBER_UNKNOWN = "number_unknown"
    CORE_WAIT_UNKNOWN = "core_wait_unknown"
    NO_FAULTS = "no_faults"
    BACKLOG_GROWS_LATER = "backlog_grows_later"
    RESULTS_FALL_BEHIND_LATER = "results_fall_behind_later"
    LATENCY_GROWS_LATER = "latency_grows_later"
    SPARE_TIME = "spare_time"
    HARDLY_READ = "hardly_read"
    NO_LATENCIES = "no_latencies"
    NOT_SHOWN_TO_FAIL = "not_shown_to_fail"
    WITHIN_DRIFT = "within_drift"
    BACKLOG_REACHED = "backlog_reached"
    SILENT_SINKS = "silent_sinks"
    NO_SUCH_LATENCY = "no_such_latency"
    LOWER_PERCENTILE = "lower_percentile"
    LATENCY_UNKNOWN = "latency_unknown"
    NO_RESULT_IN_SPAN = "no_result_in_span"
    GUARANTEE_ALLOWS = "guarantee_allows"

    QUEUE_REACHED = "queue_reached"
    MEMORY_FULL = "memory_full"
    BEHIND_PLAN = "behind_plan"
    BOUND_REACHED = "bound_reached"
    CANNOT_DRAIN = "cannot_drain"
    NOTHING_COMMITTED = "nothing_committed"
    DRAINING = "draining"
    BEHIND = "behind"
    FASTER = "faster"


class SearchEnd(_Code):
    """Why a search ended before its bracket was as narrow as requested."""

    WRONG_ANSWERS = "wrong_answers", "a trial that kept up had wrong results"
    INTERRUPTED = "interrupted", "a person or the operating system stopped the search"
    FAILED = "failed", "the engine or the driver failed, or did not start"
    INVALID_TWICE = "invalid_twice", "a trial was invalid, and so was its repetition"
    DRIVER_FAILED = "driver_failed", "the driver failed in the overload trial before anything was drained"
    NOTHING_DRAINED = "nothing_drained", "the engine drained nothing in the overload trial"
    NO_RATE_HELD = "no_rate_held", "not even the lowest rate held or was confirmed"
    TRIALS_USED_UP = "trials_used_up", "the search made as many trials as it was allowed"


class NextStep(StrEnum):
    """What to do after a search."""

    READ_ENGINE_LOG = "read_engine_log"
    READ_DRIVER_LOGS = "read_driver_logs"
    START_LOW = "start_low"
    MEND_AND_SEARCH = "mend_and_search"
    TRY_LOW_RATE = "try_low_rate"
    MORE_TRIALS = "more_trials"
    GO_ON = "go_on"
    CORRECT_JOB = "correct_job"
    REPORT_WRONG = "report_wrong"
    PROVE_A_RATE = "prove_a_rate"
    MORE_GENERATORS = "more_generators"
    SEPARATE_DRIVER = "separate_driver"
    DECIDE_UPPER_END = "decide_upper_end"
    CONFIRM = "confirm"
    DECIDE_AT_90 = "decide_at_90"
    MEASURE_LATENCY = "measure_latency"


class RateLimit(StrEnum):
    """What keeps a rate from being higher, as far as the driver can see."""

    NOT_SEEN = "not_seen"
    ELSEWHERE = "elsewhere"
    BACKGROUND_LOAD = "background_load"
    ENGINE_CPU = "engine_cpu"
    ALLOWANCE = "allowance"
    SHARED_CPU = "shared_cpu"
    NOT_CPU = "not_cpu"


class LagGrowth(StrEnum):
    """The growth of a lag: measured, across its limit, or why it is unknown."""

    MEASURED = "measured"
    UNDECIDED = "undecided"
    SPAN_INCOMPLETE = "span_incomplete"
    TOO_FEW_COMMITS = "too_few_commits"
    LAG_UNKNOWN = "lag_unknown"


class WarningCode(_Code):
    """A warning about the figures."""

    QUEUE_CUT_BY_MEMORY = "queue_cut_by_memory", "memory limits the queue below its bound"
    SHARED_CORES = "shared_cores", "driver and system share the same cores"
    MORE_GENERATORS_THAN_CORES = "more_generators_than_cores", "generators wait for each other"
    ENDED_EARLY = "ended_early", "the trial ended early"
    WENT_ON = "went_on", "a hopeless trial went on, as requested"
    WARMUP_EXTENDED = "warmup_extended", "the warm-up was longer than planned"
    SPAN_EXTENDED = "span_extended", "the measured span was extended"
    BACKGROUND_LOAD = "background_load", "background processes used the CPU"
    MACHINE_SLOWED = "machine_slowed", "the machine became slower within the span"
    PARTITIONS_APART = "partitions_apart", "partitions were read further apart than the watermark's delay"
    PARTITIONS_WITHOUT_KEYS = "partitions_without_keys", "no key of a stream belongs to some partition"
    ROWS_DROPPED_AS_LATE = "rows_dropped_as_late", "the system dropped rows that came behind its watermark"
    READ_TWICE = "read_twice", "the system reads the same events more than once"
    DONE_TWICE = "done_twice", "several queries run the same operators"
    OPERATOR_ROWS_INCOMPLETE = "operator_rows_incomplete", "rows of operators were not counted to the end"
    FOREIGN_MESSAGES = "foreign_messages", "messages on the topic of a program's results are not results"
    LAG_UNKNOWN = "lag_unknown", "the program commits no offsets, so its lag is not known"
    BROKER_TIMES_UNKNOWN = "broker_times_unknown", "the broker's append times are unknown"
    RESULTS_NOT_STORED = "results_not_stored", "results were not stored although requested"
    TRIAL_BACKGROUND_LOAD = "trial_background_load", "background processes used the CPU in a trial of a search"
    MACHINE_CHANGED = "machine_changed", "the machine's speed differed between trials of a search"
