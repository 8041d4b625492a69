"""The test bed: real generators and a real recorder on the loopback, and an engine that this test plays itself."""

import errno
import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pyarrow as pa
import pytest
from pyarrow.flight import FlightServerError

from streamgauge.config.experiment import build
from streamgauge.core.clock import US, Clock
from streamgauge.core.engine_reports import OperatorCounts
from streamgauge.core.errors import DriverError, MachineError
from streamgauge.core.schema import EVENT_ID, EVENT_TIME
from streamgauge.core.units import FAR_FUTURE_US
from streamgauge.engines.spi import Edges, EngineStatus
from streamgauge.harness import start_processes as module
from streamgauge.harness.start_processes import TestBed
from streamgauge.loadgen.plan import Plan
from streamgauge.metrics.records import RUNNER, Tick
from streamgauge.metrics.trial_log import TrialLog
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.preflight.settings_checks import check
from streamgauge.system.child_processes import is_running, send_signal, wait_until
from streamgauge.transports.memory import client
from streamgauge.transports.spi import EndpointConfig
from streamgauge.trial.conductor import next_start, testbed_settings

pytestmark = pytest.mark.process

RATE, STREAM, CHUNK_US = 1000.0, "purchases", 50_000
TIMEOUT_S = 60.0
"""For a machine that is busy; what is waited for comes within a second or two."""


class Played:
    """An engine that does nothing by itself: it records its edges, and how often it was stopped."""

    capabilities: Any = None

    def __init__(self) -> None:
        self.start, self.stop = Mock(), Mock()
        self.stage: Any = lambda: ""
        self.status: Any = lambda: EngineStatus(True)
        self.pids: Any = lambda: [os.getpid()]
        self.batch_progress: Any = lambda timeout_s=30.0: []
        self.operator_row_counts: Any = lambda timeout_s=30.0: OperatorCounts()
        self.settings: Any = dict


def broken() -> Played:
    """One whose start fails."""
    engine = Played()
    engine.start.side_effect = RuntimeError("no such engine")
    return engine


@pytest.fixture(scope="module")
def resolved() -> ResolvedExperiment:
    """Two generators of a low rate."""
    return check(build({"workload": "identity", "load": {"rate": RATE, "generators": 2}}))


@pytest.fixture
def testbed(resolved: ResolvedExperiment, tmp_path: Path) -> Iterator[TestBed]:
    """A started test bed."""
    with TestBed(testbed_settings(resolved), Played, tmp_path, Clock.fixed_now()) as one:
        one.start(resolved.plan(next_start(one), RATE, 1.0))
        yield one


def edges_of(testbed: TestBed) -> Edges:
    engine: Any = testbed.engine
    return cast(Edges, engine.start.call_args.args[1])


def begun(
    testbed: TestBed, resolved: ResolvedExperiment, seconds: float, end_s: float, chunk_us: int = CHUNK_US
) -> tuple[int, Plan, TrialLog]:
    """(start, plan, log) of a trial that was begun, up to a second of its plan."""
    start = next_start(testbed)
    plan = resolved.plan(start, RATE, seconds)
    testbed.begin(plan, start + round(end_s * US), chunk_us)
    return start, plan, TrialLog(plan, testbed.sinks)


def watched(testbed: TestBed, trial_log: TrialLog, until: Callable[[Tick], bool]) -> Tick:
    """Looks until `until` holds of a look; the last one."""
    ticks: list[Tick] = []

    def look() -> bool:
        ticks.append(testbed.tick())
        trial_log.add(ticks[-1])
        return until(ticks[-1])

    assert wait_until(look, TIMEOUT_S)
    return ticks[-1]


def test_a_started_test_bed_has_an_endpoint_for_each_generator_and_one_for_results(testbed: TestBed) -> None:
    """All of them open to the same token; the processes are distinguished by their role."""
    edges = edges_of(testbed)
    assert len({edge.location for edge in (*edges.inputs, edges.output)}) == 3
    assert len({edge.token for edge in (*edges.inputs, edges.output)}) == 1
    assert [(name, role) for name, role, _ in testbed.processes()] == [
        ("generator 0", "driver"), ("generator 1", "driver"), ("recorder", "driver"), ("runner", "driver"),
        (f"sut {os.getpid()}", "sut"),
    ]  # fmt: skip
    assert (testbed.trials, testbed.sinks) == (0, ("purchases",))


