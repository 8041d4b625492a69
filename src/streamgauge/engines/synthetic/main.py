"""The SUT process of the synthetic engine: a loop that reads, works at its pace, and sends results.

1. Poll common cuts, also while working on a batch, so that a lagging consumer still reads in small steps.
2. Read the events up to the next cut (continuous) or the last cut (micro-batch, at fixed times).
3. Compute, plant the fault, sleep until the work is paid for, send, commit.
"""

import pickle
import random
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from streamgauge.core.clock import US, Clock
from streamgauge.core.errors import is_full
from streamgauge.core.schema import EVENT_TIME
from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import Flow, WindowAggregate
from streamgauge.engines.spi import Edges
from streamgauge.engines.synthetic.faults import Faults
from streamgauge.engines.synthetic.lowering import build
from streamgauge.engines.synthetic.options import read_options
from streamgauge.system.child_processes import serve
from streamgauge.transports.memory import client

QUERY = "q"
POLL_US = 10_000
REST_US = 6 * US
"""Rows that are held back are sent after this idle time: after the deadline of any trial, so that they are late."""
PHASE_US = 30_000
"""The phase of micro-batches against multiples of their interval, at which chunks end; it avoids a race with them."""
_SEED = 1


@dataclass(frozen=True)
class SyntheticJob:
    """The driver's request, passed by file."""

    flow: Flow
    edges: Edges
    options: dict[str, str]
    instances: int = 1


class Sut:
    """One job. The loop runs in a thread; requests are answered concurrently."""

    def __init__(self, job: SyntheticJob) -> None:
        self._edges, self._options = job.edges, read_options(job.options)
        self._operator, self._source = build(job.flow), graph.sources(job.flow)[0]
        self._sink, last = job.flow.sink.name, job.flow.sink.input
        keys = last.keys if isinstance(last, WindowAggregate) else ()
        self._faults = Faults(self._options.fault, self._options.fault_every, keys)
        self._clock = Clock.fixed_now()
        self._pace = Pace(self._options.capacity_per_s * job.instances, self._clock.now_us, self._options.jitter)
        self._locations = [edge.location for edge in job.edges.inputs]
        self._token = job.edges.output.token
        # A micro-batch reads up to the newest cut, so no other is kept.
        self._cuts = deque[int](maxlen=1 if self._options.batch_us else None)
        self._position_us = self._seen_us = self._batch = self._trigger_us = 0
        self._first_us: int | None = None
        self._active_us = self._clock.now_us()
        self._stall = self._options.stall
        self._failed, self._disk_full = "", False

    def start(self) -> None:
        self._poll()
        threading.Thread(target=self._run_safely, daemon=True).start()

    def status(self) -> dict[str, Any]:
        return {"alive": not self._failed, "reason": self._failed, "disk_full": self._disk_full}

    def facts(self) -> dict[str, Any]:
        """The planted faults."""
        return {"planted_us": list(self._faults.planted_us), "held": bool(self._faults.held)}

    def _run_safely(self) -> None:
        try:
            while True:
                self._step()
        except Exception as error:
            traceback.print_exc()
            self._disk_full = is_full(error)
            self._failed = f"{type(error).__name__}: {error}"

    def _step(self) -> None:
        self._await_trigger()
        if not self._cuts:
            self._poll()
        if self._cuts:
            self._sleep_through_stall()
            self._work(self._cuts.popleft())
        else:
            self._idle()

    def _poll(self) -> None:
        """Stores the common cut if it has moved."""
        cut_us = client.common_cut(self._locations, self._token, self._seen_us)
        if cut_us > self._seen_us:
            self._seen_us = cut_us
            self._cuts.append(cut_us)

    def _await_trigger(self) -> None:
        """Waits for the fixed time of the next micro-batch; returns at once if the previous one took longer."""
        interval_us = self._options.batch_us
        if not interval_us:
            return
        due_us = (self._trigger_us - PHASE_US) // interval_us * interval_us + interval_us + PHASE_US
        if due_us > self._clock.now_us():
            self._clock.sleep_until(due_us)
            self._pace.idle()
        self._trigger_us = self._clock.now_us()
        self._poll()

    def _idle(self) -> None:
        if self._faults.held and self._clock.now_us() - self._active_us > REST_US:
            self._send(pa.concat_tables(self._faults.held))
            self._faults.held.clear()
        time.sleep(POLL_US / US)
        self._poll()
        self._pace.idle()

    def _sleep_through_stall(self) -> None:
        stall = self._stall
        if stall and self._first_us is not None and self._position_us - self._first_us >= stall.after_us:
            self._stall = None
            time.sleep(stall.length_us / US)
            self._poll()
            self._pace.idle()

    def _work(self, cut_us: int) -> None:
        rows = pa.Table.from_batches(self._read(cut_us), self._schema())
        if self._first_us is None and rows.num_rows:
            self._first_us = rows.column(EVENT_TIME)[0].as_py()
        self._pace.take_on(rows.num_rows, degradation_us(self._options.degradation, self._first_us, cut_us))
        results = self._faults.apply(self._operator.results(rows, cut_us))
        self._position_us = cut_us
        self._sleep_until_paid()
        self._send(results)
        self._active_us = self._clock.now_us()

    def _read(self, cut_us: int) -> Iterator[pa.RecordBatch]:
        name = self._source.name
        for location in self._locations:
            yield from client.read_range(
                location, self._token, name, self._position_us, cut_us, self._edges.columns[name], self._batch, QUERY
            )

    def _schema(self) -> pa.Schema:
        fields = {field.name: field.type for field in self._source.schema.to_arrow()}
        return pa.schema([(name, fields.get(name, pa.int64())) for name in self._edges.columns[self._source.name]])

    def _sleep_until_paid(self) -> None:
        while (left_us := self._pace.free_us - self._clock.now_us()) > 0:
            self._clock.sleep_until(self._clock.now_us() + min(POLL_US, left_us))
            self._poll()

    def _send(self, results: pa.Table) -> None:
        location, batch = self._edges.output.location, self._batch
        self._batch += 1
        address = {"query": QUERY, "batch": batch, "partition": 0, "attempt": batch, "sink": self._sink}
        batches = iter(results.combine_chunks().to_batches()) if results.num_rows else iter(())
        client.send_results(location, self._token, address, batches)
        accepted = [[0, batch]] if results.num_rows else []
        client.act(location, self._token, "commit", query=QUERY, batch=batch, accepted=accepted, sinks=[self._sink])


