"""Builds a query's frame, from the flow or from the user's function, and starts it over the job's transport."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from streamgauge.dataflow.nodes import Source
from streamgauge.engines.spark.io.spi import QueryStart, Reader, numbered_readers
from streamgauge.engines.spark.lowering.arrow_blocks import Packing
from streamgauge.engines.spark.lowering.dataframe import Lowering
from streamgauge.engines.spark.lowering.queries import Query
from streamgauge.engines.spark.session.environment import require_loadable_state
from streamgauge.engines.spark.structured.job_settings import JobSettings
from streamgauge.engines.spark.structured.row_counting import RowCounting
from streamgauge.engines.spark.user_job.pyspark_job import PySparkJob

STATE_STORE = "spark.sql.streaming.stateStore.providerClass"


class QueryBuilder:
    """Builds and starts the queries of one session. `user_job` replaces the lowering, if there is one."""

    def __init__(
        self, session: SparkSession, settings: JobSettings, counting: RowCounting, user_job: PySparkJob | None = None
    ) -> None:
        self._session, self._settings, self._counting, self._user_job = session, settings, counting, user_job
        self._job, self._adapter = settings.job, settings.adapter

    def start(self, query: Query) -> Any:
        """Starts a query, and returns Spark's handle of it."""
        self._adapter.prepare(self._session, query)
        frame = self._frame(query)
        require_loadable_state(self._session.conf.get(STATE_STORE), Path(self._job.folder))
        start = QueryStart(
            query,
            Path(self._job.checkpoint) / query.name,
            self._settings.trigger_arguments(query),
            partial(self._counting.batch_written, query.name),
        )
        with self._user_job.refusals() if self._user_job is not None else contextlib.nullcontext():
            return self._adapter.start(frame, start)

    def reading(self, query: Query) -> Callable[..., DataFrame]:
        """A function that reads a source for a query."""
        return numbered_readers(query.name, self._settings.columns(query), self._read)

    def _frame(self, query: Query) -> DataFrame:
        """The results of a query."""
        read = self.reading(query)
        if self._user_job is not None:
            frames = [read(each) for each in self._user_job.job.inputs]
            frame = self._user_job.streaming(self._session, frames, Path(self._job.folder))
            self._user_job.require_types(frame, self._adapter.carries)
            return frame
        settings = self._settings
        buckets = int(settings.options.get("buckets", 1))
        lowering = Lowering(
            read,
            read if self._adapter.reads_evenly else None,
            settings.lowerings,
            buckets,
            settings.watermark_delay,
            self._counting.probes,
            settings.in_order,
            settings.is_uneven(query),
        )
        return lowering.output(query)

    def _read(self, source: Source, columns: tuple[str, ...], reader: Reader, packing: Packing | None) -> DataFrame:
        return self._adapter.read(self._session, source, columns, reader, packing, self._counting.probes)
