"""Service levels: latencies that a rate must hold, judged beside the named checks [method 3]."""

from __future__ import annotations

from typing import NamedTuple

from streamgauge.config.slo import ServiceLevelObjective
from streamgauge.core.formatting import format_us
from streamgauge.results.causes import Cause
from streamgauge.results.latency import PERCENTILES, Latencies, Latency
from streamgauge.results.verdict import Check, CheckState
from streamgauge.stats.percentile import observations_needed
from streamgauge.verdict.criteria import CheckFunction, answer, worst
from streamgauge.verdict.evidence import Evidence


def slo_check(level: ServiceLevelObjective) -> CheckFunction:
    """Every sink must hold the level; those that have no such latency (a closing delay of what has no window) are none
    of its business where another one has.
    """

    def check(evidence: Evidence) -> Check:
        named = {f"{sink.name}: ": sink.latency for sink in evidence.sinks} if len(evidence.sinks) > 1 else {}
        found = {of: _held(level, one) for of, one in (named or {"": evidence.latencies}).items()}
        there = {of: held for of, held in found.items() if held.latency is not None}
        return worst([_of_one(of, held) for of, held in (there or {"": _Held(None)}).items()])

    def _of_one(of: str, held: _Held) -> Check:
        latency = held.latency
        value: float | None = None if latency is None else getattr(latency, level.statistic)
        if latency is None or value is None:
            return _of_what_is_not_carried(of, level, held)
        sentence = f"{of}{level.text}: {held.of_what}it is {format_us(value)}"
        state: CheckState = "ok"
        code = Cause.OK
        if value > level.limit_us:
            state, code = "failed", Cause.LIMIT_EXCEEDED
        elif latency.lower_bounds:
            state, code = "undecided", Cause.RESULTS_OUTSTANDING
            sentence += f" or more: {latency.lower_bounds} {held.missing}"
        return answer(level.name, state, code, value, level.limit_us, "us", f"{sentence}{held.beside}")

    return check


class _Held(NamedTuple):
    """The latency that a level is held against, and how that is said."""

    latency: Latency | None
    of_what: str = ""
    beside: str = ""
    missing: str = "results had not arrived"


def _held(level: ServiceLevelObjective, latencies: Latencies) -> _Held:
    """Of updates, event time is that of the newest event in each, which a longer batch makes no later: a level on it is
    held against the wait of every event until it was counted.
    """
    counted = latencies.until_counted_us
    if level.kind != "event_time" or counted is None:
        return _Held(latencies.of(level.kind))
    newest_us = getattr(latencies.event_time_us, level.statistic, None)
    beside = "" if newest_us is None else f" (of the newest event in each update: {format_us(newest_us)})"
    return _Held(counted, "until every event is counted, ", beside, "events were in no committed batch")


def _of_what_is_not_carried(of: str, level: ServiceLevelObjective, held: _Held) -> Check:
    """Undecided, unless a lower percentile that is carried lies beyond the limit: the one asked for is no less."""
    latency = held.latency
    if latency is None:
        sentence = f"{of}{level.text}: no result had {_an(level.kind)}"
        return answer(level.name, "undecided", Cause.NO_LATENCY, None, level.limit_us, "us", sentence)
    seen, q = latency.effective_count, PERCENTILES.get(level.statistic)
    lower = {name: getattr(latency, name) for name, share in PERCENTILES.items() if q is not None and share < q}
    beyond = [(name, value) for name, value in lower.items() if value is not None and value > level.limit_us]
    if beyond:
        name, value = beyond[-1]
        shown = name.replace("_", ".")
        sentence = f"{of}{level.text}: {held.of_what}{shown} is {format_us(value)} already{held.beside}"
        return answer(level.name, "failed", Cause.LIMIT_EXCEEDED, value, level.limit_us, "us", sentence)
    if not latency.count:
        sentence = f"{of}{level.text}: {held.of_what}it is {latency.note}{held.beside}"
        if not latency.note:
            sentence = f"{of}{level.text}: no result came in the span, so there is no latency"
        return answer(level.name, "undecided", Cause.NO_LATENCY, None, level.limit_us, "us", sentence)
    needed = "" if q is None else f", {observations_needed(q)} do"
    sentence = f"{of}{level.text}: {seen} independent results do not carry it{needed}"
    return answer(level.name, "undecided", Cause.TOO_FEW_RESULTS, None, level.limit_us, "us", sentence)


def _an(kind: str) -> str:
    return "a latency until counted" if kind == "until_counted" else f"a {kind.replace('_', ' ')}"
