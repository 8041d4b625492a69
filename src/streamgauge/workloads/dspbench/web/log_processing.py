"""Log Processing (LP): counts of a web server's log: hits per minute, statuses, countries and cities.

A line must match the Common Log Format completely, else it is malformed and counts nowhere. Its request may have quotes
and backslashes as Apache writes them, `\\"` and `\\\\`. Minutes are those named by the lines, not the time of arrival,
and by default they are never forgotten. The thesis's ring of the last 60 minutes drops the minute that came first
instead of the oldest one, so its answer depends on the order of the lines.

With `volume_counter_window` the oldest minutes are forgotten: a line that many minutes or more behind the latest line
so far counts in no minute. Only a process that sees all lines knows the latest one. So it has one instance, in Python,
and gives a result for every line, as the thesis does.

Source: Bordin 2017, section 3.3.2.
"""

import numpy as np
import pyarrow as pa
from pydantic import Field

from streamgauge.core.arrays import Int64s
from streamgauge.core.clock import US
from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import Stream, flow, source
from streamgauge.dataflow.nodes import Flow
from streamgauge.dataflow.operators.api import ROW, StateInAttributes
from streamgauge.dataflow.operators.grouped_arrays import counts_so_far, group_by_key
from streamgauge.loadgen.datasets.web import ADDRESSES_MAX, AccessLine
from streamgauge.loadgen.fields import StreamSpec
from streamgauge.workloads.helpers.places import count_places
from streamgauge.workloads.registry import Feature, File, Job, Parameters, Workload

UNESCAPED = r"""if(contains(line, '\\'), replace(replace(line, '\\\\', '_'), '\\"', '_'), line)"""
"""The line without quotes inside its request: each `\\\\` and `\\"` is replaced by another character.

In `LINE`, `(?:[^"\\\\]|\\\\.)*` would be equivalent. But Java repeats a choice by recursion, so a line of some thousand
characters overflows the stack and ends the job.
"""
LINE = (
    "'^([^ ]+) [^ ]+ [^ ]+ \\\\[([0-9]{2}/[A-Za-z]{3}/[0-9]{4}:[0-9]{2}:[0-9]{2}:[0-9]{2} [+-][0-9]{4})\\\\]"
    ' "([^"]*)" ([0-9]{3}) ([0-9]+|-)( .*)?\\\\z\''
)
"""Address, time, request, status and size; some servers append more."""
MINUTE_US = 60 * US
TIME = f"try_to_timestamp(regexp_extract({UNESCAPED}, {LINE}, 2), 'dd/MMM/yyyy:HH:mm:ss Z')"
"""Null for a line that does not match, or names an impossible time."""
ADDRESS = "regexp_extract(line, '^([^ ]+)', 1)"
_TO_STATUS = """'^[^ ]+ [^ ]+ [^ ]+ [^ ]+ [^ ]+ "[^"]*" ([0-9]{3})'"""
STATUS = f"try_cast(regexp_extract({UNESCAPED}, {_TO_STATUS}, 1) AS int)"
"""For a matching line. Repeating the complete pattern for each part would double the work."""


class LogProcessing(Parameters):
    """The thesis's parameter and the log's."""

    volume_counter_window: int = Field(
        0, ge=0, le=10**6, description="number of remembered minutes, up to the latest (thesis: 60); 0: all"
    )
    addresses: int = Field(65_536, ge=1, le=ADDRESSES_MAX, description="number of clients")
    lines_per_second: int = Field(
        0,
        ge=0,
        le=10**9,
        description="lines per second of each generator, by the log's own clock; 0: as many as the rate",
    )
    malformed: float = Field(0.001, ge=0, le=1, description="share of the lines that are truncated")
    database: File = Field("", description="a MaxMind database of the places of addresses; empty: generated places")


