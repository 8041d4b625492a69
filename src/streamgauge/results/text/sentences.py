"""The sentences of verdicts, checks, warnings and early ends: a template for each code, and what to do next.

A template's fields are the facts of its remark. `_Words` adds formats to Python's.
"""

import math
import string
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any

from streamgauge.core.formatting import format_digits, format_rate, format_us, share_beside
from streamgauge.results.codes import Cause, Detail, WarningCode
from streamgauge.results.run import Caution
from streamgauge.results.verdict import BackgroundLoad, Check, Finding, Judgement, Remark, Verdict
from streamgauge.system.disk import WAY_OUT

COLUMNS_SHOWN = 3


class _Words(string.Formatter):
    """Formats templates, with formats of its own. Counts by kind and names are joined with commas.

    - `{x:?text}` is the text if x is true (not empty, not 0), `{x:!text}` if it is not.
    - `{x:us}` a time in microseconds; `{x:rate}` a rate; `{x:trials}` trials by number.
    - `{x:beside 0.5 1}` a share, or a range of shares, beside its limit, with so many digits at least.
    - `{x:sign grew|fell}` one or the other by its sign; `{x:digits}` its amount.
    - `{x:slope|grows|shrinks}` one or the other and by how much; `{x:columns}` how often columns differ.
    - `{x:after text}`, `{x:before text}` a text without that begin or end.
    """

    def format_field(self, value: Any, spec: str) -> str:
        kind, _, rest = spec.partition(" ")
        if spec[:1] in ("?", "!"):
            return spec[1:] if bool(value) is (spec[0] == "?") else ""
        if kind in _FORMATS:
            return _FORMATS[kind](value)
        if kind in _WITHOUT:
            return _WITHOUT[kind](str(value), rest)
        if kind == "digits":
            return format_digits(abs(value))
        if kind == "sign":
            return rest.split("|")[value < 0]
        if kind == "beside":
            limit, *digits = rest.split()
            shares = value if isinstance(value, tuple) else (value,)
            return " to ".join(dict.fromkeys(share_beside(one, float(limit), *map(int, digits)) for one in shares))
        if spec.startswith("slope|"):
            shown = round(value, 4) + 0.0  # rounded first, so that a printed 0 counts as positive
            return f"{spec.split('|')[2 if shown < 0 else 1]} by {abs(shown):.2%}"
        if isinstance(value, BackgroundLoad):
            burst = f" for {value.burst_s:.0f} s" if value.burst_s else ""
            return f"{share_beside(value.share, value.limit)} of the CPU{burst}"
        if isinstance(value, Mapping):
            return counts_in_words(value)
        return ", ".join(value) if isinstance(value, tuple) else format(value, spec)


_WORDS = _Words()
_WITHOUT = {"after": str.removeprefix, "before": str.removesuffix}
_TREND = " ({low:+.2%} to {high:+.2%}, {confidence:.1%} interval, {n} observations), limit {limit:.0%}"
_OF = "{about:?{about}: }"
_BUSY = "{value:beside {limit}} of the time (limit {limit:.0%}{if_slow:? if the system did not keep up})"
_LEVEL, _EVERY = "{sink:?{sink}: }{level}: ", "{counted:?until every event is counted, }"
_NEWEST = "{newest_us:? (newest event of each update: {newest_us:us})}"

