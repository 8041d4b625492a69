"""The recorder: what is accepted and what is not, and a real server that keeps results on disk."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.flight as flight
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.clock import Clock
from streamgauge.core.lineage_columns import EMISSION_TIME, EVENT_TIME
from streamgauge.harness import recorder as recorder_module
from streamgauge.harness.recorder import Commit, Ledger, Recorder, RecorderSettings, Staged
from streamgauge.harness.recorder_heartbeat import BEAT_US
from streamgauge.system.child_processes import Child, wait_until
from streamgauge.transports.busy_time import BusyTracker
from streamgauge.transports.flight import client
from streamgauge.transports.flight.access import call_options

TOKEN = "a-token"


# --- the ledger ---


def ledger_of() -> Ledger:
    ticks = count(1)
    return Ledger(lambda: next(ticks))


def stage(ledger: Ledger, batch: int, partition: int, attempt: int, rows: int = 10, **more: Any) -> None:
    name = f"{batch}-{partition}-{attempt}"
    ledger.stage(("q", batch, partition, attempt, "out"), Staged(name, rows=rows, **more))


def rows_staged(ledger: Ledger) -> int:
    """What came and was neither accepted nor ignored."""
    return sum(staged.rows for staged in ledger._staged.values())


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
    (found,) = ledger.news()
    assert found == Commit("q", 0, "out", 1, 95, 15, 80, found.latency_us_p50, ["0-0-1", "0-1-2"])
    assert found.latency_us_p50 == 20.0
    assert (rows_staged(ledger), ledger.rows_ignored) == (0, {})
    assert ledger.news() == []


def test_a_failed_attempts_rows_are_ignored() -> None:
    """A task that failed and sent its rows again counts once."""
    ledger = ledger_of()
    stage(ledger, 0, 0, 1, rows=7)
    stage(ledger, 0, 0, 2, rows=10)
    ledger.commit("q", 0, [[0, 2]], ["out"])
    (found,) = ledger.news()
    assert (found.rows, found.paths, ledger.rows_ignored) == (10, ["0-0-2"], {"out": 7})


def test_a_batch_repeated_under_the_same_number_is_ignored() -> None:
    """A restarted query sends a committed batch again: its rows count once."""
    ledger = ledger_of()
    stage(ledger, 3, 0, 1)
    assert ledger.commit("q", 3, [[0, 1]], ["out"])
    stage(ledger, 3, 0, 0, rows=10)
    assert not ledger.commit("q", 3, [[0, 0]], ["out"])
    assert len(ledger.news()) == 1
    assert (rows_staged(ledger), ledger.rows_ignored) == (0, {"out": 10})


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
    assert [(one.query, one.batch) for one in ledger.news()] == [("q", 0), ("p", 0), ("q", 1)]


def test_a_batch_without_rows_is_committed_too() -> None:
    """Engines commit empty batches, and name partitions that sent nothing; both move the drain on."""
    ledger = ledger_of()
    assert ledger.commit("q", 0, [[0, 1], [1, 2]], ["out"])
    assert ledger.commit("q", 1, [], ["out"])
    found = ledger.news()
    assert [(one.rows, one.paths, one.latency_us_p50) for one in found] == [(0, [], None)] * 2


def test_a_batch_is_committed_for_all_its_sinks_at_once() -> None:
    """One commit a sink, those that got no rows included; a repeated batch gives none to any of them."""
    ledger = ledger_of()
    for attempt in (1, 2):
        for sink, rows in (("dear", 10), ("cheap", 5)):
            ledger.stage(("q", 0, 0, attempt, sink), Staged(f"{sink}-{attempt}", rows=rows))
    assert ledger.commit("q", 0, [[0, 2]], ["dear", "cheap", "odd"])
    assert [(one.sink, one.rows, one.paths) for one in ledger.news()] == [
        ("dear", 10, ["dear-2"]),
        ("cheap", 5, ["cheap-2"]),
        ("odd", 0, []),
    ]
    assert ledger.rows_ignored == {"dear": 10, "cheap": 5}
    ledger.stage(("q", 0, 0, 3, "cheap"), Staged("late", rows=5))
    assert not ledger.commit("q", 0, [[0, 3]], ["dear", "cheap", "odd"])
    assert (ledger.news(), ledger.rows_ignored["cheap"]) == ([], 10)


def test_a_share_of_a_batch_that_is_sent_twice_is_a_retried_task() -> None:
    """Other partitions, sinks, batches and queries are not; what comes after the commit is. Told once."""
    ledger = ledger_of()
    for key in (("q", 0, 0, 1, "out"), ("q", 0, 1, 2, "out"), ("q", 0, 0, 1, "odd"), ("q", 1, 0, 3, "out")):
        ledger.begin(key)
    ledger.begin(("other", 0, 0, 1, "out"))
    assert ledger.retried() == []
    ledger.begin(("q", 0, 1, 4, "out"))
    assert len(ledger.retried()) == 1
    ledger.commit("q", 0, [[0, 1], [1, 4]], ["out", "odd"])
    ledger.begin(("q", 0, 0, 5, "out"))
    ledger.begin(("q", 1, 1, 6, "out"))
    assert len(ledger.retried()) == 1
    ledger.begin(("q", 1, 0, 7, "out"))  # of a batch that was under way when another one was committed
    assert len(ledger.retried()) == 1
    assert ledger.retried() == []


def test_rows_for_a_sink_that_the_commit_does_not_name_are_not_accepted() -> None:
    """They are counted as ignored under the name they came with."""
    ledger = ledger_of()
    ledger.stage(("q", 0, 0, 1, "typo"), Staged("typo", rows=3))
    ledger.commit("q", 0, [[0, 1]], ["out"])
    assert ([one.rows for one in ledger.news()], ledger.rows_ignored) == ([0], {"typo": 3})


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
    commits = ledger.news()
    assert len({one.batch for one in commits}) == len(commits)
    assert sum(one.rows for one in commits) + sum(ledger.rows_ignored.values()) + rows_staged(ledger) == sent


# --- the server ---


@dataclass
class Served:
    recorder: Recorder
    spool: Path
    attempts: Iterator[int] = field(default_factory=count)

    @property
    def location(self) -> str:
        return str(self.recorder.listen()["location"])

    def send(
        self, batch: int, batches: list[pa.RecordBatch], partition: int = 0, attempt: int = 0, sink: str = "out"
    ) -> int:
        address = {"query": "q", "batch": batch, "partition": partition, "attempt": attempt, "sink": sink}
        return client.send_results(self.location, TOKEN, address, iter(batches))

    def commit(self, batch: int, accepted: list[list[int]], *sinks: str) -> bool:
        asked = {"query": "q", "batch": batch, "accepted": accepted, "sinks": sinks or ["out"]}
        return bool(client.act(self.location, TOKEN, "commit", **asked))


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A recorder that listens on the loopback."""
    spool = tmp_path / "spool"
    recorder = Recorder(RecorderSettings("127.0.0.1", 0, TOKEN, Clock.fixed_now().offset_us, str(spool)))
    yield Served(recorder, spool)
    recorder.close()


