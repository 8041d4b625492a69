"""The test bed: one start of generators, recorder and engine, wired together. A warm test bed carries many trials."""

from __future__ import annotations

import os
import pickle
import secrets
import signal
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from streamgauge.artifacts.atomic_write import OutputLocation, disk
from streamgauge.core.clock import Clock
from streamgauge.core.errors import DriverError
from streamgauge.core.schema import INGEST_TIME, LINEAGE
from streamgauge.dataflow.nodes import Flow
from streamgauge.engines.spi import Edges, Engine, EngineStatus, Restartable
from streamgauge.harness.broker_log import AppendTimes, Offsets, append_times
from streamgauge.harness.generator_process import GeneratorSettings
from streamgauge.harness.recorder_process import RecorderSettings
from streamgauge.loadgen.plan import Plan
from streamgauge.metrics.records import RUNNER, GeneratorReport, RecorderReport, Role, Tick
from streamgauge.system.child_processes import Child, send_signal, stop_all
from streamgauge.system.disk import Scratch, sweep
from streamgauge.transports.registry import transport
from streamgauge.transports.spi import (
    BrokerRequest,
    Edge,
    EndpointConfig,
    ManagedBroker,
    OutletConfig,
)
from streamgauge.transports.topic_names import ProgramTopics

PRIVATE = OutputLocation("TMPDIR", "TMPDIR=DIR")
"""That of the private folder."""
APPENDS = 100
"""Events per partition whose latency to the broker is sampled: enough for a p99 over all."""


@dataclass(frozen=True)
class TestBedSettings:
    """The settings for a start, which trials do not change. `keys`: stream to the column with its messages' key.

    `program`: the topics of a program of the user's own. `recorder_skew_us`: how far the recorder's clock is ahead,
    which the self-test plants.
    """

    flow: Flow
    columns: dict[str, tuple[str, ...]]
    generators: int
    partitions: int
    bound_us: int
    bytes_max: int
    frontier: str
    options: dict[str, str]
    master: str | None
    driver_cpus: tuple[int, ...] | None
    transport: str
    transport_options: dict[str, str] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    host: str = "127.0.0.1"
    ports: tuple[int, ...] = ()
    program: ProgramTopics | None = None
    recorder_skew_us: int = 0


