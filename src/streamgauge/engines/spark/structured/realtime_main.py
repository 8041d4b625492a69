"""The SUT in Spark's real-time mode: one query from topic to topic, without batches."""

from __future__ import annotations

import sys
import time
from threading import Thread
from typing import Any

from streamgauge.core.plugin_options import Setting
from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import RunningAggregate
from streamgauge.engines.spark.io.kafka import (
    READING,
    ClientSettings,
    Marks,
    in_force,
    messages,
    positions_in,
    to,
    types_of,
)
from streamgauge.engines.spark.lowering.queries import Query
from streamgauge.engines.spark.options import with_rocksdb
from streamgauge.engines.spark.parallelism import SETTING
from streamgauge.engines.spark.structured.main import Sut, run
from streamgauge.engines.spark.structured.realtime import INSTANCES, SETTINGS, trigger
from streamgauge.transports.kafka.client.result_messages import Mark

WRITING = {"kafka.linger.ms": "2", "kafka.compression.type": "none", "kafka.acks": "all"}
"""Two milliseconds of linger reduce thousands of requests per second to hundreds, without added latency."""
SHUFFLE = {"spark.shuffle.streaming.networkBufferMaxWaitTimeMs": "1"}
"""The longest time that a row waits in an exchange buffer; Spark's default is 50 ms."""
ALL = 0
"""The batch number of all results."""
POLL_S = 0.5


class RealTimeSut(Sut):
    """One session with one query."""

    settings: tuple[Setting, ...] = SETTINGS
    in_order = True

    def _configuration(self) -> dict[str, str]:
        conf = super()._configuration() | SHUFFLE | {SETTING: INSTANCES}
        stateful = any(isinstance(node, RunningAggregate) for node in graph.operators(self._job.flow))
        return {**(with_rocksdb(conf) if stateful else conf), **self._users}

    def _trigger(self, _: Query) -> str:
        return trigger(self._job.flow, self._own_options["trigger"])

    def _edges_in_force(self) -> dict[str, str]:
        return in_force(ClientSettings(READING, WRITING))

    def _start(self, frame: Any, query: Query) -> Any:
        marks, types = Marks(self._job.edges), types_of(frame, [sink.name for sink in query.sinks])
        marks.send(Mark(query.name, ALL, True, types, endless=True))
        rows = messages(frame, types, query.name, ALL)
        writer = rows.writeStream.queryName(query.name).outputMode("update").trigger(realTime=self._trigger(query))
        writer = writer.option("checkpointLocation", f"{self._job.checkpoint}/{query.name}")
        running = writer.format("kafka").options(**WRITING, **to(self._job.edges)).start()
        Thread(target=self._tell, args=(running, query, marks), name="progress", daemon=True).start()
        return running

    def _tell(self, running: Any, query: Query, marks: Marks) -> None:
        """Reports the end positions of each Spark batch, which cover rows without results too. Retries if the broker
        is unavailable. Ends with the query.
        """
        reported = -1
        try:
            while running.isActive:
                last = running.lastProgress
                if last is not None and last.batchId > reported and self._report(last, query, marks):
                    reported = last.batchId
                time.sleep(POLL_S)
        except Exception as error:
            print(f"streamgauge: stopped reporting read positions: {error}", file=sys.stderr, flush=True)

    def _report(self, progress: Any, query: Query, marks: Marks) -> bool:
        """Sends a batch's end positions. Returns whether the broker accepted them."""
        ends = "\n".join(source.endOffset for source in progress.sources)
        positions = tuple(positions_in(ends, self._job.edges.inputs[0].token))
        try:
            marks.send(Mark(query.name, ALL, False, {}, positions, endless=True))
        except Exception as error:  # of the client, or of the broker that it does not reach
            print(f"streamgauge: could not report read positions yet: {error}", file=sys.stderr, flush=True)
            return False
        return True


if __name__ == "__main__":
    run(RealTimeSut)