CAUSES: dict[StrEnum, str] = {
    Cause.CHECK_FAILED_TO_RUN: "could not be judged: {reason}",
    Cause.LIMIT_REACHED: "{reason}",
    Cause.DRIVER_FAILED: "a process of the driver failed: {reason}",
    Cause.DRIVER_SILENT: "{reason}",
    Cause.NEGATIVE_LATENCY: "{value:,} right results came before their event, so a clock is wrong",
    Cause.NO_EVENT_DUE: "not judged, because the trial ended before an event of its measured span was due",
    Cause.PLAN_NOT_KEPT:
        "in the worst second the driver offered {value:beside {limit} 1} of the plan (minimum {limit:.0%})",
    Cause.SCHEDULE_DELAY: "events became available {value:us} late (p99, limit {limit:us})",
    Cause.DELIVERY_BUSY: f"the generators delivered events for {_BUSY}",
    Cause.RECORDER_BUSY: f"the recorder processed results for {_BUSY}",
    Cause.RECORDER_DISK_BUSY: f"the recorder waited for its disk for {_BUSY}",
    Cause.RECORDER_STALLED:
        "the recorder stood still for {stall_s:.1f} s of {span_s:.0f} s (limit {limit:.0%}), so results that arrived "
        "meanwhile have late timestamps",
    Cause.DRIVER_STARVED: "a driver process waited {value:us} for a core at each wake-up (limit {limit:us})",
    Cause.SUT_DIED: "a process of the system under test died or does not answer{reason:?: {reason}}",
    Cause.NO_RESULTS: "{reason}",
    Cause.PROGRESS_UNKNOWN: "{reason}",
    Cause.READS_ABORTED: "{value} reads of the system under test were aborted",
    Cause.TASKS_RETRIED: "{value} tasks of the system under test were retried",
    Cause.TOO_FEW_OBSERVATIONS: f"{_OF}{{n}} observations are too few for a trend (minimum {{least}})",
    Cause.BACKLOG_GROWS: f"{_OF}{{slope:slope|the backlog grows|the backlog shrinks}} of the rate{_TREND}",
    Cause.RESULTS_FALL_BEHIND:
        f"{_OF}{{at_commits:?at commits, }}{{slope:slope|results fall behind|results catch up}} of the time{_TREND}",
    Cause.LATENCY_GROWS: f"{_OF}{{slope:slope|the latency grows|the latency falls}} of the time{_TREND}",
    Cause.BATCHES_FILL_INTERVAL: "one more span like this would fill the batches' interval of {interval_s:.2g} s",
    Cause.RATE_VARIES: "not judged, because the rate varies, and latencies with it",
    Cause.QUEUE_CUT_BY_MEMORY: "memory cut the queue to {value:.3g} s of the rate (minimum {limit:.0f} s)",
    Cause.DRIVER_MEMORY_FULL:
        "the driver's memory was full while {value:.3g} s of event time waited (minimum {limit:.3g} s), because events "
        "in flight or retained for redelivery filled the rest",
    Cause.QUEUE_FULL_AT_START:
        "the queue of {limit:.3g} s was full before the measured span, when the engine had hardly begun to read",
    Cause.QUEUE_FULL: "the queue was full: {value:.3g} s of event time waited (limit {limit:.3g} s)",
    Cause.ANSWERS_NOT_COMPARED: "{reason}",
    Cause.NO_REFERENCE: "not judged",
    Cause.NO_RESULT_DUE:
        "{came:?no result was due, so no answer could be checked}"
        "{came:!no result came and none was due, so there is no latency}",
    Cause.WRONG_ANSWERS:
        "of {expected:,} expected results: {faults}{faults:!all right}"
        "{allowed:?, and {allowed} that the promised delivery guarantee allows}{wrong_columns:columns}"
        "{wrong:? (wrong: {wrong}; right: {right} of {sinks} sinks}{silent:?; no result came on {silent}}{wrong:?)}",
    Cause.TOO_FEW_BATCHES: "{value} batches (minimum {limit})",
    Cause.TOO_FEW_WINDOWS: "{value} windows closed (minimum {limit})",
    Cause.SPAN_TOO_SHORT:
        "{value} windows closed (minimum {limit}); the results have windows that end {gap_s:.3g} s apart, so the span "
        "must be at least {needed_s:.4g} s long",
    Cause.START_BACKLOG: "the span began while start-up backlog was still draining",
    Cause.LIMIT_EXCEEDED: f"{_LEVEL}{_EVERY}it is {{value:us}}{_NEWEST}",
    Cause.RESULTS_OUTSTANDING:
        f"{_LEVEL}{_EVERY}it is {{value:us}} or more: {{outstanding}} {{counted:?events were in no committed batch}}"
        f"{{counted:!results had not arrived}}{_NEWEST}",
    Cause.TOO_FEW_RESULTS: f"{_LEVEL}{{n}} independent results are too few{{least:? (minimum {{least}})}}",
}  # fmt: skip
"""What the condition behind a cause is. A check that holds says the same of its number."""

