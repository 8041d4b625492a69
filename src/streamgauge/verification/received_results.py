"""The committed results, read from the recorder's spool; their file results.parquet is written here, too."""

from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.clock import US
from streamgauge.core.schema import EMISSION_TIME, EVENT_TIME, INGEST_TIME
from streamgauge.core.units import FAR_FUTURE_US, FAR_PAST_US
from streamgauge.metrics.event_latency import ENGINE_BATCH
from streamgauge.metrics.trial_log import TrialLog
from streamgauge.metrics.trial_record import TrialRecord

BATCH, ARRIVAL = "__batch", "__arrival"
"""Columns of `ReceivedResults.numbered`: the engine's batch that gave a result, and its number in order of arrival."""
SETTLED_US = US
"""The flow may filter out the very first events of a trial."""
NEVER = 2**62
"""Greater than every batch number."""


class ReceivedResults:
    """The committed results of this trial, from the recorder's spool. Files are memory-mapped.

    On a reused test bed, the previous trial's last windows close in the first batches of this trial. Their event times
    lie before this trial's start, so they are skipped. Results with such times in later batches, and results without
    an event time (null), belong to this trial and are verified.

    `since_us`: only results committed since.
    """

    def __init__(self, record: TrialRecord, since_us: int = FAR_PAST_US) -> None:
        trial_log, settled_us = record.trial_log, record.trial_log.plan.start_us + SETTLED_US
        # The last batch of each query that may close windows left open by an earlier trial: the first events of this
        # trial move the watermark past them, and the next batch closes them.
        closing = {
            query: _first_settled(trial_log.of_query(query), settled_us) + 1
            for query in (trial_log.queries() if record.earlier_trials else ())
        }
        commits = [commit for commit in record.trial_log.commits if commit.committed_us >= since_us]
        self.rows = sum(commit.rows for commit in commits)
        """All committed rows, including those of an earlier trial that `batches` skips."""
        self._since_us = {
            path: record.spans.start_us if commit.batch <= closing.get(commit.query, -1) else FAR_PAST_US
            for commit in commits
            for path in commit.paths
        }
        self._event_spans: dict[str, tuple[int, int]] = {}
        self._batch_of = {path: f"{commit.query}/{commit.batch}" for commit in commits for path in commit.paths}

    @property
    def empty(self) -> bool:
        return not self._since_us

    def batches(self, from_us: int = FAR_PAST_US, to_us: int = FAR_FUTURE_US) -> Iterator[pa.RecordBatch]:
        """Rows with from <= event_time < to. The schema's metadata names the engine batch.

        Null counts as far past, so that exactly one slice of time contains each result.
        """
        for path, since_us in self._since_us.items():
            first, last = self._times(path)
            if first < to_us and last >= from_us:
                whole = max(from_us, since_us) <= first and last < to_us
                yield from self._rows(path, None if whole else (from_us, to_us))

    def _times(self, path: str) -> tuple[int, int]:
        """A file's smallest and largest event time, read from the file when it is first needed."""
        if path not in self._event_spans:
            with pa.memory_map(path) as source:
                span = pc.min_max(pc.fill_null(pa.ipc.open_file(source).read_all().column(EVENT_TIME), FAR_PAST_US))
                self._event_spans[path] = (span["min"].as_py(), span["max"].as_py())
        return self._event_spans[path]

    @cached_property
    def schema(self) -> pa.Schema:
        with pa.memory_map(next(iter(self._since_us))) as source:
            return pa.ipc.open_file(source).schema

    def table(self, from_us: int = FAR_PAST_US, to_us: int = FAR_FUTURE_US) -> pa.Table:
        return pa.Table.from_batches(self.batches(from_us, to_us), self.schema)

    def numbered(self, empty: pa.Schema) -> pa.RecordBatchReader:
        """All rows with the columns `BATCH` and `ARRIVAL`. `empty`: the schema of the others if there are no rows."""
        schema = empty if self.empty else self.schema.remove_metadata()
        for name in (BATCH, ARRIVAL):
            schema = schema.append(pa.field(name, pa.int64()))
        return pa.RecordBatchReader.from_batches(schema, self._numbered())

    def _numbered(self) -> Iterator[pa.RecordBatch]:
        first = 0
        for batch in self.batches():
            number = int(batch.schema.metadata[ENGINE_BATCH].rpartition(b"/")[2])
            plain = batch.replace_schema_metadata(None)
            plain = plain.append_column(BATCH, pa.array(np.full(batch.num_rows, number, np.int64)))
            yield plain.append_column(ARRIVAL, pa.array(np.arange(first, first + batch.num_rows)))
            first += batch.num_rows

    def _rows(self, path: str, span_us: tuple[int, int] | None) -> Iterator[pa.RecordBatch]:
        """A file's rows of this trial in a span; all rows if the span is None."""
        with pa.memory_map(path) as source:
            reader = pa.ipc.open_file(source)
            metadata = {**(reader.schema.metadata or {}), ENGINE_BATCH: self._batch_of[path].encode()}
            for index in range(reader.num_record_batches):
                batch = reader.get_batch(index).replace_schema_metadata(metadata)
                yield batch if span_us is None else batch.filter(self._inside(batch, path, *span_us))

    def _inside(self, batch: pa.RecordBatch, path: str, from_us: int, to_us: int) -> pa.BooleanArray:
        event_times = batch.column(EVENT_TIME)
        times = pc.fill_null(event_times, FAR_PAST_US)
        in_trial = pc.or_(pc.is_null(event_times), pc.greater_equal(times, self._since_us[path]))
        return pc.and_(in_trial, pc.and_(pc.greater_equal(times, from_us), pc.less(times, to_us)))


def _first_settled(trial_log: TrialLog, settled_us: int) -> int:
    """The first batch by which a query has read each of its streams up to `settled_us`."""
    first: dict[str, int] = {}
    parts = trial_log.all_deliveries()
    for part in parts:
        if part.events and part.to_us >= settled_us:
            first[part.stream] = min(first.get(part.stream, part.batch), part.batch)
    return max((first.get(stream, NEVER) for stream in {part.stream for part in parts}), default=NEVER)


def results_file(sink: str = "", several: bool = False) -> str:
    """The name of a sink's results file."""
    return f"results-{sink}.parquet" if several else "results.parquet"


def write_results(received: ReceivedResults, path: Path, stop_requested: Callable[[], bool] = lambda: False) -> bool:
    """Writes all results as Parquet, atomically, with event, ingest and emission time as timestamps.

    Checks `stop_requested` before each batch. If it returns True, returns False and leaves no file.
    """
    import pyarrow.parquet as pq

    partial_path = path.with_name(f".{path.name}.partial")
    time_columns = (EVENT_TIME, INGEST_TIME, EMISSION_TIME)
    written_schema = pa.schema([
        pa.field(each.name, pa.timestamp("us", "UTC")) if each.name in time_columns else each
        for each in received.schema
    ])  # fmt: skip
    try:
        with pq.ParquetWriter(partial_path, written_schema) as writer:
            for batch in received.batches():
                if stop_requested():
                    return False
                writer.write_batch(batch.select(written_schema.names).cast(written_schema))
        partial_path.replace(path)
        return True
    finally:
        partial_path.unlink(missing_ok=True)
