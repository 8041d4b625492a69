"""What the sinks committed, read back from the recorder's spool."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.clock import US
from streamgauge.core.lineage_columns import EMISSION_TIME, EVENT_TIME, INGEST_TIME
from streamgauge.core.units import FAR_FUTURE_US, FAR_PAST_US
from streamgauge.metrics.latency.event_latency import ENGINE_BATCH
from streamgauge.metrics.log.trial_log import TrialLog
from streamgauge.metrics.log.trial_record import TrialRecord

SETTLED_US = US
NEVER = 2**62
"""A batch that no engine reaches."""


class Received:
    """The results that the sink committed and that are this trial's, from the recorder's spool.

    A warm test bed's earlier trial closes its last windows in this one. Their event times lie before this trial's
    start, and they come with its first batches. Whatever claims such a time later is this trial's own, and judged; so
    is a result without an event time (null) whenever it comes, since it claims none.
    `through`: up to this batch of the job's one query; `since_us`: what was committed from then on. Files are mapped,
    not read: tables over them take no memory.
    """

    def __init__(self, record: TrialRecord, through: int | None = None, since_us: int = FAR_PAST_US) -> None:
        closing = _closing(record.trial_log) if record.earlier_trials else {}
        commits = [
            commit
            for commit in record.trial_log.commits
            if commit.committed_us >= since_us and (through is None or commit.batch <= through)
        ]
        self.rows = sum(commit.rows for commit in commits)
        """All that were committed, with those of an earlier trial that `batches` leaves out."""
        self._since_us = {
            path: record.spans.start_us if commit.batch <= closing.get(commit.query, -1) else FAR_PAST_US
            for commit in commits
            for path in commit.paths
        }
        self._paths = list(self._since_us)
        self._seen: dict[str, tuple[int, int]] = {}
        self._batch_of = {path: f"{commit.query}/{commit.batch}" for commit in commits for path in commit.paths}

    @property
    def empty(self) -> bool:
        return not self._paths

    def batches(self, from_us: int = FAR_PAST_US, to_us: int = FAR_FUTURE_US) -> Iterator[pa.RecordBatch]:
        """Rows with from <= event_time < to, null in the far past; a batch's schema says which engine batch gave it."""
        for path, since_us in self._since_us.items():
            first, last = self._times(path)
            if first < to_us and last >= from_us:
                whole = max(from_us, since_us) <= first and last < to_us
                yield from self._rows(path, None if whole else (from_us, to_us))

    def _times(self, path: str) -> tuple[int, int]:
        """A file's smallest and largest event time, as they are in it: nothing is taken from the plan.

        Looked for when the file's turn comes: whoever ends before the last one has not waited for all of them.
        """
        if path not in self._seen:
            with pa.memory_map(path) as source:
                found = pc.min_max(_known(pa.ipc.open_file(source).read_all().column(EVENT_TIME)))
                self._seen[path] = (found["min"].as_py(), found["max"].as_py())
        return self._seen[path]

    @cached_property
    def schema(self) -> pa.Schema:
        with pa.memory_map(self._paths[0]) as source:
            return pa.ipc.open_file(source).schema

    def table(self, from_us: int = FAR_PAST_US, to_us: int = FAR_FUTURE_US) -> pa.Table:
        return pa.Table.from_batches(self.batches(from_us, to_us), self.schema)

    def _rows(self, path: str, span_us: tuple[int, int] | None) -> Iterator[pa.RecordBatch]:
        """A file's rows of a span that are this trial's; all of them without one."""
        with pa.memory_map(path) as source:
            reader = pa.ipc.open_file(source)
            named = {**(reader.schema.metadata or {}), ENGINE_BATCH: self._batch_of[path].encode()}
            for index in range(reader.num_record_batches):
                batch = reader.get_batch(index).replace_schema_metadata(named)
                yield batch if span_us is None else batch.filter(self._inside(batch, path, *span_us))

    def _inside(self, batch: pa.RecordBatch, path: str, from_us: int, to_us: int) -> pa.BooleanArray:
        given = batch.column(EVENT_TIME)
        times = _known(given)
        own = pc.or_(pc.is_null(given), pc.greater_equal(times, self._since_us[path]))
        return pc.and_(own, pc.and_(pc.greater_equal(times, from_us), pc.less(times, to_us)))


def _known(times: Any) -> Any:
    """Event times, none of them null: a result without one lies in the far past, so that one slice of time has it."""
    return pc.fill_null(times, FAR_PAST_US)


def _closing(trial_log: TrialLog) -> dict[str, int]:
    """Query to the last of its batches that may close windows which an earlier trial left open.

    The watermark passes them with the first events of this trial, and the batch after that closes them. A second of
    events is waited for, since the very first ones may all be filtered out before the watermark.
    """
    settled_us = trial_log.plan.start_us + SETTLED_US
    return {query: _first_settled(trial_log.of_query(query), settled_us) + 1 for query in trial_log.queries()}


def _first_settled(trial_log: TrialLog, settled_us: int) -> int:
    """The first batch by which one query has had events of each stream that it reads, up to `settled_us` at least."""
    first: dict[str, int] = {}
    parts = trial_log.all_hand_outs()
    for part in parts:
        if part.events and part.to_us >= settled_us:
            first[part.stream] = min(first.get(part.stream, part.batch), part.batch)
    return max((first.get(stream, NEVER) for stream in {part.stream for part in parts}), default=NEVER)


def results_file(sink: str = "", several: bool = False) -> str:
    """The name under which a sink's results are kept."""
    return f"results-{sink}.parquet" if several else "results.parquet"


def keep_results(received: Received, path: Path, enough: Callable[[], bool] = lambda: False) -> bool:
    """All results as Parquet; event, ingest and emission time as timestamps. The file is whole, or it is not there.

    False, and no file, where `enough` is true before the last batch: it is asked before each.
    """
    import pyarrow.parquet as pq

    beside = path.with_name(f".{path.name}.partial")
    stamps = (EVENT_TIME, INGEST_TIME, EMISSION_TIME)
    shown = pa.schema([
        pa.field(field.name, pa.timestamp("us", "UTC")) if field.name in stamps else field for field in received.schema
    ])  # fmt: skip
    try:
        with pq.ParquetWriter(beside, shown) as writer:
            for batch in received.batches():
                if enough():
                    return False
                columns = [
                    batch.column(f.name).cast(f.type) if f.name in stamps else batch.column(f.name) for f in shown
                ]
                writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=shown))
        beside.replace(path)
        return True
    finally:
        beside.unlink(missing_ok=True)
