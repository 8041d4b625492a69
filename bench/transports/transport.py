"""Rate of events from a generator through the Flight transport to a plain reader in another process.

The generator produces the windowed aggregation's purchases at full speed in one partition, and pauses while two seconds
of event time wait. The reader takes all available events in a loop, as an engine does. Baseline: one ready table of the
same columns, streamed by a bare Flight server. Run alone: `python -m bench.transports.transport`.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

from bench.support.row import Row, row
from streamgauge.core.clock import US, Clock
from streamgauge.core.schema import EVENT_TIME, INGEST_TIME
from streamgauge.loadgen.fields import Integer, Key, StreamSpec
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.rate_profile import parse_profile
from streamgauge.system.child_processes import Child, serve
from streamgauge.transports.memory import client
from streamgauge.transports.memory.endpoints import FlightOutlet
from streamgauge.transports.spi import EndpointConfig, OutletConfig

REPEATS = 5
START_US, CHUNK_US, WAITING_US_MAX = 1_700_000_000 * US, 50_000, 2 * US
SECONDS = 20
RATE_PER_S = 1_000_000
COLUMNS = ("user_id", "gem_pack_id", "price", EVENT_TIME, INGEST_TIME)
FLOOR_PER_S, GOAL_PER_S = 10e6, 30e6
TOKEN = "bench"
PURCHASES = StreamSpec(
    "purchases", (Key("user_id", 1_000_000), Key("gem_pack_id", 1_000, "normal"), Integer("price", 1, 100))
)


def purchases_plan() -> Plan:
    """One partition at 1 M/s, for all repeats."""
    seconds = float(SECONDS * (REPEATS + 1))
    return Plan((PURCHASES,), parse_profile("constant", RATE_PER_S, seconds), START_US, seconds, 1, 1)


class Bare(flight.FlightServerBase):
    """Streams one table for any request."""

    def __init__(self, table: pa.Table) -> None:
        super().__init__("grpc://127.0.0.1:0")
        self._table = table

    def do_get(self, context: Any, ticket: Any) -> flight.RecordBatchStream:
        return flight.RecordBatchStream(self._table)


class Served:
    """The generator's process: a queue, its endpoint, a thread that fills it, and the baseline's server."""

    def __init__(self) -> None:
        self._plan = purchases_plan()
        stamps = [pa.field(EVENT_TIME, pa.int64()), pa.field(INGEST_TIME, pa.int64())]
        schema = pa.schema([*PURCHASES.schema.to_arrow(), *stamps])
        config = OutletConfig({"purchases": schema}, 3600 * US, 2**33, Clock.fixed_now().now_us)
        self._queue = FlightOutlet(EndpointConfig("127.0.0.1", 0, TOKEN), config)
        self._bare = Bare(self._ready_table(schema))

    def listen(self) -> list[str]:
        return [f"grpc://127.0.0.1:{server.port}" for server in (self._queue, self._bare)]

    def begin(self, from_us: int, to_us: int) -> None:
        threading.Thread(target=self._fill, args=(from_us, to_us), daemon=True).start()

    def commit(self, before_us: int) -> None:
        self._queue.commit(before_us)

    def _fill(self, from_us: int, to_us: int) -> None:
        for low in range(from_us, to_us, CHUNK_US):
            first, last = (self._plan.count_before(0, 0, when) for when in (low, low + CHUNK_US))
            made = self._plan.batch(0, 0, first, last, [name for name in COLUMNS if name != INGEST_TIME])
            while self._queue.waiting_us() > WAITING_US_MAX:
                time.sleep(0.001)
            self._queue.offer(low, low + CHUNK_US, {"purchases": made}, 0)

    def _ready_table(self, schema: pa.Schema) -> pa.Table:
        made = self._plan.batch(0, 0, 0, SECONDS * RATE_PER_S // 10, [*PURCHASES.schema.names, EVENT_TIME])
        return pa.table([*made.columns, made.column(EVENT_TIME)], schema=schema)


def read_planned(child: Child, location: str, repeat: int) -> int:
    """Events of one repeat's span, read while they are generated."""
    position = START_US + repeat * SECONDS * US
    end, rows, batch = position + SECONDS * US, 0, repeat * 1_000_000
    child.ask("begin", from_us=position, to_us=end)
    while position < end:
        cut = client.common_cut([location], TOKEN, position)
        if cut <= position:
            time.sleep(0.0005)
            continue
        for part in client.read_range(location, TOKEN, "purchases", position, cut, COLUMNS, batch):
            rows += part.num_rows
        child.ask("commit", before_us=cut)
        position, batch = cut, batch + 1
    return rows


def read_bare(location: str) -> int:
    """Events read from the ready table, ten times."""
    reader = client.connect(location)
    return sum(part.data.num_rows for _ in range(10) for part in reader.do_get(flight.Ticket(b"")))


def rate_per_s(read: Callable[[], int]) -> float:
    begin = time.perf_counter()
    return read() / (time.perf_counter() - begin)


def main() -> list[Row]:
    """Measures both in turn, after one warm-up repeat."""
    with tempfile.TemporaryDirectory(prefix="streamgauge-bench-") as folder:
        child = Child("transport", "bench.transports.transport", ["serve"], Path(folder) / "log")
        try:
            location, bare = child.ask("listen", 60.0)
            read_planned(child, location, 0)
            read_bare(bare)
            planned, plain = [], []
            for repeat in range(1, REPEATS + 1):
                planned.append(rate_per_s(lambda at=repeat: read_planned(child, location, at)))  # type: ignore[misc]
                plain.append(rate_per_s(lambda: read_bare(bare)))
        finally:
            child.stop()
    ratios = [ours / theirs for ours, theirs in zip(planned, plain, strict=True)]
    return [
        row("transport: generator to a Flight reader", planned, "events/s", FLOOR_PER_S, GOAL_PER_S),
        row("transport: a ready table through bare Flight (baseline)", plain, "events/s"),
        row("transport: generator to reader / bare Flight", ratios, "times"),
    ]


def serve_until_stopped() -> None:
    served = Served()
    serve({"listen": served.listen, "begin": served.begin, "commit": served.commit})


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve_until_stopped()
    for line in main():
        print(json.dumps(line))
