"""Limits on what is measured: those that a user sets on latencies, the sample sizes that a verdict needs, and how far a
trial is extended.
"""

import re
from dataclasses import dataclass
from functools import partial

from streamgauge.core.clock import US
from streamgauge.core.errors import InputError, Problem, attempt, near, require
from streamgauge.core.units import parse_duration
from streamgauge.results.latency import LATENCY_KINDS, STATISTICS

_NAMES = "|".join(re.escape(name.replace("_", mark)) for name in STATISTICS for mark in dict.fromkeys("_."))
_LIMIT_EXAMPLE = '--limit "event_time_p99<=2s"'
_SIGNED = re.compile(r"\s*([\w.]+)\s*(<=|=<|==|≤|<|=|:)\s*(\S+)\s*$")
"""Text that looks like a limit: NAME, a sign, TIME."""
_LIMIT = re.compile(rf"\s*(?:({'|'.join(LATENCY_KINDS)})_)?({_NAMES})\s*<=\s*(\S+)\s*$")


@dataclass(frozen=True)
class ServiceLevelObjective:
    """A user's limit on one statistic of one latency, in microseconds; `text` is the user's own."""

    kind: str
    statistic: str
    limit_us: float
    text: str

    @property
    def name(self) -> str:
        return f"{self.kind}_{self.statistic}"


def parse_limit(text: str, setting: str = "limits") -> ServiceLevelObjective:
    """Parses `event_time_p99 <= 2s`; `p99<=2s` means event time. Raises InputError on anything else."""
    match = _LIMIT.match(text)
    if match is None:
        raise InputError(_no_limit(text, setting))
    limit_us = parse_duration(match.group(3), setting, way_out=_LIMIT_EXAMPLE) * US
    require(limit_us > 0, setting, "must be a time above zero", text, _LIMIT_EXAMPLE)
    return ServiceLevelObjective(
        match.group(1) or "event_time", match.group(2).replace(".", "_"), limit_us, text.strip()
    )


def _no_limit(text: str, setting: str) -> Problem:
    """Why a text is not a limit: a wrong sign, or another form."""
    form = "STATISTIC<=TIME or KIND_STATISTIC<=TIME"
    name, sign, time = match.groups() if (match := _SIGNED.match(text)) else ("", "", "")
    if sign != "<=" and _LIMIT.match(f"{name}<={time}"):
        rule = f"must have <= between latency and time, because a latency may equal its limit: {form}"
        return Problem(setting, rule, text, f'--limit "{name}<={_time_or_example(time)}"')
    kinds, statistics = ", ".join(LATENCY_KINDS), ", ".join(STATISTICS)
    rule = f"must be {form}; KIND is one of {kinds} (default event_time); STATISTIC is one of {statistics}"
    similar = near(name, [*STATISTICS, *(f"{kind}_{statistic}" for kind in LATENCY_KINDS for statistic in STATISTICS)])
    return Problem(setting, rule, text, f'--limit "{similar}<={_time_or_example(time)}"' if similar else _LIMIT_EXAMPLE)


def _time_or_example(text: str) -> str:
    """The user's time if it is valid, else an example."""
    return text if attempt(partial(parse_duration, text), []) else "2s"


BATCHES_MIN, WINDOWS_MIN = 20, 5
BOUND_S_MIN = 10.0
"""Smallest queue, in seconds of event time, whose overflow counts against the SUT."""
EXTENSIONS_MAX = 2
EXTENSION_SHARE = 0.5
"""Share of the span. The interval of a slope narrows with span^1.5, so one extension nearly halves it."""
EXTENSION_SHARE_MAX = 1.0
"""Share of the span if the engine's batches are so long that the shorter extension would still hold too few of them."""
