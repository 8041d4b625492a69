"""A result in words: the answer and the three summary sentences."""

from streamgauge.core.clock import US
from streamgauge.core.formatting import format_count, format_duration, format_rate, format_us
from streamgauge.results.latency import PERCENTILES, Latencies, Latency
from streamgauge.results.run import Result
from streamgauge.results.search import TrialSummary
from streamgauge.results.text import phrases
from streamgauge.stats.samples import observations_needed


def headline(result: Result) -> str:
    """The rate of a result: the planned rate of a run, or the rate that a search found."""
    if result.search is not None:
        found = result.search.sustained_per_s
        return format_rate(found, "events/s") if found is not None else "no sustained rate was found"
    return format_rate(result.rate.planned_per_s, "events/s") if result.rate else "nothing was measured"


_ANSWERS = {
    "sustained": " sustained",
    "not_sustained": " not sustained",
    "undecided": ": not enough evidence",
    "invalid": ": invalid",
    "interrupted": ": interrupted",
}


def answer(result: Result) -> str:
    """The headline with the verdict, as far as there is a rate."""
    rate = headline(result)
    if result.search is not None:
        return rate if result.search.sustained_per_s is None else f"{rate} sustained"
    return f"{rate}{_ANSWERS[result.verdict.value]}" if result.rate else rate


def measured_s(result: Result) -> float | None:
    """Actual length of the measured span; None if the run ended before it began."""
    lasted = [(phase.end_us - phase.start_us) / US for phase in result.phases if phase.name == "measured"]
    return lasted[0] if lasted else None


def nothing_measured(result: Result) -> str:
    """The sentence that replaces rates if the measured span never began."""
    if not result.phases:
        return "nothing was measured"
    lasted = (result.phases[-1].end_us - result.phases[0].start_us) / US
    return f"nothing was measured: the run ended {format_duration(lasted)} after its start, in the warm-up"


def no_latency(result: Result) -> str:
    """The reason why there is no latency."""
    if result.search is not None:
        return "no latency was measured; each trial has its own"
    if result.rate is None or measured_s(result) is None:
        return "no latency was measured: the run ended before the measured span began"
    if result.latency.notes:
        return "no latency was computed, for the reason below"
    if result.verification is None:
        return "no latency was computed: the run was ended early, and its results were not verified"
    return "no latency was measured: no result of the measured span arrived"


def missing_results(result: Result) -> str:
    """A remark on figures that include missing results; empty if all arrived."""
    latency = result.latency.event_time_us
    if latency is None or not latency.lower_bounds:
        return ""
    return (
        f"{format_count(latency.lower_bounds)} of {format_count(latency.count)} results had not arrived when the run "
        "ended; they count with their lateness at that time, so a figure with >= is a lower bound."
    )


def unverified(result: Result) -> str:
    """A remark on the latencies of a stopped run; empty if it has none, or if its answers were verified."""
    stopped = result.verdict.value == "interrupted" and result.latency != Latencies(notes=result.latency.notes)
    if not stopped or (result.verification is not None and result.verification.judged):
        return ""
    return "Latencies are unverified: the run was stopped, and its results were not compared with the reference."


def summary_sentences(result: Result) -> tuple[str, ...]:
    """Three sentences: rates or trials, latency of the results, verification."""
    right = unverified(result) or f"{capital(phrases.verified(result.verification))}."
    return tuple(filter(None, (_throughput(result), _lateness(result), right)))


def missing_percentile(latency: Latency) -> str:
    """Why a latency lacks percentiles: the number of results that the first missing one needs."""
    first = next((name for name in PERCENTILES if getattr(latency, name) is None), "max")
    return latency.note or _not_carried(latency, first)


def _not_carried(latency: Latency, name: str) -> str:
    came = f"{format_count(latency.effective_count)} independent results (batches or windows) are too few"
    return f"{came}, {format_count(observations_needed(PERCENTILES[name]))} are needed" if name in PERCENTILES else came


