"""Verification of one trial: the planned input is made again, the oracle answers it, and every result is compared
[method 9].

Nothing of the input was stored: events are a pure function of the plan, and ingest times of the queue's hand-out log,
so the lineage of each result is checked too. Flows that look at one row at a time are compared in slices of event
time, the others in one piece.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.engines.oracle.lower import sql as oracle_sql
from streamgauge.engines.oracle.process import computed, is_independent
from streamgauge.events import (
    EMISSION_TIME,
    EVENT_TIME,
    INGEST_TIME,
    US,
    WINDOW_END,
    WINDOW_START,
    arrow_type,
)
from streamgauge.flow import schema
from streamgauge.flow.lineage import identity
from streamgauge.flow.nodes import Flow, Process, RunningAggregate, WindowJoin
from streamgauge.flow.reach import reach_us
from streamgauge.load.plan import Plan
from streamgauge.measure import answers
from streamgauge.measure.latency import LatencyRule, Missing, SinkLatencies, sink_latencies
from streamgauge.report.store import RunFolder
from streamgauge.result import Latency, SinkResult, Verification
from streamgauge.run.check import Ready
from streamgauge.run.conduct import Conducted
from streamgauge.run.journal import IngestTimes, Ints

SLICE_US = 5 * US
ROWS_MAX = 262_144
REFERENCE = "DuckDB, by SQL made from the flow"
REFERENCE_WITH_CLASSES = "DuckDB, by SQL made from the flow, and the flow's own classes over the whole input in order"


@dataclass(frozen=True)
class SinkVerified:
    """What the answers of one sink were, and how late."""

    name: str
    query: str
    verification: Verification
    latencies: SinkLatencies
    rows: int
    windows_closed: int | None


@dataclass(frozen=True)
class Verified:
    """What the answers were, and how late: of every sink, and of all together."""

    verification: Verification
    sinks: tuple[SinkVerified, ...]

    @property
    def slowest(self) -> SinkVerified:
        """The sink whose results come latest, by the mean of their event-time latency, which every sink has."""
        return max(self.sinks, key=lambda sink: _mean(sink.latencies.latencies.event_time_us))

    @property
    def negatives(self) -> int:
        return sum(sink.latencies.negatives for sink in self.sinks)

    @property
    def windows_closed(self) -> int | None:
        """Of the windowed sink that closed fewest; None where nothing is windowed."""
        return min((sink.windows_closed for sink in self.sinks if sink.windows_closed is not None), default=None)

    @property
    def results(self) -> tuple[SinkResult, ...]:
        return tuple(
            SinkResult(
                name=sink.name, rows=sink.rows, latency=sink.latencies.latencies, query=sink.query,
                verification=sink.verification,
            )
            for sink in self.sinks
        )  # fmt: skip


def _mean(latency: Latency | None) -> float:
    return latency.mean if latency is not None and latency.mean is not None else -1.0


class Received:
    """The results that the sink committed and that are this trial's, from the recorder's spool.

    A warm rig's earlier trial closes its last windows in this one; their event times lie before this trial's start.
    """

    def __init__(self, done: Conducted) -> None:
        self._since_us = done.spans.start_us if done.earlier_trials else -(2**62)
        self._paths = [path for commit in done.journal.commits for path in commit.paths]

    @property
    def empty(self) -> bool:
        return not self._paths

    def batches(self, from_us: int = -(2**62), to_us: int = 2**62) -> Iterator[pa.RecordBatch]:
        """Rows with from <= event_time < to."""
        low = max(from_us, self._since_us)
        for path in self._paths:
            first, last = self._times[path]
            if first < to_us and last >= low:
                yield from self._rows(path, low, to_us, whole=low <= first and last < to_us)

    @cached_property
    def _times(self) -> dict[str, tuple[int, int]]:
        """File to its smallest and largest event time, as they are in the file: nothing is taken from the plan."""
        times = {}
        for path in self._paths:
            with pa.memory_map(path) as source:
                found = pc.min_max(pa.ipc.open_file(source).read_all().column(EVENT_TIME))
                times[path] = (found["min"].as_py(), found["max"].as_py())
        return times

    @cached_property
    def schema(self) -> pa.Schema:
        with pa.memory_map(self._paths[0]) as source:
            return pa.ipc.open_file(source).schema

    def table(self, from_us: int = -(2**62), to_us: int = 2**62) -> pa.Table:
        return pa.Table.from_batches(self.batches(from_us, to_us), self.schema)

    def _rows(self, path: str, from_us: int, to_us: int, whole: bool) -> Iterator[pa.RecordBatch]:
        with pa.memory_map(path) as source:
            reader = pa.ipc.open_file(source)
            for index in range(reader.num_record_batches):
                batch = reader.get_batch(index)
                times = batch.column(EVENT_TIME)
                inside = None if whole else pc.and_(pc.greater_equal(times, from_us), pc.less(times, to_us))
                yield batch if inside is None else batch.filter(inside)


class Input:
    """The planned events, made again, with the ingest times of the hand-out log."""

    def __init__(self, plan: Plan, ingest: IngestTimes, columns: dict[str, tuple[str, ...]]) -> None:
        self._plan, self._ingest, self._columns = plan, ingest, columns

    def readers(self, from_us: int, to_us: int) -> dict[str, pa.RecordBatchReader]:
        """Stream name to a reader of its events in [from_us, to_us)."""
        readers = {}
        for index, stream in enumerate(self._plan.streams):
            if stream.name not in self._columns:
                continue
            empty = self._with_ingest(index, 0, self._make(index, 0, 0, 0))
            readers[stream.name] = pa.RecordBatchReader.from_batches(empty.schema, self._batches(index, from_us, to_us))
        return readers

    def _batches(self, stream: int, from_us: int, to_us: int) -> Iterator[pa.RecordBatch]:
        for partition in range(self._plan.partitions):
            first = self._plan.count_before(stream, partition, from_us)
            last = self._plan.count_before(stream, partition, to_us)
            for low in range(first, last, ROWS_MAX):
                yield self._with_ingest(
                    stream, partition, self._make(stream, partition, low, min(last, low + ROWS_MAX))
                )

    def _make(self, stream: int, partition: int, first: int, last: int) -> pa.RecordBatch:
        wanted = self._columns[self._plan.streams[stream].name]
        made = [name for name in wanted if name != INGEST_TIME]
        made += [EVENT_TIME] if EVENT_TIME not in made else []
        return self._plan.batch(stream, partition, first, last, made)

    def _with_ingest(self, stream: int, partition: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        name = self._plan.streams[stream].name
        if INGEST_TIME not in self._columns[name]:
            return batch
        stamps = self._ingest.of(name, partition, batch.column(EVENT_TIME).to_numpy())
        return batch.append_column(INGEST_TIME, pa.array(stamps))


def verify(ready: Ready, done: Conducted, keep_in: RunFolder | None = None) -> Verified:
    """Compare every answer of a trial, and compute its latencies; results are kept in `keep_in` where that is given.

    Each sink is verified alone, as if the flow had no other.
    """
    several = len(ready.flow.sinks) > 1
    sinks = []
    for one in ready.of_each_sink():
        name = one.flow.sink.name
        kept = keep_in.path / (f"results-{name}.parquet" if several else "results.parquet") if keep_in else None
        sinks.append(_verify_sink(one, replace(done, journal=done.journal.of_sink(name)), kept))
    verification = _of_all(sinks, done) if several else sinks[0].verification
    return Verified(verification, tuple(sinks))


def _of_all(sinks: list[SinkVerified], done: Conducted) -> Verification:
    """The sums over all sinks; examples and the sentence name the sink."""
    each = [(sink.name, sink.verification) for sink in sinks]
    names = ("expected", "matched", "missing", "extra", "duplicate", "wrong", "late", "seconds")
    return Verification(
        judged=all(one.judged for _, one in each),
        independent=all(one.independent for _, one in each),
        reference="; ".join(dict.fromkeys(one.reference for _, one in each)),
        uncommitted=sum(done.journal.rows_ignored.values()),
        sentence="; ".join(f"{name}: {one.sentence}" for name, one in sorted(each, key=lambda pair: pair[1].right)),
        examples=tuple({"sink": name, **example} for name, one in each for example in one.examples),
        **{name: sum(getattr(one, name) for _, one in each) for name in names},
    )


def _verify_sink(ready: Ready, done: Conducted, keep_at: Path | None) -> SinkVerified:
    """The answers of a flow's one sink; `done` has that sink's commits alone."""
    started = time.monotonic()
    received = Received(done)
    counts, missing = _compare(ready, done, received)
    seconds = time.monotonic() - started
    span = (done.spans.measured_from_us, done.spans.measured_to_us)
    missing = replace(missing, deadline_us=done.deadline_us) if missing is not None else None
    latencies = sink_latencies(received.batches(), _rule(ready, done), span, missing)
    rows = sum(commit.rows for commit in done.journal.commits)
    if keep_at is not None and not received.empty:
        keep_results(received, keep_at)
    independent = is_independent(ready.flow)
    verification = Verification(
        judged=True, independent=independent, reference=REFERENCE if independent else REFERENCE_WITH_CLASSES,
        uncommitted=sum(done.journal.rows_ignored.values()),
        seconds=seconds, sentence=_sentence(ready, counts), **counts.as_dict(),
    )  # fmt: skip
    windowed = WINDOW_END in schema.columns(ready.flow.sink.input)
    closed = latencies.effective_count if windowed else None
    query = next((commit.query for commit in done.journal.commits), "")
    return SinkVerified(ready.flow.sink.name, query, verification, latencies, rows, closed)


@contextmanager
def database() -> Iterator[Any]:
    import duckdb

    with tempfile.TemporaryDirectory(prefix="streamgauge-verify-") as folder:
        config = {"temp_directory": folder, "preserve_insertion_order": "false"}
        connection = duckdb.connect(str(Path(folder) / "verify.duckdb"), config=config)
        try:
            connection.execute("SET TimeZone = 'UTC'")
            yield connection
        finally:
            connection.close()


@dataclass(frozen=True)
class Asked:
    """What the comparison asks: which expected rows must be there, and which of them the latencies need."""

    identity: tuple[str, ...]
    columns: tuple[str, ...]
    judged: str
    due: str
    update: bool
    complete: bool


def _asked(ready: Ready, done: Conducted) -> Asked:
    flow = ready.flow
    whole = schema.columns(ready.lineage_flow.sink.input)
    update = isinstance(flow.sink.input, RunningAggregate)
    due = f"event_time < {min(done.spans.measured_to_us, done.offered_until())}"
    if WINDOW_END in whole:
        due += f" AND epoch_us(window_end) <= {done.deadline_us}"  # what has not ended yet is not late yet
    complete = done.drained
    judged = f"event_time < {done.spans.measured_to_us}"
    if update:
        judged = "true" if complete else f"event_time < {done.journal.committed_until()}"
    elif not complete:
        judged = judged_early(done, WINDOW_END in whole, _held_us(flow))
    return Asked(identity(flow), tuple(whole), judged, due, update, complete)


def _held_us(flow: Flow) -> int | None:
    """How long a process holds results back until the watermark lets them out; None where nobody knows."""
    stated = any(isinstance(node, Process) and node.identity for node in schema.walk(flow.sink.input))
    return reach_us(flow) if stated else 0


def judged_early(done: Conducted, windowed: bool, held_us: int | None = 0) -> str:
    """A trial that ended early owes what its committed batches must have given: windows close one batch late."""
    if held_us is None:
        return "false"
    (reached,) = done.journal.committed_ends().values()
    if windowed:
        return f"window_end <= {reached[-2] if len(reached) > 1 else 0}"
    if held_us:
        return f"event_time < {reached[-2] - held_us if len(reached) > 1 else 0}"
    return f"event_time < {reached[-1] if reached else 0}"


def _compare(ready: Ready, done: Conducted, received: Received) -> tuple[answers.Counts, Missing | None]:
    asked = _asked(ready, done)
    source = Input(done.journal.plan, IngestTimes(done.journal), ready.columns)
    with database() as connection:
        if ready.reach_us == 0:
            return _compare_slices(connection, ready, done, received, source, asked)
        return _compare_whole(connection, ready, done, received, source, asked)


def _compare_whole(
    connection: Any, ready: Ready, done: Conducted, received: Received, source: Input, asked: Asked
) -> tuple[answers.Counts, Missing | None]:
    for name, reader in source.readers(done.spans.start_us, done.offered_until()).items():
        connection.register(f"input_{name}", reader)
    connection.register("received", _or_empty(received, received.table if not received.empty else None, ready))
    relations = {name: f"input_{name}" for name in ready.columns}
    relations = computed(connection, ready.lineage_flow, relations)
    points = "received" if asked.update else None
    connection.execute(f"CREATE TABLE expected AS {oracle_sql(ready.lineage_flow, relations, points)}")
    counts = answers.compare(
        connection, "expected", "received", asked.identity, asked.columns, asked.judged,
        update=asked.update, deadline_us=done.deadline_us,
    )  # fmt: skip
    missing = None if asked.update else never_came(connection, "expected", "received", asked, counts)
    return counts, _join_times(ready, done, missing)


def _compare_slices(
    connection: Any, ready: Ready, done: Conducted, received: Received, source: Input, asked: Asked
) -> tuple[answers.Counts, Missing | None]:
    total, lost = answers.Counts(), []
    far = 2**62
    start, end = done.spans.start_us, done.offered_until()
    borders = [-far, *range(start, max(end, start + 1), SLICE_US), far]
    for low, high in pairwise(borders):
        for name, reader in source.readers(max(low, start), max(start, min(high, end))).items():
            connection.register(f"input_{name}", reader.read_all())
        relations = {name: f"input_{name}" for name in ready.columns}
        relations = computed(connection, ready.lineage_flow, relations)
        expected = f"({oracle_sql(ready.lineage_flow, relations)})"
        rows = (lambda a, b: lambda: received.table(a, b))(low, high) if not received.empty else None
        connection.register("received", _or_empty(received, rows, ready))
        counts = answers.compare(
            connection, expected, "received", asked.identity, asked.columns, asked.judged, deadline_us=done.deadline_us
        )
        lost.append(never_came(connection, expected, "received", asked, counts))
        total += counts
    return total, _together([each for each in lost if each is not None])


def _or_empty(received: Received, rows: Callable[[], pa.Table] | None, ready: Ready) -> pa.Table:
    """What arrived, or a table of the right columns where nothing did."""
    if rows is not None:
        return rows()
    kinds = schema.columns(ready.lineage_flow.sink.input) | {EMISSION_TIME: "bigint"}
    return pa.schema([(name, arrow_type(kind)) for name, kind in kinds.items()]).empty_table()


def never_came(connection: Any, expected: str, received: str, asked: Asked, counts: answers.Counts) -> Missing | None:
    """The rows due in the measured span that never came: they enter the latencies as lower bounds."""
    if asked.complete and not counts.missing:
        return None
    same = " AND ".join(f'e."{name}" IS NOT DISTINCT FROM r."{name}"' for name in asked.identity)
    wanted = [name for name in (EVENT_TIME, INGEST_TIME, WINDOW_END) if name in asked.columns]
    columns = ", ".join(f"epoch_us({name})" if name == WINDOW_END else name for name in wanted)
    table = connection.execute(
        f"SELECT {columns} FROM {expected} AS e WHERE {asked.due}"
        f" AND NOT EXISTS (SELECT 1 FROM {received} AS r WHERE {same})"
    ).fetchnumpy()
    arrays = dict(zip(wanted, (np.asarray(column, np.int64) for column in table.values()), strict=True))
    ingest = arrays.get(INGEST_TIME)
    known = ingest if ingest is not None and ingest.all() else None  # never handed out: nothing to count from
    return Missing(0, arrays[EVENT_TIME], known, arrays.get(WINDOW_END))


def _together(parts: list[Missing]) -> Missing | None:
    if not parts:
        return None
    stamps = [part.ingest_time_us for part in parts]
    ingest = None if any(one is None for one in stamps) else np.concatenate([one for one in stamps if one is not None])
    return Missing(0, np.concatenate([part.event_time_us for part in parts]), ingest)


def _join_times(ready: Ready, done: Conducted, missing: Missing | None) -> Missing | None:
    """A join's missing outputs count from the time that the driver computes, like those that came."""
    if missing is None or missing.window_end_us is None or not _joins(ready.flow):
        return missing
    last = _LastInWindow(ready, done)
    ends = missing.window_end_us
    ingest = last.ingest_time(ends)
    return Missing(0, last.event_time(ends), ingest if (ingest > 0).all() else None, ends)