def degradation_us(degradation: float, first_us: int | None, cut_us: int) -> int:
    """The additional duration of a batch that reads up to `cut_us`."""
    return round(degradation * (cut_us - first_us)) if first_us is not None else 0


def main() -> None:
    # Unpickling is safe: the driver wrote the file into its private folder.
    path = Path(sys.argv[1])
    sut = Sut(pickle.loads(path.read_bytes()))
    serve({name: getattr(sut, name) for name in ("start", "status", "facts")}, scratch=path.parent)


class Pace:
    """The pace of a consumer of known capacity: one server that needs exactly 1 / capacity per event.

    The completion time depends only on the number of events. Later sleeps compensate for reading, computing, sending
    and overlong sleeps. Only idle time is lost.

    With `jitter`, each batch ends early or late at random, by at most this share of its duration. The next batch starts
    from the nominal end, so the noise does not accumulate. Times are microseconds of the clock `now_us`; capacity in
    events per second.
    """

    def __init__(self, capacity_per_s: float, now_us: Callable[[], int], jitter: float = 0.0) -> None:
        self._capacity_per_s, self._now_us, self._jitter = capacity_per_s, now_us, jitter
        self._anchor_us, self._since_anchor = now_us(), 0
        self._chance, self._noise_us = random.Random(_SEED), 0.0

    @property
    def free_us(self) -> int:
        """When the accepted work is done."""
        return self._anchor_us + round(self._since_anchor * US / self._capacity_per_s + self._noise_us)

    def idle(self) -> None:
        """Marks the time until now as idle, which is lost."""
        now_us = self._now_us()
        if now_us > self.free_us:
            self._anchor_us, self._since_anchor, self._noise_us = now_us, 0, 0.0

    def take_on(self, events: int, extra_us: int = 0) -> None:
        """Accepts one batch; `extra_us` is added to the time of its events."""
        self._since_anchor += events
        self._anchor_us += extra_us
        if self._jitter:
            self._noise_us = self._jitter * self._chance.uniform(-1, 1) * events * US / self._capacity_per_s


if __name__ == "__main__":
    main()
