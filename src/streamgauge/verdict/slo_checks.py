"""Checks of the user's latency limits, beside the named checks."""

from __future__ import annotations

from typing import NamedTuple

from streamgauge.config.limits import ServiceLevelObjective
from streamgauge.core.formatting import format_us
from streamgauge.results.causes import Cause
from streamgauge.results.latency import PERCENTILES, Latencies, Latency
from streamgauge.results.verdict import Check, CheckState
from streamgauge.stats.samples import observations_needed
from streamgauge.verdict.criteria.check_spec import CheckFunction, make_check, worst
from streamgauge.verdict.evidence import Evidence


def slo_check(level: ServiceLevelObjective) -> CheckFunction:
    """The check of a limit on every sink that has such a latency: a sink without windows has no closing delay."""

    def check(evidence: Evidence) -> Check:
        by_sink = {f"{sink.name}: ": sink.latency for sink in evidence.sinks} if len(evidence.sinks) > 1 else {}
        measured = {of: _measured(level, one) for of, one in (by_sink or {"": evidence.latencies}).items()}
        with_latency = {of: one for of, one in measured.items() if one.latency is not None}
        return worst([_sink_check(of, one) for of, one in (with_latency or {"": _Measured(None)}).items()])

    def _sink_check(of: str, measured: _Measured) -> Check:
        latency = measured.latency
        value: float | None = None if latency is None else getattr(latency, level.statistic)
        if latency is None or value is None:
            return _check_without_value(of, level, measured)
        sentence = f"{of}{level.text}: {measured.of_what}it is {format_us(value)}"
        state: CheckState = "ok"
        code = Cause.OK
        if value > level.limit_us:
            state, code = "failed", Cause.LIMIT_EXCEEDED
        elif latency.lower_bounds:
            state, code = "undecided", Cause.RESULTS_OUTSTANDING
            sentence += f" or more: {latency.lower_bounds} {measured.missing}"
        return make_check(level.name, state, code, value, level.limit_us, "us", f"{sentence}{measured.remark}")

    return check


class _Measured(NamedTuple):
    """The latency that is compared with a limit, and the words for it."""

    latency: Latency | None
    of_what: str = ""
    remark: str = ""
    missing: str = "results had not arrived"


def _measured(level: ServiceLevelObjective, latencies: Latencies) -> _Measured:
    """The latency for a limit.

    Event time of an update is that of its newest event, which a longer batch makes no later. So a limit on it applies
    to the wait of every event until it was counted.
    """
    until_counted = latencies.until_counted_us
    if level.kind != "event_time" or until_counted is None:
        return _Measured(latencies.by_kind(level.kind))
    newest_us = getattr(latencies.event_time_us, level.statistic, None)
    remark = "" if newest_us is None else f" (newest event of each update: {format_us(newest_us)})"
    return _Measured(until_counted, "until every event is counted, ", remark, "events were in no committed batch")


def _check_without_value(of: str, level: ServiceLevelObjective, measured: _Measured) -> Check:
    """Undecided, unless a lower percentile is already above the limit."""
    latency = measured.latency
    if latency is None:
        sentence = f"{of}{level.text}: no result had {_an(level.kind)}"
        return make_check(level.name, "undecided", Cause.NO_LATENCY, None, level.limit_us, "us", sentence)
    seen, q = latency.effective_count, PERCENTILES.get(level.statistic)
    lower = {name: getattr(latency, name) for name, share in PERCENTILES.items() if q is not None and share < q}
    above = [(name, value) for name, value in lower.items() if value is not None and value > level.limit_us]
    if above:
        name, value = above[-1]
        what = f"{measured.of_what}{name.replace('_', '.')}"
        sentence = f"{of}{level.text}: {what} is already {format_us(value)}{measured.remark}"
        return make_check(level.name, "failed", Cause.LIMIT_EXCEEDED, value, level.limit_us, "us", sentence)
    if not latency.count:
        sentence = f"{of}{level.text}: {measured.of_what}it is {latency.note}{measured.remark}"
        if not latency.note:
            sentence = f"{of}{level.text}: no result came in the span, so there is no latency"
        return make_check(level.name, "undecided", Cause.NO_LATENCY, None, level.limit_us, "us", sentence)
    needed = "" if q is None else f" (minimum {observations_needed(q)})"
    sentence = f"{of}{level.text}: {seen} independent results are too few{needed}"
    return make_check(level.name, "undecided", Cause.TOO_FEW_RESULTS, None, level.limit_us, "us", sentence)


def _an(kind: str) -> str:
    return "a latency until counted" if kind == "until_counted" else f"a {kind.replace('_', ' ')}"
