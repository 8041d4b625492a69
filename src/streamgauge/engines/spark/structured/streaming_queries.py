"""The streaming queries of the SUT process: starts them, and reports whether they live and how far they are."""

from __future__ import annotations

import json
from typing import Any

from streamgauge.core.engine_reports import BatchProgress
from streamgauge.core.errors import is_full
from streamgauge.engines.spark.error_message import error_message
from streamgauge.engines.spark.lowering.queries import Query
from streamgauge.engines.spark.observe import query_progress
from streamgauge.engines.spark.structured.query_builder import QueryBuilder
from streamgauge.engines.spark.structured.row_counting import RowCounting
from streamgauge.engines.spark.user_job.pyspark_job import PySparkJob

BATCH_UNDER_WAY = ("Processing new data", "No new data but cleaning up state")
"""A query's status messages during a batch. It is also active while it looks for data."""


class StreamingQueries:
    """The started queries of one session."""

    def __init__(self, builder: QueryBuilder, counting: RowCounting, user_job: PySparkJob | None = None) -> None:
        self._builder, self._counting, self._user_job = builder, counting, user_job
        self._handles: dict[Query, Any] = {}

    def start(self, query: Query) -> None:
        """Starts a query."""
        handle = self._handles[query] = self._builder.start(query)
        self._counting.started(query.name, handle)

    def status(self) -> dict[str, Any]:
        """Whether all queries are alive and which are busy with a batch; else the reason of the first failure."""
        for query, handle in self._handles.items():
            error = handle.exception()
            if error is not None or not handle.isActive:
                reason = self._reason(str(error)) if error is not None else ""
                sinks = f"the query of {', '.join(sink.name for sink in query.sinks)}: "
                reason = (sinks if len(self._handles) > 1 else "") + reason
                return {"alive": False, "reason": reason, "disk_full": error is not None and is_full(error)}
        self._counting.keep_up()
        return {"alive": True, "busy": [query.name for query, handle in self._handles.items() if _in_batch(handle)]}

    def batch_progress(self) -> list[BatchProgress]:
        """Spark's own reports on recent batches."""
        reports = (json.loads(one.json) for handle in self._handles.values() for one in handle.recentProgress)
        return [query_progress.batch_progress(each) for each in reports]

    def _reason(self, text: str) -> str:
        """Why the query ended: the user's lines if a user job raised, else Spark's reason."""
        trace = self._user_job.trace_in(text) if self._user_job is not None else None
        return trace or error_message(text)


def _in_batch(handle: Any) -> bool:
    """Whether a batch is in progress. Spark shows it only in a status message."""
    query_status = handle.status
    return query_status["isTriggerActive"] and query_status["message"].startswith(BATCH_UNDER_WAY)
