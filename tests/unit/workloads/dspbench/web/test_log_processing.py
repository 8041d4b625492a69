"""Log Processing: worked by hand, edge lines included, and against plain Python."""

import itertools
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.clock import US
from streamgauge.dataflow.nodes import Flow
from streamgauge.loadgen.random import PhiloxBits
from streamgauge.workloads.dspbench.web.log_processing import VolumeCounter
from tests.unit.workloads.helpers_cuts import (
    BOTH,
    answered,
    flow_of,
    job_of,
    results_in_batches,
    table,
    without_truth,
)

GOOD = '64.242.88.10 - - [07/Mar/2004:16:05:49 -0800] "GET /twiki/bin/edit HTTP/1.1" 401 12846'


SINKS = {"count": ("minute",), "status": ("status",), "countries": ("country",), "cities": ("country", "city")}
"""Each sink of the flow, and what it counts by."""


def answer(flow: Flow, lines: Sequence[str | None]) -> list[dict[str, Any]]:
    """The rows of a flow of one sink, in order."""
    results = answered(flow, {"lines": table([(line,) for line in lines], line="string")})
    return results.sort_by([("event_time", "ascending"), ("count", "ascending")]).to_pylist()


def counts(lines: Sequence[str | None]) -> dict[str, dict[Any, int]]:
    """Of each sink the last count of each key, minutes as texts."""
    last: dict[str, dict[Any, int]] = {}
    for one, (sink, keys) in zip(flow_of("log_processing").each(), SINKS.items(), strict=True):
        rows = answer(one, lines)
        last[sink] = {tuple(row[key] for key in keys) if keys[1:] else row[keys[0]]: row["count"] for row in rows}
    last["count"] = {f"{minute:%Y-%m-%d %H:%M}": count for minute, count in last["count"].items()}
    return last


def test_worked_by_hand() -> None:
    """Minutes are UTC, whatever zone a line names; a line that is not whole counts nowhere; one that comes twice counts
    twice; an address that is in no known place, or is none, has no country, and a city may be unknown.
    """
    lines = [
        GOOD,  # its address is in no place
        GOOD,  # the very same again
        GOOD.replace("-0800", "+0000"),  # eight hours earlier
        GOOD.replace("05:49", "05:00").replace("401 12846", "200 -"),  # no body
        GOOD + ' "http://referer" "agent"',  # what some servers write after it
        GOOD.replace("- -", '"x" "bob"'),  # a user who is named in quotes
        GOOD.replace("07/Mar/2004:16:05:49", "08/Mar/2004:00:06:00").replace("-0800", "+0000").replace("401", "404"),
        GOOD.replace("64.242.88.10", "1.2.3.4"),  # Town 22-4 in Country 22
        GOOD.replace("64.242.88.10", "1.2.3.4"),
        GOOD.replace("64.242.88.10", "1.2.250.250"),  # of the same network
        GOOD.replace("64.242.88.10", "203.0.113.9"),  # Town 22-3
        GOOD.replace("64.242.88.10", "10.0.0.1"),  # Country 20, city unknown
        GOOD.replace("64.242.88.10", "www.example.org"),
        "",
        None,
        GOOD.replace("64.242.88.10", "1.2.3.4")[:30],  # cut off
        GOOD.replace("401", "4o1"),
        GOOD.replace("07/Mar", "31/Feb"),  # there is no such day
        GOOD.replace("401 12846", "401"),  # no size
        GOOD.replace('"GET', "GET"),
    ]
    assert counts(lines) == {
        "count": {"2004-03-08 00:05": 11, "2004-03-07 16:05": 1, "2004-03-08 00:06": 1},
        "status": {401: 11, 200: 1, 404: 1},
        "countries": {"Country 22": 4, "Country 20": 1},
        "cities": {("Country 22", "Town 22-4"): 3, ("Country 22", "Town 22-3"): 1, ("Country 20", None): 1},
    }


ESCAPED = [
    (r"GET /a \"q\" HTTP/1.1", True),
    (r"\"", True),
    (r"\x16\x03\x01", True),  # as Apache writes what is no text
    ("\\", False),  # the quote after it is the request's own, and nothing ends it
    (r"GET /a\\", True),  # a whole backslash, and the end
    (r"GET /a\\\"", True),  # a whole backslash, and a quote
    (r"GET /a\\\\", True),
    (r"GET /a\\\\\"", True),
    (r'GET /a\\" 200 1 "', True),  # ends before what looks like a status, with more after it
    (r"GET /a\" 200 1 ", True),  # goes on after it
    ('GET /a "q" HTTP/1.1', False),
    (r'GET /a \\"q\\" HTTP/1.1', False),
    ("\\\\" * 20_000 + r"\"" * 20_000, True),
]
"""(request, whether a line with it is whole)"""


def test_quotes_that_are_escaped_do_not_end_the_request() -> None:
    """As Apache writes them; backslashes are too, so it depends on whether their number is odd."""
    lines, expected = [], {}
    for status, (request_, is_whole) in enumerate(ESCAPED, 501):
        line = GOOD.replace("GET /twiki/bin/edit HTTP/1.1", request_).replace("401 12846", f"{status} 12846")
        lines.append(line + r' "a referer \" of its own" "agent\\"')
        if is_whole:
            expected[200 if r'\\" 200' in request_ else status] = 1
    results = counts(lines)
    assert results["status"] == expected
    assert results["count"] == {"2004-03-08 00:05": len(expected)}


