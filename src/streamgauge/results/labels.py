"""Labels of verdicts, latencies and differences, for results, messages and reports."""

from collections import Counter
from collections.abc import Iterable, Sequence

from streamgauge.core.formatting import NONE, format_rate, format_signed
from streamgauge.results.comparison import Difference
from streamgauge.results.search import TrialSummary, last_that_held

VERDICTS = {
    "sustained": "sustained",
    "not_sustained": "not sustained",
    "undecided": "undecided",
    "invalid": "invalid",
    "interrupted": "interrupted",
}

LATENCIES = {
    "event_time": "event time",
    "until_counted": "until counted",
    "processing_time": "processing time",
    "closing_delay": "closing delay",
    "match_time": "match time",
    "uncorrected": "uncorrected",
}
"""Label of every kind of latency."""

OF_THE_RUNS = ", mean of the runs'"
"""Part of a percentile's label over several runs: a mean of percentiles is not a percentile."""


def counted_verdicts(verdicts: Iterable[str | None]) -> str:
    """The number of each verdict: `3 sustained, 1 invalid`."""
    counts = Counter(verdicts)
    return ", ".join(f"{counts[value]} {label}" for value, label in VERDICTS.items() if counts[value])


def check(name: str) -> str:
    """The name of a check in a sentence: `backlog trend`."""
    return name.replace("_", " ")


def statistic(name: str) -> str:
    """The label of a statistic: `p99.9`."""
    return name.replace("_", ".")


def confirmed(trials: Sequence[TrialSummary], rate_per_s: float, at_90_percent: TrialSummary | None) -> str:
    """The label of a confirmed rate, by its engine and by the trial at 90 % of it."""
    verdict, rate = (at_90_percent.verdict, at_90_percent.offered_per_s) if at_90_percent is not None else (None, None)
    share = share_of(rate, rate_per_s)
    at_90 = {
        None: f", but not tried at {share}",
        "sustained": f" and at {share}",
        "undecided": f", but undecided at {share}",
    }.get(verdict, f", but the trial at {share} was {verdict}")
    return f"confirmed {_confirmed_on(trials, rate_per_s)}{at_90}"


def share_of(rate_per_s: float | None, found_per_s: float | None) -> str:
    """The rate of a search's trial at 90 % as a share of the rate found. An earlier trial near 90 % may take its place.

    `90 %` without such a trial.
    """
    return f"{100 * rate_per_s / found_per_s:.0f} %" if rate_per_s and found_per_s else "90 %"


def _confirmed_on(trials: Sequence[TrialSummary], rate_per_s: float) -> str:
    """The engine of the confirming trial, with the last trial before on it that did not hold, if one did not.

    Fresh is said only of an engine that was started for the confirmation.
    """
    confirming = last_that_held(trials, rate_per_s)
    assert confirming is not None
    before = [one for one in trials[: confirming.number - 1] if one.engine_start == confirming.engine_start]
    if not confirming.engine_start:  # not recorded: an engine starts for the first confirmation, and after invalid ones
        before = [one for one in before if one.purpose in ("confirm", "at 90 %") and one.verdict != "invalid"]
    from_bracket = bool({"bracket", "bisect"} & {one.purpose for one in (*before, confirming)})
    failed = [one for one in before if one.verdict != "sustained"]
    where = f"on an engine started {'after the overload trial' if from_bracket else 'for the confirmation'}"
    if not failed:
        return where if from_bracket else "on a fresh engine"
    last = failed[-1]
    verdict = "did not hold" if last.verdict == "not_sustained" else f"was {VERDICTS[last.verdict or 'undecided']}"
    return f"{where}, after a trial at {format_rate(last.offered_per_s)} that {verdict}"


def difference(of: Difference) -> str:
    """A difference with its interval: `+4.1 % (-0.2 % to +8.4 %)`."""
    middle = format_signed(of.difference, of.share, of.unit)
    return middle if of.method in ("none", "counted") else f"{middle} ({difference_interval(of)})"


def difference_interval(of: Difference) -> str:
    """The interval of a difference."""
    if of.method == "none":
        return NONE
    low = "no lower bound" if of.low is None else format_signed(of.low, of.share, of.unit)
    high = "no upper bound" if of.high is None else format_signed(of.high, of.share, of.unit)
    return low if of.method == "counted" else f"{low} to {high}"


def short_label(of: Difference) -> str:
    """A figure's label without "mean of the runs'"."""
    return of.label.replace(OF_THE_RUNS, "")


def different_settings(settings: Sequence[str]) -> str:
    """`A and B differ in isolation, load.rate and load.duration`."""
    *first, last = settings
    return f"A and B differ in {', '.join(first)}{' and ' if first else ''}{last}"
