"""Verification of an own job: by the user's reference where there is one, else by the same function run in batch.

The batch run is a process of its own over the regenerated input, after the measured span. It cannot find what the
function means wrongly, but it finds everything that streaming did to the answer: rows dropped as late, counted twice,
state lost. The other half, comparing, is `measure.answers`, as for every workload.

Results that are successive values of a key (`update`) are compared as they stood at some batches' ends and at the
last: the reference is asked for each of these moments.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from streamgauge.errors import EngineError, InputError
from streamgauge.events import EMISSION_TIME, EVENT_ID, EVENT_TIME, LINEAGE, WINDOW_END, WINDOW_START
from streamgauge.measure import answers
from streamgauge.measure.answers_sql import kind_of, quoted
from streamgauge.measure.latency import LatencyRule, Missing, sink_latencies
from streamgauge.report.store import RunFolder
from streamgauge.result import Verification
from streamgauge.run import reference
from streamgauge.run.check import Ready
from streamgauge.run.conduct import Conducted
from streamgauge.run.journal import IngestTimes
from streamgauge.run.own_job import OwnJob
from streamgauge.run.verify import (
    Asked,
    Input,
    Received,
    SinkVerified,
    Verified,
    database,
    handed_over,
    judged_early,
    keep_results,
    never_came,
)
from streamgauge.system.user_code import first_line

MOMENTS = 3
"""So many batches' ends, besides the last, at which updates are compared: each costs a run of the reference."""
COPY = "__copy"
BATCH = "Spark, the same function in batch"
REFERENCE = "DuckDB, by the job's own reference"

UNJUDGED = (EngineError, InputError, duckdb.Error)
"""Errors of the job or of its reference: the trial's other figures stand, its answers are not judged."""

AnswerBefore = Callable[[int | None], str]
"""A query for what the job should have given for the input before an event time (None: all of it)."""


@dataclass(frozen=True)
class Compared:
    """What a comparison found; `said` is how results were told apart."""

    counts: answers.Counts
    missing: Missing | None
    said: str


def verify_own(ready: Ready, done: Conducted, log: Path, keep_in: RunFolder | None = None) -> Verified:
    """Compare every answer of a trial of an own job, and compute its latencies. `log` takes what the batch run says."""
    started = time.monotonic()
    received = Received(done)
    job = _job(ready)
    independent = job.description.reference is not None
    try:
        compared: Compared | None = _compare(ready, done, received, log)
    except UNJUDGED as error:
        compared, sentence = None, f"the answers could not be judged: {_plain(error)}"
    else:
        assert compared is not None
        sentence = _sentence(compared, received)
    counts = compared.counts if compared else answers.Counts()
    lost = compared.missing if compared else None
    lost = replace(lost, deadline_us=done.deadline_us) if lost is not None else None
    span = (done.spans.measured_from_us, done.spans.measured_to_us)
    rule = LatencyRule(_kind(ready, received), handed_over=handed_over(done))
    latencies = sink_latencies(received.batches(), rule, span, lost)
    if keep_in is not None and not received.empty:
        keep_results(received, keep_in.path / "results.parquet")
    verification = Verification(
        judged=compared is not None, independent=independent, reference=REFERENCE if independent else BATCH,
        uncommitted=sum(done.journal.rows_ignored.values()), seconds=time.monotonic() - started, sentence=sentence,
        **counts.as_dict(),
    )  # fmt: skip
    rows = sum(commit.rows for commit in done.journal.commits)
    query = next((commit.query for commit in done.journal.commits), "")
    sink = SinkVerified(ready.flow.sink.name, query, verification, latencies, rows)
    return Verified(verification, (sink,))


def _plain(error: Exception) -> str:
    return first_line(error) if isinstance(error, duckdb.Error) else str(error)


def _job(ready: Ready) -> OwnJob:
    assert isinstance(ready.workload, OwnJob)
    return ready.workload


def _kind(ready: Ready, received: Received) -> Any:
    if _job(ready).description.mode == "update":
        return "update"
    if received.empty or WINDOW_END not in received.schema.names:
        return "row"
    return "row" if any(batch.column(WINDOW_END).null_count for batch in received.batches()) else "window"


def _compare(ready: Ready, done: Conducted, received: Received, log: Path) -> Compared:
    with tempfile.TemporaryDirectory(prefix="streamgauge-truth-") as folder, database() as connection:
        inputs = _written(ready, done, Path(folder))
        with _truth(ready, connection, inputs, Path(folder), log) as answer_before:
            if _job(ready).description.mode == "update":
                return _compare_updates(ready, done, connection, answer_before)
            return _compare_rows(ready, done, received, connection, answer_before)


