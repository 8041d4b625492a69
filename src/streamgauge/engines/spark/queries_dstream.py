"""The queries of a DStream job: each is a stream whose batches are lowered like a query."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from streamgauge.core.engine_reports import BatchProgress
from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import WindowAggregate, WindowJoin
from streamgauge.engines.spark.dstream.lowering import Batch, BatchLowering, StateStore
from streamgauge.engines.spark.dstream.receivers import QueueReceiver, SocketReceiver
from streamgauge.engines.spark.dstream.stream import DStreamBatches
from streamgauge.engines.spark.io.flight import FlightAdapter
from streamgauge.engines.spark.io.spi import numbered_readers
from streamgauge.engines.spark.job_settings import JobSettings
from streamgauge.engines.spark.lowering.queries import Query
from streamgauge.engines.spark.options_dstream import BATCH, RECEIVERS, seconds
from streamgauge.engines.spark.session.reports import BLOCKS_REPORTED


class DStreamQueries:
    """The streams of one session. Each reads by a receiver and sends to the recorder over Flight."""

    def __init__(self, session: Any, settings: JobSettings) -> None:
        self._session, self._settings = session, settings
        self._flight = FlightAdapter(settings.job.edges, settings.options)
        self._streams: dict[Query, DStreamBatches] = {}

    def start(self, query: Query) -> None:
        self._flight.prepare(self._session, query)
        receiver = self._receiver(query)
        state = StateStore()

        def work(batch: Batch, rdd: Any) -> None:
            frame = BatchLowering(receiver.reading(batch, rdd), self._settings.lowerings, state, batch).output(query)
            self._flight.send(query, frame, batch.number)
            state.release()

        interval_s = seconds(self._settings.options[BATCH])
        self._streams[query] = DStreamBatches(self._session, query.name, interval_s, receiver, work)
        self._streams[query].start()

    def status(self) -> dict[str, Any]:
        """Alive while no batch has failed. Spark alone would continue with the next one."""
        for stream in self._streams.values():
            if reason := stream.failed:
                return {"alive": False, "reason": reason, "disk_full": stream.disk_full}
        return {"alive": True, "busy": [query.name for query, stream in self._streams.items() if stream.working]}

    def batch_progress(self) -> list[BatchProgress]:
        return [one for stream in self._streams.values() for one in stream.progress()]

    def _receiver(self, query: Query) -> QueueReceiver | SocketReceiver:
        """The receiver of the job's transport."""
        edges, columns = self._settings.job.edges, self._settings.columns(query)
        if edges.transport != RECEIVERS:
            return QueueReceiver(edges, query.name, partial(self._reading, query, columns))
        ((stream, columns_needed),) = columns.items()
        timed = any(isinstance(node, WindowAggregate | WindowJoin) for node in graph.operators(self._settings.job.flow))
        return SocketReceiver(
            self._session, edges, query.name, stream, columns_needed, timed, BLOCKS_REPORTED in self._settings.users
        )

    def _reading(
        self, query: Query, columns: Mapping[str, tuple[str, ...]], event_range: dict[str, str]
    ) -> Callable[..., Any]:
        """A function that reads a source's rows in one batch."""
        read = partial(self._flight.read, self._session, event_range=event_range)
        return numbered_readers(query.name, columns, read)
