"""Verification of a user job's updates: the values of each key at the ends of batches.

The truth can only be computed for a whole input, so each compared batch end costs one computation. All ends are
compared if that is cheap, otherwise some. The last value of a key is the one that arrived last, whatever its event
time. The order of all updates is checked: one value per key and batch, and event times of a key never go back.

A program over Kafka has no batches, so how much input an earlier value covers is not known: the last value of each key
is compared, and earlier ones have bounds if the reference shows how (`update_bounds`).
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb

from streamgauge.core.errors import JobError, Problem
from streamgauge.core.schema import EMISSION_TIME, EVENT_TIME, WINDOW_END, quote, quoted
from streamgauge.diff import compare as answers
from streamgauge.diff.sql import normal_rows
from streamgauge.jobs import Description
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.transports.topic_names import OutputTopic
from streamgauge.verification.received_results import ARRIVAL, BATCH, ReceivedResults
from streamgauge.verification.sink_comparison import Comparison, DiffSpec
from streamgauge.verification.update_bounds import Aggregation, compare_earlier
from streamgauge.verification.user_job_rows import NO_RESULTS, Lineage, copies, expect, with_window

BATCH_ENDS_MIN = 3
"""At least this many batch ends are compared in addition to the last."""
COMPARISON_BUDGET_S = 20.0
"""More batch ends are compared if they fit into this time, estimated from the first one."""

AnswerBefore = Callable[[int | None], Any]
"""The expected results for the input before an event time (None: all input), as a DuckDB relation."""

EXAMPLES_SHOWN = answers.EXAMPLES_MAX // 2
"""The largest number of examples of misplaced updates; the rest is for wrong values."""
MISPLACED = {
    "beside": "beside another of their key in one batch",
    "timeless": "without an event_time, which the truth never lacks",
    "older": "with an event_time before that of their key in an earlier batch",
}
"""Why an update counts as extra."""


@dataclass(frozen=True)
class Updates:
    """The verification of one trial's updates."""

    record: TrialRecord
    compared: Comparison
    keys: tuple[str, ...]
    answer_before: AnswerBefore
    inputs: dict[str, Path]
    independent: bool
    by_batch: bool = False
    """Whether parts of the input are those that batches read, because their partitions end at different times."""

    def compare(self) -> tuple[str, tuple[str, ...], Lineage | None]:
        """(how updates were compared, their identity, the check of their times or None if there is no commit)."""
        ends = compared_batch_ends(self.record, 0, self.by_batch)
        if not ends:
            return self._summary(0, ""), self.keys, None
        (last,) = ends
        began = time.monotonic()
        columns = expect(self._connection, self.answer_before(last[1]))
        store_received(self._connection, ReceivedResults(self.record))
        lineage = Lineage(self._connection, self.inputs, columns, self.independent, by_id=False)
        ids = with_window(self.keys, columns)
        timeless = self._compare_last(lineage, ids, last[0])
        affordable = int(COMPARISON_BUDGET_S / max(time.monotonic() - began, 0.001))
        more_ends = compared_batch_ends(self.record, max(BATCH_ENDS_MIN, affordable), self.by_batch)[:-1]
        for batch, before_us in more_ends:
            expect(self._connection, self.answer_before(before_us))
            timeless |= self._compare_last(lineage, ids, batch)
        misplaced = self._count_misplaced(ids, tuple(columns), timeless)
        return self._summary(1 + len(more_ends), misplaced), ids, lineage

    @property
    def _connection(self) -> Any:
        return self.compared.connection

    def _summary(self, count: int, misplaced: str) -> str:
        ends = f"{count} of {len(self.record.trial_log.batch_ends())} batches' ends"
        return f"last values of {', '.join(self.keys)} at {ends}{misplaced}"

    def _compare_last(self, lineage: Lineage, ids: tuple[str, ...], batch: int) -> bool:
        """Compares each key's last value after a batch. Returns whether an expected value has no event time."""
        columns = lineage.demand()
        last = f"PARTITION BY {quoted(ids)} ORDER BY {BATCH} DESC, {ARRIVAL} DESC"
        self._connection.execute(
            f"CREATE OR REPLACE VIEW _received AS SELECT * EXCLUDE ({BATCH}, {ARRIVAL}) FROM _checked_rows"
            f" WHERE {BATCH} <= {batch} QUALIFY row_number() OVER ({last}) = 1"
        )
        self.compared.add("_expected_rows", "_received", DiffSpec(ids, tuple(columns), "true", due=None))
        row = self._connection.execute(f"SELECT count(*) FROM _expected_rows WHERE {EVENT_TIME} = 0").fetchone()
        return bool(row[0])

    def _count_misplaced(self, ids: tuple[str, ...], columns: tuple[str, ...], timeless: bool) -> str:
        """Counts duplicate updates and misplaced updates. Returns a note about the latter."""
        self._connection.execute(f"CREATE VIEW _misplaced AS {_misplaced(ids, columns, timeless)}")
        reasons = dict(self._connection.execute("SELECT __why, count(*) FROM _misplaced GROUP BY __why").fetchall())
        counts = answers.Counts(
            duplicate=copies(self._connection, "_result_rows", columns),
            extra=sum(reasons.values()),
            examples=tuple(self._examples(ids)) if reasons else (),
        )
        self.compared.counts = counts + self.compared.counts
        return "".join(f"; {reasons[each]:,} came {reason}" for each, reason in MISPLACED.items() if each in reasons)

    def _examples(self, ids: tuple[str, ...]) -> Iterator[dict[str, Any]]:
        types = answers.types_of(self._connection, "_misplaced")
        rows = normal_rows("_misplaced", types, types)
        cursor = self._connection.execute(
            f"SELECT * EXCLUDE ({BATCH}, {ARRIVAL}, __why, {EMISSION_TIME}) FROM {rows} LIMIT {EXAMPLES_SHOWN}"
        )
        names = [column[0] for column in cursor.description]
        for row in cursor.fetchall():
            shown = answers.shown(dict(zip(names, row, strict=True)), types)
            received = {name: value for name, value in shown.items() if name not in ids}
            yield {"fault": "extra"} | {name: shown[name] for name in ids} | {"expected": [], "received": [received]}


