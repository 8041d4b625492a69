"""harness/recorder_process.py: results over the network, on the disk, and in a process of its own."""

import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

import psutil
import pyarrow as pa
import pyarrow.flight as flight
import pytest

from streamgauge.core.clock import Clock
from streamgauge.core.schema import EMISSION_TIME, EVENT_TIME
from streamgauge.harness.recorder_process import BEAT_US, RecorderSettings
from streamgauge.system.child_processes import Child, send_signal, wait_until
from streamgauge.transports.memory import client
from streamgauge.transports.spi import EndpointConfig
from tests.unit.harness.helpers_recorder import TOKEN, Served, results, rows_staged


def read(path: str) -> pa.Table:
    with pa.memory_map(path) as source:
        return pa.ipc.open_file(source).read_all()


def test_results_are_kept_with_their_emission_time(served: Served) -> None:
    """The spool holds every column as it came, and when it came by the run's clock."""
    clock = served.recorder._clock
    before_us = clock.now_us()
    commit = served.recorded(0, results(0, 1000), results(1000, 500))
    table = read(commit["paths"][0])
    assert table.drop_columns([EMISSION_TIME]) == pa.Table.from_batches([results(0, 1000), results(1000, 500)])
    stamps = table.column(EMISSION_TIME).to_numpy()
    assert before_us <= stamps.min() <= stamps.max() <= clock.now_us()
    assert (commit["rows"], commit["frontier_us"], commit["emitted_us"]) == (1500, 1499, stamps.max())
    assert commit["committed_us"] >= commit["emitted_us"]


def test_a_batch_sent_again_after_a_restart_does_not_touch_what_was_accepted(served: Served) -> None:
    """A restarted query numbers its attempts from 0 again; the accepted file keeps its rows and emission times."""
    accepted = Path(served.recorded(0, results(0, 10))["paths"][0])
    before = accepted.read_bytes()  # a table over the mapped file would change with it
    served.send(0, [results(500, 10)])
    assert not served.commit(0, [[0, 0]])
    assert accepted.read_bytes() == before
    status = served.recorder.status()
    assert (status["commits"], status["rows_ignored"]) == ([], {"out": 10})


@pytest.mark.parametrize(
    ("columns", "rows", "frontier_us"),
    [
        ({"word": ["a", "b"]}, 2, 0),  # of a user job that carries no lineage
        ({EVENT_TIME: pa.array([5, None, 7], pa.int64())}, 3, 7),  # of an outer join, a row without a partner
        ({EVENT_TIME: pa.array([None], pa.int64())}, 1, 0),
    ],
)
def test_results_without_event_time_are_kept_too(
    served: Served, columns: dict[str, Any], rows: int, frontier_us: int
) -> None:
    """Latency and frontier are of those that have one."""
    commit = served.recorded(0, pa.record_batch(columns))
    assert (commit["rows"], commit["frontier_us"]) == (rows, frontier_us)
    assert (commit["latency_us_p50"] or 0) > 0 if frontier_us else commit["latency_us_p50"] is None


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


def test_a_full_disk_is_a_failure_of_ours(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Space that runs out in the middle of a stream is reported with the folder, and what helps."""
    monkeypatch.setattr(pa, "OSFile", lambda path, mode: open_full())
    with pytest.raises(flight.FlightServerError, match=f"the disk that holds {served.spool} is full"):
        served.send(0, [results(0, 200_000)])
    assert "set TMPDIR=DIR" in served.recorder.status()["failed"]


def open_full() -> pa.PythonFile:
    return pa.PythonFile(open("/dev/full", "wb", buffering=0), "w")


SENDER = """
import json, os, sys, threading
import numpy as np, pyarrow as pa, pyarrow.flight as flight
from streamgauge.transports.memory.client import call_options
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
            assert cast(IO[bytes], sender.stdout).readline() == b"sent\n"
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


CLOCK = Clock.fixed_now()


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Child]:
    """A recorder in a process of its own, started by file."""
    settings = RecorderSettings(EndpointConfig("127.0.0.1", 0, TOKEN), CLOCK.offset_us, str(tmp_path / "spool"))
    path = tmp_path / "settings.pkl"
    path.write_bytes(pickle.dumps(settings))
    child = Child("recorder", "streamgauge.harness.recorder_process", [str(path)], tmp_path / "recorder.log")
    yield child
    if child.exit_code is None:
        child.kill()


def test_a_recorder_that_was_stopped_says_so(child: Child) -> None:
    """A real process: for how long it did not run at all, and when that ended."""
    length_us = 300_000
    child.ask("listen")
    began_us = CLOCK.now_us()
    child.ask("status")
    send_signal(signal.SIGSTOP, [child.pid])
    assert wait_until(lambda: psutil.Process(child.pid).status() == psutil.STATUS_STOPPED, 20)
    stopped_us = CLOCK.now_us()
    assert wait_until(lambda: CLOCK.now_us() >= stopped_us + length_us, 20)
    send_signal(signal.SIGCONT, [child.pid])
    stood_still = child.ask("status")["stood_still"]
    ended_us = CLOCK.now_us()
    assert all(began_us < when <= ended_us for when, _ in stood_still)
    assert length_us - 2 * BEAT_US <= sum(late for _, late in stood_still) <= ended_us - began_us


def test_what_is_read_is_reported_once(served: Served) -> None:
    """With the moment at which it was reported, in the order in which it came; what results show, too."""
    served.recorder.read("q", 3, [("ads", 0, 0, 10), ("ads", 1, 0, 12)])
    served.recorder.read("q", 4, [("ads", 0, 0, 20)])
    served.recorder.reached("q", 3, 70)
    status, again = served.recorder.status(), served.recorder.status()
    reads = [(read["batch"], read["reader"], read["to_offset"]) for read in status["reads"]]
    assert reads == [(3, 0, 10), (3, 1, 12), (4, 0, 20)]
    assert [(one["batch"], one["until_us"]) for one in status["reached"]] == [(3, 70)]
    assert all(one["when_us"] > 0 for one in (*status["reads"], *status["reached"]))
    assert (again["reads"], again["reached"]) == ([], [])


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


def test_a_remark_is_replaced_and_withdrawn(served: Served) -> None:
    for count, text in ((1, "one"), (2, "two"), (0, "")):
        served.recorder.remark("foreign", count, text)
        assert served.recorder.status()["remarks"] == ({"foreign": (count, text)} if count else {})
