"""The SUT with DStreams: one session with one stream, whose batches are lowered like a query."""

from __future__ import annotations

from typing import Any

from streamgauge.core.batch_progress import BatchProgress
from streamgauge.core.plugin_options import Setting
from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import Source, WindowAggregate, WindowJoin
from streamgauge.engines.spark.dstream.block_log import COUNTED
from streamgauge.engines.spark.dstream.lowering import BatchLowering
from streamgauge.engines.spark.dstream.options import BATCH, BLOCK, PRESSURE, RECEIVERS, SETTINGS, receiving, seconds
from streamgauge.engines.spark.dstream.queue_receiver import QueueReceiver
from streamgauge.engines.spark.dstream.socket_receiver import SocketReceiver
from streamgauge.engines.spark.dstream.state import Batch, StateStore
from streamgauge.engines.spark.dstream.stream import DStreamBatches
from streamgauge.engines.spark.io.flight_source import named
from streamgauge.engines.spark.lowering.arrow_blocks import Packing
from streamgauge.engines.spark.lowering.queries import Query
from streamgauge.engines.spark.structured.main import Sut, format_of, run


class DStreamSut(Sut):
    """One session with one stream."""

    settings: tuple[Setting, ...] = SETTINGS

    def status(self) -> dict[str, Any]:
        """Alive while no batch has failed. Spark alone would continue with the next one."""
        for stream in self._queries.values():
            if reason := stream.failed:
                return {"alive": False, "reason": reason, "disk_full": stream.disk_full}
        return {"alive": True, "busy": [query.name for query, stream in self._queries.items() if stream.working]}

    def batch_progress(self) -> list[BatchProgress]:
        return [one for stream in self._queries.values() for one in stream.progress()]

    def _run(self, session: Any, query: Query) -> DStreamBatches:
        session.dataSource.register(named(format_of(query.name)))
        receiver = self._receiver(session, query)
        state, send = StateStore(), self._sender(query)

        def work(batch: Batch, rdd: Any) -> None:
            frame = BatchLowering(receiver.reading(batch, rdd), self._choices, state, batch).output(query)
            send(frame, batch.number)
            state.release()

        stream = DStreamBatches(session, query.name, seconds(self._own_options[BATCH]), receiver, work)
        stream.start()
        return stream

    def _receiver(self, session: Any, query: Query) -> QueueReceiver | SocketReceiver:
        edges = self._job.edges
        if edges.transport != RECEIVERS:
            return QueueReceiver(edges, query.name, lambda more: self._reading(session, query, more))
        ((stream, columns_needed),) = query.columns(self._job.flow, edges.columns).items()
        timed = any(isinstance(node, WindowAggregate | WindowJoin) for node in graph.operators(self._job.flow))
        return SocketReceiver(session, edges, query.name, stream, columns_needed, timed, tells=COUNTED in self._users)

    def _configuration(self) -> dict[str, str]:
        return {**super()._configuration(), **receiving(self._own_options, self._job.edges.transport), **self._users}

    def _in_force(self) -> dict[str, str]:
        """The settings in force, without those that do not apply to this transport."""
        settings = super()._in_force()
        if self._job.edges.transport == RECEIVERS:
            count = len(self._job.edges.inputs)
            return {**settings, "receiver": f"Spark's own for sockets, {count}, blocks in memory and on disk, one copy"}
        return {name: value for name, value in settings.items() if name not in (BLOCK, PRESSURE)} | {
            "receiver": "queue"
        }

    def _read(
        self, session: Any, source: Source, given: tuple[str, ...], who: dict[str, str], packing: Packing | None
    ) -> Any:
        """A source's rows in one batch."""
        return self._from_queue(session.read, source, given, who, packing)


if __name__ == "__main__":
    run(DStreamSut)