def _misplaced(ids: tuple[str, ...], columns: tuple[str, ...], timeless: bool) -> str:
    """SQL for the misplaced updates (duplicates removed) and the reason. Only the last one of a batch is right."""
    by_value = f"PARTITION BY {quoted(columns)} ORDER BY {ARRIVAL}"
    each = f"SELECT * FROM _result_rows QUALIFY row_number() OVER ({by_value}) = 1"
    earlier = f"PARTITION BY {quoted(ids)} ORDER BY {BATCH} RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
    time_ = (
        f"CASE WHEN {EVENT_TIME} = 0 AND NOT {timeless} THEN 'timeless'"
        f" WHEN {EVENT_TIME} < max({EVENT_TIME}) OVER ({earlier}) THEN 'older' END"
    )
    last = f"row_number() OVER (PARTITION BY {quoted(ids)}, {BATCH}, __time IS NULL ORDER BY {ARRIVAL} DESC) = 1"
    why = f"coalesce(__time, CASE WHEN NOT {last} THEN 'beside' END)"
    timed = f"SELECT *, {time_} AS __time FROM ({each})"
    return f"SELECT * EXCLUDE (__time), {why} AS __why FROM ({timed}) QUALIFY __why IS NOT NULL"


def store_received(connection: Any, received: ReceivedResults) -> None:
    """Creates the table `_result_rows` with batch and arrival number of each row. A missing event time becomes 0."""
    rows = connection.from_arrow(received.numbered(connection.sql(NO_RESULTS).to_arrow_table().schema))
    rows.project(f"* REPLACE (coalesce({EVENT_TIME}, 0) AS {EVENT_TIME})").create("_result_rows")