def _rule(ready: Ready, done: Conducted) -> LatencyRule:
    """Which latency an output of this flow has [method 1]."""
    since = handed_over(done)
    flow = ready.flow
    if _joins(flow):
        last_of = _LastInWindow(ready, done)
        return LatencyRule("join", last_of.event_time, last_of.ingest_time, since)
    if isinstance(flow.sink.input, RunningAggregate):
        return LatencyRule("update", handed_over=since)
    windowed = WINDOW_END in schema.columns(flow.sink.input)
    return LatencyRule("window" if windowed else "row", handed_over=since)


def _joins(flow: Flow) -> bool:
    return any(isinstance(node, WindowJoin) for node in schema.walk(flow.sink.input))


def handed_over(done: Conducted) -> Callable[[Ints], Ints]:
    """Event time to the moment at which its chunk was really put into the queue (the latest of all generators)."""
    chunks = sorted({(c.from_us, c.to_us) for log in done.journal.chunks for c in log})
    published: dict[int, int] = {}
    for log in done.journal.chunks:
        for chunk in log:
            published[chunk.from_us] = max(published.get(chunk.from_us, 0), chunk.published_us)
    starts = np.array([low for low, _ in chunks] or [0], np.int64)
    stamps = np.array([published[low] for low, _ in chunks] or [0], np.int64)
    return lambda times: stamps[np.clip(np.searchsorted(starts, times, side="right") - 1, 0, len(stamps) - 1)]


