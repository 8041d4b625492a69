"""The check `answers`: verification found nothing wrong."""

from __future__ import annotations

from streamgauge.results.causes import Cause
from streamgauge.results.verdict import Check
from streamgauge.verdict.criteria.check_spec import CheckSpec, make_check
from streamgauge.verdict.evidence import Evidence

NOTHING_DUE = "no result came and none was due, so there is no latency"


def _answers(evidence: Evidence) -> Check:
    verification = evidence.verification
    if verification is None or not verification.judged:
        reason = verification.sentence if verification is not None else ""
        code = Cause.ANSWERS_NOT_COMPARED if reason else Cause.NO_REFERENCE
        code = Cause.DISK_FULL if evidence.answers_disk_full else code
        return make_check("answers", "not_judged", code, None, 0, "rows", reason or "not judged")
    if verification.expected == 0 and verification.right:
        sentence = NOTHING_DUE if _nothing_came(evidence) else "no result was due, so no answer could be checked"
        return make_check("answers", "undecided", Cause.NO_RESULT_DUE, 0, 0, "rows", sentence)
    total = verification.fault_count
    in_words = ", ".join(f"{count:,} {kind}" for kind, count in verification.faults.items() if count)
    allowed = verification.allowed_in_words
    allowed = f", and {allowed} that the promised delivery guarantee allows" if allowed else ""
    sentence = (
        f"of {verification.expected:,} expected results: {in_words or 'all right'}{allowed}{_wrong_sinks(evidence)}"
    )
    if verification.right:
        return make_check("answers", "ok", Cause.OK, total, 0, "rows", sentence)
    return make_check("answers", "failed", Cause.WRONG_ANSWERS, total, 0, "rows", sentence)


def _nothing_came(evidence: Evidence) -> bool:
    return bool(evidence.sinks) and not any(sink.rows for sink in evidence.sinks)


def _wrong_sinks(evidence: Evidence) -> str:
    """The sinks with faults, if there are several sinks."""
    if len(evidence.sinks) < 2:
        return ""
    sinks = [(sink.name, sink.verification) for sink in evidence.sinks]
    wrong = [name for name, verified in sinks if verified is not None and verified.judged and not verified.right]
    silent = [sink.name for sink in evidence.sinks if sink.name in wrong and not sink.rows]
    nothing = f"; no result came on {', '.join(silent)}" if silent else ""
    right = f"right: {len(sinks) - len(wrong)} of {len(sinks)} sinks"
    return f" (wrong: {', '.join(wrong)}; {right}{nothing})" if wrong else ""


ADVICE_BUILT_IN = (
    "look at the examples in verification.json; the workload is built in, so the engine, its lowering or streamgauge "
    "is at fault: report it with verification.json and experiment.toml"
)
"""The advice for wrong answers to a workload that no user wrote."""

CHECK = CheckSpec(
    "answers",
    _answers,
    "correct the job first: verification.json has examples, and a rate with wrong answers means nothing",
    by_slowness=False,
)
