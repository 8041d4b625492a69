"""A result in words: the answer, and the three sentences that a person reads first."""

from __future__ import annotations

from streamgauge.report import words
from streamgauge.result import Check, Latency, Result

UNUSABLE = (
    "This figure must not be used: the driver itself failed, so the run says nothing about the system under test."
)


def answer(result: Result) -> str:
    """The answer as a headline: a rate and what became of it."""
    if result.search is not None:
        found = result.search.sustained_per_s
        return f"{words.rate(found)} sustained" if found is not None else "no sustained rate was found"
    if result.rate is None:
        return "nothing was measured"
    rate = words.rate(result.rate.planned_per_s)
    return {
        "sustained": f"{rate} sustained",
        "not_sustained": f"{rate} not sustained",
        "undecided": f"{rate}: not enough evidence",
        "invalid": f"{rate}: invalid",
        "interrupted": f"{rate}: interrupted",
    }[result.verdict.value]


def bounds(result: Result) -> str:
    """What stands beside the answer: the bracket of a search, the isolation, and the generator's own ceiling."""
    parts = []
    if result.search is not None:
        parts.append(words.bracket(result.search))
        confirmed = words.confirmed(result.search.at_90_percent) if result.search.confirmed else "not confirmed"
        parts.append(confirmed)
    parts.append(f"isolation: {result.isolation}")
    if result.rate is not None and result.rate.generator_ceiling_per_s is not None:
        parts.append(f"generator ceiling {words.rate(result.rate.generator_ceiling_per_s)}")
    return "; ".join(parts)


def three(result: Result) -> tuple[str, ...]:
    """What was offered and taken in; how late the results were; whether they were right."""
    found = (_throughput(result), _lateness(result), f"{capital(words.verified(result.verification))}.")
    return tuple(sentence for sentence in found if sentence)


def deciding(result: Result) -> tuple[Check, ...]:
    """The checks that decided the verdict, in the order in which they stand."""
    return tuple(check for check in result.verdict.checks if check.name in result.verdict.decided_by)


def missing_percentile(latency: Latency) -> str:
    """Why a latency has percentiles that are not printed."""
    if latency.note:
        return latency.note
    return f"{words.count(latency.effective_count)} independent results do not carry it"


def _throughput(result: Result) -> str:
    if result.search is not None:
        search = result.search
        tried = f"{len(search.trials)} trials in {words.span(search.seconds)}"
        return f"The search took {tried}. {_sentence(search.limit)}".strip()
    if result.rate is None:
        return ""
    span = next((phase for phase in result.phases if phase.name == "measured"), None)
    during = f" for {words.span((span.end_us - span.start_us) / 1e6)}" if span else ""
    rate = result.rate
    return (
        f"{words.rate(rate.offered_per_s)} were offered{during}, and {result.engine} took in "
        f"{words.rate(rate.ingested_per_s)}."
    )


def _lateness(result: Result) -> str:
    latency = result.latency.event_time_us
    if latency is None or latency.p50 is None:
        return ""
    tail = f", 99{words.GAP}% within {words.time_us(latency.p99)}" if latency.p99 is not None else ""
    last = (
        f", the last within {words.time_us(latency.max)}"
        if latency.max is not None and not latency.lower_bounds
        else ""
    )
    missing = (
        f"; {words.count(latency.lower_bounds)} never came and count as at least that late"
        if latency.lower_bounds
        else ""
    )
    of = f" of {result.slowest_sink}, the slowest sink," if result.slowest_sink else ""
    return f"Half of the results{of} came within {words.time_us(latency.p50)} of their event time{tail}{last}{missing}."


def capital(text: str) -> str:
    """`text` with its first letter large, and the rest as it is."""
    return text[:1].upper() + text[1:]


def _sentence(text: str) -> str:
    return f"{capital(text).rstrip('.')}." if text else ""
