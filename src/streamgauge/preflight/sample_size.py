"""Sample-size rules: whether the span, the queue and a latency limit can lead to a decision at all.

Each rule uses only what is known before the start: windows, the engine's batch interval, rate and memory.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from streamgauge.config.experiment import SETTINGS, Experiment, Load
from streamgauge.config.limits import BATCHES_MIN, BOUND_S_MIN, EXTENSION_SHARE_MAX, EXTENSIONS_MAX, WINDOWS_MIN
from streamgauge.core.clock import US
from streamgauge.core.errors import Problem, Rule, broken
from streamgauge.core.formatting import format_rate
from streamgauge.dataflow.nodes import Flow
from streamgauge.engines.spi import BatchInterval
from streamgauge.loadgen.rate_profile import RATE_MAX_PER_S
from streamgauge.metrics.event_latency import latencies_of
from streamgauge.preflight.resolved_experiment import Draft, ResolvedExperiment, longest_slide_us, may_extend
from streamgauge.results.latency import PERCENTILES
from streamgauge.stats.samples import carries, observations_needed
from streamgauge.system.machine import memory_bytes
from streamgauge.transports.registry import STAMPS

BOUND_INTERVALS_MIN = 3
"""Batches that must fit into the queue: one that the engine reads, one that waits for its trigger, and one more for a
single slow batch."""
UNSEEN_S_MAX = 60.0
"""A search for which a read may be seen later than this needs a start rate. Chosen, for steps of two minutes."""
SPANS_S = {
    "duration": (1, 7 * 86_400, "from 1 s to 7 days"),
    "warmup": (0, 3600, "at most an hour"),
    "chunk": (0.001, 1, "from 1 ms to 1 s"),
    "bound": (1, 3600, "from 1 s to an hour of the rate"),
}
"""Least and greatest time of each setting of the load, in seconds and in words."""
DECIDING = ("run", "sustain")
"""The commands that start an engine and judge it."""


@dataclass(frozen=True)
class Spacing:
    """The least distance of windows or batches, the setting behind it, and the number that a verdict needs."""

    what: str
    setting: str
    seconds: float
    needed: int


def spacings(flow: Flow | None, interval: BatchInterval) -> list[Spacing]:
    """The spacings known before the start; none for results row by row in batches back to back."""
    slide_us = (longest_slide_us(flow) if flow is not None else None) or 0
    known = (
        Spacing("windows", "slide", slide_us / US, WINDOWS_MIN),
        Spacing("batches", interval.option, interval.seconds, BATCHES_MIN),
    )
    return [spacing for spacing in known if spacing.seconds]


class Lack(NamedTuple):
    """A percentile for which a span holds only `held` windows or batches: what it needs, in words and in seconds."""

    needs: str
    needed_s: float
    held: int


def lacking_percentiles(spaced: Sequence[Spacing], span_s: float) -> dict[str, Lack]:
    """The percentiles that a span cannot have; none is known where nothing is spaced, or of an endless span."""
    if not spaced or span_s == math.inf:
        return {}
    fewest = max(spaced, key=lambda spacing: spacing.seconds)
    count = round(span_s * US) // max(1, round(fewest.seconds * US))
    needed = {name: observations_needed(q) for name, q in PERCENTILES.items() if not carries(q, count)}
    words = f"{fewest.what} ({fewest.setting}: {fewest.seconds:g} s)"
    return {name: Lack(f"needs {number} {words}", number * fewest.seconds, count) for name, number in needed.items()}


def span_setting(load: Load) -> str:
    """The setting that gives the length of the measured span."""
    return "load.duration" if load.events is None else "load.events"


def span_option(load: Load, seconds: float) -> str:
    """The option for a measured span of at least so many seconds."""
    whole = math.ceil(seconds)
    return f"--duration {whole}s" if load.events is None else f"--events {math.ceil(whole * load.rate)}"


def in_range(name: str, seconds: float) -> bool:
    """Whether a time of the load is within `SPANS_S`."""
    least, greatest, _ = SPANS_S[name]
    return least <= seconds <= greatest


def load_problems(experiment: Experiment) -> list[Problem]:
    """Times and rates of the load that no trial can have."""
    load = experiment.load
    times = {name: seconds for name in SPANS_S if (seconds := getattr(load, name)) is not None}
    rates = {"load.rate": load.rate, "search.start_rate": experiment.search.start_rate or 0}
    return broken(
        *(
            Rule(
                in_range(name, seconds), span_setting(load) if name == "duration" else f"load.{name}",
                f"must be {SPANS_S[name][2]}", f"{seconds:g}s",
                span_option(load, 60) if name == "duration" else SETTINGS[f"load.{name}"].way_out,
            )
            for name, seconds in times.items()
        ),
        *(
            Rule(
                rate <= RATE_MAX_PER_S, name, "must be at most 1G events/s", rate, f"{SETTINGS[name].flag} 1M"
            )
            for name, rate in rates.items()
        ),
        Rule(
            load.events is None or load.profile == "constant", "load.events",
            "must not be given where the rate changes, because then a number of events sets no span", load.events,
            "--duration 60s, or --load-shape constant",
        ),
    )  # fmt: skip


def span_problems(draft: Draft) -> Iterator[Problem]:
    """A span that can only be undecided: even at its longest it holds too few windows or batches."""
    load = draft.experiment.load
    longest = _longest_s(draft.experiment)
    short = [one for one in spacings(draft.flow, draft.interval) if longest < one.needed * one.seconds]
    if short and draft.engine is not None:
        counts = ", and ".join(
            f"{int(longest / one.seconds)} {one.what} ({one.setting}: {one.seconds:g} s) where a verdict needs "
            f"{one.needed}"
            for one in short
        )
        needed = max(one.needed * one.seconds for one in short)
        rule = f"is too short for a verdict: {_span_in_words(load, longest)} holds {counts}"
        yield Problem(span_setting(load), rule, f"{load.duration:g}s", span_option(load, needed))


def percentile_problems(draft: Draft) -> Iterator[Problem]:
    """Limits on a percentile for which even the longest span holds too few windows or batches."""
    longest = _longest_s(draft.experiment)
    lacking = lacking_percentiles(spacings(draft.flow, draft.interval), longest)
    for limit in draft.limits:
        if limit.statistic in lacking:
            one = lacking[limit.statistic]
            span, name = _span_in_words(draft.experiment.load, longest), limit.statistic.replace("_", ".")
            rule = f"can only be undecided: {name} {one.needs}, and {span} holds {one.held}"
            decidable = f"{limit.kind}_max<={limit.text.partition('<=')[2].strip()}"
            way_out = f'--limit "{decidable}", or p50, or {span_option(draft.experiment.load, one.needed_s)}'
            yield Problem("limits", rule, limit.text, way_out)


def percentile_note(resolved: ResolvedExperiment) -> str:
    """What a limit's percentile needs, where only the trial shows how many independent results there are.

    So it is for jobs, programs and results row by row in batches back to back. Empty where it was checked before.
    """
    quantiles = [PERCENTILES[one.statistic] for one in resolved.limits if one.statistic in PERCENTILES]
    if not quantiles or spacings(resolved.flow, resolved.interval):
        return ""
    needed = observations_needed(max(quantiles))
    return f"the limit needs {needed} independent results (batches or windows), and only the span shows how many it has"


def latency_kind_problems(draft: Draft) -> Iterator[Problem]:
    """Limits on a latency that no result of the flow has, over this transport."""
    kinds = latencies_of(draft.flow) if draft.flow is not None else None
    for limit in draft.limits if draft.flow is not None else ():
        if limit.kind == "processing_time" and draft.transport not in STAMPS:
            rule = f"is unknown over {draft.transport}, where the driver does not see when an event is read"
        elif kinds is not None and limit.kind not in kinds:
            rule = f"names a latency that no result of this workload has; its latencies are {', '.join(kinds)}"
        else:
            continue
        fallback = f"event_time_{limit.text.removeprefix(limit.kind).lstrip('_').strip()}"
        yield Problem("limits", rule, limit.text, f'--limit "{fallback}"')


def _longest_s(experiment: Experiment) -> float:
    """The longest span by extensions, in seconds; infinite if no figure depends on it, or the duration is refused."""
    load = experiment.load
    if experiment.command not in DECIDING or experiment.is_quick_look or not in_range("duration", load.duration):
        return math.inf
    return load.duration * (1 + EXTENSIONS_MAX * EXTENSION_SHARE_MAX) if may_extend(load) else load.duration


def _span_in_words(load: Load, longest_s: float) -> str:
    if may_extend(load):
        return f"even extended to {longest_s:g} s, the maximum, it"
    return f"a span of {load.duration:g} s (a rate that changes is not extended)"


def bound_problems(draft: Draft) -> list[Problem]:
    """A queue that fills between two batches at any rate, which says nothing about the engine."""
    bound, interval = draft.experiment.load.bound, draft.interval
    least, shorter = BOUND_INTERVALS_MIN * interval.seconds, f"a shorter --option {interval.option}"
    if draft.experiment.command not in DECIDING or not in_range("bound", bound):
        return []
    rule = (
        f"must be at least {BOUND_INTERVALS_MIN} times the engine's interval of batches "
        f"({interval.option}: {interval.seconds:g} s)"
    )
    way_out = f"--queue-limit {least:g}s, or {shorter}"
    if not in_range("bound", least):
        way_out = f"{shorter}: --queue-limit is at most an hour"
    return broken(Rule(bound >= least, "load.bound", rule, f"{bound:g}s", way_out))


def needed_queue_bytes(resolved: ResolvedExperiment) -> int:
    """Memory of a queue that holds as much of a run's rate as a verdict needs; 0 if its queue does, or needs not."""
    seconds, cut = resolved.bound_s(resolved.experiment.load.rate)
    if resolved.experiment.command != "run" or not cut or seconds >= BOUND_S_MIN:
        return 0
    return (math.ceil(resolved.bytes_max * BOUND_S_MIN / seconds / 2**20) + 1) * 2**20


