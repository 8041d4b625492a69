"""Log Processing: worked by hand, edge lines included, and against plain Python."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.engines.oracle import Oracle
from streamgauge.flow.lineage import with_lineage
from streamgauge.load.access_log import AccessLine
from streamgauge.load.bits import Bits
from streamgauge.workloads import base

WORKLOAD = base.get("log_processing")
GOOD = '64.242.88.10 - - [07/Mar/2004:16:05:49 -0800] "GET /twiki/bin/edit HTTP/1.1" 401 12846'


def counts(lines: list[str | None]) -> tuple[dict[str, int], dict[int, int]]:
    """(the last count of each minute, of each status), where the n-th line has event time and id n."""
    numbers = pa.array(range(len(lines)), pa.int64())
    events = pa.table({"line": pa.array(lines, pa.string()), "event_time": numbers, "event_id": numbers})
    flow = WORKLOAD.build(WORKLOAD.read({}), 1000.0).flow
    last: list[dict[Any, int]] = []
    for one, key in zip(flow.each()[:2], ("minute", "status"), strict=True):
        lineage = with_lineage(one, ingest_time=False)
        found = Oracle().answer(lineage, {"lines": events}, duckdb.connect()).to_arrow_table()
        rows = found.sort_by([("event_time", "ascending"), ("count", "ascending")]).to_pylist()
        last.append({row[key]: row["count"] for row in rows})
    minutes, statuses = last
    return {f"{minute:%Y-%m-%d %H:%M}": count for minute, count in minutes.items()}, statuses


def test_worked_by_hand() -> None:
    """Minutes are UTC, whatever zone a line names; a line that is not whole counts nowhere."""
    lines = [
        GOOD,
        GOOD.replace("-0800", "+0000"),  # eight hours earlier
        GOOD.replace("05:49", "05:00").replace("401 12846", "200 -"),  # no body
        GOOD + ' "http://referer" "agent"',  # what some servers write after it
        GOOD.replace("07/Mar/2004:16:05:49", "08/Mar/2004:00:06:00").replace("-0800", "+0000").replace("401", "404"),
        "",
        None,
        GOOD[:30],  # cut off
        GOOD.replace("401", "4o1"),
        GOOD.replace("07/Mar", "31/Feb"),  # there is no such day
        GOOD.replace("401 12846", "401"),  # no size
        GOOD.replace('"GET', "GET"),
    ]
    assert counts(lines) == (
        {"2004-03-08 00:05": 3, "2004-03-07 16:05": 1, "2004-03-08 00:06": 1},
        {401: 3, 200: 1, 404: 1},
    )


def minutes_of(rate_per_s: float, generators: int = 2, **asked: str) -> set[str]:
    """The minutes in three minutes of the log that is offered at a rate."""
    (stream,) = WORKLOAD.build(WORKLOAD.read({"malformed": 0, **asked}), rate_per_s).streams
    last = int(180 * rate_per_s / generators)
    made = [stream.fields[0].column(Bits(1, 0, 0, 0), n, n + 1)[0].as_py() for n in range(0, last, last // 40)]
    return {line.split("[")[1][:17] for line in made}


@pytest.mark.parametrize("rate_per_s", [1e3, 2e5, 3e6])
def test_the_same_minutes_at_every_rate(rate_per_s: float) -> None:
    """A search asks one question: two generators have half the lines each, so three minutes of ours are one and a
    half of the log.
    """
    assert minutes_of(rate_per_s) == {"18/Jun/1998:00:00", "18/Jun/1998:00:01"}


def test_the_logs_clock_goes_by_the_lines_that_were_asked_for() -> None:
    """Half a thousand lines a second of each of two generators, ten of them a second of the log: fifty times as fast.
    At a rate below one event a second a line is a second all the same.
    """
    assert len(minutes_of(1e3, lines_per_second="10")) == 40
    assert minutes_of(1e3, lines_per_second="1000") == minutes_of(1e3)
    (stream,) = WORKLOAD.build(WORKLOAD.read({}), 0.2).streams
    assert isinstance(stream.fields[0], AccessLine)
    assert stream.fields[0].lines_per_second == 1


PARTS = st.tuples(
    st.sampled_from(["1.2.3.4", "a host", "::1"]),
    st.sampled_from(["07/Mar/2004:16:05:49 -0800", "07/Mar/2004:16:05:49", "01/Jan/1970:00:00:59 +0000", "-"]),
    st.sampled_from(['"GET / HTTP/1.0"', '"GET /a b"', '""', '"']),
    st.sampled_from(["200", "404", "20", "2000"]),
    st.sampled_from(["1", "-", "", "x", "1 more"]),
)


@given(st.lists(PARTS, max_size=8))
@settings(max_examples=40, deadline=None)
def test_as_plain_python_counts(parts: list[tuple[str, ...]]) -> None:
    """Whatever the parts of the lines are."""
    shape = re.compile(
        r'[^ ]+ [^ ]+ [^ ]+ \[(\d\d/\w{3}/\d{4}):(\d\d:\d\d):\d\d [+-]\d{4}\] "[^"]*" (\d{3}) (\d+|-)( .*)?'
    )
    lines = [f"{host} - - [{time}] {request} {status} {size}" for host, time, request, status, size in parts]
    whole = [found for line in lines if (found := shape.fullmatch(line))]
    minutes, statuses = counts(list(lines))
    assert statuses == dict(Counter(int(found[3]) for found in whole))
    assert sorted(minutes.values()) == sorted(Counter((found[1], found[2]) for found in whole).values())


@pytest.mark.parametrize("malformed", [0.0, 0.25])
def test_the_lines_that_are_made_are_whole_but_for_the_malformed(malformed: float) -> None:
    """Their share is what was asked for."""
    parameters = WORKLOAD.read({"malformed": malformed})
    (stream,) = WORKLOAD.build(parameters, 1000.0).streams
    lines = stream.fields[0].column(Bits(1, 0, 0, 0), 0, 4000)
    assert isinstance(lines, pa.Array)
    _, statuses = counts(lines.to_pylist())
    assert sum(statuses.values()) == pytest.approx(4000 * (1 - malformed), abs=150 if malformed else 0)