class VolumeCounter(StateInAttributes):
    """Counts of the last `minutes` minutes, updated at every line. All lines have one key."""

    def __init__(self, minutes: int) -> None:
        self._remembered = minutes
        self._minutes, self._counts = np.empty(0, np.int64), np.empty(0, np.int64)  # the last one is the latest

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        minutes = batch.column("minute").cast(pa.int64()).to_numpy() // MINUTE_US
        latest = self._minutes[-1:]
        latest = np.maximum.accumulate(np.concatenate((latest, minutes)))[len(latest) :]
        rows = np.flatnonzero(minutes > latest - self._remembered)
        counted = batch.column("minute").take(pa.array(rows))
        return pa.RecordBatch.from_pydict({"minute": counted, "count": self._counts_of(minutes[rows]), ROW: rows})

    def _counts_of(self, minutes: Int64s) -> Int64s:
        """The count of each line's minute, that line included; drops minutes that are too old to return."""
        all_minutes, codes = np.unique(np.concatenate((self._minutes, minutes)), return_inverse=True)
        before = np.zeros(len(all_minutes), np.int64)
        before[codes[: len(self._minutes)]] = self._counts
        codes = codes[len(self._minutes) :]
        every_row = np.ones(len(codes), np.bool_)
        totals, counts = counts_so_far(before, len(before), codes, group_by_key(codes), every_row)
        retained = all_minutes > (all_minutes[-1:] - self._remembered)
        self._minutes, self._counts = all_minutes[retained], totals[retained]
        return counts


def volume_truth(minutes: int) -> str:
    """The remembered minutes and their counts, as DuckDB SQL.

    A forgotten minute never returns. So no ignored line of a minute precedes a counted one.
    """
    return (
        "WITH lines AS (SELECT minute, _row, max(minute) OVER (ORDER BY _row) AS latest,"
        " row_number() OVER (PARTITION BY minute ORDER BY _row) AS count FROM input)"
        f" SELECT minute, count, _row FROM lines WHERE minute > latest - to_minutes({minutes})"
    )


def count_minutes(parsed: Stream, remembered: int) -> Flow:
    """Hits per minute of rows with the column `time`, as updates; by a process if only some minutes are remembered."""
    if not remembered:
        minutes = parsed.select(minute="date_trunc('minute', time)", name="minute")
        return minutes.running(keys="minute", count="count(*)", name="volume_counter").sink("count")
    minutes = parsed.select(log="'all'", minute="date_trunc('minute', time)", name="minute")
    return minutes.process(
        VolumeCounter,
        keys="log",
        gives=Schema.from_types(minute="timestamp", count="bigint"),
        parameters={"minutes": remembered},
        truth=volume_truth(remembered),
        name="volume_counter",
    ).sink("count")


def build(parameters: LogProcessing, rate_per_s: float) -> Job:
    # If the log's clock ran faster at a higher rate, the number of minutes and so the question would differ by trial.
    lines_per_second = parameters.lines_per_second or max(1, round(rate_per_s))
    line = AccessLine("line", parameters.addresses, lines_per_second, parameters.malformed)
    lines = StreamSpec("lines", (line,))
    parsed = (
        source("lines", lines.schema)
        .select(
            address=ADDRESS,
            time=TIME,
            status=STATUS,
            name="parser",
        )
        .where("time IS NOT NULL", name="well_formed")
    )
    volume = count_minutes(parsed, parameters.volume_counter_window)
    status = parsed.running(keys="status", count="count(*)", name="status_counter").sink("status")
    places = count_places(parsed.select(address="address", name="client"), parameters.database)
    return Job(flow(volume, status, places), (lines,), {"lines": f"{TIME} IS NULL"})


WORKLOAD = Workload(
    name="log_processing",
    title="log processing",
    summary="hits per minute, statuses and places from the lines of a web server's log, as updates",
    source="Bordin 2017, section 3.3.2",
    parameters=LogProcessing,
    build=build,
    features=(Feature.COUNTER, Feature.LOOKUP, Feature.SINKS),
    features_with={Feature.GLOBAL: ("volume_counter_window", 60), Feature.PYTHON: ("volume_counter_window", 60)},
    prefix="lp",
)