def queue_problems(resolved: ResolvedExperiment) -> list[Problem]:
    """A queue that memory limits to a few seconds of the rate; its overflow says nothing about the engine."""
    if not (needed := needed_queue_bytes(resolved)):
        return []
    load = resolved.experiment.load
    seconds, _ = resolved.bound_s(load.rate)
    lower = load.rate * seconds / BOUND_S_MIN
    rule = (
        f"is too much for the queue's memory of {resolved.bytes_max / 2**20:.4g} MiB, which holds {seconds:.2g} s of "
        f"it where a verdict needs {BOUND_S_MIN:g} s"
    )
    more = f"--queue-memory {needed // 2**20}MiB, or " if needed <= memory_bytes() else ""
    return [Problem("load.rate", rule, format_rate(load.rate), f"{more}--rate {_rounded_down(lower)}")]


def unseen_problems(resolved: ResolvedExperiment) -> list[Problem]:
    """A search that would guess its first rate from progress that is seen minutes late."""
    experiment, unseen_s = resolved.experiment, resolved.unseen_s
    rule = (
        f"must be given where a read may be seen {unseen_s:g} s later: the first guess is made from steps in which "
        f"progress moves twice, and these may last {2 * UNSEEN_S_MAX:g} s"
    )
    way_out = "--start-rate 10k, a rate that surely holds; or shorter commit intervals or windows"
    fits = experiment.command != "sustain" or experiment.search.start_rate or unseen_s <= UNSEEN_S_MAX
    return broken(Rule(fits, "search.start_rate", rule, experiment.search.start_rate, way_out))


def _rounded_down(rate_per_s: float) -> str:
    """A rate rounded down to two digits, in the form of `--rate`."""
    step = 10.0 ** (math.floor(math.log10(rate_per_s)) - 1)
    return format_rate(math.floor(rate_per_s / step) * step).replace(" ", "")