def no_p99(result: Result) -> str:
    """Why a p99 is missing although the median exists; else empty."""
    one = result.latency.event_time_us
    if one is None or one.p50 is None or one.p99 is not None:
        return ""
    return f"p99 -: {_not_carried(one, 'p99')}"


def _throughput(result: Result) -> str:
    if (search := result.search) is not None:
        tried = f"{len(search.trials)} trials in {format_duration(search.seconds)}"
        return f"The search took {tried}. {_sentence(search.limit)}".strip()
    if (rate := result.rate) is None:
        return ""
    lasted = measured_s(result)
    if lasted is None:
        return _sentence(nothing_measured(result))
    return (
        f"{format_rate(rate.offered_per_s, 'events/s')} were offered for {format_duration(lasted)}, "
        f"and {result.engine} took in {format_rate(rate.ingested_per_s, 'events/s')}."
    )


def requested_events(result: Result) -> str:
    """The number of events that set the length of the span; empty if none did."""
    events = result.experiment.get("load", {}).get("events")
    return "" if events is None else f"{format_count(events)} events requested"


def _at_90_percent(trial: TrialSummary | None) -> str:
    """The latency at about 90 % of the rate that a search found."""
    if trial is None or trial.event_time_p50_us is None:
        return ""
    rate, verdict = format_rate(trial.offered_per_s, "events/s"), phrases.trial_verdict(trial)
    counted = Latency(p50=trial.until_counted_p50_us, p99=trial.until_counted_p99_us)
    late = _late(Latency(p50=trial.event_time_p50_us, p99=trial.event_time_p99_us), "")
    return f"At {rate} ({verdict}): {late[:1].lower()}{late[1:]} {_counted(counted)}".strip()


def _lateness(result: Result) -> str:
    if result.search is not None:
        return _at_90_percent(result.search.at_90_percent)
    latency = result.latency.event_time_us
    if latency is None:
        return ""
    of = f" of {result.slowest_sink}, the slowest sink," if result.slowest_sink else ""
    if latency.p50 is None:
        return "" if latency.count else f"No result{of} of the measured span had arrived when the run ended."
    late = _late_at_least(latency, of) if latency.lower_bounds else _late(latency, of)
    closed = _closed(result.latency.closing_delay_us)
    return " ".join(filter(None, (late, _counted(result.latency.until_counted_us), closed)))


def _closed(latency: Latency | None) -> str:
    """For windows, the wait after their end: a rare key's last event may be long before that."""
    if latency is None or latency.max is None or latency.lower_bounds:
        return ""
    return f"The last came {format_us(latency.max)} after its window's end."


def _counted(latency: Latency | None) -> str:
    """For updates, the wait that event-time latency leaves out: the wait of all events except the newest."""
    if latency is None or latency.p50 is None:
        return ""
    newest = "That is from the newest event in each update: half of all events"
    if latency.lower_bounds:
        return f"{newest} took at least {format_us(latency.p50)} until they were counted."
    tail = f", 99 % within {format_us(latency.p99)}" if latency.p99 is not None else ""
    return f"{newest} were counted within {format_us(latency.p50)}{tail}."


def _late(latency: Latency, of: str) -> str:
    tail = f", 99 % within {format_us(latency.p99)}" if latency.p99 is not None else ""
    last = f", the last within {format_us(latency.max)}" if latency.max is not None else ""
    return f"Half of the results{of} came within {format_us(latency.p50)} of their event time{tail}{last}."


def _late_at_least(latency: Latency, of: str) -> str:
    """The lateness of missing results is unknown, so the sentence only states lower bounds."""
    tail = f", and 1 % at least {format_us(latency.p99)}" if latency.p99 is not None else ""
    return (
        f"{format_count(latency.lower_bounds)} of {format_count(latency.count)} results{of} had not arrived "
        f"when the run ended: with them, half of all took at least {format_us(latency.p50)} from their event time"
        f"{tail}."
    )


def capital(text: str) -> str:
    """`text` with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def _sentence(text: str) -> str:
    return f"{capital(text).rstrip('.')}." if text else ""