DETAILS: dict[StrEnum, str] = {
    Detail.NUMBER_UNKNOWN: "could not be judged: its number is unknown",
    Detail.CORE_WAIT_UNKNOWN: "its wait for a core is unknown",
    Detail.NO_FAULTS: "no process died, no read was aborted, no task was retried",
    Detail.BACKLOG_GROWS_LATER: "but in the later half, the backlog grows by {slope:.2%} (at least {low:.2%})",
    Detail.RESULTS_FALL_BEHIND_LATER: "but in the later half, results fall behind by {slope:.2%} (at least {low:.2%})",
    Detail.LATENCY_GROWS_LATER: "but in the later half, the latency grows by {slope:.2%} (at least {low:.2%})",
    Detail.SPARE_TIME:
        "but batches take all that waits and need {share:.0%} of the time (at most {high:.0%}, limit {limit:.0%}), so "
        "nothing accumulates",
    Detail.HARDLY_READ: "the system read only {share:.2%} of the offered events",
    Detail.NO_LATENCIES: "not judged, because no latencies were counted",
    Detail.NOT_SHOWN_TO_FAIL: "not shown to fail",
    Detail.WITHIN_DRIFT: "within the {drift_s:.2g} s that windows and batches may drift against each other",
    Detail.BACKLOG_REACHED: "the backlog reached {value:.3g} s of the rate (limit {limit:.3g} s)",
    Detail.SILENT_SINKS: "no value of {sinks} came in the span, so how late values are is not known",
    Detail.NO_SUCH_LATENCY: f"{_LEVEL}no result had a latency of that kind ({{kind}})",
    Detail.LOWER_PERCENTILE: f"{_LEVEL}{_EVERY}{{lower}} is already {{value:us}}{_NEWEST}",
    Detail.LATENCY_UNKNOWN: f"{_LEVEL}{_EVERY}it is {{note}}{_NEWEST}",
    Detail.NO_RESULT_IN_SPAN: f"{_LEVEL}no result came in the span, so there is no latency",
    Detail.GUARANTEE_ALLOWS: "{allowed} of {expected:,} results, as its guarantee allows",
    Detail.QUEUE_REACHED: "the queue's bound was reached",
    Detail.MEMORY_FULL: "the queue's memory was full",
    Detail.BEHIND_PLAN: "the generators did not keep the plan",
    Detail.BOUND_REACHED: "the backlog reached the queue's bound of {bound_s:.3g} s of the rate",
    Detail.CANNOT_DRAIN:
        "the backlog grows by {slope:.1%} of the rate and can no longer drain in the {left_s:.0f} s left",
    Detail.NOTHING_COMMITTED: "the engine had committed nothing yet",
    Detail.DRAINING: "the engine's backlog was still draining",
    Detail.BEHIND: "more waited than one and a half batch intervals",
    Detail.FASTER: "the engine was still getting faster",
}  # fmt: skip