def _written(ready: Ready, done: Conducted, folder: Path) -> dict[str, Path]:
    """The planned input again, a Parquet file a stream."""
    source = Input(done.journal.plan, IngestTimes(done.journal), ready.columns)
    paths = {}
    for name, reader in source.readers(done.spans.start_us, done.offered_until()).items():
        paths[name] = folder / f"{name}.parquet"
        with pq.ParquetWriter(paths[name], reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)
    return paths


@contextmanager
def _truth(ready: Ready, connection: Any, inputs: dict[str, Path], folder: Path, log: Path) -> Iterator[AnswerBefore]:
    job = _job(ready)
    if job.description.reference is not None:
        yield lambda before_us: _by_reference(job, connection, inputs, before_us)
        return
    from streamgauge.engines.spark.answer import answers_in_batch

    with answers_in_batch(job.native, inputs, ready.experiment.options, folder, log) as answer:
        yield lambda before_us: _parquet(answer(folder / f"answer-{before_us}", before_us) / "*.parquet")


def _by_reference(job: OwnJob, connection: Any, inputs: dict[str, Path], before_us: int | None) -> str:
    until = "true" if before_us is None else f"{EVENT_TIME} < {before_us}"
    tables = {name: f"SELECT * FROM {_parquet(path)} WHERE {until}" for name, path in inputs.items()}
    found = reference.answer(connection, job.path, job.description, tables)
    connection.execute("DROP TABLE IF EXISTS _referred")
    try:
        found.create("_referred")
    except Exception as error:
        raise EngineError(f"the reference failed: {first_line(error)}") from None
    return "_referred"


def _parquet(path: Path) -> str:
    return f"read_parquet('{path}')"


def _compare_rows(
    ready: Ready, done: Conducted, received: Received, connection: Any, answer_before: AnswerBefore
) -> Compared:
    columns = _expect(connection, answer_before(None))
    connection.register("_came", received.table() if not received.empty else _nothing(connection))
    ids, unique = _identity(connection, columns, _job(ready).description.keys)
    connection.execute(f"CREATE VIEW _received AS {_numbered('_came', ids, columns, unique)}")
    connection.execute(f"CREATE VIEW _expected AS {_numbered('_wanted', ids, columns, unique)}")
    identity = ids if unique else (*ids, COPY)
    asked = _asked(done, ready.reach_us or 0, identity, columns)
    counts = answers.compare(
        connection, "_expected", "_received", asked.identity, asked.columns, asked.judged, deadline_us=done.deadline_us
    )
    lost = never_came(connection, "_expected", "_received", asked, counts)
    return Compared(counts, lost, f"told apart by {', '.join(ids)}" + ("" if unique else ", as a multiset"))


def _expect(connection: Any, query: str) -> dict[str, str]:
    """Make the table `_wanted`; column name to kind."""
    connection.execute(
        f"CREATE OR REPLACE TABLE _wanted AS SELECT * REPLACE (coalesce({EVENT_TIME}, 0) AS {EVENT_TIME}) FROM {query}"
    )
    rows = connection.execute("DESCRIBE _wanted").fetchall()
    return {row[0]: kind_of(str(row[1])) for row in rows}


def _nothing(connection: Any) -> Any:
    return connection.sql(f"SELECT *, 0::BIGINT AS {EMISSION_TIME} FROM _wanted LIMIT 0").to_arrow_table()


