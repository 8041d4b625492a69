"""The recorder process: stamps each result on arrival, stores it on disk, and counts it once its sink has committed.

The recorder stages rows by (query, batch, partition, attempt, sink), because a failed task sends its rows again and a
restarted query repeats a whole batch. A commit accepts the attempts that it lists, for all sinks of the query at once.
The recorder ignores a batch that was committed before, so it counts each result exactly once.
The spool has one Arrow IPC file per attempt, with `emission_time` added. Latencies are computed from it after the run.
"""

import itertools
import pickle
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.clock import US, Clock, repeated
from streamgauge.core.errors import DriverError, is_full
from streamgauge.core.schema import EMISSION_TIME, EVENT_TIME
from streamgauge.metrics.records import STILL_US_MIN, Commit, RecorderReport
from streamgauge.system.child_processes import serve
from streamgauge.system.disk import full_disk
from streamgauge.transports.outlet import drained
from streamgauge.transports.registry import transport
from streamgauge.transports.spi import BusyTracker, EndpointConfig, OutputProgress, ReadPosition

BEAT_US = 20_000


class Heartbeat:
    """Standstills of this process: it was stopped or starved, or one thread held the interpreter lock.

    A thread beats every `BEAT_US`. Stamps may be as late as it wakes. Only long standstills are stored.
    """

    def __init__(self, now_us: Callable[[], int]) -> None:
        self._now_us = now_us
        self._lock = threading.Lock()
        self._last_us = now_us()
        self._stood_still: deque[tuple[int, int]] = deque()

    def beat(self) -> None:
        """Notes that the process runs now. A long gap since the previous beat is a standstill."""
        with self._lock:
            now_us = self._now_us()
            late_us = now_us - self._last_us - BEAT_US
            if late_us > STILL_US_MIN:
                self._stood_still.append((now_us, late_us))
            self._last_us = now_us

    def news(self) -> list[tuple[int, int]]:
        """(end, duration) of each standstill since the last call, microseconds."""
        self.beat()  # the caller may wake up before the thread, and this may be its last call
        return drained(self._stood_still)


Key = tuple[str, int, int, int, str]
"""(query, batch, partition, attempt, sink)."""

SAMPLE_ROWS = 2048
LATENCY_SHARES = (0.5, 0.9, 0.99)


@dataclass(frozen=True)
class RecorderSettings:
    endpoint: EndpointConfig
    clock_offset_us: int
    spool: str
    transport: str = "memory"


@dataclass
class Staged:
    """The rows that one attempt sent."""

    path: str
    rows: int = 0
    frontier_us: int = 0
    last_us: int = 0
    sample_us: list[int] = field(default_factory=list)


class Ledger:
    """The staged and accepted attempts. Separate from the server, so that tests need none."""

    def __init__(self, now_us: Callable[[], int]) -> None:
        self._now_us = now_us
        self._lock = threading.Lock()
        self._staged: dict[Key, Staged] = {}
        self._begun: set[tuple[str, int, int, str]] = set()
        self.retried_us: deque[int] = deque()
        """The times at which tasks sent their results again, until they are reported."""
        self._committed: set[tuple[str, int]] = set()
        self.commits: deque[Commit] = deque()
        """Those not reported yet."""
        self._ignored: Counter[str] = Counter()

    def begin(self, key: Key) -> None:
        """Notes that an attempt begins to send. A second attempt for the same part of a batch is a retried task."""
        query, batch, partition, _, sink = key
        with self._lock:
            if (query, batch, partition, sink) in self._begun or (query, batch) in self._committed:
                self.retried_us.append(self._now_us())
            self._begun.add((query, batch, partition, sink))

    def stage(self, key: Key, staged: Staged) -> None:
        with self._lock:
            self._staged[key] = staged

    def commit(
        self, query: str, batch: int, accepted: list[list[int]], sinks: list[str], when_us: int | None = None
    ) -> bool:
        """Accepts the (partition, attempt) pairs of a batch for the query's sinks. False if already committed."""
        with self._lock:
            if (query, batch) in self._committed:
                self._drop(query, batch)
                return False
            self._committed.add((query, batch))
            taken = {
                sink: [
                    self._staged.pop(key)
                    for task, attempt in accepted
                    if (key := (query, batch, task, attempt, sink)) in self._staged
                ]
                for sink in sinks
            }
            self._drop(query, batch)
            committed_us = self._now_us() if when_us is None else when_us
            self.commits += [_commit_of(query, batch, sink, committed_us, staged) for sink, staged in taken.items()]
            return True

    @property
    def rows_ignored(self) -> dict[str, int]:
        """Sink to the number of its rows that no commit accepted, for sinks with such rows."""
        with self._lock:
            return dict(self._ignored)

    def _drop(self, query: str, batch: int) -> None:
        self._begun = {share for share in self._begun if share[:2] != (query, batch)}
        for key in [key for key in self._staged if key[:2] == (query, batch)]:
            self._ignored[key[4]] += self._staged.pop(key).rows