def results(first: int, rows: int) -> pa.RecordBatch:
    times = np.arange(first, first + rows, dtype=np.int64)
    return pa.record_batch({"revenue": times * 2, EVENT_TIME: times})


def read(path: str) -> pa.Table:
    with pa.memory_map(path) as source:
        return pa.ipc.open_file(source).read_all()


def test_results_are_kept_with_their_emission_time(served: Served) -> None:
    """The spool holds every column as it came, and when it came by the run's clock."""
    clock = served.recorder._clock
    before_us = clock.now_us()
    assert served.send(0, [results(0, 1000), results(1000, 500)]) == 1500
    assert served.commit(0, [[0, 0]])
    (commit,) = served.recorder.status()["commits"]
    table = read(commit["paths"][0])
    assert table.drop_columns([EMISSION_TIME]) == pa.Table.from_batches([results(0, 1000), results(1000, 500)])
    stamps = table.column(EMISSION_TIME).to_numpy()
    assert before_us <= stamps.min() <= stamps.max() <= clock.now_us()
    assert (commit["rows"], commit["frontier_us"], commit["emitted_us"]) == (1500, 1499, stamps.max())
    assert commit["committed_us"] >= commit["emitted_us"]


def test_the_latency_on_the_way_is_about_the_real_one(served: Served) -> None:
    """The sample that progress shows is of emission - event time."""
    served.send(0, [results(0, 100_000)])
    served.commit(0, [[0, 0]])
    (commit,) = served.recorder.status()["commits"]
    real = np.median(read(commit["paths"][0]).column(EMISSION_TIME).to_numpy() - np.arange(100_000))
    assert commit["latency_us_p50"] == pytest.approx(real, abs=2000)


