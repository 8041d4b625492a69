"""The SUT process: a Spark session and its streaming queries, on a lifeline to the driver.

One job comes in by file, and four commands by pipe. Where to look:

- `job_settings`: what the job's options mean for Spark, in its execution mode, and the adapter of its transport.
- `queries`: how a query comes to its frame; the started queries, their status and progress. Those of DStreams
  are in `queries_dstream`.
- `row_counts`: the rows of their operators.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamgauge.core.errors import EngineError, InputError, MachineError
from streamgauge.dataflow.lineage import added
from streamgauge.engines.spark.job_settings import SETTINGS_BY_MODE, DStreamSettings, JobSettings
from streamgauge.engines.spark.launch import SparkJob, serve_job
from streamgauge.engines.spark.lowering.queries import queries
from streamgauge.engines.spark.options import JVM_OPTIONS
from streamgauge.engines.spark.queries import StreamingQueries
from streamgauge.engines.spark.row_counts import RowCounters, RowCounting
from streamgauge.engines.spark.session.session import (
    UP,
    error_message,
    inherited_settings,
    jvm_ended,
    open_checked,
)
from streamgauge.engines.spark.user_job.pyspark_job import load
from streamgauge.system.child_processes import Handlers, announce

if TYPE_CHECKING:
    from streamgauge.engines.spark.queries_dstream import DStreamQueries


class Sut:
    """Starts the session and the queries of one job, and answers the driver's commands."""

    def __init__(self, settings: JobSettings) -> None:
        self._settings = settings
        self._counting = RowCounting()
        self._queries: StreamingQueries | DStreamQueries

    def start(self) -> dict[str, str]:
        """Starts session and queries. Returns the settings in force that are not Spark's defaults."""
        settings, conf = self._settings, self._settings.configuration()
        try:
            user_job = load(settings.user_job) if settings.user_job is not None else None
            announce("starting Spark's JVM")
            session = open_checked(
                settings.job.master,
                conf,
                settings.users,
                Path(settings.job.folder),
                JVM_OPTIONS[settings.options["jit"]],
                whole_heap=settings.options.get("heap") != "grows",
            )
            announce(UP)
            if settings.counts_rows:
                self._counting = RowCounting(RowCounters(session, added(settings.job.flow)))
            if isinstance(settings, DStreamSettings):
                from streamgauge.engines.spark.queries_dstream import DStreamQueries

                self._queries = DStreamQueries(session, settings)
            else:
                self._queries = StreamingQueries(session, settings, self._counting, user_job)
            for query in queries(settings.job.flow):
                self._queries.start(query)
        except (InputError, MachineError):
            raise
        except Exception as error:
            raise EngineError(error_message(str(error))) from None
        return {**settings.effective_settings(), **inherited_settings(session), **conf}

    def status(self) -> dict[str, Any]:
        """Whether all queries are alive, as `EngineStatus`. Raises EngineError if the JVM has ended."""
        return checked_jvm(self._queries.status)

    def batch_progress(self) -> list[dict[str, Any]]:
        """The reports on recent batches, as `BatchProgress`."""
        return [asdict(one) for one in self._queries.batch_progress()]

    def operator_row_counts(self) -> dict[str, Any]:
        """The counts since the last call, as `OperatorCounts`."""
        return asdict(self._counting.take())


def checked_jvm(status: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Calls `status`. Raises EngineError if the JVM has ended, because the call's own error would not say so."""
    reply = None
    try:
        reply = status()
        return reply
    finally:
        if (reply is None or not reply["alive"]) and (ended := jvm_ended()):
            raise EngineError(ended) from None


def commands_of(job: SparkJob) -> Handlers:
    """The driver's commands for one job."""
    sut = Sut(SETTINGS_BY_MODE[job.mode](job))
    return {
        "start": sut.start,
        "status": sut.status,
        "batch_progress": sut.batch_progress,
        "operator_row_counts": sut.operator_row_counts,
    }


if __name__ == "__main__":
    serve_job(commands_of)
