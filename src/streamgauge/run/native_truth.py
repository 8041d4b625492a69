"""Verification of an own job: by the user's reference where there is one, else by the same function run in batch.

The batch run is a process of its own over the regenerated input, after the measured span. It cannot find what the
function means wrongly, but it finds everything that streaming did to the answer: rows dropped as late, counted twice,
state lost. The other half, comparing, is `run.comparison`, as for every workload.

Results that are successive values of a key (`update`) are compared as they stood at some batches' ends and at the
last: the reference is asked for each of these moments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from streamgauge.errors import EngineError, InputError
from streamgauge.events import EMISSION_TIME, EVENT_ID, EVENT_TIME, LINEAGE, WINDOW_END, WINDOW_START, quoted
from streamgauge.measure import answers
from streamgauge.measure.answers_sql import kind_of
from streamgauge.measure.latency import LatencyRule
from streamgauge.report.store import RunFolder
from streamgauge.run import reference
from streamgauge.run.comparison import (
    Asked,
    Comparison,
    Truth,
    Verified,
    asked_of,
    comparison,
    judged_early,
    outcome,
)
from streamgauge.run.conduct import Conducted
from streamgauge.run.counted import counted_of
from streamgauge.run.ingest import IngestTimes, handed_over
from streamgauge.run.own_job import OwnJob
from streamgauge.run.ready import Ready
from streamgauge.run.replay import Input
from streamgauge.run.spool import Received, results_file
from streamgauge.system.scratch import Scratch
from streamgauge.system.user_code import first_line

MOMENTS = 3
"""So many batches' ends, besides the last, at which updates are compared: each costs a run of the reference."""
COPY = "__copy"
BY_BATCH = Truth("Spark, the same function in batch", independent=False)
BY_REFERENCE = Truth("DuckDB, by the job's own reference", independent=True)

UNTELLING = ("float", "decimal")
UNJUDGED = (EngineError, InputError, duckdb.Error)
"""Errors of the job or of its reference: the trial's other figures stand, its answers are not judged."""

AnswerBefore = Callable[[int | None], Any]
"""What the job should have given for the input before an event time (None: all of it), as a relation of DuckDB."""


def verify_own(ready: Ready, done: Conducted, log: Path, keep_in: RunFolder | None = None) -> Verified:
    """Compare every answer of a trial of an own job, and compute its latencies. `log` takes what the batch run says."""
    received, judged = Received(done), True
    truth = BY_BATCH if _job(ready).description.reference is None else BY_REFERENCE
    keep_at = keep_in.path / results_file() if keep_in is not None else None
    with comparison(done) as compared:
        try:
            said = _compare(ready, done, received, compared, log)
            sentence = _sentence(compared.counts, done.owes_all, said, received)
        except duckdb.InterruptException:
            raise  # somebody stopped it
        except UNJUDGED as error:
            compared.forget()
            judged, sentence = False, f"the answers could not be judged: {_plain(error)}"
        rule = rule_of(ready, done, received)
        counted = counted_of(ready, done, rule.kind)
        sink = compared.verified(ready.flow.sink.name, received, rule, truth, sentence, keep_at, counted, judged)
    return Verified(sink.verification, (sink,))


def _plain(error: Exception) -> str:
    return first_line(error) if isinstance(error, duckdb.Error) else str(error)


def _job(ready: Ready) -> OwnJob:
    assert isinstance(ready.workload, OwnJob)
    return ready.workload


def rule_of(ready: Ready, done: Conducted, received: Received) -> LatencyRule:
    """Which latency the results of an own job have, by what came."""
    return LatencyRule(_kind(ready, received), handed_over=handed_over(done.journal))


def _kind(ready: Ready, received: Received) -> Any:
    if _job(ready).description.mode == "update":
        return "update"
    if received.empty or WINDOW_END not in received.schema.names:
        return "row"
    return "row" if any(batch.column(WINDOW_END).null_count for batch in received.batches()) else "window"


def _compare(ready: Ready, done: Conducted, received: Received, compared: Comparison, log: Path) -> str:
    """How results were told apart."""
    with Scratch("truth") as folder:
        inputs = _written(ready, done, Path(folder))
        with _truth(ready, compared.connection, inputs, Path(folder), log) as answer_before:
            if _job(ready).description.mode == "update":
                return _compare_updates(ready, done, compared, answer_before)
            return _compare_rows(ready, done, received, compared, answer_before)


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
        yield lambda before_us: connection.read_parquet(
            str(answer(folder / f"answer-{before_us}", before_us) / "*.parquet")
        )


def _by_reference(job: OwnJob, connection: Any, inputs: dict[str, Path], before_us: int | None) -> Any:
    until = "true" if before_us is None else f"{EVENT_TIME} < {before_us}"
    tables = {name: f"SELECT * FROM read_parquet('{path}') WHERE {until}" for name, path in inputs.items()}
    return reference.answer(connection, job.path, job.description, tables)


def _compare_rows(
    ready: Ready, done: Conducted, received: Received, compared: Comparison, answer_before: AnswerBefore
) -> str:
    connection = compared.connection
    columns = _expect(connection, answer_before(None))
    connection.register("_came", received.table() if not received.empty else _nothing(connection))
    ids, unique = _identity(connection, columns, _job(ready).description.keys)
    connection.execute(f"CREATE VIEW _received AS {_numbered('_came', ids, columns, unique)}")
    connection.execute(f"CREATE VIEW _expected AS {_numbered('_wanted', ids, columns, unique)}")
    asked = _asked(done, ready.reach_us or 0, ids if unique else (*ids, COPY), columns)
    compared.add("_expected", "_received", asked)
    return f"told apart by {', '.join(ids)}" + ("" if unique else ", as a multiset")


