"""Phrases for parts of a result, shared by the page and the terminal."""

from streamgauge.core.formatting import NONE, format_count, format_quantity, format_rate, format_us
from streamgauge.results import labels
from streamgauge.results.latency import Latencies, Latency
from streamgauge.results.run import Operator, Verification
from streamgauge.results.search import SearchResult, TrialSummary
from streamgauge.results.text.sentences import counts_in_words
from streamgauge.results.verdict import Check

STATES = {
    "ok": "holds",
    "failed": "failed",
    "undecided": "undecided",
    "invalid": "invalid",
    "not_judged": "not judged",
}

NEWEST = ", newest event"
"""Follows `event time` for updates, whose events also have a latency until counted."""
MEANINGS = {
    "event_time": "emission - event time, from the plan",
    "until_counted": "of every event: arrival of its batch's results - event time",
    "processing_time": "emission - first delivery to the system",
    "closing_delay": "emission - end of the window",
    "match_time": "emission - later of the two matched events",
    "uncorrected": "emission - actual hand-over to the queue, which leaves the schedule delay out",
}


def latency_name(kind: str, among: Latencies) -> str:
    """The name of a kind of latency among the others of its sink."""
    return labels.LATENCIES[kind] + (NEWEST if kind == "event_time" and among.until_counted_us is not None else "")


def until_counted(trial: TrialSummary) -> str:
    """The text after the event-time latency of a trial with updates; empty for others."""
    if trial.until_counted_p50_us is None:
        return ""
    p50, p99 = format_us(trial.until_counted_p50_us), format_us(trial.until_counted_p99_us)
    return f"{NEWEST}; until counted p50 {p50}, p99 {p99}"


def latency(of: Latency | None, name: str) -> str:
    """One statistic of a latency: `3.1 s`, or `>= 3.1 s` if missing results are in it as lower bounds."""
    return NONE if of is None else at_least(getattr(of, name), of.lower_bounds)


def at_least(latency_us: float | None, lower_bounds: int) -> str:
    """A latency: `3.1 s`, or `>= 3.1 s` if `lower_bounds` results of it are missing."""
    return f">= {format_us(latency_us)}" if lower_bounds and latency_us is not None else format_us(latency_us)


def slope(share: float | None) -> str:
    """Growth of the backlog per second, as a share of the rate: `+4.1 %/s`, or `flat` below 0.1 %."""
    if share is None:
        return NONE
    return "flat" if abs(share) < 0.001 else f"{100 * share:+.1f} %/s"


def state(check: Check) -> str:
    """The state of a check. A number beyond its limit need not fail it: it may be uncertain, or explained by drift."""
    sure = check.high is None or check.limit is None or check.high <= check.limit
    return STATES[check.state] if check.state != "ok" or sure else "not shown to fail"


def not_counted(operator: Operator) -> str:
    """The number of batches whose rows were not counted for an operator; empty if none."""
    if not operator.batches_unknown or operator.batches is None:
        return ""
    if operator.batches_unknown == operator.batches:
        return "its rows were not counted"
    return f"{format_count(operator.batches_unknown)} of {format_count(operator.batches)} batches not counted"


def interval(check: Check) -> str:
    """The interval of a check's number; empty without one."""
    if check.low is None or check.high is None:
        return NONE
    return f"{format_quantity(check.low, check.unit)} to {format_quantity(check.high, check.unit)}"


def bracket(search: SearchResult) -> str:
    """`1.54 M holds, 1.6 M does not`, or the known part of it."""
    low = f"{format_rate(search.low, '')} holds" if search.low is not None else "no rate was found that holds"
    not_held = f"is {search.high_verdict}" if search.high_is_unproven else "does not"
    high = (
        f"{format_rate(search.high, '')} {not_held}" if search.high is not None else "no rate was found that does not"
    )
    return f"{low}, {high}"


def trial_verdict(trial: TrialSummary) -> str:
    """A trial's verdict; an overload trial has none."""
    return labels.VERDICTS[trial.verdict] if trial.verdict else STATES["not_judged"]


def trial_rate(trial: TrialSummary) -> str:
    """A trial's rate; an overload trial offers as much as is taken, so its reason has the drained rate."""
    is_overload = trial.offered_per_s is None or trial.purpose == "overload"
    return "overload" if is_overload else format_rate(trial.offered_per_s)


def trial_reason(trial: TrialSummary) -> str:
    """How a trial ended, without the verdict."""
    return trial.why.removeprefix(f"{trial_verdict(trial)}: ")


def verified(verification: Verification | None) -> str:
    """The verification in one sentence without its full stop."""
    if verification is None or not verification.judged:
        return "answers: not judged"
    if verification.sentence:
        return verification.sentence.rstrip(".")
    some = f"{format_count(verification.matched)} matched; {counts_in_words(verification.faults)}"
    matched = "all matched" if verification.right else some
    return f"{format_count(verification.expected)} results expected, {matched}"