def _identity(connection: Any, columns: dict[str, str], keys: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
    """(the columns that tell one result from another, whether no two expected ones have the same).

    The keys declared, with the window's start; else event_id; else the first columns, from the left, that do so, and at
    last all of them, as a multiset. Floats tell nothing apart: they are compared within a tolerance.
    """
    window = (WINDOW_START,) if WINDOW_START in columns and WINDOW_START not in keys else ()
    if keys:
        return (*keys, *window), _unique(connection, (*keys, *window))
    if EVENT_ID in columns and _unique(connection, (EVENT_ID,)):
        return (EVENT_ID,), True
    own = [name for name, kind in columns.items() if kind != "float" and name not in LINEAGE]
    for count in range(1, len(own) + 1):
        if _unique(connection, own[:count]):
            return tuple(own[:count]), True
    whole = tuple(name for name, kind in columns.items() if kind != "float")
    return whole, _unique(connection, whole)


def _unique(connection: Any, names: Sequence[str]) -> bool:
    return _copies(connection, "_wanted", names) == 0


def _numbered(relation: str, ids: Sequence[str], columns: dict[str, str], unique: bool) -> str:
    """The rows; where several have one identity, each with its number among them."""
    if unique:
        return f"SELECT * FROM {relation}"
    rest = [name for name in columns if name not in ids]
    order = f" ORDER BY {quoted(rest)}" if rest else ""
    return f"SELECT *, row_number() OVER (PARTITION BY {quoted(ids)}{order}) AS {COPY} FROM {relation}"


def _asked(done: Conducted, reach_us: int, identity: tuple[str, ...], columns: dict[str, str]) -> Asked:
    windowed = columns.get(WINDOW_END) == "time"
    due = f"event_time < {min(done.spans.measured_to_us, done.offered_until())}"
    if windowed:
        due += f" AND epoch_us(window_end) <= {done.deadline_us}"
    judged = f"event_time < {done.spans.measured_to_us}"
    if not done.drained:  # a stateful result that shows no window may be due so much later
        slow = reach_us and not windowed
        judged = f"event_time < {done.journal.committed_until() - reach_us}" if slow else judged_early(done, windowed)
    return Asked(identity, tuple(columns), judged, due, update=False, complete=done.drained)


def _compare_updates(ready: Ready, done: Conducted, connection: Any, answer_before: AnswerBefore) -> Compared:
    keys = _job(ready).description.keys
    moments = _moments(done)
    total = answers.Counts()
    for batch, before_us in moments:
        columns = _expect(connection, answer_before(before_us))
        paths = [path for commit in done.journal.commits if commit.batch <= batch for path in commit.paths]
        connection.register("_came", ds.dataset(paths, format="ipc") if paths else _nothing(connection))
        last = f"ORDER BY {EVENT_TIME} DESC, {EMISSION_TIME} DESC"
        connection.execute(
            f"CREATE OR REPLACE VIEW _received AS SELECT * FROM _came"
            f" QUALIFY row_number() OVER (PARTITION BY {quoted(keys)} {last}) = 1"
        )
        total += answers.compare(connection, "_wanted", "_received", keys, tuple(columns), deadline_us=done.deadline_us)
    total += answers.Counts(duplicate=_repeated(connection, tuple(columns)) if moments else 0)
    said = f"last values of {', '.join(keys)} at {len(moments)} of {len(done.journal.batch_ends())} batches' ends"
    return Compared(total, None, said)


def _moments(done: Conducted) -> list[tuple[int, int | None]]:
    """(batch, event time before which it and all earlier ones read): some of the measured span, and the last."""
    ends = {batch: end for (_, batch), end in done.journal.batch_ends().items()}  # of one query
    committed = sorted({commit.batch for commit in done.journal.commits if commit.batch in ends}, key=ends.__getitem__)
    if not committed:
        return []
    inside = [one for one in committed[:-1] if done.spans.measured_from_us <= ends[one] < done.spans.measured_to_us]
    chosen = inside[:: max(1, len(inside) // MOMENTS)][:MOMENTS]
    last = max(commit.batch for commit in done.journal.commits)
    return [*((one, ends[one]) for one in chosen), (last, None if done.drained else ends[committed[-1]])]


def _repeated(connection: Any, columns: tuple[str, ...]) -> int:
    """Updates that came more than once: a value that did not change is no update."""
    return _copies(connection, "_came", columns)


def _copies(connection: Any, relation: str, names: Sequence[str]) -> int:
    """How many rows have values that another row has too, all but the first of each."""
    distinct = f"SELECT DISTINCT {quoted(names)} FROM {relation}"
    query = f"SELECT (SELECT count(*) FROM {relation}) - (SELECT count(*) FROM ({distinct}))"
    return int(connection.execute(query).fetchone()[0])


def _sentence(compared: Compared, received: Received) -> str:
    counts = compared.counts
    faults = {name: getattr(counts, name) for name in ("missing", "extra", "duplicate", "wrong", "late")}
    found = ", ".join(f"{count:,} {name}" for name, count in faults.items() if count)
    outcome = f"{counts.matched:,} matched, {found}" if found else "all matched"
    timeless = sum(batch.num_rows for batch in received.batches(0, 1))
    note = f"; {timeless:,} carry no event_time and are in no latency" if timeless else ""
    return f"{counts.expected:,} results expected, {outcome} ({compared.said}){note}"