def _commit_of(query: str, batch: int, sink: str, committed_us: int, taken: list[Staged]) -> Commit:
    sample = [value for staged in taken for value in staged.sample_us]
    p50, p90, p99 = np.quantile(sample, LATENCY_SHARES).tolist() if sample else (None, None, None)
    return Commit(
        query,
        batch,
        sink,
        committed_us,
        emitted_us=max((staged.last_us for staged in taken), default=0),
        rows=sum(staged.rows for staged in taken),
        frontier_us=max((staged.frontier_us for staged in taken), default=0),
        latency_us_p50=p50,
        paths=[staged.path for staged in taken if staged.rows],
        latency_us_p90=p90,
        latency_us_p99=p99,
    )


class Recorder:
    """Implements `Receiver` for the transport's inlet. `failed` is the reason why it could not store results."""

    def __init__(self, settings: RecorderSettings) -> None:
        self._clock = Clock(settings.clock_offset_us)
        self._spool = Path(settings.spool)
        self._spool.mkdir(parents=True, exist_ok=True)
        self.ledger = Ledger(self._clock.now_us)
        # Senders wait meanwhile, so a slow recorder or a slow disk would look like a slow engine.
        self._receiving, self._writing = BusyTracker(self._clock.now_us), BusyTracker(self._clock.now_us)
        self.heart = Heartbeat(self._clock.now_us)
        self._numbers = itertools.count()
        self.failed, self.disk_full = "", False
        self._reads: deque[ReadPosition] = deque()
        self._reached: deque[OutputProgress] = deque()
        self._remarks: dict[str, tuple[int, str]] = {}
        self._rejected = ""
        self.inlet = transport(settings.transport).open_inlet(settings.endpoint, self)

    def listen(self) -> dict[str, Any]:
        return {"location": self.inlet.location}

    def commit(
        self, query: str, batch: int, accepted: list[list[int]], sinks: list[str], when_us: int | None = None
    ) -> bool:
        with self._receiving:
            return self.ledger.commit(query, batch, accepted, sinks, when_us)

    def read(
        self, query: str, batch: int, positions: Sequence[tuple[str, int, int, int]], when_us: int | None = None
    ) -> None:
        """Notes what a batch reads."""
        begun_us = self.now_us() if when_us is None else when_us
        self._reads.extend(
            ReadPosition(query, reader, batch, stream, partition, offset, begun_us)
            for stream, reader, partition, offset in positions
        )

    def reached(self, query: str, batch: int, until_us: int) -> None:
        """Notes how far a query has read, as its results show."""
        self._reached.append(OutputProgress(query, batch, until_us, self.now_us()))

    def now_us(self) -> int:
        """The run's clock."""
        return self._clock.now_us()

    def fail(self, reason: str) -> None:
        self.failed = self.failed or reason

    def remark(self, code: str, count: int, text: str) -> None:
        self._remarks[code] = (count, text)

    def reject(self, reason: str) -> None:
        self._rejected = self._rejected or reason

    def status(self) -> dict[str, Any]:
        """A `RecorderReport` as JSON."""
        # Commits first: a batch reports its reads before its commit, so the answer has the reads of every commit.
        commits = drained(self.ledger.commits)
        return RecorderReport(
            commits=commits,
            reads=drained(self._reads),
            reached=drained(self._reached),
            rows_ignored=self.ledger.rows_ignored,
            retried_us=drained(self.ledger.retried_us),
            receiving=self._receiving.news(),
            writing=self._writing.news(),
            stood_still=self.heart.news(),
            failed=self.failed,
            disk_full=self.disk_full,
            remarks={code: remark for code, remark in dict(self._remarks).items() if remark[0]},
            rejected=self._rejected,
        ).to_json()

    def receive(
        self, address: dict[str, Any], schema: pa.Schema, batches: Iterator[pa.RecordBatch], stamped: bool = False
    ) -> None:
        """Stores one attempt's results for one sink. Raises DriverError if the disk does not accept them."""
        key: Key = tuple(address[name] for name in ("query", "batch", "partition", "attempt", "sink"))
        # Numbered, because a restarted query counts its attempts from 0 and must not overwrite accepted results.
        self.ledger.begin(key)
        path = self._spool / f"{'-'.join(str(part) for part in key)}-{next(self._numbers)}.arrow"
        try:
            self.ledger.stage(key, self._spooled(schema, batches, path, stamped))
        except OSError as error:
            self.disk_full = is_full(error)
            self.failed = full_disk(self._spool) if self.disk_full else f"the spool could not be written: {error}"
            raise DriverError(self.failed) from None

    def _spooled(
        self, schema: pa.Schema, batches: Iterator[pa.RecordBatch], path: Path, stamped_before: bool
    ) -> Staged:
        staged = Staged(str(path))
        whole = schema if stamped_before else schema.append(pa.field(EMISSION_TIME, pa.int64()))
        with ExitStack() as files:
            file = files.enter_context(pa.OSFile(str(path), "wb"))
            spool = files.enter_context(pa.ipc.new_file(file, whole))
            for batch in batches:
                emitted_us = self.now_us()
                with self._receiving:
                    stamped = batch if stamped_before else _stamped(batch, emitted_us)
                with self._writing:
                    spool.write_batch(stamped)
                with self._receiving:
                    _note(staged, stamped)
            with self._writing:
                files.close()
        return staged


def _stamped(batch: pa.RecordBatch, emitted_us: int) -> pa.RecordBatch:
    return batch.append_column(EMISSION_TIME, pa.array(np.full(batch.num_rows, emitted_us, np.int64)))


def _note(staged: Staged, batch: pa.RecordBatch) -> None:
    if not batch.num_rows:
        return
    staged.rows += batch.num_rows
    staged.last_us = batch.column(EMISSION_TIME)[-1].as_py()
    if EVENT_TIME in batch.schema.names:
        times = batch.column(EVENT_TIME)
        staged.frontier_us = max(staged.frontier_us, pc.max(times).as_py() or 0)
        late_us = pc.subtract(batch.column(EMISSION_TIME), times).drop_null().to_numpy()
        staged.sample_us += late_us[:: max(1, len(late_us) // SAMPLE_ROWS)].tolist()


def main() -> None:
    path = Path(sys.argv[1])
    # The runner that started this process wrote it into its private folder. It never comes from a socket.
    recorder = Recorder(pickle.loads(path.read_bytes()))
    with repeated(recorder.heart.beat, BEAT_US / US, "heartbeat"):
        serve({"listen": recorder.listen, "status": recorder.status}, scratch=path.parent)


if __name__ == "__main__":
    main()