WARNINGS: dict[StrEnum, str] = {
    WarningCode.SHARED_CORES: "driver and SUT share {cores}, so these figures hold only for this arrangement",
    WarningCode.QUEUE_CUT_BY_MEMORY:
        "memory cuts the queue's bound to {bound_s:.1f} s of the rate (below {least_s:.0f} s the trial is invalid). "
        "More --queue-memory restores it",
    WarningCode.MORE_GENERATORS_THAN_CORES: "{generators}, so they wait for each other. Use fewer --generators",
    WarningCode.ENDED_EARLY: "ended early: {reason}",
    WarningCode.WENT_ON: "would have ended early without --no-early-stop: {reason}",
    WarningCode.WARMUP_EXTENDED: "warm-up {extended_s} s longer than planned: {reasons}",
    WarningCode.BACKGROUND_LOAD:
        "background processes used {load}, so these figures hold only beside such a load. Close them and run again",
    WarningCode.MACHINE_SLOWED:
        "the machine became {slowed:.0%} slower within the span (reference work), which may cause a trend. Run it "
        "again",
    WarningCode.PARTITIONS_WITHOUT_KEYS:
        "{empty} of {partitions} partitions of {stream} have no events, because no {key} hashes to {shown}. Use fewer "
        "--partitions, or more keys",
    WarningCode.PARTITIONS_APART:
        "partitions were read up to {skew_s:.2g} s apart, and the watermark stays {delay_s:g} s behind, so the engine "
        "drops rows that come later",
    WarningCode.READ_TWICE:
        "{stream} is read {times:.2g} times, because its {n} queries{sinks:? ({sinks})} each read it; rates count "
        "every event once",
    WarningCode.DONE_TWICE: "{operators} {several:?run}{several:!runs} {times}: in queries {queries}",
    WarningCode.SPAN_EXTENDED: "extended {times}, as undecided: {checks}",
    WarningCode.LAG_UNKNOWN: "{text}",
    WarningCode.FOREIGN_MESSAGES: "{text}",
    WarningCode.OPERATOR_ROWS_INCOMPLETE: "rows of operators were not counted to the end: {reason}",
    WarningCode.BROKER_TIMES_UNKNOWN: "the broker's append times are unknown: {reason}",
    WarningCode.ROWS_DROPPED_AS_LATE:
        "by its own count the engine dropped {rows:,} rows as late; partitions were read up to {skew_s:.2g} s apart. A "
        'watermark delay of at least that keeps such rows: {is_user_job:?withWatermark(..., "{delay_s:g} seconds")}'
        '{is_user_job:!--option watermark_delay="{delay_s:g} seconds"}',
    WarningCode.RESULTS_NOT_STORED: "results were not stored: {reason}",
    WarningCode.TRIAL_BACKGROUND_LOAD:
        "{trials:trials}: background processes used {shares:beside {limit}} of the CPU",
    WarningCode.MACHINE_CHANGED:
        "the machine's speed differed between trials: the reference work took {fast_us:us} in trial {fast}, "
        "{slow_us:us} in trial {slow}. Run it again on a quiet machine",
}  # fmt: skip


_TEMPLATES: dict[type[StrEnum], dict[StrEnum, str]] = {Cause: CAUSES, Detail: DETAILS, WarningCode: WARNINGS}


def sentence(remark: Remark) -> str:
    """A remark in words."""
    return fill(_TEMPLATES[type(remark.code)][remark.code], **remark.facts)


def check_sentence(finding: Finding) -> str:
    """What a check found, in words."""
    return "; ".join(map(sentence, finding.remarks))


def unsettled(finding: Finding) -> str:
    """A trend that failed or is still undecided, as the reason that ends a trial."""
    return f"{'still undecided: ' * (finding.state == 'undecided')}{check_sentence(finding)}"


def cautions(remarks: Iterable[Remark]) -> list[Caution]:
    """Warnings with their sentences."""
    return [Caution(WarningCode[one.code.name], sentence(one)) for one in remarks]


def fill(template: str, **facts: Any) -> str:
    """A template in words, for sentences with tables of their own."""
    return _WORDS.format(template, **facts)


def counts_in_words(counts: Mapping[str, int]) -> str:
    """Rows by kind: `3 missing, 1 wrong`; empty without any."""
    return ", ".join(f"{count:,} {kind}" for kind, count in counts.items() if count)


