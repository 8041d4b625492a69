"""Results that the whole recorder takes on one core: receive, stamp, spool, commit, and count into latencies.

A sender in this process, on another core if there is one, sends the identity workload's results as engine tasks do.
Counting happens after a run, so its time is added. Baseline: the same batches to a bare Flight server that discards
them, on the same core. Run alone: `python -m bench.metrics.recorder`.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight

from bench.support.row import Row, row
from streamgauge.core.clock import US, Clock
from streamgauge.core.schema import EVENT_ID, EVENT_TIME, INGEST_TIME
from streamgauge.core.units import FAR_FUTURE_US
from streamgauge.harness.recorder_process import RecorderSettings
from streamgauge.metrics.event_latency import LatencyRule, sink_latencies
from streamgauge.system.child_processes import Child, serve
from streamgauge.transports.memory import client
from streamgauge.transports.spi import EndpointConfig

REPEATS = 5
TASKS, BATCHES, ROWS = 8, 8, 131_072
RESULTS = TASKS * BATCHES * ROWS
FLOOR_PER_S, GOAL_PER_S = 2e6, 5e6
TOKEN = "bench"
SINK = "out"


class Bare(flight.FlightServerBase):
    """Takes rows and discards them."""

    def __init__(self) -> None:
        super().__init__("grpc://127.0.0.1:0")

    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        for _ in reader:
            pass
        writer.write(b"thrown away")


def results(clock: Clock) -> list[pa.RecordBatch]:
    """One task's results: purchases with their lineage, events of the last two seconds."""
    random, made = np.random.default_rng(1), []
    for index in range(BATCHES):
        times = clock.now_us() - np.sort(random.integers(US // 2, 2 * US, ROWS))
        fields = {name: random.integers(0, 1000, ROWS, dtype=np.int32) for name in ("user_id", "gem_pack_id", "price")}
        ids = np.arange(index * ROWS, (index + 1) * ROWS)
        made.append(pa.record_batch(fields | {EVENT_TIME: times, INGEST_TIME: times + 100_000, EVENT_ID: ids}))
    return made


def send(location: str, batch: int, made: list[pa.RecordBatch]) -> float:
    """Sends all tasks' results of one engine batch; seconds until the last is stored."""
    begin = time.perf_counter()
    for task in range(TASKS):
        address = {"query": "q", "batch": batch, "partition": task, "attempt": task, "sink": SINK}
        client.send_results(location, TOKEN, address, iter(made))
    return time.perf_counter() - begin


def receive(recorder: Child, location: str, batch: int, made: list[pa.RecordBatch]) -> tuple[float, list[str]]:
    """Seconds to receive and commit one engine batch, and its files."""
    seconds = send(location, batch, made)
    begin = time.perf_counter()
    accepted = [[task, task] for task in range(TASKS)]
    client.act(location, TOKEN, "commit", query="q", batch=batch, accepted=accepted, sinks=[SINK])
    (commit,) = recorder.ask("status")["commits"]
    return seconds + time.perf_counter() - begin, commit["paths"]


def spooled(paths: list[str]) -> Iterator[pa.RecordBatch]:
    for path in paths:
        with pa.memory_map(path) as source:
            reader = pa.ipc.open_file(source)
            for index in range(reader.num_record_batches):
                yield reader.get_batch(index)


def count(paths: list[str]) -> float:
    """Seconds to count all latencies in the files."""
    begin = time.perf_counter()
    found = sink_latencies(spooled(paths), LatencyRule("row"), (0, FAR_FUTURE_US))
    seconds = time.perf_counter() - begin
    assert found.latencies.event_time_us is not None
    assert found.latencies.event_time_us.count == RESULTS
    return seconds


def on_cores() -> tuple[list[int], list[int]]:
    """(the recorder's core, the sender's cores)."""
    mine = sorted(os.sched_getaffinity(0))
    return mine[:1], mine[1:] or mine


def main() -> list[Row]:
    """Measures both in turn, after one warm-up repeat. The files of a repeat are removed after it."""
    core, others = on_cores()
    before = os.sched_getaffinity(0)
    pa.set_cpu_count(1)
    with tempfile.TemporaryDirectory(prefix="streamgauge-bench-") as folder:
        clock, spool = Clock.fixed_now(), Path(folder) / "spool"
        settings = Path(folder) / "settings.pkl"
        settings.write_bytes(
            pickle.dumps(RecorderSettings(EndpointConfig("127.0.0.1", 0, TOKEN), clock.offset_us, str(spool)))
        )
        log = Path(folder) / "log"
        recorder = Child("recorder", "streamgauge.harness.recorder_process", [str(settings)], log, core)
        bare = Child("bare", "bench.metrics.recorder", ["serve"], log, core)
        try:
            location, plain = recorder.ask("listen")["location"], bare.ask("listen")
            whole, received, counted, thrown = [], [], [], []
            for repeat in range(REPEATS + 1):
                made = results(clock)
                os.sched_setaffinity(0, others)
                receiving, paths = receive(recorder, location, repeat, made)
                throwing = send(plain, repeat, made)
                os.sched_setaffinity(0, core)
                counting = count(paths)
                for path in paths:
                    os.unlink(path)
                if repeat:
                    whole.append(RESULTS / (receiving + counting))
                    received.append(RESULTS / receiving)
                    counted.append(RESULTS / counting)
                    thrown.append(RESULTS / throwing)
        finally:
            os.sched_setaffinity(0, before)
            recorder.stop()
            bare.stop()
            shutil.rmtree(spool, ignore_errors=True)
    ratios = [ours / theirs for ours, theirs in zip(received, thrown, strict=True)]
    return [
        row("recorder: whole: receive, spool, count", whole, "results/s", FLOOR_PER_S, GOAL_PER_S),
        row("recorder: receive and spool", received, "results/s"),
        row("recorder: count into latencies", counted, "results/s"),
        row("recorder: bare Flight, thrown away (baseline)", thrown, "results/s"),
        row("recorder: receive and spool / bare Flight", ratios, "times"),
    ]


def serve_until_stopped() -> None:
    bare = Bare()
    serve({"listen": lambda: f"grpc://127.0.0.1:{bare.port}"})


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve_until_stopped()
    for line in main():
        print(json.dumps(line))
