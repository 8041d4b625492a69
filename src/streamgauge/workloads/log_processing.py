"""Log Processing (LP) [thesis §3.3.2]: a web server's log, line by line: hits a minute, how often each status came, and
from which countries and cities.

A line must be of the Common Log Format as a whole, or it is malformed and counts nowhere. Minutes are those that the
lines name, not those in which they came, and a minute is never forgotten: the thesis's ring of the last 60 minutes
drops the one that came first, not the one that is oldest, so its answer depends on the order of the lines.
"""

from __future__ import annotations

from pydantic import Field

from streamgauge.flow.stream import flow, source
from streamgauge.load.access_log import ADDRESSES_MAX, AccessLine
from streamgauge.load.fields import StreamSpec
from streamgauge.workloads.base import Job, Parameters, Workload
from streamgauge.workloads.places import count_places

LINE = (
    "'^([^ ]+) [^ ]+ [^ ]+ \\\\[([0-9]{2}/[A-Za-z]{3}/[0-9]{4}:[0-9]{2}:[0-9]{2}:[0-9]{2} [+-][0-9]{4})\\\\]"
    ' "([^"]*)" ([0-9]{3}) ([0-9]+|-)( .*)?\\\\z\''
)
"""Address, time, request, status and size; some servers write more after it."""
TIME = f"try_to_timestamp(regexp_extract(line, {LINE}, 2), 'dd/MMM/yyyy:HH:mm:ss Z')"
"""Null of a line that is not whole, or names a moment that there is not."""


class LogProcessing(Parameters):
    """The log; the thesis itself has none but how many minutes are remembered."""

    addresses: int = Field(65_536, ge=1, le=ADDRESSES_MAX, description="how many clients there are")
    lines_per_second: int = Field(
        0,
        ge=0,
        le=10**9,
        description="how many lines of each generator the log has a second, by its own clock; 0: as many as the rate",
    )
    malformed: float = Field(0.001, ge=0, le=1, description="share of the lines that are cut off")
    database: str = Field(
        "", description="a file in MaxMind's format that knows where addresses are; none: made places"
    )


def build(parameters: LogProcessing, rate_per_s: float) -> Job:
    # A log whose clock went faster at a higher rate would have more minutes there: another question in each trial.
    lines_per_second = parameters.lines_per_second or max(1, round(rate_per_s))
    line = AccessLine("line", parameters.addresses, lines_per_second, parameters.malformed)
    lines = StreamSpec("lines", (line,))
    parsed = (
        source("lines", lines.schema)
        .select(
            address=f"regexp_extract(line, {LINE}, 1)",
            time=TIME,
            status=f"try_cast(regexp_extract(line, {LINE}, 4) AS int)",
            name="parser",
        )
        .where("time IS NOT NULL", name="well_formed")
    )
    minutes = parsed.select(minute="date_trunc('minute', time)", name="minute")
    volume = minutes.running(keys="minute", count="count(*)", name="volume_counter").sink("count")
    status = parsed.running(keys="status", count="count(*)", name="status_counter").sink("status")
    places = count_places(parsed.select(address="address", name="client"), parameters.database)
    return Job(flow(volume, status, places), (lines,), {"lines": f"{TIME} IS NULL"})


WORKLOAD = Workload(
    name="log_processing",
    title="log processing",
    summary="hits a minute, statuses and places, from the lines of a web server's log, as updates",
    source="thesis §3.3.2",
    parameters=LogProcessing,
    build=build,
    prefix="lp",
)