def trials_in_words(numbers: Iterable[int]) -> str:
    """Trials by their ascending numbers: `trial 2`, `trials 1, 3 and 5 to 9`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    named = [f"{run[0]} to {run[-1]}" if len(run) > 2 else " and ".join(map(str, run)) for run in runs]
    several = len(runs) > 1 or len(runs[0]) > 1
    return f"trial{'s' * several} {' and '.join(filter(None, (', '.join(named[:-1]), named[-1])))}"


def columns_in_words(columns: Mapping[str, int]) -> str:
    """The columns that differ and how often, the most frequent ones first: `; differing: price in 35 rows`."""
    if not columns:
        return ""
    ordered = sorted(columns.items(), key=lambda pair: -pair[1])
    shown = ", ".join(f"{name} in {count:,} rows" for name, count in ordered[:COLUMNS_SHOWN])
    more = len(ordered) - COLUMNS_SHOWN
    return f"; differing: {shown}{f', and {more} columns more' if more > 0 else ''}"


_FORMATS: Mapping[str, Callable[[Any], str]] = {
    "us": format_us,
    "rate": format_rate,
    "trials": trials_in_words,
    "columns": columns_in_words,
}
"""The formats of `_Words` that take nothing but the value."""
_VERDICTS = {
    "sustained": "sustained: every check holds{unjudged:? that was judged (not judged: {unjudged})}",
    "not_sustained": "not sustained: {because}",
    "undecided": "undecided: {because}",
    "invalid": "invalid: {fault}, so these figures must not be used ({because})",
    "interrupted": "interrupted before the verdict: the run folder keeps the measurements, and they prove nothing",
}
_BESIDE_LOAD = {
    Cause.BACKGROUND_LOAD:
        "invalid: background processes used {load} (limit {load.limit:.0%}), so the {failed:?slowdown}"
        "{failed:!open result} cannot be attributed to the system under test ({because})",
    Cause.DRIVER_SLOWED_BY_BACKGROUND_LOAD:
        "invalid: background processes used {load} (limit {load.limit:.0%}) and the driver was late, so these figures "
        "must not be used ({because})",
}  # fmt: skip
_SMALL_MEMORY = "the queue's memory limit (--queue-memory) is too small"
_FAULTS = {
    Cause.PROGRESS_UNKNOWN: "nothing showed how far the program had read",
    Cause.NO_RESULTS: "no result of the program could be read",
    Cause.NEGATIVE_LATENCY: "a clock is wrong",
    Cause.LIMIT_REACHED: "a limit of this environment ended a process",
    Cause.SCHEDULE_DELAY: "the driver was late",
    Cause.DRIVER_SILENT: "the driver was late",
    Cause.DISK_FULL: "a disk is full",
    Cause.QUEUE_CUT_BY_MEMORY: _SMALL_MEMORY,
    Cause.DRIVER_MEMORY_FULL: _SMALL_MEMORY,
}
"""Causes of an invalid trial that are not a failure of the driver."""

_QUIETER = "close other processes, separate the driver's cores (--isolation pinned), or lower the rate"
_FASTER_DRIVER = (
    "close other processes, use more generators (--generators), separate the driver's cores (--isolation pinned), use "
    "longer chunks if rows have many columns (--chunk), or lower the rate"
)
_READ_LOG = "read the log that is named there, or the logs in engine/ of the run folder, before you try another rate"
_PROGRAM = "correct the program or its file, as the sentence says"
_LARGER_QUEUE = "{by_memory:?--queue-memory}{by_memory:!--queue-limit}"
_MORE_MEMORY = "give the queue more memory (--queue-memory), or lower the rate or the payload"
RUN_AGAIN = ", then run it again"
ADVICE = {
    Cause.DISK_FULL: f"{WAY_OUT}; then run it again",
    Cause.BACKGROUND_LOAD: f"close the background processes (`top` lists them){RUN_AGAIN}",
    Cause.CHECK_FAILED_TO_RUN: "report it with result.json: a check crashed",
    Cause.DRIVER_STARVED: _QUIETER,
    Cause.RECORDER_BUSY: _QUIETER,
    Cause.PLAN_NOT_KEPT: _FASTER_DRIVER,
    Cause.SCHEDULE_DELAY: _FASTER_DRIVER,
    Cause.NEGATIVE_LATENCY:
        "check the time synchronisation of every machine (and of the broker): a clock moved or differs, for instance "
        "after a suspend; then run it again",
    Cause.LIMIT_REACHED:
        "raise the limit, or lower what needs it: {memory_option:?the heap (--option {memory_option}), }the queue "
        "(--queue-memory), the generators (--generators)",
    Cause.START_FAILED: "remove the reason (logs: engine/ of the run folder), and run it again",
    Cause.DRIVER_FAILED: f"remove the reason named above (logs: engine/ of the run folder){RUN_AGAIN}",
    Cause.DRIVER_SILENT:
        "read the generator's log (engine/ of the run folder); if it is empty, give it more CPU (--isolation pinned, a "
        "lower rate) and faster files of data, and if neither helps, report it with this folder",
    Cause.RECORDER_DISK_BUSY: "put scratch files on a faster disk (TMPDIR), or lower the rate",
    Cause.DELIVERY_BUSY: "use more generators (--generators), fewer bytes per event, or a lower rate",
    Cause.RECORDER_STALLED:
        f"let nothing pause the driver (a debugger, a suspended container or virtual machine){RUN_AGAIN}",
    Cause.SUT_DIED: _READ_LOG,
    Cause.READS_ABORTED: _READ_LOG,
    Cause.TASKS_RETRIED: _READ_LOG,
    Cause.NO_RESULTS: f"{_PROGRAM}; what it printed: engine/program.log of the run folder",
    Cause.PROGRESS_UNKNOWN: _PROGRAM,
    Cause.BACKLOG_GROWS: "lower the rate; `streamgauge sustain` finds the highest sustained rate",
    Cause.RESULTS_FALL_BEHIND: "lower the rate: the engine reads in time but its results fall behind",
    Cause.LATENCY_GROWS:
        "lower the rate, or check what grows in the job's state: its results come later and later",
    Cause.QUEUE_FULL:
        f"lower the rate, or use a larger queue ({_LARGER_QUEUE}) if a jump of the rate or one long batch filled it",
    Cause.QUEUE_CUT_BY_MEMORY: _MORE_MEMORY,
    Cause.DRIVER_MEMORY_FULL: _MORE_MEMORY,
    Cause.QUEUE_FULL_AT_START:
        f"use a longer warm-up (--warmup), a larger queue ({_LARGER_QUEUE}), or a lower rate",
    Cause.WRONG_ANSWERS: "correct the job first: verification.json has examples, and a rate with wrong answers means "
        "nothing",
    Cause.ANSWERS_NOT_COMPARED: "read why in verification.json, correct that, and run it again",
    Cause.NO_REFERENCE: "give the job a reference answer: without one no rate is called sustained",
    Cause.NO_RESULT_DUE:
        "check the job's conditions, which let no event of this input through; if its windows are longer than the "
        "trial, use a longer span (--duration)",
    Cause.LIMIT_EXCEEDED: "lower the rate, or change a setting of the engine",
}  # fmt: skip
"""What to do about the cause of the first deciding check."""
BUILT_IN = "the workload is built in, so the engine, its lowering or streamgauge is at fault"
_BUILT_IN_WRONG = (
    f"look at the examples in verification.json; {BUILT_IN}: report it with verification.json and experiment.toml"
)
"""The advice for wrong answers to a workload that no user wrote."""


def in_words(judgement: Judgement, memory_option: str = "") -> Verdict:
    """The verdict as it is written, with its sentences. `memory_option`: the engine's."""
    return Verdict(
        value=judgement.value,
        cause=judgement.cause,
        checks=tuple(
            Check(
                name=one.name, code=one.code, value=one.value, limit=one.limit, unit=one.unit, ok=one.ok,
                state=one.state, sentence=check_sentence(one), low=one.low, high=one.high,
            )
            for one in judgement.checks
        ),
        decided_by=judgement.decided_by,
        sentence=verdict_sentence(judgement),
        advice=advice(judgement, memory_option),
    )  # fmt: skip


