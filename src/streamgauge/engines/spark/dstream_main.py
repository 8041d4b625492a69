"""The SUT with DStreams: one session with one stream, whose batches are lowered as those of a query are."""

from __future__ import annotations

from typing import Any

from streamgauge.engines.spark.batches import Batches
from streamgauge.engines.spark.batchwise import Batchwise
from streamgauge.engines.spark.block_log import COUNTED
from streamgauge.engines.spark.blocks import Packing
from streamgauge.engines.spark.dstream import BATCH, BLOCK, PRESSURE, RECEIVERS, SETTINGS, receiving, seconds
from streamgauge.engines.spark.kept import Batch, Kept
from streamgauge.engines.spark.lines import Lines
from streamgauge.engines.spark.main import Sut, format_of, run
from streamgauge.engines.spark.queries import Query
from streamgauge.engines.spark.ranges import Ranges
from streamgauge.engines.spark.source import named
from streamgauge.flow import graph
from streamgauge.flow.nodes import Source, WindowAggregate, WindowJoin
from streamgauge.options import Setting


class DStreamSut(Sut):
    """One session with one stream."""

    settings: tuple[Setting, ...] = SETTINGS

    def status(self) -> dict[str, Any]:
        """Alive while no batch has failed; Spark itself would go on with the next one."""
        for stream in self._queries.values():
            if reason := stream.failed:
                return {"alive": False, "reason": reason}
        return {"alive": True, "busy": [query.name for query, stream in self._queries.items() if stream.working]}

    def evidence(self) -> list[dict[str, Any]]:
        return [one for stream in self._queries.values() for one in stream.told()]

    def _run(self, session: Any, query: Query) -> Batches:
        session.dataSource.register(named(format_of(query.name)))
        receiver = self._receiver(session, query)
        kept, send = Kept(), self._sender(query)

        def work(batch: Batch, rdd: Any) -> None:
            frame = Batchwise(receiver.reading(batch, rdd), self._choices, kept, batch).output(query)
            send(frame, batch.number)
            kept.let_go()

        stream = Batches(session, query.name, seconds(self._ours[BATCH]), receiver, work)
        stream.start()
        return stream

    def _receiver(self, session: Any, query: Query) -> Ranges | Lines:
        edges = self._job.edges
        if edges.transport != RECEIVERS:
            return Ranges(edges, query.name, lambda more: self._reading(session, query, more))
        ((stream, wanted),) = query.columns(self._job.flow, edges.columns).items()
        timed = any(isinstance(node, WindowAggregate | WindowJoin) for node in graph.operators(self._job.flow))
        return Lines(session, edges, query.name, stream, wanted, timed, tells=COUNTED in self._users)

    def _configuration(self) -> dict[str, str]:
        return {**super()._configuration(), **receiving(self._ours, self._job.edges.transport), **self._users}

    def _in_force(self) -> dict[str, str]:
        """Without what this transport has no use for."""
        found = super()._in_force()
        if self._job.edges.transport == RECEIVERS:
            count = len(self._job.edges.inputs)
            return {**found, "receiver": f"Spark's own for sockets, {count}, blocks in memory and on disk, one copy"}
        return {name: value for name, value in found.items() if name not in (BLOCK, PRESSURE)} | {"receiver": "queue"}

    def _read(
        self, session: Any, source: Source, given: tuple[str, ...], who: dict[str, str], packing: Packing | None
    ) -> Any:
        """A source's rows of one batch."""
        return self._from_queue(session.read, source, given, who, packing)


if __name__ == "__main__":
    run(DStreamSut)