def _expect(connection: Any, answer: Any) -> dict[str, str]:
    """Make the table `_wanted` of a relation; column name to kind."""
    connection.execute("DROP TABLE IF EXISTS _wanted")
    try:
        answer.project(f"* REPLACE (coalesce({EVENT_TIME}, 0) AS {EVENT_TIME})").create("_wanted")
    except Exception as error:
        raise EngineError(f"what they should be could not be computed: {first_line(error)}") from None
    rows = connection.execute("DESCRIBE _wanted").fetchall()
    return {row[0]: kind_of(str(row[1])) for row in rows}


def _nothing(connection: Any) -> pa.Table:
    return connection.sql(f"SELECT *, 0::BIGINT AS {EMISSION_TIME} FROM _wanted LIMIT 0").to_arrow_table()


def _identity(connection: Any, columns: dict[str, str], keys: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
    """(the columns that tell one result from another, whether no two expected ones have the same).

    The keys declared, with the window's start; else event_id; else the first columns, from the left, that do so, and at
    last all of them, as a multiset. Floats tell nothing apart: they are compared within a tolerance, and so are
    decimals where the other side has floats.
    """
    window = (WINDOW_START,) if WINDOW_START in columns and WINDOW_START not in keys else ()
    if keys:
        return (*keys, *window), _unique(connection, (*keys, *window))
    if EVENT_ID in columns and _unique(connection, (EVENT_ID,)):
        return (EVENT_ID,), True
    own = [name for name, kind in columns.items() if kind not in UNTELLING and name not in LINEAGE]
    for count in range(1, len(own) + 1):
        if _unique(connection, own[:count]):
            return tuple(own[:count]), True
    whole = tuple(name for name, kind in columns.items() if kind not in UNTELLING)
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
    early = judged_early(done, windowed)
    if reach_us and not windowed:  # a stateful result that shows no window may be due so much later
        early = f"event_time < {done.journal.committed_until() - reach_us}"
    return asked_of(done, identity, tuple(columns), windowed, early)


def _compare_updates(ready: Ready, done: Conducted, compared: Comparison, answer_before: AnswerBefore) -> str:
    keys, connection = _job(ready).description.keys, compared.connection
    moments = _moments(done)
    for batch, before_us in moments:
        columns = _expect(connection, answer_before(before_us))
        came = Received(done, through=batch)
        connection.register("_came", came.table() if not came.empty else _nothing(connection))
        last = f"ORDER BY {EVENT_TIME} DESC, {EMISSION_TIME} DESC"
        connection.execute(
            f"CREATE OR REPLACE VIEW _received AS SELECT * FROM _came"
            f" QUALIFY row_number() OVER (PARTITION BY {quoted(keys)} {last}) = 1"
        )
        compared.add("_wanted", "_received", Asked(keys, tuple(columns), "true", due=None))
    compared.counts += answers.Counts(duplicate=_repeated(connection, tuple(columns)) if moments else 0)
    return f"last values of {', '.join(keys)} at {len(moments)} of {len(done.journal.batch_ends())} batches' ends"


def _moments(done: Conducted) -> list[tuple[int, int | None]]:
    """(batch, event time before which it and all earlier ones read): some of the measured span, and the last."""
    ends = {batch: end for (_, batch), end in done.journal.batch_ends().items()}  # of one query
    committed = sorted({commit.batch for commit in done.journal.commits if commit.batch in ends}, key=ends.__getitem__)
    if not committed:
        return []
    inside = [one for one in committed[:-1] if done.spans.measured_from_us <= ends[one] < done.spans.measured_to_us]
    chosen = _spread(inside)
    last = max(commit.batch for commit in done.journal.commits)
    return [*((one, ends[one]) for one in chosen), (last, None if done.owes_all else ends[committed[-1]])]


def _spread(batches: list[int]) -> list[int]:
    """So many of them as there are `MOMENTS`, at most, with gaps as equal as can be from the first one to the last."""
    last, gaps = len(batches) - 1, MOMENTS - 1
    return [batches[place] for place in sorted({last * number // gaps for number in range(MOMENTS) if batches})]


def _repeated(connection: Any, columns: tuple[str, ...]) -> int:
    """Updates that came more than once: a value that did not change is no update."""
    return _copies(connection, "_came", columns)


def _copies(connection: Any, relation: str, names: Sequence[str]) -> int:
    """How many rows have values that another row has too, all but the first of each."""
    distinct = f"SELECT DISTINCT {quoted(names)} FROM {relation}"
    query = f"SELECT (SELECT count(*) FROM {relation}) - (SELECT count(*) FROM ({distinct}))"
    return int(connection.execute(query).fetchone()[0])


def _sentence(counts: answers.Counts, whole: bool, said: str, received: Received) -> str:
    timeless = sum(batch.num_rows for batch in received.batches(0, 1))
    note = f"; {timeless:,} carry no event_time and are in no latency" if timeless else ""
    return f"{outcome(counts, whole)} ({said}){note}"
