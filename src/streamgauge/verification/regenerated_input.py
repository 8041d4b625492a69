"""The planned input of a trial, generated again, and the count of its malformed records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from streamgauge.core.schema import EVENT_TIME, INGEST_TIME
from streamgauge.dataflow.expressions.check import Checked, checked
from streamgauge.loadgen.plan import Plan
from streamgauge.metrics.delivery_times import IngestTimes
from streamgauge.results.run import MalformedRecords

ROWS_MAX = 131_072
"""Rows of a batch. DuckDB reads one batch in one task, so smaller batches keep all cores busy."""

Watch = Callable[[int, int, int, pa.RecordBatch], None]
"""Called with each regenerated batch: stream number, partition, first sequence number, events."""


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
        watch: Watch | None = None,
        shared: Mapping[str, str] | None = None,
    ) -> None:
        self._plan, self._ingest, self.columns, self.watch = plan, ingest, columns, watch
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
                if self.watch is not None:
                    self.watch(stream, partition, low, batch)
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


@contextmanager
def counting(plan: Plan, rules: Mapping[str, str], until_us: int) -> Iterator[MalformedCount]:
    """Counts the records before `until_us` of each stream that has a rule."""
    import duckdb

    # A separate connection, because another one may be reading the same batch.
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield MalformedCount(connection, plan, rules, until_us)


class MalformedCount:
    """Counts each record once, no matter how often it is regenerated. Pass regenerated batches to `see`."""

    def __init__(self, connection: Any, plan: Plan, rules: Mapping[str, str], until_us: int) -> None:
        self._connection, self._plan, self._texts = connection, plan, rules
        self._rules: dict[int, Checked] = {
            number: checked(rules[stream.name], stream.schema.types(), f"malformed {stream.name}")
            for number, stream in enumerate(plan.streams)
            if stream.name in rules
        }
        self._ends = {
            (number, partition): plan.count_before(number, partition, until_us)
            for number in self._rules
            for partition in range(plan.partitions)
        }
        self._counted_to = dict.fromkeys(self._ends, 0)
        self._malformed: Counter[int] = Counter()

    def see(self, stream: int, partition: int, first: int, batch: pa.RecordBatch) -> None:
        """Counts in a batch of stream number `stream` that starts at sequence number `first`.

        Skips records that were already counted, batches that lack a column of the rule, and batches after a gap.
        """
        counted_to, end = self._counted_to.get((stream, partition), 0), self._ends.get((stream, partition), 0)
        last = min(first + batch.num_rows, end)
        if not first <= counted_to < last or not self._rules[stream].columns <= set(batch.schema.names):
            return
        records = self._connection.from_arrow(batch.slice(counted_to - first, last - counted_to))
        ((counts,),) = records.aggregate(f"count(*) FILTER (WHERE {self._rules[stream].duckdb})").fetchall()
        self._malformed[stream] += counts
        self._counted_to[stream, partition] = last

    def counts(self) -> dict[str, MalformedRecords]:
        """The count of each stream with a rule. Regenerates the records that were not seen."""
        for (stream, partition), end in self._ends.items():
            columns = sorted(self._rules[stream].columns)
            for low in range(self._counted_to[stream, partition], end, ROWS_MAX):
                batch = self._plan.batch(stream, partition, low, min(low + ROWS_MAX, end), columns)
                self.see(stream, partition, low, batch)
        names = {stream: self._plan.streams[stream].name for stream in self._rules}
        return {
            name: MalformedRecords(
                rule=self._texts[name],
                malformed=self._malformed[stream],
                records=sum(end for (number, _), end in self._ends.items() if number == stream),
            )
            for stream, name in names.items()
        }
