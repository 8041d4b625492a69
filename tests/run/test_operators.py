"""Rows of operators: the engine's counts of a trial made by rule, with the driver's at both ends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from streamgauge.engines.seam import OperatorRows
from streamgauge.events import US, Schema
from streamgauge.flow.nodes import Flow
from streamgauge.flow.stream import flow, source
from streamgauge.result import Operator
from streamgauge.run import operators
from streamgauge.run.conduct import Conducted

PURCHASES = source("purchases", Schema.of(user_id="int", price="int"))
HALVES = PURCHASES.where("price > 50", name="half").where("price > 75", name="quarter").sink("dear")
BATCHES = range(20)


def trial(make: Any, **story: Any) -> Conducted:
    """1000 events in each batch of a second, of which the recorder took 250; 5 s to 15 s are measured."""
    done = make.story(**story).done()
    done.journal.sinks = ("dear",)
    done.journal.commits = [replace(commit, sink="dear", rows=250) for commit in done.journal.commits]
    return done


def counts(**gave: int) -> list[OperatorRows]:
    """The same of each batch."""
    return [OperatorRows("", batch, name, rows) for batch in BATCHES for name, rows in gave.items()]


def summed(flow_: Flow, rows: list[OperatorRows], done: Conducted) -> dict[str, Operator]:
    known = operators.counted(rows, done.journal)
    return {one.name: one for one in operators.summaries(flow_, known, done.journal, done.spans)}


def test_each_operator_takes_in_what_the_one_before_it_gave(make: Any) -> None:
    """Ten batches of the measured span, a second apart: half of the rows go on, then half of those."""
    found = summed(HALVES, counts(purchases=1000, half=500, quarter=250), trial(make))
    assert {name: (one.rows_in, one.rows_out, one.selectivity) for name, one in found.items()} == {
        "purchases": (None, 10_000, None),
        "half": (10_000, 5000, 0.5),
        "quarter": (5000, 2500, 0.5),
    }
    assert {name: one.throughput_per_s for name, one in found.items()} == pytest.approx(
        {"purchases": 1000, "half": 1000, "quarter": 500}
    )
    assert [one.lost for one in found.values()] == [0, None, 0]


@pytest.mark.parametrize(("gave", "lost"), [
    ({"purchases": 990, "half": 500, "quarter": 250}, (100, 0)),
    ({"purchases": 1000, "half": 500, "quarter": 251}, (0, 10)),
])  # fmt: skip
def test_rows_that_are_lost_at_an_edge_are_seen(make: Any, gave: dict[str, int], lost: tuple[int, int]) -> None:
    """Ten of a batch that the driver handed out and the engine did not count; one that the recorder never got."""
    found = summed(HALVES, counts(**gave), trial(make))
    assert (found["purchases"].lost, found["quarter"].lost) == lost


def test_what_enters_and_leaves_is_the_drivers_count(make: Any) -> None:
    """Whatever an engine says of its edges, and where it says nothing there: as packed lowerings."""
    for gave in ({"purchases": 1, "half": 500, "quarter": 1}, {"half": 500}):
        found = summed(HALVES, counts(**gave), trial(make))
        assert (found["purchases"].rows_out, found["half"].rows_in, found["quarter"].rows_out) == (10_000, 10_000, 2500)
    assert (found["purchases"].lost, found["quarter"].lost) == (None, None)


def test_an_operator_of_which_nothing_is_known_has_no_figures(make: Any) -> None:
    """Between two that are: its neighbours have what they have."""
    found = summed(HALVES, [], trial(make))
    half = found["half"]
    assert (half.rows_in, half.rows_out, half.selectivity, half.lost) == (10_000, None, None, None)
    assert half.throughput_per_s == pytest.approx(1000)
    assert (found["quarter"].rows_in, found["quarter"].rows_out, found["quarter"].selectivity) == (None, 2500, None)


def test_re_reads_and_second_readers_count_once(make: Any) -> None:
    """A query that reads a stream at two places, one of them twice over."""
    done = trial(make)
    for log in done.journal.hand_outs:
        log += [replace(part, reader=1, shared=True) for part in log] + [replace(part, again=True) for part in log]
    assert summed(HALVES, counts(half=500), done)["purchases"].rows_out == 10_000


def test_a_low_throughput_needs_twenty_batches(make: Any) -> None:
    """Of 30, where one in ten takes a third of the rows, the 5th percentile is that third."""
    done = trial(make, seconds=40)
    assert summed(HALVES, counts(half=500), done)["half"].throughput_per_s_p5 is None
    done.spans = replace(done.spans, measured_to_us=done.spans.start_us + 35 * US)
    rows = [OperatorRows("", batch, "half", 150 if batch % 10 == 0 else 500) for batch in range(40)]
    found = summed(HALVES, rows, done)["quarter"]
    assert found.rows_in == 3 * (150 + 9 * 500)
    assert found.throughput_per_s_p5 == pytest.approx(150)


def test_operators_of_a_second_query_stand_once(make: Any) -> None:
    """Two queries do the same work on a source: its figures are the first one's, and the table has both."""
    both = flow(HALVES, PURCHASES.running(keys="user_id", n="count(*)").sink("counts"))
    done = trial(make)
    for log in done.journal.hand_outs:
        log[:] = [replace(part, query=query) for part in log for query in ("q0", "q1")]
    done.journal.commits = [
        replace(commit, query=query, sink=sink)
        for commit in done.journal.commits
        for query, sink in (("q0", "dear"), ("q1", "counts"))
    ]
    rows = [OperatorRows("q0", batch, "half", 500) for batch in BATCHES]
    found = summed(both, rows, done)
    assert found["purchases"].rows_out == 10_000
    assert found["running"].rows_out == 2500
    table = operators.table(both, operators.counted(rows, done.journal))
    assert table.num_rows == 20 * (3 + 2)
    assert set(table["query"].to_pylist()) == {"q0", "q1"}
