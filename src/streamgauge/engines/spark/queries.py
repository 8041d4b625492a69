"""The streaming queries of the SUT process: builds their frames from the flow or the user's function, starts them over
the job's transport, and reports whether they live and how far they are.
"""

import contextlib
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from streamgauge.core.clock import US
from streamgauge.core.engine_reports import BatchProgress
from streamgauge.core.errors import is_full
from streamgauge.engines.spark.io.spi import QueryStart, numbered_readers
from streamgauge.engines.spark.job_settings import JobSettings
from streamgauge.engines.spark.lowering.dataframe import Lowering
from streamgauge.engines.spark.lowering.queries import Query
from streamgauge.engines.spark.row_counts import RowCounting
from streamgauge.engines.spark.session.environment import require_loadable_state
from streamgauge.engines.spark.session.reports import batch_progress, with_scheduling_delays
from streamgauge.engines.spark.session.session import STATE_STORE, error_message
from streamgauge.engines.spark.user_job.pyspark_job import PySparkJob
from streamgauge.engines.spark.watermark_and_interval import seconds

BATCH_UNDER_WAY = ("Processing new data", "No new data but cleaning up state")
"""A query's status messages during a batch. It is also active while it looks for data."""


class StreamingQueries:
    """The queries of one session, built and started. `user_job` replaces the lowering, if there is one."""

    def __init__(
        self, session: SparkSession, settings: JobSettings, counting: RowCounting, user_job: PySparkJob | None = None
    ) -> None:
        self._session, self._settings, self._counting, self._user_job = session, settings, counting, user_job
        self._job, self._adapter = settings.job, settings.adapter
        self._handles: dict[Query, Any] = {}

    def start(self, query: Query) -> None:
        """Starts a query."""
        handle = self._handles[query] = self._start(query)
        self._counting.started(query.name, handle)

    def status(self) -> dict[str, Any]:
        """Whether all queries are alive and which are busy with a batch; else the reason of the first failure."""
        for query, handle in self._handles.items():
            error = handle.exception()
            if error is not None or not handle.isActive:
                reason = self._reason(str(error)) if error is not None else ""
                if len(self._handles) > 1:
                    reason = f"the query of {', '.join(sink.name for sink in query.sinks)}: {reason}"
                return {"alive": False, "reason": reason, "disk_full": error is not None and is_full(error)}
        self._counting.keep_up()
        return {"alive": True, "busy": [query.name for query, handle in self._handles.items() if _in_batch(handle)]}

    def batch_progress(self) -> list[BatchProgress]:
        """Spark's own reports on recent batches."""
        found: list[BatchProgress] = []
        for query, handle in self._handles.items():
            batches = [batch_progress(json.loads(one.json)) for one in handle.recentProgress]
            interval_us = round(US * seconds(self._settings.trigger_arguments(query).get("processingTime", "")))
            found += with_scheduling_delays(batches, interval_us) if interval_us else batches
        return found

    def reading(self, query: Query) -> Callable[..., DataFrame]:
        """A function that reads a source for a query."""
        read = partial(self._adapter.read, self._session, counter=self._counting.counters)
        return numbered_readers(query.name, self._settings.columns(query), read)

    def _reason(self, text: str) -> str:
        """Why the query ended: the user's lines if a user job raised, else Spark's reason."""
        trace = self._user_job.trace_in(text) if self._user_job is not None else None
        return trace or error_message(text)

    def _start(self, query: Query) -> Any:
        """Starts a query, and returns Spark's handle of it."""
        self._adapter.prepare(self._session, query)
        frame = self._frame(query)
        require_loadable_state(self._session.conf.get(f"{STATE_STORE}providerClass"), Path(self._job.folder))
        start = QueryStart(
            query,
            Path(self._job.checkpoint) / query.name,
            self._settings.trigger_arguments(query),
            partial(self._counting.batch_written, query.name),
        )
        with self._user_job.refusals() if self._user_job is not None else contextlib.nullcontext():
            return self._adapter.start(frame, start)

    def _frame(self, query: Query) -> DataFrame:
        """The results of a query."""
        read = self.reading(query)
        if self._user_job is not None:
            frames = [read(each) for each in self._user_job.job.inputs]
            frame = self._user_job.streaming(self._session, frames, Path(self._job.folder))
            self._user_job.require_types(frame, self._adapter.carries)
            return frame
        settings = self._settings
        return Lowering(
            read,
            read if self._adapter.reads_evenly else None,
            settings.lowerings,
            int(settings.options.get("buckets", 1)),
            settings.watermark_delay,
            self._counting.counters,
            settings.in_order,
            settings.is_uneven(query),
        ).output(query)


def _in_batch(handle: Any) -> bool:
    """Whether a batch is in progress. Spark shows it only in a status message."""
    query_status = handle.status
    return query_status["isTriggerActive"] and query_status["message"].startswith(BATCH_UNDER_WAY)
