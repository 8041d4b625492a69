"""An engine in one file: a plain Python loop that reads events, filters them and sends results.

The first two classes run beside the driver: what the engine can do, and one start of it. The third is the system under
test, in a process of its own.
"""

from __future__ import annotations

import operator
import pickle
import re
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from streamgauge.core.errors import EngineError, InputError, Problem
from streamgauge.dataflow import graph, schema
from streamgauge.dataflow.nodes import Flow, Node, Source, Where
from streamgauge.engines.spi import (
    ANOTHER_ENGINE,
    Capabilities,
    Edges,
    Engine,
    EnginePlugin,
    EngineStatus,
    StartRequest,
)
from streamgauge.system.child_processes import Child, ChildFailed, serve
from streamgauge.system.scratch import Scratch

POLL_S = 0.005
"""How long the loop waits when there are no new events."""
COMPARISONS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "=": operator.eq}
RowWise = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]


class PythonConsumerPlugin(EnginePlugin):
    """What the driver asks before a start."""

    capabilities = Capabilities(
        name="python-consumer",
        summary="a plain Python loop: an example of an engine",
        nodes=("Source", "Where"),
        sink_modes=("append",),
        transports=("flight",),
    )

    def check(self, request: StartRequest) -> None:
        super().check(request)
        for sink in request.flow.sinks if request.flow else ():
            lowered(sink.input)

    def make(self, cpus: Sequence[int] | None, parallelism: int | None) -> Engine:
        return PythonConsumerEngine(cpus)


class PythonConsumerEngine(Engine):
    """One start: a child process, which ends when the driver ends."""

    def __init__(self, cpus: Sequence[int] | None) -> None:
        self._cpus = cpus
        self._child: Child | None = None

    def start(self, flow: Flow, edges: Edges, options: dict[str, str], master: str | None, folder: Path) -> None:
        log = folder / "python-consumer.log"
        with Scratch("python-consumer") as private:
            job = Path(private) / "job.pkl"
            job.write_bytes(pickle.dumps((flow, edges)))
            self._child = Child("python-consumer", "streamgauge_python_consumer", [str(job)], log, self._cpus)
            try:
                self._child.ask("start")
            except ChildFailed as error:
                self.stop()
                raise EngineError(f"python-consumer did not start: {error}", str(log)) from None

    def status(self) -> EngineStatus:
        assert self._child is not None
        try:
            failure = self._child.ask("failure")
        except ChildFailed as error:
            failure = str(error)
        return EngineStatus(alive=not failure, reason=failure)

    def pids(self) -> list[int]:
        return [self._child.pid] if self._child is not None and self._child.alive else []

    def stop(self) -> None:
        if self._child is not None:
            self._child.stop(grace_s=1.0)
            self._child = None


def lowered(node: Node) -> RowWise:
    """A function that computes a node's rows from those of the source. Raises InputError for what it cannot run."""
    if isinstance(node, Source):
        return lambda rows: rows
    if not isinstance(node, Where):
        rule = "must be a source or a condition for the engine python-consumer"
        raise InputError(Problem("engine", rule, type(node).__name__, ANOTHER_ENGINE))
    match = re.fullmatch(r"\s*(\w+)\s*(>=|<=|>|<|=)\s*(-?\d+)\s*", node.predicate)
    if match is None:
        rule = "must compare a column with a whole number for the engine python-consumer"
        raise InputError(Problem("engine", rule, node.predicate, ANOTHER_ENGINE))
    before, column, holds, number = lowered(node.input), match[1], COMPARISONS[match[2]], int(match[3])
    return lambda rows: [row for row in before(rows) if row[column] is not None and holds(row[column], number)]


class Consumer:
    """The system under test: a loop in a thread, while the main thread answers the driver."""

    def __init__(self, flow: Flow, edges: Edges) -> None:
        from streamgauge.transports.flight import client

        self._client, self._edges = client, edges
        self._row_wise, self._sink = lowered(flow.sink.input), flow.sink.name
        (self._source,) = graph.sources(flow)
        self._columns = list(schema.columns(flow.sink.input))
        self._locations, self._token = [edge.location for edge in edges.inputs], edges.output.token
        self._position_us = self._number = 0
        self._failure = ""

    def start(self) -> None:
        self._client.common_cut(self._locations, self._token, 0)  # fails here if no generator answers
        threading.Thread(target=self._run, daemon=True).start()

    def failure(self) -> str:
        return self._failure

    def _run(self) -> None:
        try:
            while True:
                cut_us = self._client.common_cut(self._locations, self._token, self._position_us)
                if cut_us > self._position_us:
                    self._work(cut_us)
                else:
                    time.sleep(POLL_S)
        except Exception as error:
            traceback.print_exc()
            self._failure = f"{type(error).__name__}: {error}"

    def _work(self, cut_us: int) -> None:
        """Reads every event before `cut_us`, sends its results, and commits them."""
        table = self._read(cut_us)
        results = pa.Table.from_pylist(self._row_wise(table.to_pylist()), table.schema).select(self._columns)
        self._position_us, number = cut_us, self._number
        self._number += 1
        address = {"query": "q", "batch": number, "partition": 0, "attempt": number, "sink": self._sink}
        location, accepted = self._edges.output.location, [[0, number]] if results.num_rows else []
        if accepted:
            self._client.send_results(location, self._token, address, iter(results.to_batches()))
        self._client.act(
            location, self._token, "commit", query="q", batch=number, accepted=accepted, sinks=[self._sink]
        )

    def _read(self, cut_us: int) -> pa.Table:
        name, columns = self._source.name, self._edges.columns[self._source.name]
        kinds = {field.name: field.type for field in self._source.schema.to_arrow()}
        batches = [
            batch
            for location in self._locations
            for batch in self._client.read_range(
                location, self._token, name, self._position_us, cut_us, columns, self._number, "q"
            )
        ]
        return pa.Table.from_batches(batches, pa.schema([(name, kinds.get(name, pa.int64())) for name in columns]))


if __name__ == "__main__":
    job = Path(sys.argv[1])  # the driver wrote it into its private folder, so it may be unpickled
    consumer = Consumer(*pickle.loads(job.read_bytes()))
    serve({"start": consumer.start, "failure": consumer.failure}, scratch=job.parent)
