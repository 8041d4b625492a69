"""Numbers and names as people read them; used by the page and the terminal alike, so that both say the same.

A value that is not known is shown as "-", never as 0.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from streamgauge.result import (
    Check,
    ComparedSide,
    Comparison,
    Difference,
    Latencies,
    Latency,
    NotTheSame,
    Operator,
    SearchResult,
    TrialSummary,
    Verification,
)

NONE = "-"
GAP = "\u202f"
"""Narrow no-break space: between thousands, and between a number and its unit."""

_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(,\d{3})+(?![\d,]*\d)")
_TIMES = ((1e6, "s"), (1e3, "ms"), (1.0, "us"))
_COUNTS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_SIZES = ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"))

VERDICTS = {
    "sustained": "sustained",
    "not_sustained": "not sustained",
    "undecided": "undecided",
    "invalid": "invalid",
    "interrupted": "interrupted",
}

STATES = {
    "ok": "holds",
    "failed": "failed",
    "undecided": "undecided",
    "invalid": "invalid",
    "not_judged": "not judged",
}

SAYS = {
    "better": "B is better",
    "worse": "B is worse",
    "no_difference": "no difference shown",
    "unknown": "unknown",
}
"""What the interval of a difference says: one that holds 0 shows none, which is not proof that there is none."""


LATENCIES = {
    "event_time": "event time",
    "until_counted": "until counted",
    "processing_time": "processing time",
    "closing_delay": "closing delay",
    "match_time": "match time",
    "uncorrected": "uncorrected",
}
"""Every kind of latency as people call it."""

NEWEST = ", newest event"
"""After `event time` where every event has a latency of its own beside it, until it was counted: of updates."""

OF_THE_RUNS = ", mean of the runs'"
"""In the label of a percentile over several runs: a mean of percentiles is a statistic over runs, and no percentile."""

MEANINGS = {
    "event_time": "emission - event time, from the plan",
    "until_counted": "of every event: arrival of the results of the batch that took it in - event time",
    "processing_time": "emission - first hand-out to the system",
    "closing_delay": "emission - end of the window",
    "match_time": "emission - later of the two matched events",
    "uncorrected": "event time counted from the real hand-over: what a tool that waits would report",
}


def latency_name(kind: str, among: Latencies) -> str:
    """A kind of latency as it is called beside the others of its sink."""
    return LATENCIES[kind] + (NEWEST if kind == "event_time" and among.until_counted_us is not None else "")


def until_counted(trial: TrialSummary) -> str:
    """What follows the event-time latency of a trial whose results are updates; nothing of others."""
    if trial.until_counted_p50_us is None:
        return ""
    percentiles = f"p50 {time_us(trial.until_counted_p50_us)}, p99 {time_us(trial.until_counted_p99_us)}"
    return f"{NEWEST}; until counted {percentiles}"


def digits(value: float, significant: int = 3) -> str:
    """`value` to three significant digits, never in powers of ten: 1234.5 is 1235, 0.01234 is 0.0123."""
    if value == 0:
        return "0"
    rounded = float(f"{value:.{significant - 1}e}")
    if abs(rounded) >= 10 ** (significant - 1):
        return grouped(value)
    return f"{rounded:.12f}".rstrip("0").rstrip(".") or "0"


def grouped(value: float) -> str:
    """Whole numbers with their thousands apart: 24 000."""
    return f"{value:,.0f}".replace(",", GAP)


def spaced(text: str) -> str:
    """A sentence of a result, whose numbers have commas between thousands, with the gap that all others have here."""
    return _GROUPED.sub(lambda found: found.group().replace(",", GAP), text)


def count(value: float | None) -> str:
    return NONE if value is None else grouped(value)


def rate(per_s: float | None, unit: str = "events/s") -> str:
    """1540000 is `1.54 M events/s`."""
    if per_s is None:
        return NONE
    for factor, prefix in _COUNTS:
        if abs(float(f"{per_s:.2e}")) >= factor:
            return f"{digits(per_s / factor)}{GAP}{prefix} {unit}".rstrip()
    return f"{digits(per_s)} {unit}".rstrip()


def time_us(us: float | None) -> str:
    """A time in microseconds: `87 us`, `185 ms`, `3.1 s`."""
    return NONE if us is None else _scaled(us, _TIMES)


def statistic(name: str) -> str:
    """A statistic as people write it: `p99.9`."""
    return name.replace("_", ".")


def latency(of: Latency | None, name: str) -> str:
    """One statistic of a latency: `3.1 s`, or `≥ 3.1 s` where results that had not come are in it as lower bounds."""
    value = None if of is None else getattr(of, name)
    if of is None or value is None:
        return NONE
    return f"≥{GAP}{time_us(value)}" if of.lower_bounds else time_us(value)


def size(size_bytes: float | None) -> str:
    return NONE if size_bytes is None else _scaled(size_bytes, _SIZES)


def percent(value: float | None) -> str:
    """A value that is in percent already."""
    return NONE if value is None else f"{digits(value)}{GAP}%"


def span(seconds: float) -> str:
    """`12 s`, `6 min 12 s`, `1 h 4 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{digits(seconds) if seconds < 10 else whole}{GAP}s"
    if whole < 3600:
        return f"{whole // 60}{GAP}min" + (f" {whole % 60}{GAP}s" if whole % 60 else "")
    return f"{whole // 3600}{GAP}h" + (f" {whole % 3600 // 60}{GAP}min" if whole % 3600 // 60 else "")


def slope(share: float | None) -> str:
    """Growth of the backlog per second, as a share of the rate: `+4.1 %/s`; below 0.1 % it is called flat."""
    if share is None:
        return NONE
    return "flat" if abs(share) < 0.001 else f"{100 * share:+.1f}{GAP}%/s"


def measured(value: float | None, unit: str) -> str:
    """A check's number or limit in its own unit."""
    if value is None:
        return NONE
    return {
        "us": lambda: time_us(value),
        "s": lambda: time_us(1e6 * value),
        "events/s": lambda: rate(value),
        "bytes": lambda: size(value),
        "s/s": lambda: percent(100 * value),
        "share of plan": lambda: f"{percent(100 * value)} of plan",
        "share of time": lambda: f"{percent(100 * value)} of time",
    }.get(unit, lambda: f"{digits(value)}{GAP}{unit}".rstrip(GAP))()


def state(check: Check) -> str:
    """What became of a check. A number beyond its limit need not fail it: it may not be sure, or no more than drift."""
    sure = check.high is None or check.limit is None or check.high <= check.limit
    return STATES[check.state] if check.state != "ok" or sure else "not shown to fail"


def not_counted(operator: Operator) -> str:
    """Of how many batches an operator's rows are not known; empty where they are of all."""
    if not operator.batches_unknown or operator.batches is None:
        return ""
    if operator.batches_unknown == operator.batches:
        return "its rows were not counted"
    return f"{grouped(operator.batches_unknown)} of {grouped(operator.batches)} batches not counted"


def interval(check: Check) -> str:
    """The interval of a check's number, where it has one."""
    if check.low is None or check.high is None:
        return NONE
    return f"{measured(check.low, check.unit)} to {measured(check.high, check.unit)}"


def bracket(search: SearchResult) -> str:
    """`1.54 M holds, 1.6 M does not`, or what of it is known."""
    low = f"{rate(search.low, '')} holds" if search.low is not None else "no rate was found that holds"
    not_held = "is undecided" if search.high_verdict == "undecided" else "does not"
    high = f"{rate(search.high, '')} {not_held}" if search.high is not None else "no rate was found that does not"
    return f"{low}, {high}"


def confirmed(at_90_percent: TrialSummary | None) -> str:
    """What a confirmed rate may be called, by the trial at 90 % of it."""
    verdict = at_90_percent.verdict if at_90_percent is not None else None
    at_90 = {
        None: ", but not tried at 90 %",
        "sustained": " and at 90 %",
        "undecided": ", but undecided at 90 %",
    }
    return "confirmed on a fresh engine" + at_90.get(verdict, f", but the trial at 90 % was {verdict}")


def trial_verdict(trial: TrialSummary) -> str:
    """A trial's verdict; that of an overload trial is none, whatever the engine did with it."""
    return VERDICTS[trial.verdict] if trial.verdict else STATES["not_judged"]


def verified(verification: Verification | None) -> str:
    """The verification in one sentence without its full stop."""
    if verification is None or not verification.judged:
        return "answers: not judged"
    if verification.sentence:
        return spaced(verification.sentence.rstrip("."))
    if verification.right:
        return f"{grouped(verification.expected)} results expected, all matched"
    matched = f"{grouped(verification.matched)} matched"
    return f"{grouped(verification.expected)} results expected, {matched}; {faults(verification)}"


def faults(verification: Verification) -> str:
    """What is wrong, kind by kind: `3 missing, 1 wrong`."""
    kinds = ("missing", "extra", "duplicate", "wrong", "late")
    return ", ".join(f"{grouped(n)} {kind}" for kind in kinds if (n := getattr(verification, kind)))


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested mappings as one, with dotted names, so that they can be shown as a table."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            found |= flat(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = value
    return found


def plain(value: Any) -> str:
    """A setting's value as text."""
    if value is None:
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(plain(item) for item in value) or NONE
    return str(value) or NONE


def fact(name: str, value: Any) -> str:
    """A named fact about the machine: sizes by their unit, everything else as it is."""
    return size(value) if name.endswith("_bytes") and isinstance(value, int | float) else plain(value)


def number(value: float) -> str:
    """A number in full, as the command line reads it: 1540000.0 is `1540000`."""
    return f"{value:.9f}".rstrip("0").rstrip(".") if abs(value) >= 1e-9 else "0"


def _scaled(value: float, units: tuple[tuple[float, str], ...]) -> str:
    """`value` in the first unit of which it makes at least one after rounding, so that 999.96 ms is 1 s."""
    for factor, unit in units[:-1]:
        if abs(float(f"{value / factor:.2e}")) >= 1:
            return f"{digits(value / factor)}{GAP}{unit}"
    return f"{digits(value / units[-1][0])}{GAP}{units[-1][1]}"


def signed(value: float | None, share: bool, unit: str = "") -> str:
    """A difference: a share as `+4.1 %`, anything else in its unit."""
    if value is None:
        return NONE
    amount = 100 * value if share else value
    sign = "+" if amount > 0 else "-" if amount < 0 else ""
    return f"{sign}{digits(abs(amount))}{GAP}{'%' if share else unit}".rstrip(GAP)


def difference(of: Difference) -> str:
    """A difference with its interval: `+4.1 % (-0.2 % to +8.4 %)`."""
    middle = signed(of.difference, of.share, of.unit)
    return middle if of.method in ("none", "counted") else f"{middle} ({difference_interval(of)})"


def short_label(of: Difference) -> str:
    """A figure's label where there is little room; what stands beside it says what percentiles are of."""
    return of.label.replace(OF_THE_RUNS, "")


def difference_interval(of: Difference) -> str:
    """The interval alone; an end without a bound is said so."""
    if of.method == "none":
        return NONE
    low = "no lower bound" if of.low is None else signed(of.low, of.share, of.unit)
    high = "no upper bound" if of.high is None else signed(of.high, of.share, of.unit)
    return low if of.method == "counted" else f"{low} to {high}"


def side(of: ComparedSide, kind: str) -> str:
    """What stands on a side: its runs by name, and how many they are."""
    names = ", ".join(run.run_id for run in of.runs)
    many = f"{len(of.runs)} {'searches' if kind == 'search' else 'runs'}: " if len(of.runs) > 1 else ""
    return f"{many}{names}"


def not_the_same(one: NotTheSame) -> str:
    """`load.rate   A 50000   B 60000`."""
    return f"{one.setting}   A {' | '.join(one.a)}   B {' | '.join(one.b)}"


def compared_failures(of: Comparison) -> list[str]:
    """What must be read before any figure: `B failed: wrong answers (30 missing) (2 of 3 runs)`, or several reasons."""
    found = []
    for name, compared_side in (("A", of.a), ("B", of.b)):
        reasons = Counter(run.failed for run in compared_side.runs if run.failed)
        runs = len(compared_side.runs)
        found += [f"{name} failed: {why}" + (f", {n} of {runs} runs" if runs > 1 else "") for why, n in reasons.items()]
    return found


def compared(of: Comparison) -> str:
    """The answer as a headline: which side failed, then which figures differ."""
    failed = [name for name, one in (("A", of.a), ("B", of.b)) if any(run.failed for run in one.runs)]
    before = f"{' and '.join(failed)} failed; " if failed else ""
    named = [one.setting for one in of.not_the_same if one.setting in ("workload", "load.rate")]
    asked = list(dict.fromkeys([*named, *of.asked_otherwise]))
    other = f"{of_different(asked)}; " if asked else ""
    return before + other + _compared_figures(of)


def of_different(settings: Sequence[str]) -> str:
    """`A and B are of different isolation, load.rate and load.duration`."""
    *others, last = settings
    return f"A and B are of different {', '.join(others)}{' and ' if others else ''}{last}"


def _compared_figures(of: Comparison) -> str:
    said = {says: [one.label for one in of.figures if one.says == says] for says in ("better", "worse")}
    parts = [f"B is {says} in {len(labels)} of {len(of.figures)} figures" for says, labels in said.items() if labels]
    other = any(one.setting == "workload" for one in of.not_the_same)
    return "; ".join(parts) or ("no figure says which is better" if other else "no difference shown")


def compared_sentences(of: Comparison) -> list[str]:
    """Each figure that differs, by how much; then how many could not be told."""
    found = [
        f"{SAYS[says]}: " + "; ".join(f"{one.label} {difference(one)}" for one in of.figures if one.says == says) + "."
        for says in ("worse", "better")
        if any(one.says == says for one in of.figures)
    ]
    unknown = [one for one in of.figures if one.says == "unknown"]
    without = sum(one.low is None and one.high is None for one in unknown)
    for number, what in ((without, "have no interval"), (len(unknown) - without, "say nothing of which is better")):
        if number:
            found.append(f"{number} of {len(of.figures)} figures {what}.")
    return found