def at_minute(minute: int) -> str:
    return GOOD.replace("16:05:49", f"16:{minute:02}:49")


def remembering(minutes: int) -> Flow:
    """The first sink's flow, with the parameter by the thesis's name."""
    return flow_of("log_processing", **{"lp.volume_counter.window": minutes}).each()[0]


@BOTH
def test_only_the_last_minutes_are_remembered_by_hand(variant: Any) -> None:
    """Two of them: the latest and the one before it, whatever the order in which they came."""
    lines = [5, 5, 7, 6, 5, 7, 6, 9, 7, 8, 9]
    rows = answer(variant(remembering(2)), [at_minute(minute) for minute in lines])
    assert [(row["event_id"], row["minute"].minute, row["count"]) for row in rows] == [
        (0, 5, 1), (1, 5, 2), (2, 7, 1), (3, 6, 1),  # 4: the fifth minute is forgotten
        (5, 7, 2), (6, 6, 2), (7, 9, 1), (9, 8, 1), (10, 9, 2),  # 8: and so is the seventh
    ]  # fmt: skip


MINUTES = st.lists(st.integers(0, 8), max_size=30)


@given(MINUTES, st.integers(1, 4))
def test_class_and_truth_agree_on_remembered_minutes(minutes: list[int], remembered: int) -> None:
    """In whatever order they come."""
    flow, lines = remembering(remembered), [at_minute(minute) for minute in minutes]
    assert answer(without_truth(flow), lines) == answer(flow, lines)


@given(
    MINUTES, st.lists(st.integers(0, 3), min_size=30, max_size=30), st.lists(st.integers(0, 100), max_size=5),
    st.integers(1, 4),
)  # fmt: skip
def test_remembered_minutes_do_not_depend_on_where_batches_end(
    minutes: list[int], steps: list[int], cuts: list[int], remembered: int
) -> None:
    """Cut between any two times, with a snapshot into a fresh instance at every cut, as engines do."""
    rows = pa.table({
        "log": pa.array(["all"] * len(minutes), pa.string()),
        "minute": pa.array([minute * 60 * US for minute in minutes], pa.timestamp("us")),
    })  # fmt: skip
    results_in_batches(remembering(remembered), rows, list(itertools.accumulate(steps[: len(minutes)])), cuts)


@pytest.mark.parametrize("rows", [1, 7, 100])
def test_minutes_that_are_forgotten_take_no_room(rows: int) -> None:
    """Of a hundred minutes the last three are kept, however many come in a batch."""
    counter = VolumeCounter(3)
    for first in range(0, 100, rows):
        minutes = [minute * 60 * US for minute in range(first, min(first + rows, 100))]
        counter.process(pa.record_batch({"minute": pa.array(minutes, pa.timestamp("us"))}), 0)
    assert (counter._minutes.tolist(), counter._counts.tolist()) == ([97, 98, 99], [1, 1, 1])


def minutes_of(rate_per_s: float, generators: int = 2, **parameters: str) -> set[str]:
    """The minutes in three minutes of the log that is offered at a rate."""
    (stream,) = job_of("log_processing", rate_per_s, malformed=0, **parameters).streams
    last = int(180 * rate_per_s / generators)
    made = [stream.fields[0].column(PhiloxBits(1, 0, 0, 0), n, n + 1)[0].as_py() for n in range(0, last, last // 40)]
    return {line.split("[")[1][:17] for line in made}


@pytest.mark.parametrize("rate_per_s", [1e3, 2e5, 3e6])
def test_the_same_minutes_at_every_rate(rate_per_s: float) -> None:
    """A search asks one question: two generators have half the lines each, so three minutes of ours are one and a
    half of the log.
    """
    assert minutes_of(rate_per_s) == {"18/Jun/1998:00:00", "18/Jun/1998:00:01"}


def test_the_logs_clock_goes_by_the_requested_rate() -> None:
    """Half a thousand lines a second of each of two generators, ten of them a second of the log: fifty times as fast.
    At a rate below one event a second a line is a second all the same.
    """
    assert len(minutes_of(1e3, lines_per_second="10")) == 40
    assert minutes_of(1e3, lines_per_second="1000") == minutes_of(1e3)
    line: Any = job_of("log_processing", 0.2).streams[0].fields[0]
    assert line.lines_per_second == 1


@pytest.mark.parametrize("malformed", [0.0, 0.25])
def test_the_lines_that_are_made_are_whole_but_for_the_malformed(malformed: float) -> None:
    """Their share is what was asked for."""
    (stream,) = job_of("log_processing", 1000.0, malformed=malformed).streams
    lines: Any = stream.fields[0].column(PhiloxBits(1, 0, 0, 0), 0, 4000)
    assert sum(counts(lines.to_pylist())["status"].values()) == pytest.approx(
        4000 * (1 - malformed), abs=150 if malformed else 0
    )
