"""The planned input of a trial, generated again, and the count of its malformed records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from streamgauge.core.schema import EVENT_TIME, INGEST_TIME
from streamgauge.dataflow.expressions.check import checked
from streamgauge.loadgen.plan import Plan
from streamgauge.metrics.delivery_times import IngestTimes
from streamgauge.results.run import MalformedRecords

ROWS_MAX = 131_072
"""Rows of a batch. DuckDB reads one batch in one task, so smaller batches keep all cores busy."""


class RegeneratedInput:
    """The planned events, regenerated, with the ingest times of the delivery log, or those that a subclass gives.

    - `ingest`: None if the driver does not know them, as over a broker; then they are null.
    - `shared`: relations with the precomputed rows of operators over all of these events.
    """

    def __init__(
        self,
        plan: Plan,
        ingest: IngestTimes | None,
        columns: dict[str, tuple[str, ...]],
        shared: Mapping[str, str] | None = None,
    ) -> None:
        self._plan, self._ingest, self.columns = plan, ingest, columns
        self.shared = shared or {}

    def readers(self, from_us: int, to_us: int) -> dict[str, pa.RecordBatchReader]:
        """Stream name to a reader of its events in [from_us, to_us)."""
        return {
            stream.name: pa.RecordBatchReader.from_batches(
                self._with_ingest(index, 0, 0, self._make(index, 0, 0, 0)).schema, self._batches(index, from_us, to_us)
            )
            for index, stream in enumerate(self._plan.streams)
            if stream.name in self.columns
        }

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
                yield self._with_ingest(stream, partition, low, batch)

    def _make(self, stream: int, partition: int, first: int, last: int) -> pa.RecordBatch:
        names = [name for name in self.columns[self._plan.streams[stream].name] if name != INGEST_TIME]
        names += [EVENT_TIME] if EVENT_TIME not in names else []
        return self._plan.batch(stream, partition, first, last, names)

    def _with_ingest(self, stream: int, partition: int, first: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The events with their ingest times; `first` is the sequence of the first one."""
        name = self._plan.streams[stream].name
        if INGEST_TIME not in self.columns[name]:
            return batch
        if self._ingest is None:
            return batch.append_column(INGEST_TIME, pa.nulls(batch.num_rows, pa.int64()))
        times = self._ingest(name, partition, batch.column(EVENT_TIME).to_numpy())
        return batch.append_column(INGEST_TIME, pa.array(times))


class PlacedInput(RegeneratedInput):
    """The planned events with, as ingest time, a number of their stream and partition."""

    def _with_ingest(self, stream: int, partition: int, first: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.append_column(
            INGEST_TIME, pa.array(np.full(batch.num_rows, stream * self._plan.partitions + partition, np.int64))
        )


def malformed_records(plan: Plan, rules: Mapping[str, str], until_us: int) -> dict[str, MalformedRecords]:
    """The malformed records before `until_us` of each stream that has a rule. Makes the columns of the rules again."""
    import duckdb

    conditions = {
        stream.name: checked(rules[stream.name], stream.schema.types(), f"malformed {stream.name}")
        for stream in plan.streams
        if stream.name in rules
    }
    made = RegeneratedInput(plan, None, {name: tuple(sorted(each.columns)) for name, each in conditions.items()})
    found = {}
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name, reader in made.readers(plan.start_us, until_us).items():
            counts = f"count(*) FILTER (WHERE {conditions[name].duckdb}), count(*)"
            ((malformed, records),) = connection.from_arrow(reader).aggregate(counts).fetchall()
            found[name] = MalformedRecords(rule=rules[name], malformed=malformed, records=records)
    return found