def verdict_sentence(judgement: Judgement) -> str:
    """Why, in words: the first check that decided, with its number and limit.

    Sentences on a lost process and on wrong answers follow. Every other check has its own sentence.
    """
    deciding = judgement.deciding
    text = fill(
        _BESIDE_LOAD.get(judgement.cause, _VERDICTS[judgement.value]),
        because="".join(f"{one.name}: {check_sentence(one)}" for one in deciding[:1]),
        unjudged=tuple(one.name for one in judgement.checks if one.state == "not_judged"),
        fault=_FAULTS.get(deciding[0].code, "the driver failed") if deciding else "",
        failed=any(one.state == "failed" for one in deciding),
        load=judgement.load,
    )
    died = (f"Also {one.name}: {check_sentence(one)}" for one in judgement.died)
    return ". ".join((text, *died, *_wrong_answers(judgement), *map(sentence, judgement.remarks)))


def _wrong_answers(judgement: Judgement) -> Iterator[str]:
    """The wrong answers of a trial whose verdict has another first reason."""
    wrong = next((one for one in judgement.checks if one.code == Cause.WRONG_ANSWERS), None)
    if wrong is not None and wrong not in judgement.deciding[:1]:
        yield f"Answers are wrong too ({check_sentence(wrong)}): see verification.json"