def test_a_broker_is_of_neither_side(testbed: TestBed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its processes have a role of their own."""
    monkeypatch.setattr(testbed, "_broker", SimpleNamespace(pids=lambda: (71, 72)))
    assert [process for process in testbed.processes() if process[0] == "broker"] == [
        ("broker", "broker", 71), ("broker", "broker", 72),
    ]  # fmt: skip
    assert testbed.pids("broker") == [71, 72]
    assert testbed.pids("sut") == [os.getpid()]
    assert len(testbed.pids("driver")) == 4


class Grouped(Played):
    """One that commits to a consumer group."""

    def consumer_group(self, flow: Any, run: str) -> str:
        return f"group of {run}"


def test_the_recorder_follows_the_group_that_an_engine_states(
    resolved: ResolvedExperiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over a broker, for any engine. Generators need not know it."""
    at = EndpointConfig("", 0, "run", {"brokers": "b:1"}, starts=(("orders", 0, 5),))
    monkeypatch.setattr(
        module, "transport", lambda _: SimpleNamespace(broker="any", open_broker=lambda _: SimpleNamespace(at=at))
    )
    one = TestBed(testbed_settings(resolved), Grouped, tmp_path, Clock.fixed_now())
    one._private = tmp_path
    inlet, *outlets = one._endpoints()
    assert inlet == replace(at, group="group of run")
    assert outlets == [at, at]


def test_what_is_offered_read_and_committed_is_seen_at_the_next_look(
    testbed: TestBed, resolved: ResolvedExperiment
) -> None:
    """One trial of a second: all of it is offered, and what the engine did is reported."""
    edges, (start, plan, trial_log) = edges_of(testbed), begun(testbed, resolved, 5.0, 1.0)
    last = watched(testbed, trial_log, lambda tick: tick.ended)
    assert (testbed.trials, testbed.reached_us, last.frontier_us, last.overflowed) == (1, start + US, start + US, False)
    assert trial_log.running.offered_events == plan.planned_events(start, start + US) == 1000

    rows = [
        pa.Table.from_batches(
            client.read_range(edge.location, edge.token, STREAM, 0, start + US, (EVENT_ID, EVENT_TIME), 7, "q")
        )
        for edge in edges.inputs
    ]
    assert sum(each.num_rows for each in rows) == 1000
    for attempt, table in enumerate(rows):
        address = {"query": "q", "batch": 7, "partition": 0, "attempt": attempt, "sink": "purchases"}
        client.send_results(edges.output.location, edges.output.token, address, iter(table.to_batches()))
    arguments = {"query": "q", "batch": 7, "accepted": [[0, 1]], "sinks": ["purchases"]}
    client.act(edges.output.location, edges.output.token, "commit", **arguments)

    last = watched(testbed, trial_log, lambda tick: bool(tick.commits))
    assert (trial_log.running.delivered_by(FAR_FUTURE_US), trial_log.committed_until()) == (1000, start + US)
    assert (trial_log.commits[0].rows, last.rows_ignored) == (rows[1].num_rows, {"purchases": rows[0].num_rows})
    assert (len(trial_log.retried_us), trial_log.aborted_us) == (1, [])
    waited = (trial_log.delivering, trial_log.receiving, trial_log.writing)
    assert all(spent and all(start < since <= until for since, until in spent) for spent in waited)
    testbed.commit(start + US)
    first = edges.inputs[0]
    with pytest.raises(FlightServerError, match="was requested, but only"):
        next(client.read_range(first.location, first.token, STREAM, 0, start + US, (EVENT_ID,), 8, "q"))


def send(edges: Edges, batch: int) -> None:
    """A batch of one result, committed."""
    address = {"query": "q", "batch": batch, "partition": 0, "attempt": 0, "sink": "purchases"}
    rows = pa.record_batch({EVENT_TIME: pa.array([batch])})
    client.send_results(edges.output.location, edges.output.token, address, iter([rows]))
    arguments = {"query": "q", "batch": batch, "accepted": [[0, 0]], "sinks": ["purchases"]}
    client.act(edges.output.location, edges.output.token, "commit", **arguments)


def test_results_of_a_trial_go_when_the_next_one_begins(testbed: TestBed, resolved: ResolvedExperiment) -> None:
    """Those that a look reported; what came after the last look is reported in the next trial, and stays for it."""
    edges, (start, plan, _) = edges_of(testbed), begun(testbed, resolved, 1.0, 0.0)
    send(edges, 0)
    (commit,) = testbed.tick().commits
    assert [str(path) for path in testbed.spool.iterdir()] == commit.paths
    send(edges, 1)
    testbed.begin(plan, start, CHUNK_US)
    (left,) = testbed.tick().commits
    assert left.batch == 1
    assert [str(path) for path in testbed.spool.iterdir()] == left.paths


def test_generators_are_halted_beside_one_that_is_gone(testbed: TestBed, resolved: ResolvedExperiment) -> None:
    """Else they would load an engine that is no longer measured; which one is gone is reported all the same."""
    begun(testbed, resolved, 3600.0, 3600.0)
    send_signal(signal.SIGKILL, testbed.pids("generator 0"))
    with pytest.raises(DriverError, match="generator 0"):
        testbed.halt()
    assert wait_until(lambda: testbed._generators[1].ask("status")[0]["ended"], TIMEOUT_S)


@pytest.mark.parametrize("name", ["generator 1", "recorder"])
def test_a_driver_process_that_is_gone_is_an_error_of_the_driver(testbed: TestBed, name: str) -> None:
    """The look says which."""
    send_signal(signal.SIGKILL, testbed.pids(name))
    with pytest.raises(DriverError, match=name):
        wait_until(lambda: not testbed.tick(), TIMEOUT_S)


def test_a_queue_that_is_full_is_no_error_of_the_driver(resolved: ResolvedExperiment, tmp_path: Path) -> None:
    """Generators stop there because no engine reads; the trial judges that, and the next trial has its own."""
    settings = replace(testbed_settings(resolved), bound_us=200_000)
    with TestBed(settings, Played, tmp_path, Clock.fixed_now()) as testbed:
        testbed.start(resolved.plan(next_start(testbed), RATE, 60.0))
        start, _, trial_log = begun(testbed, resolved, 60.0, 60.0)
        last = watched(testbed, trial_log, lambda tick: tick.ended)
        reached_us = testbed.reached_us
        # The next plan begins in an hour, so nothing is offered that could find the queue full again.
        later = start + 3600 * US
        testbed.begin(resolved.plan(later, RATE, 60.0), later + 60 * US, CHUNK_US)
        following = testbed.tick()
    assert (last.overflowed, last.memory_full_us) == (True, None)
    assert reached_us == start + 200_000
    assert following.overflowed is False


@pytest.mark.parametrize("engine", [Played, broken])
def test_whatever_happens_all_processes_are_ended(resolved: ResolvedExperiment, tmp_path: Path, engine: Any) -> None:
    """The engine first; nothing private stays behind, in a start that failed neither."""
    with TestBed(testbed_settings(resolved), engine, tmp_path, Clock.fixed_now()) as one:
        with suppress(RuntimeError):
            one.start(resolved.plan(next_start(one), RATE, 1.0))
        pids = [pid for name, role, pid in one.processes() if role == "driver" and name != RUNNER]
        folders = (one._private, one.spool)
    played: Any = one.engine
    assert (len(pids), [pid for pid in pids if is_running(pid)], played.stop.call_count) == (3, [], 1)
    assert not any(path.exists() for path in folders)


def started(testbed: TestBed, resolved: ResolvedExperiment) -> None:
    with testbed:
        testbed.start(resolved.plan(next_start(testbed), RATE, 1.0))


@pytest.mark.parametrize(("of", "name"), [(tempfile, "mkdtemp"), (Path, "write_bytes")], ids=["folder", "file"])
def test_a_full_disk_for_temporary_files_is_reported(
    resolved: ResolvedExperiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of: Any, name: str
) -> None:
    """With the place, and how to name another; for the test bed's own folder, and for its files."""
    full = Mock(side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    one, place = TestBed(testbed_settings(resolved), Played, tmp_path, Clock.fixed_now()), tempfile.gettempdir()
    with monkeypatch.context() as patch:
        patch.setattr(of, name, full)
        with pytest.raises(MachineError, match=f"{place}.* is full: .* TMPDIR=DIR"):
            started(one, resolved)
    assert [name for name, role, _ in one.processes() if role == "driver"] == ["runner"]


def test_generators_that_stopped_apart_are_levelled(testbed: TestBed, resolved: ResolvedExperiment) -> None:
    """What one offered beyond the other would else stay unread, and fill the queue of the next trial."""
    start, _, trial_log = begun(testbed, resolved, 60.0, 60.0)
    watched(testbed, trial_log, lambda tick: tick.frontier_us > start)
    testbed._generators[0].ask("halt")
    watched(testbed, trial_log, lambda tick: testbed.reached_us >= tick.frontier_us + US)
    testbed.halt()
    assert watched(testbed, trial_log, lambda tick: tick.ended).frontier_us < testbed.reached_us
    offered = trial_log.running.offered_events
    testbed.level()
    levelled = testbed.tick()
    trial_log.add(levelled)
    assert levelled.frontier_us == testbed.reached_us
    assert trial_log.running.offered_events == offered
