"""Service-level objectives: limits that a user sets on latencies."""

from __future__ import annotations

import re
from dataclasses import dataclass

from streamgauge.core.clock import US
from streamgauge.core.errors import InputError, Problem, near
from streamgauge.core.units import parse_duration
from streamgauge.results.latency import LATENCY_KINDS, STATISTICS

_NAMES = "|".join(re.escape(name.replace("_", mark)) for name in STATISTICS for mark in dict.fromkeys("_."))
_LIMIT_EXAMPLE = '--limit "event_time_p99<=2s"'
_SIGNED = re.compile(r"\s*([\w.]+)\s*(<=|=<|==|≤|<|=|:)\s*(\S+)\s*$")
"""What was meant as a limit: NAME, a sign, TIME."""
_LIMIT = re.compile(rf"\s*(?:({'|'.join(LATENCY_KINDS)})_)?({_NAMES})\s*<=\s*(\S+)\s*$")


@dataclass(frozen=True)
class ServiceLevelObjective:
    """A limit that the user sets on one statistic of one latency, microseconds; `text` is as it was written."""

    kind: str
    statistic: str
    limit_us: float
    text: str

    @property
    def name(self) -> str:
        return f"{self.kind}_{self.statistic}"


def parse_limit(text: str, setting: str = "limits") -> ServiceLevelObjective:
    """`event_time_p99 <= 2s` as a service level; `p99<=2s` means event time. InputError on anything else."""
    match = _LIMIT.match(text)
    if match is None:
        raise InputError(_no_limit(text, setting))
    try:
        limit_us = parse_duration(match.group(3)) * US
    except InputError as error:
        raise InputError(Problem(setting, error.problems[0].rule, match.group(3), _LIMIT_EXAMPLE)) from None
    if limit_us <= 0:
        raise InputError(Problem(setting, "must allow more than no time", text, _LIMIT_EXAMPLE))
    return ServiceLevelObjective(
        match.group(1) or "event_time", match.group(2).replace(".", "_"), limit_us, text.strip()
    )


def _no_limit(text: str, setting: str) -> Problem:
    """What a text lacks to be a limit: the sign alone, or more."""
    form = "STATISTIC<=TIME or KIND_STATISTIC<=TIME"
    name, sign, time = found.groups() if (found := _SIGNED.match(text)) else ("", "", "")
    if sign != "<=" and _LIMIT.match(f"{name}<={time}"):
        rule = f"must have <= between latency and time, since a limit may be reached: {form}"
        return Problem(setting, rule, text, f'--limit "{name}<={_time_or_example(time)}"')
    kinds, statistics = ", ".join(LATENCY_KINDS), ", ".join(STATISTICS)
    rule = f"must be {form}; KIND is one of {kinds}, and event_time where it is left out; STATISTIC one of {statistics}"
    known = [*STATISTICS, *(f"{kind}_{statistic}" for kind in LATENCY_KINDS for statistic in STATISTICS)]
    meant = near(name, known)
    return Problem(setting, rule, text, f'--limit "{meant}<={_time_or_example(time)}"' if meant else _LIMIT_EXAMPLE)


def _time_or_example(text: str) -> str:
    """A time as it was written, or one that is right."""
    try:
        return text if parse_duration(text) > 0 else "2s"
    except InputError:
        return "2s"
