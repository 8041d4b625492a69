"""Updates before the last of their key, from an engine that does not say what it had read.

No prefix of the input belongs to such an update. But two sets of events bound what it counts:

- at most: the events of its key up to its own event time, of those that any generator had sent when it came;
- at least, as partitions are read in order: of each partition, the events of its key before the latest event whose time
  this update or an earlier one stated.

A count, maximum, minimum or sum of values that are not negative lies between its values over both sets, and never steps
back within a key. The event time itself must be that of an event of the key. Updates with any other value are counted
as not judged, and so are those that came when more had been sent than is made again, after a trial that ended early.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from streamgauge.core.schema import EMISSION_TIME, EVENT_TIME, INGEST_TIME, WINDOW_END, equal_columns, quote, quoted
from streamgauge.core.value_types import FLOAT
from streamgauge.dataflow.expressions.check import over_running
from streamgauge.diff import compare as answers
from streamgauge.diff.sql import FLOAT_TOLERANCE
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.verification.received_results import ARRIVAL
from streamgauge.verification.sink_comparison import Comparison


@dataclass(frozen=True)
class Aggregation:
    """How events give updates, as DuckDB SQL.

    - `source`: a relation of the events, with the columns of `PlacedInput`; `where`: the clause for those that count.
    - `keys`, `values`: column of the results to its expression over the events.
    - `unit_us`: the unit in which an update states the event time of its newest event; 0 if it does not state it.
    """

    source: str
    keys: Mapping[str, str]
    values: Mapping[str, str]
    where: str = ""
    unit_us: int = 0

    @property
    def key_columns(self) -> str:
        return ", ".join(f"{sql} AS {quote(name)}" for name, sql in self.keys.items())

    def same_key(self, one: str, other: str) -> str:
        """SQL for whether rows of two relations have the same key."""
        return equal_columns(self.keys, one, other)

    def running(self, names: Iterable[str], order: str = EVENT_TIME, joined: str = "") -> str:
        """SQL for the values of each key over its events up to each `order`, which is `__at`."""
        values = "".join(f", {over_running(self.values[name])} AS {quote(name)}" for name in names)
        return (
            f"SELECT {self.key_columns}, {order} AS __at{values} FROM {self.source} {joined} {self.where}"
            f" WINDOW running AS (PARTITION BY {', '.join(self.keys.values())} ORDER BY {order})"
        )

    def directions(self, connection: Any) -> dict[str, int]:
        """Column to 1 if its values can only rise as events come, and -1 if they can only fall; not of other ones."""
        from sqlglot import exp, parse_one

        def direction(tree: exp.Expression) -> int:
            while isinstance(tree, exp.Cast) and tree.to.this in exp.DataType.NUMERIC_TYPES:
                tree = tree.this
            if not isinstance(tree, exp.Sum):
                several = tree.expressions or (isinstance(tree, exp.Max | exp.Min) and tree.args.get("count"))
                return 0 if several else {exp.Count: 1, exp.Max: 1, exp.Min: -1}.get(type(tree), 0)
            ((is_negative,),) = connection.execute(
                f"SELECT coalesce(min({tree.this.sql('duckdb')}) < 0, false) FROM {self.source} {self.where}"
            ).fetchall()
            return 0 if is_negative else 1

        found = ((name, direction(parse_one(sql, dialect="duckdb"))) for name, sql in self.values.items())
        return {name: each for name, each in found if each}


def compare_earlier(
    compared: Comparison, record: TrialRecord, aggregation: Aggregation | None, updates: str, ids: Sequence[str],
    columns: Sequence[str], once: bool = False,
) -> str:  # fmt: skip
    """Adds the faults among the updates before the last of each key to the counts, and the number of those not judged.

    Of a trial that ended early the last ones are judged too. Returns in words what was compared.

    - `aggregation`: None if it is not known.
    - `updates`: the received rows with `ARRIVAL`. `columns`: those to judge, `ids` those that identify a key.
    - `once`: whether equal updates are duplicates, because a count tells the updates of a key apart.
    """
    connection = compared.connection
    directions = aggregation.directions(connection) if aggregation is not None else {}
    identified = {*ids, EVENT_TIME, WINDOW_END, *(aggregation.keys if aggregation is not None else ())}
    is_partial = bool({*columns} - identified - directions.keys())
    by_key = f"PARTITION BY {quoted(ids)} ORDER BY {ARRIVAL}"
    again = f"row_number() OVER (PARTITION BY {quoted(columns)} ORDER BY {ARRIVAL}) > 1" if once else "false"
    before = f"OVER ({by_key} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    best = "".join(
        f", {'max' if direction > 0 else 'min'}({quote(name)}) {before} AS {_best(name)}"
        for name, direction in {**directions, EVENT_TIME: 1}.items()
    )
    last = f"row_number() OVER ({by_key} DESC) = 1" if record.owes_all else "false"
    stated = f"nullif({EVENT_TIME}, 0)" if aggregation is not None and aggregation.unit_us else "NULL::BIGINT"
    ranked = f"SELECT *, {stated} AS __stated, {last} AS __last, {again} AS __again{best} FROM {updates}"
    connection.execute(f"CREATE TABLE _ranked AS {ranked}")
    unknown = "SELECT *, false AS __wrong, true AS __beyond FROM _ranked"
    judged = _judged(connection, record, aggregation, directions) if aggregation is not None else unknown
    connection.execute(f"CREATE TABLE _judged AS {judged}")
    earlier = "NOT __again AND NOT __last"
    wrong = f"{earlier} AND NOT __beyond AND __wrong"
    ((number, duplicates, not_judged),) = connection.execute(
        f"SELECT count(*) FILTER ({wrong}), count(*) FILTER (__again),"
        f" count(*) FILTER ({earlier} AND (__beyond OR {is_partial} AND NOT __wrong)) FROM _judged"
    ).fetchall()
    chosen = f"SELECT {quoted(columns)} FROM _judged WHERE {wrong} LIMIT {answers.EXAMPLES_MAX}"
    rows = [dict(zip(columns, map(str, row), strict=True)) for row in connection.execute(chosen).fetchall()]
    examples = tuple({"fault": "wrong", "expected": [], "received": [row]} for row in rows)
    compared.counts += answers.Counts(wrong=number, duplicate=duplicates, not_judged=not_judged, examples=examples)
    rule = "only counts, maxima, minima and sums of values that are not negative have bounds"
    others = f"; {not_judged:,} updates are not judged, since {rule}" if not_judged else ""
    return f"earlier values are compared with bounds{others}"


def _judged(connection: Any, record: TrialRecord, aggregation: Aggregation, directions: Mapping[str, int]) -> str:
    """SQL for the rows of `_ranked` with `__wrong`, and `__beyond` for those whose bounds are not known."""
    types, unit_us = answers.types_of(connection, "_ranked"), max(aggregation.unit_us, 1)
    chunks = [(chunk.published_us, chunk.to_us) for log in record.trial_log.chunks for chunk in log]
    when_us, until_us = np.array(chunks, np.int64).reshape(-1, 2).T
    sent = connection.from_arrow(pa.table({"__when": when_us, "until": until_us}))
    sent.project("__when, max(until) OVER (ORDER BY __when) AS __until").create("_sent")
    connection.execute(f"CREATE TABLE _most AS {aggregation.running(directions)}")
    time, keys = f"{EVENT_TIME} // {unit_us} * {unit_us}", dict(enumerate(aggregation.keys))
    place = f"min({INGEST_TIME}) AS __place, min({INGEST_TIME}) = max({INGEST_TIME}) AS __is_sure"
    connection.execute(
        f"CREATE TABLE _times AS SELECT {aggregation.key_columns}, {time} AS __at, {place}"
        f" FROM {aggregation.source} {aggregation.where} GROUP BY ALL"
    )
    connection.execute(
        f"CREATE TABLE _shown AS SELECT {', '.join(f't.{quote(name)} AS __key_{n}' for n, name in keys.items())},"
        f" __place, __at AS __until, min({ARRIVAL}) AS __since FROM _ranked AS u JOIN _times AS t"
        f" ON {aggregation.same_key('u', 't')} AND __stated = __at WHERE __is_sure GROUP BY ALL"
    )
    of_key = "".join(f"({aggregation.keys[name]}) IS NOT DISTINCT FROM __key_{n} AND " for n, name in keys.items())
    joined = f"ASOF JOIN _shown ON {of_key}{INGEST_TIME} = __place AND {time} < __until"
    connection.execute(f"CREATE TABLE _least AS {aggregation.running(directions, '__since', joined)}")
    faults = [_misplaced(name, direction, types[name].has(FLOAT)) for name, direction in directions.items()]
    if aggregation.unit_us:
        faults += ["t.__at IS NULL", f"__stated < u.{_best(EVENT_TIME)}"]
    timed = (
        "SELECT * REPLACE (coalesce(__until, 0) AS __until),"
        f" least(__stated + {unit_us - 1}, coalesce(__until, 0) - 1) AS __limit"
        f" FROM _ranked ASOF LEFT JOIN _sent ON {EMISSION_TIME} >= __when"
    )
    return (
        f"SELECT u.*, coalesce({' OR '.join(faults) or 'false'}, false) AS __wrong,"
        f" __until > {record.offered_until()} AS __beyond FROM ({timed}) AS u"
        f" ASOF LEFT JOIN _most AS m ON {aggregation.same_key('u', 'm')} AND __limit >= m.__at"
        f" ASOF LEFT JOIN _least AS l ON {aggregation.same_key('u', 'l')} AND {ARRIVAL} >= l.__at"
        f" LEFT JOIN _times AS t ON {aggregation.same_key('u', 't')} AND __stated = t.__at"
    )


def _best(name: str) -> str:
    """The column with the furthest value of the key's earlier updates."""
    return quote(f"__best_{name}")


def _misplaced(name: str, direction: int, is_float: bool) -> str:
    """SQL for whether a value is above the upper bound, below the lower one, or behind an earlier one."""
    value = f"u.{quote(name)}"
    return " OR ".join(
        _further(one, other, direction, is_float)
        for one, other in ((value, f"m.{quote(name)}"), (f"l.{quote(name)}", value), (f"u.{_best(name)}", value))
    )


def _further(one: str, other: str, direction: int, is_float: bool) -> str:
    """SQL for whether one value is ahead of another by their direction. Null, the value of no events, is behind all."""
    apart = f" AND abs({one} - {other}) > {FLOAT_TOLERANCE} * least(abs({one}), abs({other}))" if is_float else ""
    return f"({one} IS NOT NULL AND ({other} IS NULL OR {one} {'>' if direction > 0 else '<'} {other}{apart}))"