def test_a_batch_sent_again_after_a_restart_does_not_touch_what_was_accepted(served: Served) -> None:
    """A restarted query numbers its attempts from 0 again; the accepted file keeps its rows and emission times."""
    served.send(0, [results(0, 10)])
    assert served.commit(0, [[0, 0]])
    (commit,) = served.recorder.status()["commits"]
    accepted = Path(commit["paths"][0])
    before = accepted.read_bytes()  # a table over the mapped file would change with it
    served.send(0, [results(500, 10)])
    assert not served.commit(0, [[0, 0]])
    assert accepted.read_bytes() == before
    status = served.recorder.status()
    assert (status["commits"], status["rows_ignored"]) == ([], {"out": 10})


def test_results_without_event_time_are_kept_too(served: Served) -> None:
    """A user job that carries no lineage is recorded; it has no frontier."""
    served.send(0, [pa.record_batch({"word": ["a", "b"]})])
    served.commit(0, [[0, 0]])
    (commit,) = served.recorder.status()["commits"]
    assert (commit["rows"], commit["frontier_us"], commit["latency_us_p50"]) == (2, 0, None)


def test_event_times_may_be_null(served: Served) -> None:
    """An outer join's row without a partner crashes nothing."""
    served.send(0, [pa.record_batch({EVENT_TIME: pa.array([5, None, 7], pa.int64())})])
    served.commit(0, [[0, 0]])
    (commit,) = served.recorder.status()["commits"]
    assert (commit["rows"], commit["frontier_us"]) == (3, 7)
    assert commit["latency_us_p50"] > 0  # of those that have one
    served.send(1, [pa.record_batch({EVENT_TIME: pa.array([None], pa.int64())})])
    served.commit(1, [[0, 0]])
    (commit,) = served.recorder.status()["commits"]
    assert (commit["rows"], commit["frontier_us"], commit["latency_us_p50"]) == (1, 0, None)


def test_sending_nothing_makes_no_file(served: Served) -> None:
    """A task without rows does not even open a stream."""
    assert served.send(0, []) == 0
    assert list(served.spool.iterdir()) == []


@pytest.mark.parametrize("token", ["", "wrong"])
def test_without_the_token_nothing_is_taken(served: Served, token: str) -> None:
    """Neither rows nor commits; and nothing lands on the disk."""
    address = {"query": "q", "batch": 0, "partition": 0, "attempt": 0, "sink": "out"}
    with pytest.raises(flight.FlightUnauthenticatedError):
        client.send_results(served.location, token, address, iter([results(0, 10)]))
    with pytest.raises(flight.FlightUnauthenticatedError):
        client.act(served.location, token, "commit", query="q", batch=0, accepted=[], sinks=["out"])
    assert list(served.spool.iterdir()) == []
    assert served.recorder.status()["commits"] == []