def advice(judgement: Judgement, memory_option: str = "") -> str:
    """What to do next, by the first deciding check."""
    if judgement.value == "sustained":
        return ""
    if judgement.value == "interrupted":
        return "run it again; the same command repeats the same input"
    first, by_load = judgement.deciding[0], judgement.cause == Cause.BACKGROUND_LOAD
    by_load = by_load or (first.code == Cause.DRIVER_SILENT and judgement.load_may_explain)
    if by_load and first.code not in (Cause.QUEUE_FULL, Cause.QUEUE_FULL_AT_START):
        return ADVICE[Cause.BACKGROUND_LOAD]
    if first.code == Cause.DISK_FULL or not (by_load or judgement.load_may_explain):
        return _advice(judgement, first, memory_option)
    also = "; but first close background processes: they used {load} meanwhile, which may be the reason"
    return _advice(judgement, first, memory_option) + fill(also, load=judgement.load)


def _advice(judgement: Judgement, first: Finding, memory_option: str) -> str:
    if first.code == Cause.WRONG_ANSWERS and not judgement.user_job:
        return _BUILT_IN_WRONG
    if judgement.value == "undecided" and judgement.span_needed_s is not None:
        return f"a longer span: --duration {math.ceil(judgement.span_needed_s)}s or more"
    code, facts = first.code, first.remarks[0].facts if first.remarks else {}
    grows = any(one.code == Cause.BACKLOG_GROWS for one in judgement.deciding)
    if code == Cause.QUEUE_FULL and grows and facts["steady"]:
        code = Cause.BACKLOG_GROWS  # it would fill a larger queue too
    if code in ADVICE:
        return fill(ADVICE[code], **{"memory_option": memory_option, **facts})
    if first.low is not None and first.high is not None and first.value is not None and first.limit is not None:
        return longer(abs(first.limit - first.value), (first.high - first.low) / 2)
    if judgement.draining_at_start:
        return "use a longer warm-up (--warmup), so that the start-up backlog is gone before the span begins"
    return "use a longer trial (--duration)"


def longer(distance: float, half_width: float) -> str:
    """Advice on the span's length: the interval of a slope narrows with span^1.5."""
    factor = (half_width / distance) ** (2 / 3) if distance > 0 else math.inf
    if factor > 5:
        return "lower the rate a little: this one is so close to the limit that no reasonable trial length decides"
    return f"use a trial about {max(1.2, factor):.1f} times as long (--duration), or lower the rate a little"
