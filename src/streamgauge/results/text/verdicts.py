"""A verdict in words: why it is so, and what to do next."""

from __future__ import annotations

import math

from streamgauge.results.codes import Cause
from streamgauge.results.text.sentences import check_sentence, fill, sentence
from streamgauge.results.verdict import Check, Finding, Judgement, Verdict
from streamgauge.system.disk import WAY_OUT

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
_SMALL_MEMORY = "the queue's memory limit (--memory) is too small"
_FAULTS = {
    Cause.PROGRESS_UNKNOWN: "nothing showed how far the program had read",
    Cause.NEGATIVE_LATENCY: "a clock is wrong",
    Cause.LIMIT_REACHED: "a limit of this environment ended a process",
    Cause.SCHEDULE_DELAY: "the driver was late",
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
_READ_LOG = "read the log that is named there, or else those in engine/ of the run folder, before you try another rate"
_PROGRAM = "correct the program or its file, as the sentence says"
_MORE_MEMORY = "give the queue more memory (--memory), or lower the rate or the payload"
ADVICE = {
    Cause.DISK_FULL: f"{WAY_OUT}; then run it again",
    Cause.BACKGROUND_LOAD: "close the background processes (`top` lists them), then run it again",
    Cause.CHECK_FAILED_TO_RUN: "report it with result.json: a check crashed",
    Cause.DRIVER_STARVED: _QUIETER,
    Cause.RECORDER_BUSY: _QUIETER,
    Cause.PLAN_NOT_KEPT: _FASTER_DRIVER,
    Cause.SCHEDULE_DELAY: _FASTER_DRIVER,
    Cause.NEGATIVE_LATENCY:
        "check the time synchronisation of every machine (and of the broker): a clock moved or differs, for instance "
        "after a suspend; then run it again",
    Cause.LIMIT_REACHED:
        "raise the limit, or lower what needs it: the heap (--option driver_memory), the queue (--memory), the "
        "generators (--generators)",
    Cause.DRIVER_FAILED: "remove the reason named above (logs: engine/ of the run folder), then run it again",
    Cause.RECORDER_DISK_BUSY: "put scratch files on a faster disk (TMPDIR), or lower the rate",
    Cause.DELIVERY_BUSY: "use more generators (--generators), fewer bytes per event, or a lower rate",
    Cause.RECORDER_STALLED:
        "let nothing pause the driver (a debugger, a suspended container or virtual machine), then run it again",
    Cause.SUT_DIED: _READ_LOG,
    Cause.READS_ABORTED: _READ_LOG,
    Cause.TASKS_RETRIED: _READ_LOG,
    Cause.NO_RESULTS: f"{_PROGRAM}; what it printed: engine/program.log of the run folder",
    Cause.PROGRESS_UNKNOWN: _PROGRAM,
    Cause.BACKLOG_GROWS: "lower the rate; `streamgauge sustain` finds the highest sustained rate",
    Cause.RESULTS_FALL_BEHIND: "lower the rate: the engine reads in time but its results fall behind",
    Cause.LATENCY_GROWS:
        "lower the rate, or check what grows in the job's state: its results come later and later",
    Cause.QUEUE_FULL: "lower the rate, or raise the bound (--bound) if this was one short stall",
    Cause.QUEUE_CUT_BY_MEMORY: _MORE_MEMORY,
    Cause.DRIVER_MEMORY_FULL: _MORE_MEMORY,
    Cause.QUEUE_FULL_AT_START: "use a longer warm-up (--warmup), a larger queue (--bound), or a lower rate",
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
_BUILT_IN_WRONG = (
    "look at the examples in verification.json; the workload is built in, so the engine, its lowering or streamgauge "
    "is at fault: report it with verification.json and experiment.toml"
)
"""The advice for wrong answers to a workload that no user wrote."""


def in_words(judgement: Judgement) -> Verdict:
    """The verdict as it is written, with its sentences."""
    return Verdict(
        value=judgement.value,
        cause=judgement.cause,
        checks=tuple(map(_check, judgement.checks)),
        decided_by=judgement.decided_by,
        sentence=verdict_sentence(judgement),
        advice=advice(judgement),
    )


def _check(finding: Finding) -> Check:
    return Check(
        name=finding.name, code=finding.code, value=finding.value, limit=finding.limit, unit=finding.unit,
        ok=finding.ok, state=finding.state, sentence=check_sentence(finding), low=finding.low, high=finding.high,
    )  # fmt: skip


def verdict_sentence(judgement: Judgement) -> str:
    """Why, in words."""
    deciding = judgement.deciding
    template = _BESIDE_LOAD.get(judgement.cause or Cause.OK, _VERDICTS[judgement.value])
    text = fill(
        template,
        because="; ".join(f"{one.name}: {check_sentence(one)}" for one in (*deciding, *judgement.died)),
        unjudged=tuple(one.name for one in judgement.checks if one.state == "not_judged"),
        fault=_FAULTS.get(deciding[0].code, "the driver failed") if deciding else "",
        failed=any(one.state == "failed" for one in deciding),
        load=judgement.load,
    )
    return f"{text}{_wrong_answers(judgement)}{''.join(f'; {sentence(one)}' for one in judgement.remarks)}"


def _wrong_answers(judgement: Judgement) -> str:
    """The wrong answers of a trial whose verdict has another first reason; empty if there are none."""
    wrong = next((one for one in judgement.checks if one.code == Cause.WRONG_ANSWERS), None)
    if wrong is None or wrong in judgement.deciding[:1]:
        return ""
    counted = "" if wrong in judgement.deciding else f" ({check_sentence(wrong)})"
    return f"; answers are wrong too{counted}: see verification.json"


def advice(judgement: Judgement) -> str:
    """What to do next, by the first deciding check."""
    if judgement.value == "sustained":
        return ""
    if judgement.value == "interrupted":
        return "run it again; the same command repeats the same input"
    if judgement.cause == Cause.BACKGROUND_LOAD:
        return ADVICE[Cause.BACKGROUND_LOAD]
    first = judgement.deciding[0]
    if first.code == Cause.DISK_FULL or not judgement.load_may_explain:
        return _advice(judgement, first)
    also = "; but first close background processes: they used {load} meanwhile, which may be the reason"
    return _advice(judgement, first) + fill(also, load=judgement.load)


def _advice(judgement: Judgement, first: Finding) -> str:
    if first.code == Cause.WRONG_ANSWERS and not judgement.user_job:
        return _BUILT_IN_WRONG
    if judgement.value == "undecided" and judgement.span_needed_s is not None:
        return f"a longer span: --duration {math.ceil(judgement.span_needed_s)}s or more"
    if first.code in ADVICE:
        return ADVICE[first.code]
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