def test_an_unknown_action_is_refused(served: Served) -> None:
    """What is not a commit is named."""
    with pytest.raises(flight.FlightServerError, match="no such action: forget"):
        client.act(served.location, TOKEN, "forget")


def test_a_disk_that_cannot_be_written_is_a_failure_of_ours(served: Served) -> None:
    """The sender hears of it, and the status says it: such a run is invalid, not the system's fault."""
    served.spool.rmdir()
    with pytest.raises(flight.FlightServerError, match="spool could not be written"):
        served.send(0, [results(0, 10)])
    assert "spool could not be written" in served.recorder.status()["failed"]
    assert rows_staged(served.recorder.ledger) == 0


def test_a_full_disk_is_a_failure_of_ours(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Space that runs out in the middle of a stream is told with the folder, and what helps."""
    monkeypatch.setattr(pa, "OSFile", lambda path, mode: open_full())
    with pytest.raises(flight.FlightServerError, match=f"the disk that holds {served.spool} is full"):
        served.send(0, [results(0, 200_000)])
    assert "set TMPDIR=DIR" in served.recorder.status()["failed"]


class ByHand:
    """A clock that only slow disks and slow work move, microseconds."""

    def __init__(self) -> None:
        self.at_us = 0

    def __call__(self) -> int:
        return self.at_us


@pytest.fixture
def by_hand(served: Served, monkeypatch: pytest.MonkeyPatch) -> ByHand:
    """The clock by which the recorder's own time is taken."""
    clock = ByHand()
    for name in ("_receiving", "_writing"):
        monkeypatch.setattr(served.recorder, name, BusyTracker(clock))
    return clock


class SlowFile(io.BytesIO):
    """A disk on which every write, the last one at the closing too, takes 30 ms of a clock."""

    def __init__(self, clock: ByHand) -> None:
        super().__init__()
        self._clock = clock

    def write(self, data: Any) -> int:
        self._clock.at_us += 30_000
        return super().write(data)


def spent_us(spent: list[tuple[int, int]]) -> int:
    return sum(until - since for since, until in spent)


def test_the_time_that_senders_wait_for_the_disk_is_known(
    served: Served, by_hand: ByHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it and nothing else, what came since the last look."""
    served.send(0, [results(0, 10)])
    assert spent_us(served.recorder.status()["writing"]) == 0
    monkeypatch.setattr(pa, "OSFile", lambda path, mode: pa.PythonFile(SlowFile(by_hand), "w"))
    served.send(1, [results(0, 10), results(10, 10)])
    served.send(1, [results(0, 10)], partition=1)
    status = served.recorder.status()
    heads_us = 2 * 30_000  # the file's own head, written when it is opened
    assert by_hand.at_us - heads_us <= spent_us(status["writing"]) <= by_hand.at_us
    assert spent_us(status["receiving"]) == 0
    assert served.recorder.status()["writing"] == []


@pytest.mark.parametrize("slow", ["_stamped", "_note"])
def test_the_time_that_the_recorder_works_on_results_is_known(
    served: Served, by_hand: ByHand, monkeypatch: pytest.MonkeyPatch, slow: str
) -> None:
    """Each batch of results from its arrival on, without the disk's part; the sender waits as long."""
    work = getattr(recorder_module, slow)

    def slowed(*args: Any) -> Any:
        by_hand.at_us += 30_000
        return work(*args)

    monkeypatch.setattr(recorder_module, slow, slowed)
    served.send(0, [results(0, 10), results(10, 10)])
    status = served.recorder.status()
    assert (spent_us(status["receiving"]), spent_us(status["writing"])) == (60_000, 0)


def test_the_time_of_a_commit_is_the_recorders_too(
    served: Served, by_hand: ByHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its sender waits for that as well."""
    commit = served.recorder.ledger.commit

    def slowed(*args: Any) -> bool:
        by_hand.at_us += 30_000
        return commit(*args)

    monkeypatch.setattr(served.recorder.ledger, "commit", slowed)
    served.send(0, [results(0, 10)])
    served.commit(0, [[0, 0]])
    assert spent_us(served.recorder.status()["receiving"]) == 30_000


class Ticking:
    """A clock that is a microsecond later at every look."""

    def __init__(self) -> None:
        self.now_us = count(1000).__next__


def test_each_batch_of_an_attempt_is_stamped_as_it_arrives(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """One time a batch, later ones later: a long attempt's first rows did not come with its last."""
    monkeypatch.setattr(served.recorder, "_clock", Ticking())
    served.send(0, [results(10 * number, 10) for number in range(3)])
    served.commit(0, [[0, 0]])
    (commit,) = served.recorder.status()["commits"]
    (path,) = commit["paths"]
    with pa.OSFile(path, "rb") as file:
        stamps = pa.ipc.open_file(file).read_all().column(EMISSION_TIME).to_pylist()
    of_batches = stamps[::10]
    assert stamps == [stamp for stamp in of_batches for _ in range(10)]
    assert of_batches == sorted(set(of_batches))
    assert commit["emitted_us"] == of_batches[-1]


def open_full() -> pa.PythonFile:
    return pa.PythonFile(open("/dev/full", "wb", buffering=0), "w")


SENDER = """
import json, os, sys, threading
import numpy as np, pyarrow as pa, pyarrow.flight as flight
from streamgauge.transports.flight.access import call_options
batch = pa.record_batch({"event_time": np.arange(1000)})
address = {"query": "q", "batch": 0, "partition": 0, "attempt": 0, "sink": "out"}
descriptor = flight.FlightDescriptor.for_command(json.dumps(address).encode())
writer, _ = flight.FlightClient(sys.argv[1]).do_put(descriptor, batch.schema, call_options(sys.argv[2]))
writer.write_batch(batch)
print("sent", flush=True)
threading.Event().wait()
"""


def test_a_sender_that_is_killed_is_not_our_failure(served: Served) -> None:
    """kill -9 in the middle of a stream: what came is never accepted, and the recorder goes on."""
    command = [sys.executable, "-c", SENDER, served.location, TOKEN]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as sender:
        try:
            assert sender.stdout is not None
            assert sender.stdout.readline() == b"sent\n"
            # What is on its way when the sender dies may never come, and the file is there before any row is.
            assert wait_until(lambda: served.recorder.status()["writing"] != [], 20)
        finally:
            sender.kill()
    ledger = served.recorder.ledger
    assert wait_until(lambda: rows_staged(ledger) > 0 or served.recorder.failed != "", 20)
    served.send(0, [results(0, 10)], attempt=1)
    served.commit(0, [[0, 1]])
    status = served.recorder.status()
    assert [commit["rows"] for commit in status["commits"]] == [10]
    assert (status["failed"], rows_staged(ledger), status["rows_ignored"]) == ("", 0, {"out": 1000})


def test_a_schema_is_announced_before_rows(served: Served) -> None:
    """A stream that is opened and closed without rows is an attempt with none."""
    descriptor = flight.FlightDescriptor.for_command(
        json.dumps({"query": "q", "batch": 0, "partition": 0, "attempt": 0, "sink": "out"}).encode()
    )
    with flight.FlightClient(served.location) as plain:
        writer, reply = plain.do_put(descriptor, results(0, 1).schema, call_options(TOKEN))
        with writer:
            writer.done_writing()
            assert reply.read().to_pybytes() == b"kept"
    assert served.commit(0, [[0, 0]])
    (commit,) = served.recorder.status()["commits"]
    assert (commit["rows"], commit["paths"]) == (0, [])


def test_the_recorder_is_a_process_of_its_own(tmp_path: Path) -> None:
    """Started by file, asked over its lifeline, sent to over Flight."""
    settings = RecorderSettings("127.0.0.1", 0, TOKEN, 0, str(tmp_path / "spool"))
    path = tmp_path / "settings.json"
    path.write_text(json.dumps(asdict(settings)))
    child = Child("recorder", "streamgauge.harness.recorder", [str(path)], tmp_path / "recorder.log")
    try:
        location = child.ask("listen")["location"]
        address = {"query": "q", "batch": 0, "partition": 2, "attempt": 9, "sink": "out"}
        client.send_results(location, TOKEN, address, iter([results(0, 10)]))
        assert child.ask("status")["commits"] == []
        client.act(location, TOKEN, "commit", query="q", batch=0, accepted=[[2, 9]], sinks=["out"])
        (commit,) = child.ask("status")["commits"]
        assert (commit["rows"], os.path.exists(commit["paths"][0])) == (10, True)
    finally:
        child.stop()
    assert child.exit_code == 0


def test_a_recorder_that_was_stopped_says_so(tmp_path: Path) -> None:
    """A real process: for how long it did not run at all, and when that ended."""
    clock, length_us = Clock.fixed_now(), 300_000
    settings = RecorderSettings("127.0.0.1", 0, TOKEN, clock.offset_us, str(tmp_path / "spool"))
    path = tmp_path / "recorder.json"
    path.write_text(json.dumps(asdict(settings)))
    child = Child("recorder", "streamgauge.harness.recorder", [str(path)], tmp_path / "log")
    try:
        child.ask("listen")
        began_us = clock.now_us()
        child.ask("status")
        os.kill(child.pid, signal.SIGSTOP)
        assert wait_until(lambda: psutil.Process(child.pid).status() == psutil.STATUS_STOPPED, 20)
        stopped_us = clock.now_us()
        assert wait_until(lambda: clock.now_us() >= stopped_us + length_us, 20)
        os.kill(child.pid, signal.SIGCONT)
        found = child.ask("status")["stood_still"]
        ended_us = clock.now_us()
    finally:
        child.kill()
    assert all(began_us < when <= ended_us for when, _ in found)
    assert length_us - 2 * BEAT_US <= sum(late for _, late in found) <= ended_us - began_us


def test_what_a_batch_reads_is_told_once(served: Served) -> None:
    """With the moment at which it was heard of, in the order in which it came."""
    served.recorder.read("q", 3, [("ads", 0, 0, 10), ("ads", 1, 0, 12)])
    served.recorder.read("q", 4, [("ads", 0, 0, 20)])
    told = served.recorder.status()["reads"]
    assert [(read["batch"], read["reader"], read["to_offset"]) for read in told] == [(3, 0, 10), (3, 1, 12), (4, 0, 20)]
    assert all(read["when_us"] > 0 for read in told)
    assert served.recorder.status()["reads"] == []


def test_what_results_show_is_told_once(served: Served) -> None:
    """As what was read is."""
    served.recorder.reached("q", 3, 70)
    ((told),) = served.recorder.status()["reached"]
    assert (told["query"], told["batch"], told["until_us"]) == ("q", 3, 70)
    assert told["when_us"] > 0
    assert served.recorder.status()["reached"] == []


def test_rows_that_had_come_before_keep_their_stamps(served: Served) -> None:
    """An inlet that takes them apart later says when they came; the commit counts by that."""
    rows = pa.record_batch({EVENT_TIME: [10, 20, 30], EMISSION_TIME: [15, 25, 45]})
    address = {"query": "q", "batch": 0, "partition": 0, "attempt": 1, "sink": "out"}
    served.recorder.receive(address, rows.schema, iter([rows]), stamped=True)
    served.recorder.commit("q", 0, [[0, 1]], ["out"])
    (commit,) = served.recorder.status()["commits"]
    assert (commit["rows"], commit["emitted_us"], commit["frontier_us"]) == (3, 45, 30)
    assert commit["latency_us_p50"] == 5.0
    (path,) = commit["paths"]
    assert pa.ipc.open_file(path).read_all().equals(pa.Table.from_batches([rows]))
