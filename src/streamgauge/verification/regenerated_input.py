"""The planned input of a trial, regenerated: events from the plan, ingest times from the delivery log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from streamgauge.core.schema import EVENT_TIME, INGEST_TIME
from streamgauge.loadgen.plan import Plan
from streamgauge.metrics.log.ingest_times import IngestTimes

ROWS_MAX = 131_072
"""Rows of a batch. DuckDB reads one batch in one task, so smaller batches keep all cores busy."""

Watch = Callable[[int, int, int, pa.RecordBatch], None]
"""Called with each regenerated batch: stream number, partition, first sequence number, events."""


class RegeneratedInput:
    """The planned events, regenerated, with the ingest times of the delivery log, or those that a subclass gives.

    `shared` are relations with the precomputed rows of operators over all of these events.
    """

    def __init__(
        self,
        plan: Plan,
        ingest: IngestTimes | None,
        columns: dict[str, tuple[str, ...]],
        watch: Watch | None = None,
        shared: Mapping[str, str] | None = None,
    ) -> None:
        self._plan, self._ingest, self.columns, self.watch = plan, ingest, columns, watch
        self.shared = shared or {}

    def readers(self, from_us: int, to_us: int) -> dict[str, pa.RecordBatchReader]:
        """Stream name to a reader of its events in [from_us, to_us)."""
        readers = {}
        for index, stream in enumerate(self._plan.streams):
            if stream.name not in self.columns:
                continue
            empty = self._with_ingest(index, 0, 0, self._make(index, 0, 0, 0))
            readers[stream.name] = pa.RecordBatchReader.from_batches(empty.schema, self._batches(index, from_us, to_us))
        return readers

    def registered(self, connection: Any, from_us: int, to_us: int) -> dict[str, str]:
        """Stream name to a DuckDB relation with its events. Each relation can be read once."""
        readers = self.readers(from_us, to_us)
        for name, reader in readers.items():
            connection.register(f"input_{name}", reader)
        return {name: f"input_{name}" for name in readers}

    def _batches(self, stream: int, from_us: int, to_us: int) -> Iterator[pa.RecordBatch]:
        for partition in range(self._plan.partitions):
            first = self._plan.count_before(stream, partition, from_us)
            last = self._plan.count_before(stream, partition, to_us)
            for low in range(first, last, ROWS_MAX):
                batch = self._make(stream, partition, low, min(last, low + ROWS_MAX))
                if self.watch is not None:
                    self.watch(stream, partition, low, batch)
                yield self._with_ingest(stream, partition, low, batch)

    def _make(self, stream: int, partition: int, first: int, last: int) -> pa.RecordBatch:
        columns = self.columns[self._plan.streams[stream].name]
        names = [name for name in columns if name != INGEST_TIME]
        names += [EVENT_TIME] if EVENT_TIME not in names else []
        return self._plan.batch(stream, partition, first, last, names)

    def _with_ingest(self, stream: int, partition: int, first: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The events with their ingest times; `first` is the sequence of the first one."""
        name = self._plan.streams[stream].name
        if INGEST_TIME not in self.columns[name]:
            return batch
        assert self._ingest is not None
        ingest_times = self._ingest.times_of(name, partition, batch.column(EVENT_TIME).to_numpy())
        return batch.append_column(INGEST_TIME, pa.array(ingest_times))