class TestBed:
    """Owns the processes. Use it as a context manager, which ends them in any case."""

    def __init__(
        self, settings: TestBedSettings, make_engine: Callable[[], Engine], folder: Path, clock: Clock
    ) -> None:
        self.settings, self.clock, self.folder = settings, clock, folder
        self._stack = ExitStack()
        self._generators: list[Child] = []
        self._recorder: Child | None = None
        self._broker: ManagedBroker | None = None
        self._offsets = Offsets(settings.partitions)
        self._reported_results: list[str] = []
        """Result files reported since the last plan began."""
        self.trials = 0
        self.restarted = False
        self.reached_us = 0
        """The latest event time that any generator has offered."""
        self.paused: list[bool] = []
        """Whether each partition's generator said at the last tick that it pauses at its pace."""
        self._offered_events: Counter[int] = Counter()
        self._taken_events: dict[str, dict[tuple[str, int], Counter[int]]] = defaultdict(lambda: defaultdict(Counter))
        """Events of each stream that each of its readers (query, number) has taken."""
        self.engine: Engine = make_engine()
        self._stage = self._rejected = ""
        self._start_engine: Callable[[], None] = lambda: None

    def __enter__(self) -> TestBed:
        sweep()
        with disk(Path(tempfile.gettempdir()), PRIVATE):
            self._private = Path(self._stack.enter_context(Scratch("testbed")))
        self.spool = self._private / "spool"
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._stack.close()

    def stage(self) -> str:
        """The current stage of the start; empty while the engine starts without reporting one."""
        return self.engine.stage() or self._stage

    def start(self, first_plan: Plan) -> None:
        """Starts everything. Returns when the engine's query runs and waits for its first event."""
        settings = self.settings
        self._stage = "preparing the broker" if transport(settings.transport).broker else ""
        inlet, *outlets = self._endpoints()
        self._stage = "starting the recorder and the generators"
        recorder = RecorderSettings(
            inlet, self.clock.offset_us + settings.recorder_skew_us, str(self.spool), settings.transport
        )
        self._recorder = self._child("recorder", "streamgauge.harness.recorder_process", recorder)
        for number in range(settings.generators):
            self._generators.append(self._start_generator(number, outlets, first_plan))
        edges = Edges(
            inputs=tuple(Edge(each["location"], inlet.token) for each in self._ask_all("listen")),
            output=Edge(self._recorder.ask("listen")["location"], inlet.token),
            columns=settings.columns,
            frontier=settings.frontier,
            transport=settings.transport,
            transport_options=inlet.options,
            bind=settings.host,
            keys=settings.keys,
        )
        folder, self._stage = self.folder / "engine", ""
        self._start_engine = partial(self.engine.start, settings.flow, edges, settings.options, settings.master, folder)
        with disk(folder, OutputLocation("out", "--out DIR, or TMPDIR=DIR,")):
            self._start_engine()

    def engine_can_restart(self) -> bool:
        """Whether `restart_engine` loses nothing that the engine could keep."""
        return not isinstance(self.engine, Restartable) or self.engine.has_checkpoint()

    def restart_engine(self) -> None:
        """Kills the SUT, and starts it again from what it kept; from nothing, if it keeps nothing."""
        self.restarted = True
        if isinstance(self.engine, Restartable):
            self.engine.restart()
        else:
            send_signal(signal.SIGKILL, self.engine.pids())
            self.engine.stop()
            self._start_engine()

    @property
    def sinks(self) -> tuple[str, ...]:
        """The names of the sinks that results come from."""
        return tuple(sink.name for sink in self.settings.flow.sinks)

    def begin(self, plan: Plan, end_us: int, chunk_us: int, pace_us: int | None = None) -> None:
        """Lets all generators follow `plan` until `end_us`, in chunks of `chunk_us` of event time.

        Removes the result files of the previous trial, which is already judged.
        """
        self.trials += 1
        path = self._write(f"plan-{self.trials}", plan)
        positions = self._ask_all("segment", plan=path, end_us=end_us, chunk_us=chunk_us, pace_us=pace_us)
        self._offsets.begin(plan, positions)
        # Reported files only. The next trial reports what the engine sends between two trials.
        for result in self._reported_results:
            Path(result).unlink(missing_ok=True)
        self._reported_results = []

    def extend(self, end_us: int) -> None:
        self._ask_all("extend", end_us=end_us)

    def halt(self) -> None:
        """Stops all generators at the end of their current chunk.

        Raises:
            DriverError: a generator did not answer. The others stop all the same.
        """
        with ExitStack() as halts:
            for child in self._generators:
                halts.callback(child.ask, "halt")

    def level(self) -> None:
        """Between trials: moves the frontier of all generators to that of the furthest one.

        After an early end the generators stop at different event times, and the SUT cannot read beyond the earliest.
        """
        self._ask_all("level", to_us=self.reached_us)

    def commit(self, before_us: int) -> None:
        """Drops events and logged reads before `before_us`."""
        self._offsets.forget(before_us)
        self._ask_all("commit", before_us=before_us)

    def tick(self) -> Tick:
        """Collects the logs of all processes since the last call.

        Raises:
            DriverError: a generator or the recorder ended or failed.
        """
        assert self._recorder is not None
        if self._broker is not None and not self._broker.alive:
            raise DriverError(f"the broker ended; its log: {self.folder / 'engine' / 'broker.log'}")
        generators = [GeneratorReport.from_json(report) for report in self._ask_all("status")]
        recorder = RecorderReport.from_json(self._recorder.ask("status"))
        self._rejected = recorder.rejected
        self.paused = [one.paused for one in generators]
        self.reached_us = max(self.reached_us, *(one.frontier_us for one in generators))
        self._reported_results += [path for commit in recorder.commits for path in commit.paths]
        tick = tick_of(generators, recorder)
        if reads := [*self._offsets.reads_of(recorder.reached), *recorder.reads]:  # which the transport did not observe
            derived = self._offsets.deliveries(sorted(reads, key=lambda read: read.when_us))
            self._ask_all("mark_delivered", before_us=self._offsets.reached_us())
            every = [[*own, *more] for own, more in zip(tick.deliveries, derived, strict=True)]
            tick = replace(tick, deliveries=every)
        self._count(tick)  # also of a trial that fails, since others may follow on this bed
        # A generator also stops at a full queue, which the verdict covers. Other failures must still show.
        reasons = [recorder.failed, *(one.failed for one in generators if not one.overflowed)]
        if any(reasons):
            raise DriverError("; ".join(filter(None, reasons)), disk_full=recorder.disk_full)
        return tick

    def waiting_events(self) -> list[int]:
        """Each partition's events of all trials that were offered and not read by every reader of their stream."""
        return [
            offered
            - sum(min(taken[partition] for taken in readers.values()) for readers in self._taken_events.values())
            for partition, offered in sorted(self._offered_events.items())
        ]

    def _count(self, tick: Tick) -> None:
        for partition, chunks in enumerate(tick.chunks):
            self._offered_events[partition] += sum(chunk.events for chunk in chunks)
        for partition, parts in enumerate(tick.deliveries):
            for part in (part for part in parts if not part.again):
                self._taken_events[part.stream][part.query, part.reader][partition] += part.events

    def append_latencies_us(self, from_us: int, to_us: int) -> list[int]:
        """Broker append time minus event time, for a sample of the span's events. Empty without a broker.

        Raises DriverError if the broker does not answer.
        """
        if self._broker is None:
            return []
        return [
            when - time
            for (stream, partition), offsets, times in self._offsets.samples(from_us, to_us, APPENDS)
            if (when_us := self._broker.appended_us(stream, partition, offsets))
            for when, time in zip(when_us, times, strict=True)
        ]

    def appended(self, stream: str, sink: str, from_us: int, to_us: int) -> AppendTimes | None:
        """Append times of the span's events and their results, for a sample of the results.

        None without a broker, or if it does not share the driver's clock. Raises DriverError if it does not answer.
        """
        if self._broker is None:
            return None
        return append_times(self._broker, self._offsets, stream, sink, from_us, to_us)

    def require_all_topics(self) -> None:
        """Raises DriverError if topics are missing from the broker."""
        if self._broker is not None and (missing := self._broker.missing()):
            raise DriverError(missing)

    def require_no_lost_events(self, all_sent: bool = False) -> None:
        """Raises DriverError if the broker has lost events, or has those of another program among them.

        `all_sent`: whether generators send nothing more, without which the others cannot be told.
        """
        if self._broker is not None and (lost := self._broker.lost(self._ask_all("positions"), all_sent)):
            raise DriverError(lost)

    def engine_status(self) -> EngineStatus:
        """The engine's status; a failure if its results show that it cannot be measured."""
        status = self.engine.status()
        return EngineStatus(False, self._rejected, rejected=True) if status.alive and self._rejected else status

    def processes(self) -> list[tuple[str, Role, int]]:
        """(name, role, pid) of every process, including this one, for the monitors."""
        return [
            *((child.name, "driver", child.pid) for child in self._children if child.alive),
            *(("broker", "broker", pid) for pid in (self._broker.pids() if self._broker else ())),
            (RUNNER, "driver", os.getpid()),
            *((f"sut {pid}", "sut", pid) for pid in self.engine.pids()),
        ]

    def pids(self, name: str) -> list[int]:
        """The running processes of a role, or of a name (`recorder`, `generator 1`, `generator`), for `send_signal`."""
        return [pid for one, role, pid in self.processes() if name in (one, one.split()[0], role)]

    def stop(self) -> None:
        """Ends the engine first, then the driver's processes."""
        self.engine.stop()
        stop_all(self._children, grace_s=1.0)
        self._generators, self._recorder = [], None
        if self._broker is not None:
            self._broker.close()
            self._broker = None

    @property
    def _children(self) -> list[Child]:
        return [*self._generators, *([self._recorder] if self._recorder else [])]

    def _written_by(self, generator: int) -> range:
        """The partitions that a generator process writes. Each partition has one writer."""
        return range(generator, self.settings.partitions, self.settings.generators)

    def _ask_all(self, request: str, **arguments: Any) -> list[Any]:
        """The replies to a request for all partitions, in their order."""
        replies: dict[int, Any] = {}
        for number, child in enumerate(self._generators):
            replies |= zip(self._written_by(number), child.ask(request, **arguments), strict=True)
        return [replies[partition] for partition in sorted(replies)]

    def _endpoints(self) -> list[EndpointConfig]:
        """The endpoint configurations of the recorder and of each partition. Starts the broker, if there is one."""
        settings, token = self.settings, secrets.token_urlsafe(24)
        used = transport(settings.transport)
        if not used.broker:
            ports = settings.ports or (0,) * (settings.partitions + 1)
            return [EndpointConfig(settings.host, port, token) for port in ports]
        log = self.folder / "engine" / "broker.log"
        self._broker = used.open_broker(
            BrokerRequest(
                secrets.token_hex(6), tuple(settings.columns), settings.partitions, self._private / "broker", log,
                settings.host, settings.driver_cpus, settings.transport_options, settings.program,
            )
        )  # fmt: skip
        at = self._broker.at
        return [replace(at, group=self.engine.consumer_group(settings.flow, at.token)), *[at] * settings.partitions]

    def _start_generator(self, number: int, outlets: Sequence[EndpointConfig], plan: Plan) -> Child:
        """Starts a generator process; `outlets` has the endpoint of each partition, `plan` the streams of all plans."""
        bed = self.settings
        columns = {name: [each for each in names if each != INGEST_TIME] for name, names in bed.columns.items()}
        lineage = [pa.field(name, pa.int64()) for name in LINEAGE]
        schemas = {stream.name: pa.schema([*stream.schema.to_arrow(), *lineage]) for stream in plan.streams}
        limits = bed.bound_us, bed.bytes_max // bed.partitions
        settings = [
            GeneratorSettings(
                outlets[partition],
                OutletConfig(schemas, *limits, self.clock.now_us, partition, bed.keys),
                self.clock,
                columns,
                bed.transport,
            )
            for partition in self._written_by(number)
        ]
        return self._child(f"generator {number}", "streamgauge.harness.generator_process", settings)

    def _child(self, name: str, module: str, settings: Any) -> Child:
        file = name.replace(" ", "-")
        path, log = self._write(file, settings), self.folder / "engine" / f"{file}.log"
        with disk(log):
            return Child(name, module, [path], log, self.settings.driver_cpus, {"OMP_NUM_THREADS": "1"})

    def _write(self, name: str, content: Any) -> str:
        """Pickles into a file of the private folder, for the processes. Returns its path."""
        path = self._private / f"{name}.pkl"
        with disk(path, PRIVATE):
            path.write_bytes(pickle.dumps(content))
        return str(path)


def tick_of(generators: Sequence[GeneratorReport], recorder: RecorderReport) -> Tick:
    """Combines the reports of all processes."""
    overflowed = [one for one in generators if one.overflowed]
    memory_full_us = [one.memory_full_us for one in overflowed if one.memory_full_us is not None]
    every_one_by_memory = len(memory_full_us) == len(overflowed)
    return Tick(
        chunks=[one.chunks for one in generators],
        deliveries=[one.deliveries for one in generators],
        commits=recorder.commits,
        frontier_us=min(one.frontier_us for one in generators),
        overflowed=bool(overflowed),
        ended=all(one.ended for one in generators),
        rows_ignored=recorder.rows_ignored,
        aborted_us=[when for one in generators for when in one.aborted_us],
        retried_us=recorder.retried_us,
        delivering=[interval for one in generators for interval in one.delivering],
        receiving=recorder.receiving,
        writing=recorder.writing,
        stood_still=recorder.stood_still,
        remarks=recorder.remarks,
        memory_full_us=max(memory_full_us, default=None) if every_one_by_memory else None,
    )
