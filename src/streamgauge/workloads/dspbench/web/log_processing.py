"""Log Processing (LP): a web server's log, line by line: hits a minute, how often each status came, and
from which countries and cities.

A line must be of the Common Log Format as a whole, or it is malformed and counts nowhere. Its request may have quotes
and backslashes as Apache writes them, `\\"` and `\\\\`. Minutes are those that the lines name, not those in which they
came, and by default a minute is never forgotten. The thesis's ring of the last 60 minutes drops the one that came
first, not the one that is oldest, so its answer depends on the order of the lines. With `volume_counter_window` the
oldest are forgotten: a line that is so many minutes or more behind the latest one before it counts in no minute. What
is latest only a process that sees all lines can know, so that is one instance, in Python, and gives a result for every
line, as the thesis does.

Source: Bordin 2017, section 3.3.2.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pydantic import Field

from streamgauge.core.clock import US
from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import Stream, flow, source
from streamgauge.dataflow.nodes import Flow
from streamgauge.dataflow.operators.api import ROW, Processor
from streamgauge.dataflow.operators.grouped_arrays import Ints, group_by_key, groups, load, save
from streamgauge.loadgen.datasets.access_log import ADDRESSES_MAX, AccessLine
from streamgauge.loadgen.fields import StreamSpec
from streamgauge.workloads.features import Feature
from streamgauge.workloads.helpers.places import count_places
from streamgauge.workloads.registry import File, Job, Parameters, Workload

UNESCAPED = r"""if(contains(line, '\\'), replace(replace(line, '\\\\', '_'), '\\"', '_'), line)"""
"""The line without quotes that are part of its request: for each `\\\\` and each `\\"` a character that ends nothing.

In `LINE`, `(?:[^"\\\\]|\\\\.)*` would say the same. But Java repeats a choice by recursion: a line of some thousand
characters is a stack overflow, which ends a job.
"""
LINE = (
    "'^([^ ]+) [^ ]+ [^ ]+ \\\\[([0-9]{2}/[A-Za-z]{3}/[0-9]{4}:[0-9]{2}:[0-9]{2}:[0-9]{2} [+-][0-9]{4})\\\\]"
    ' "([^"]*)" ([0-9]{3}) ([0-9]+|-)( .*)?\\\\z\''
)
"""Address, time, request, status and size; some servers write more after it."""
MINUTE_US = 60 * US
TIME = f"try_to_timestamp(regexp_extract({UNESCAPED}, {LINE}, 2), 'dd/MMM/yyyy:HH:mm:ss Z')"
"""Null of a line that is not whole, or names a moment that there is not."""
ADDRESS = "regexp_extract(line, '^([^ ]+)', 1)"
_TO_STATUS = """'^[^ ]+ [^ ]+ [^ ]+ [^ ]+ [^ ]+ "[^"]*" ([0-9]{3})'"""
STATUS = f"try_cast(regexp_extract({UNESCAPED}, {_TO_STATUS}, 1) AS int)"
"""Of a line that is whole; the pattern of all of it for each part once more would cost as much as all the rest."""


class LogProcessing(Parameters):
    """The thesis's parameter, and the log."""

    volume_counter_window: int = Field(
        0, ge=0, le=10**6, description="how many minutes are remembered, up to the latest; the thesis's: 60; 0: all"
    )
    addresses: int = Field(65_536, ge=1, le=ADDRESSES_MAX, description="how many clients there are")
    lines_per_second: int = Field(
        0,
        ge=0,
        le=10**9,
        description="how many lines of each generator the log has a second, by its own clock; 0: as many as the rate",
    )
    malformed: float = Field(0.001, ge=0, le=1, description="share of the lines that are cut off")
    database: File = Field(
        "", description="a file in MaxMind's format that knows where addresses are; none: made places"
    )


class VolumeCounter(Processor):
    """How often each of the last `minutes` minutes came so far, at every line. Its key is one for all lines."""

    def __init__(self, minutes: int) -> None:
        self._remembered = minutes
        self._minutes, self._counts = np.empty(0, np.int64), np.empty(0, np.int64)  # the last one is the latest

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        minutes = batch.column("minute").cast(pa.int64()).to_numpy() // MINUTE_US
        latest = self._minutes[-1:]
        latest = np.maximum.accumulate(np.concatenate((latest, minutes)))[len(latest) :]
        rows = np.flatnonzero(minutes > latest - self._remembered)
        counts = pa.array(self._counts_of(minutes[rows]), pa.int64())
        row_numbers = pa.array(rows, pa.int64())
        return pa.RecordBatch.from_arrays(
            [batch.column("minute").take(row_numbers), counts, row_numbers], ["minute", "count", ROW]
        )

    def _counts_of(self, minutes: Ints) -> Ints:
        """The count of each of these, itself included; keeps the minutes that may come again."""
        all_minutes, codes = np.unique(np.concatenate((self._minutes, minutes)), return_inverse=True)
        totals = np.zeros(len(all_minutes), np.int64)
        totals[codes[: len(self._minutes)]] = self._counts
        codes = codes[len(self._minutes) :]
        order = group_by_key(codes)
        first, group = groups(codes[order])
        counts = np.empty(len(codes), np.int64)
        counts[order] = np.arange(len(codes)) - first[group] + 1
        counts += totals[codes]
        totals += np.bincount(codes, minlength=len(all_minutes))
        retained = all_minutes > (all_minutes[-1:] - self._remembered)
        self._minutes, self._counts = all_minutes[retained], totals[retained]
        return counts

    def snapshot(self) -> bytes:
        return save(minutes=self._minutes, counts=self._counts)

    def restore(self, state: bytes) -> None:
        saved = load(state)
        self._minutes, self._counts = saved["minutes"].to_numpy(), saved["counts"].to_numpy()


def volume_truth(minutes: int) -> str:
    """The remembered minutes and their counts as DuckDB SQL. A minute that is forgotten never comes back, so lines that
    count have no line of their minute before them that does not.
    """
    return (
        "WITH lines AS (SELECT minute, _row, max(minute) OVER (ORDER BY _row) AS latest,"
        " row_number() OVER (PARTITION BY minute ORDER BY _row) AS count FROM input)"
        f" SELECT minute, count, _row FROM lines WHERE minute > latest - to_minutes({minutes})"
    )


def count_minutes(parsed: Stream, remembered: int) -> Flow:
    """Hits a minute of rows with the column `time`: updates; of a process where only some minutes are remembered."""
    if not remembered:
        minutes = parsed.select(minute="date_trunc('minute', time)", name="minute")
        return minutes.running(keys="minute", count="count(*)", name="volume_counter").sink("count")
    minutes = parsed.select(log="'all'", minute="date_trunc('minute', time)", name="minute")
    counts = minutes.process(
        VolumeCounter,
        keys="log",
        gives=Schema.of(minute="timestamp", count="bigint"),
        parameters={"minutes": remembered},
        truth=volume_truth(remembered),
        name="volume_counter",
    )
    return counts.sink("count")


def build(parameters: LogProcessing, rate_per_s: float) -> Job:
    # A log whose clock went faster at a higher rate would have more minutes there: another question in each trial.
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
    summary="hits a minute, statuses and places, from the lines of a web server's log, as updates",
    source="Bordin 2017, section 3.3.2",
    parameters=LogProcessing,
    build=build,
    features=(Feature.COUNTER, Feature.LOOKUP, Feature.SINKS),
    features_with={Feature.GLOBAL: ("volume_counter_window", 60), Feature.PYTHON: ("volume_counter_window", 60)},
    prefix="lp",
)
