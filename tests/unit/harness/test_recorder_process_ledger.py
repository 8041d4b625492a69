"""harness/recorder_process.py: the ledger accepts each committed row once and ignores failed attempts."""

from itertools import count
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from streamgauge.harness.recorder_process import Commit, Ledger, Staged
from streamgauge.transports.outlet import drained
from tests.unit.harness.helpers_recorder import rows_staged


def ledger_of() -> Ledger:
    ticks = count(1)
    return Ledger(lambda: next(ticks))


def stage(ledger: Ledger, batch: int, partition: int, attempt: int, rows: int = 10, **more: Any) -> None:
    name = f"{batch}-{partition}-{attempt}"
    ledger.stage(("q", batch, partition, attempt, "out"), Staged(name, rows=rows, **more))


def test_a_committed_batch_leaves_nothing_behind() -> None:
    """Of its attempts nothing is remembered, those that were not accepted included; of a batch under way it is."""
    ledger = ledger_of()
    for batch in range(20):
        for attempt in (0, 1):
            ledger.begin(("q", batch, 0, attempt, "out"))
            stage(ledger, batch, 0, attempt)
        ledger.begin(("q", batch + 1, 1, 2, "out"))
        assert ledger.commit("q", batch, [[0, 1]], ["out"])
    assert (ledger._begun, ledger._staged) == ({("q", 20, 1, "out")}, {})


def test_a_commit_accepts_what_it_lists() -> None:
    """Rows, files, the furthest event time and the last arrival of the attempts that it names."""
    ledger = ledger_of()
    stage(ledger, 0, 0, 1, rows=10, frontier_us=70, last_us=95, sample_us=[10, 20])
    stage(ledger, 0, 1, 2, rows=5, frontier_us=80, last_us=93, sample_us=[30])
    assert ledger.commit("q", 0, [[0, 1], [1, 2]], ["out"])
    (found,) = drained(ledger.commits)
    assert found == Commit("q", 0, "out", 1, 95, 15, 80, 20.0, ["0-0-1", "0-1-2"], 28.0, found.latency_us_p99)
    assert round(found.latency_us_p99 or 0, 1) == 29.8
    assert (rows_staged(ledger), ledger.rows_ignored) == (0, {})
    assert drained(ledger.commits) == []


def test_queries_and_batches_are_apart() -> None:
    """The same batch number of another query, and the next batch of the same one, are others."""
    ledger = ledger_of()
    ledger.stage(("p", 0, 0, 1, "out"), Staged("other", rows=1))
    stage(ledger, 0, 0, 1)
    stage(ledger, 1, 0, 2)
    assert ledger.commit("q", 0, [[0, 1]], ["out"])
    assert rows_staged(ledger) == 11
    assert ledger.commit("p", 0, [[0, 1]], ["out"])
    assert ledger.commit("q", 1, [[0, 2]], ["out"])
    assert [(one.query, one.batch) for one in drained(ledger.commits)] == [("q", 0), ("p", 0), ("q", 1)]


def test_a_batch_without_rows_is_committed_too() -> None:
    """Engines commit empty batches, and name partitions that sent nothing; both move the drain on."""
    ledger = ledger_of()
    assert ledger.commit("q", 0, [[0, 1], [1, 2]], ["out"])
    assert ledger.commit("q", 1, [], ["out"])
    assert [(one.rows, one.paths, one.latency_us_p50) for one in drained(ledger.commits)] == [(0, [], None)] * 2


def test_a_batch_is_committed_for_all_its_sinks_at_once() -> None:
    """One commit a sink, those that got no rows included; a repeated batch gives none to any of them."""
    ledger = ledger_of()
    for attempt in (1, 2):
        for sink, rows in (("dear", 10), ("cheap", 5)):
            ledger.stage(("q", 0, 0, attempt, sink), Staged(f"{sink}-{attempt}", rows=rows))
    assert ledger.commit("q", 0, [[0, 2]], ["dear", "cheap", "odd"])
    assert [(one.sink, one.rows, one.paths) for one in drained(ledger.commits)] == [
        ("dear", 10, ["dear-2"]),
        ("cheap", 5, ["cheap-2"]),
        ("odd", 0, []),
    ]
    assert ledger.rows_ignored == {"dear": 10, "cheap": 5}
    ledger.stage(("q", 0, 0, 3, "cheap"), Staged("late", rows=5))
    assert not ledger.commit("q", 0, [[0, 3]], ["dear", "cheap", "odd"])
    assert (drained(ledger.commits), ledger.rows_ignored["cheap"]) == ([], 10)


def test_a_part_of_a_batch_that_is_sent_twice_is_a_retried_task() -> None:
    """Other partitions, sinks, batches and queries are not; what comes after the commit is. Told once."""
    ledger = ledger_of()
    for key in (("q", 0, 0, 1, "out"), ("q", 0, 1, 2, "out"), ("q", 0, 0, 1, "odd"), ("q", 1, 0, 3, "out")):
        ledger.begin(key)
    ledger.begin(("other", 0, 0, 1, "out"))
    assert drained(ledger.retried_us) == []
    ledger.begin(("q", 0, 1, 4, "out"))
    assert len(drained(ledger.retried_us)) == 1
    ledger.commit("q", 0, [[0, 1], [1, 4]], ["out", "odd"])
    ledger.begin(("q", 0, 0, 5, "out"))
    ledger.begin(("q", 1, 1, 6, "out"))
    assert len(drained(ledger.retried_us)) == 1
    ledger.begin(("q", 1, 0, 7, "out"))  # of a batch that was under way when another one was committed
    assert len(drained(ledger.retried_us)) == 1
    assert drained(ledger.retried_us) == []


def test_rows_for_a_sink_that_the_commit_does_not_name_are_not_accepted() -> None:
    """They are counted as ignored under the name they came with."""
    ledger = ledger_of()
    ledger.stage(("q", 0, 0, 1, "typo"), Staged("typo", rows=3))
    ledger.commit("q", 0, [[0, 1]], ["out"])
    assert ([one.rows for one in drained(ledger.commits)], ledger.rows_ignored) == ([0], {"typo": 3})


SENDS = st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 3), st.integers(1, 9))


@given(st.lists(st.one_of(SENDS, st.integers(0, 3)), max_size=30))
def test_every_row_is_accepted_once_ignored_or_staged(steps: list[Any]) -> None:
    """Whatever is sent, sent again and committed in whatever order, no row counts twice and none is forgotten."""
    ledger, sent, latest = ledger_of(), 0, {}
    for number, step in enumerate(steps):
        if isinstance(step, tuple):
            batch, partition, _, rows = step
            stage(ledger, batch, partition, number, rows)
            latest[batch, partition] = number
            sent += rows
        else:
            ledger.commit("q", step, [[p, attempt] for (batch, p), attempt in latest.items() if batch == step], ["out"])
    commits = drained(ledger.commits)
    assert len({one.batch for one in commits}) == len(commits)
    assert sum(one.rows for one in commits) + sum(ledger.rows_ignored.values()) + rows_staged(ledger) == sent