def compared_batch_ends(record: TrialRecord, limit: int, by_batch: bool = False) -> list[tuple[int, int | None]]:
    """(batch, event time before which it and all earlier ones read): at most `limit` batches, then the last one.

    `by_batch`: the number of the next batch instead of the event time. If there are more, takes evenly spaced ones of
    the measured span.
    """
    ends = {batch: end for (_, batch), end in record.trial_log.batch_ends().items()}  # of one query
    # Of partitions that are read unevenly, a later batch may end at an earlier time.
    committed = sorted(
        {commit.batch for commit in record.trial_log.commits if commit.batch in ends},
        key=lambda batch: batch if by_batch else ends[batch],
    )
    if not committed:
        return []
    earlier = committed[:-1]
    if limit < len(earlier):
        earlier = [one for one in earlier if record.spans.measured_from_us <= ends[one] < record.spans.measured_to_us]
    last = max(commit.batch for commit in record.trial_log.commits)
    until = {batch: batch + 1 if by_batch else end for batch, end in ends.items()}
    until_last = None if record.owes_all else until[committed[-1]]
    # At most `limit` of them, evenly spaced from the first to the last.
    places = {(len(earlier) - 1) * number // max(limit - 1, 1) for number in range(limit)} if earlier else ()
    return [*((earlier[place], until[earlier[place]]) for place in sorted(places)), (last, until_last)]


def compare_last(
    compared: Comparison, record: TrialRecord, described: Description, topic: OutputTopic, inputs: Mapping[str, Path],
    answer: Any,
) -> tuple[str, tuple[str, ...]]:  # fmt: skip
    """(how values were compared, the columns that identify one). `inputs`: the file of each stream, by `PlacedInput`.

    `answer` is the relation of the expected results for all input. Raises JobError if keys have several of them.
    """
    connection = compared.connection
    columns = expect(connection, answer)
    store_received(connection, ReceivedResults(record))
    ids = with_window(described.keys, columns)
    if WINDOW_END in columns and copies(connection, "_expected_rows", ids):
        ids = (*ids, *({WINDOW_END} - {*ids}))
    _require_one_row_each(connection, ids)
    last = f"PARTITION BY {quoted(ids)} ORDER BY {ARRIVAL} DESC"
    connection.execute(
        f"CREATE VIEW _received AS SELECT * EXCLUDE ({BATCH}, {ARRIVAL}) FROM _result_rows"
        f" QUALIFY row_number() OVER ({last}) = 1"
    )
    complete, names = record.owes_all, list(columns)
    required = "true" if complete else "false"
    compared.add("_expected_rows", "_received", DiffSpec(ids, tuple(columns), required, due=None, complete=complete))
    aggregation = aggregation_of(connection, described, inputs)
    if aggregation is not None and topic.time and _states_newest(connection, aggregation, topic.unit_us):
        aggregation = replace(aggregation, unit_us=topic.unit_us)
        names.remove(topic.time)  # it is the event time
    earlier = compare_earlier(compared, record, aggregation, "_result_rows", ids, names)
    note = "" if complete else ", not compared because not all input was committed"
    return f"last values of {', '.join(ids)}{note}; {earlier}", ids


def aggregation_of(connection: Any, described: Description, inputs: Mapping[str, Path]) -> Aggregation | None:
    """How a program's reference groups the events of one input; None if it does more than filter, group, aggregate."""
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    with suppress(SqlglotError, duckdb.Error):
        tree = parse_one(described.query, dialect="duckdb")
        clauses = {name for name, value in tree.args.items() if value}
        if not isinstance(tree, exp.Select) or clauses - {"expressions", "from_", "where", "group"}:
            return None
        table = tree.args["from_"].this
        more = {name for name, value in table.args.items() if value} - {"this", "alias"}
        beyond = tree.find(exp.Cube, exp.Explode, exp.GroupingSets, exp.Rollup, exp.Window)
        stream = next((each for each in described.inputs if each.name.lower() == table.name.lower()), None)
        if more or beyond or stream is None or len([*tree.find_all(exp.Select)]) > 1:
            return None
        time = f"make_timestamp({EVENT_TIME}) AS {quote(stream.time)}"
        where = condition.sql("duckdb") if (condition := tree.args.get("where")) else ""
        source = f"(SELECT *, {time} FROM read_parquet('{inputs[stream.name]}')) AS {quote(table.alias_or_name)}"
        columns = {each.alias_or_name: (each.unalias(), each.find(exp.AggFunc)) for each in tree.expressions}
        keys = {name: each.sql("duckdb") for name, (each, aggregate) in columns.items() if not aggregate}
        values = {name: each.sql("duckdb") for name, (each, aggregate) in columns.items() if aggregate}
        aggregation = Aggregation(source, keys, values, where)
        connection.sql(aggregation.running(values))  # binds it
        return aggregation if {*described.keys} <= keys.keys() else None
    return None


def _states_newest(connection: Any, aggregation: Aggregation, unit_us: int) -> bool:
    """Whether the event time of each expected result is that of the newest event of its key."""
    newest = f"max({EVENT_TIME}) // {unit_us} * {unit_us} AS __newest"
    newest = f"SELECT {aggregation.key_columns}, {newest} FROM {aggregation.source} {aggregation.where} GROUP BY ALL"
    ((differs,),) = connection.execute(
        f"SELECT count(*) FROM _expected_rows AS e LEFT JOIN ({newest}) AS n ON {aggregation.same_key('e', 'n')}"
        f" WHERE e.{EVENT_TIME} IS DISTINCT FROM __newest"
    ).fetchall()
    return not differs


def _require_one_row_each(connection: Any, ids: tuple[str, ...]) -> None:
    """Raises JobError if some keys have several expected rows, so that none is the last value."""
    ((several,),) = connection.execute(
        f"SELECT count(*) FROM (SELECT 1 FROM _expected_rows GROUP BY {quoted(ids)} HAVING count(*) > 1)"
    ).fetchall()
    if several:
        rule = f"must identify one row of the reference, and {', '.join(ids)} do not"
        way_out = f"add the field that tells rows apart, or GROUP BY {', '.join(ids)} in the reference"
        raise JobError(Problem("keys", rule, f"{several:,} keys with several rows", way_out))