class _LastInWindow:
    """The event and ingest time of a window join's output: the last event before the window's end [K §IV].

    Every tuple of a window first takes the maximum of its stream's window, and an output the maximum over its two.
    0 for a window that ends before the first event: only an invented result has it.
    """

    def __init__(self, ready: Ready, done: Conducted) -> None:
        self._plan, self._ingest = done.journal.plan, IngestTimes(done.journal)
        self._numbers = [n for n, stream in enumerate(self._plan.streams) if stream.name in ready.columns]

    def event_time(self, window_end_us: Ints) -> Ints:
        return self._by_window(window_end_us, lambda end: max((time for time, _ in self._last(end)), default=0))

    def ingest_time(self, window_end_us: Ints) -> Ints:
        return self._by_window(window_end_us, lambda end: max((stamp for _, stamp in self._last(end)), default=0))

    def _by_window(self, ends: Ints, of: Callable[[int], int]) -> Ints:
        unique, index = np.unique(ends, return_inverse=True)
        return np.array([of(int(end)) for end in unique], np.int64)[index]

    def _last(self, end_us: int) -> Iterator[tuple[int, int]]:
        for number in self._numbers:
            stream = self._plan.streams[number]
            for partition in range(self._plan.partitions):
                count = self._plan.count_before(number, partition, end_us)
                if count:
                    times = self._plan.event_times(number, partition, count - 1, count)
                    yield int(times[0]), int(self._ingest.of(stream.name, partition, times)[0])


def keep_results(received: Received, path: Path) -> None:
    """All results as Parquet; event, ingest and emission time as timestamps."""
    import pyarrow.parquet as pq

    stamps = (EVENT_TIME, INGEST_TIME, EMISSION_TIME)
    shown = pa.schema([
        pa.field(field.name, pa.timestamp("us", "UTC")) if field.name in stamps else field for field in received.schema
    ])  # fmt: skip
    with pq.ParquetWriter(path, shown) as writer:
        for batch in received.batches():
            columns = [batch.column(f.name).cast(f.type) if f.name in stamps else batch.column(f.name) for f in shown]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=shown))


def _sentence(ready: Ready, counts: answers.Counts) -> str:
    noun = "windows" if WINDOW_START in identity(ready.flow) and not _joins(ready.flow) else "results"
    faults = {
        "missing": counts.missing,
        "extra": counts.extra,
        "duplicate": counts.duplicate,
        "wrong": counts.wrong,
        "late": counts.late,
    }
    found = ", ".join(f"{count:,} {name}" for name, count in faults.items() if count)
    return f"{counts.expected:,} {noun} expected, " + (
        f"{counts.matched:,} matched, {found}" if found else "all matched"
    )
