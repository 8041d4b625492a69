"""metrics/records.py: what arrives is what was sent, and logs as columns, at a fraction of the memory."""

import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.clock import US
from streamgauge.metrics.records import (
    ColumnarLog,
    Commit,
    GeneratorReport,
    RecorderReport,
    Usage,
    chunk_log,
    spent_log,
    usage_log,
)
from streamgauge.metrics.trial_log import TrialLog
from streamgauge.transports.spi import Chunk, Delivery, OutputProgress, ReadPosition

GENERATOR = GeneratorReport(
    frontier_us=5,
    overflowed=True,
    memory_full_us=None,
    ended=False,
    failed="",
    chunks=[Chunk(0, 5, 3, 6)],
    deliveries=[Delivery("purchases", 0, 5, 3, 7, 1, again=True, query="q", reader=2, shared=True, read_us=9)],
    aborted_us=[4],
    delivering=[(1, 2), (3, 4)],
)
RECORDER = RecorderReport(
    commits=[Commit("q", 1, "results", 8, 7, 3, 5, None, ["a.arrow"])],
    reads=[ReadPosition("q", 0, 1, "purchases", 0, 12, 3)],
    reached=[OutputProgress("q", 1, 5, 8)],
    rows_ignored={"results": 1},
    retried_us=[6],
    receiving=[(1, 2)],
    writing=[(2, 3)],
    stood_still=[(9, 1)],
    failed="the disk is full",
    disk_full=True,
)


@pytest.mark.parametrize("report", [GENERATOR, RECORDER])
def test_a_report_arrives_as_it_was_sent(report: Any) -> None:
    """By JSON, which knows no tuples. A long trial has millions of records with the same few names: each is one
    text.
    """
    one, other = (type(report).from_json(json.loads(json.dumps(report.to_json()))) for _ in range(2))
    assert one == report
    names = [each.deliveries[0].stream if report is GENERATOR else each.commits[0].sink for each in (one, other)]
    assert names[0] is names[1]


START = 1_700_000_000 * US
NUMBERS = st.integers(-(2**63), 2**63 - 1)
CHUNKS = st.builds(Chunk, NUMBERS, NUMBERS, NUMBERS, NUMBERS)
SHARES = st.floats(allow_nan=False)
USAGES = st.builds(
    Usage, NUMBERS, st.sampled_from(["runner", "sut 7", "sut 8"]), st.sampled_from(["sut", "driver"]), SHARES,
    NUMBERS, SHARES, st.sampled_from(["", "jvm"]),
)  # fmt: skip
LOGS = st.one_of(
    st.tuples(st.just(chunk_log), st.lists(CHUNKS)),
    st.tuples(st.just(usage_log), st.lists(USAGES)),
    st.tuples(st.just(spent_log), st.lists(st.tuples(NUMBERS, NUMBERS))),
)


@given(LOGS, st.slices(8))
def test_a_log_is_a_sequence_of_what_was_added(
    made: tuple[Callable[[], ColumnarLog[Any]], list[Any]], part: slice
) -> None:
    """Every record is as it was, whichever way it is read."""
    make, records = made
    log = make()
    log.extend(records[:1])
    for record in records[1:]:
        log.append(record)
    assert list(log) == records
    assert list(reversed(log)) == records[::-1]
    assert [log[place] for place in range(len(log))] == records
    assert log[part] == records[part]
    assert (len(log), bool(log)) == (len(records), bool(records))
    assert log[-1:] == records[-1:]


def test_a_chunk_takes_little_more_than_its_numbers(make: Any) -> None:
    """Up to two hundred come in a second: nothing besides is kept of them, so that a trial can go on for hours."""
    trial_log, story = TrialLog(make.plan()), make.story()
    offered = [story.chunks(0, low, low + US) for low in range(START, START + 600 * US, US)]
    tracemalloc.start()
    try:
        for chunks in offered:
            trial_log.add(make.tick([chunks], [[]], []))
            trial_log.events_in_time(START, START + US, 0)
            assert trial_log.running.offered_events
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(trial_log.chunks[0]) == 6000
    assert taken / 6000 < 60
