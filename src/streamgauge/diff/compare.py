"""Compares received with expected results row by row, and counts each kind of fault.

- *identity*: the columns that identify a result.
- *required*: the expected rows that must have come (the measured span). Other expected rows, such as those of the tail,
  may be missing, and their values are not compared. A row that was never expected is always extra.

Both sides are reduced in one pass to a count and two sums of row hashes per bucket of identities. Equal buckets hold
equal rows; only identities of unequal buckets are joined. Buckets of event ids are ranges, and buckets of windows hold
whole windows, so undelivered results at the end lie in few buckets. Floats are compared with a tolerance and cannot be
hashed, so they need a full join. DuckDB does all of it, out of core if the connection has a temp directory.

Counts are rows. Each required identity is matched, missing, wrong or late; these add up to `expected`. Each identity
that was never expected is extra. Each further row of an identity is a duplicate.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from streamgauge.core.errors import EngineError
from streamgauge.core.schema import EMISSION_TIME, quote
from streamgauge.core.value_types import (
    FLOAT,
    INT,
    LIST,
    MAP,
    STRUCT,
    TIMESTAMP,
    ValueType,
    column_types,
    common,
    differences,
    incomparable,
)
from streamgauge.diff import sql
from streamgauge.diff.sql import DiffQuery

if TYPE_CHECKING:
    import duckdb

EXAMPLES_MAX = 10
_KEY = "__key"


@dataclass(frozen=True)
class Counts:
    """The counts of a comparison; the fields are those of `results.run.Verification`.

    `conflicting`: the duplicates with another value than the expected one. `not_judged`: updates that no rule bounds.
    `wrong_columns`: by column, the wrong rows with another value there.
    """

    expected: int = 0
    matched: int = 0
    missing: int = 0
    extra: int = 0
    duplicate: int = 0
    wrong: int = 0
    late: int = 0
    not_judged: int = 0
    conflicting: int = 0
    examples: tuple[dict[str, Any], ...] = ()
    wrong_columns: Mapping[str, int] = field(default_factory=dict, compare=False)

    def __add__(self, other: Counts) -> Counts:
        """The sums of both comparisons, with the first examples."""
        names = [one.name for one in fields(self) if one.name not in ("examples", "wrong_columns")]
        numbers = {name: getattr(self, name) + getattr(other, name) for name in names}
        columns = Counter(self.wrong_columns) + Counter(other.wrong_columns)
        return Counts(**numbers, examples=(self.examples + other.examples)[:EXAMPLES_MAX], wrong_columns=columns)

    def as_dict(self) -> dict[str, Any]:
        """For `Verification(judged=True, independent=True, reference="...", **counts.as_dict())`."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "conflicting"}


def compare(
    con: duckdb.DuckDBPyConnection,
    expected: str,
    received: str,
    identity: Sequence[str],
    columns: Sequence[str],
    required: str = "true",
    update: bool = False,
    deadline_us: int | None = None,
) -> Counts:
    """Compares two relations of the connection in `columns` (and `identity`), null-safe.

    - `required`: a DuckDB predicate over the columns of both sides, in which timestamps are BIGINT microseconds.
    - `update`: received rows are successive values. Each must be in `expected` (the values at every event time, or at
      the received ones). The last value of each key and every row whose column `__due` is true must have come.
    - `deadline_us`: a right row with a later `emission_time` is late.

    Identities of `expected` must be unique. Raises EngineError if received columns are missing or have incompatible
    types.
    """
    values = tuple(name for name in columns if name not in identity)
    expected_types, received_types = types_of(con, expected), types_of(con, received)
    compared = compared_types(expected_types, received_types, (*identity, *values))
    if deadline_us is not None:
        compared_types({EMISSION_TIME: ValueType(INT)}, received_types, (EMISSION_TIME,))
    expected_rows = sql.normal_rows(expected, expected_types, compared)
    received_rows = sql.normal_rows(received, received_types, compared)
    query = DiffQuery(tuple(identity), values, compared, expected_rows, received_rows, required, update, deadline_us)
    if update or any(compared[name].has(FLOAT) for name in values):
        return _joined(con, query, "true", None)
    return _by_fingerprint(con, query)


def types_of(con: duckdb.DuckDBPyConnection, relation: str) -> dict[str, ValueType]:
    """Column name to its type."""
    return column_types(con.sql(f"SELECT * FROM {relation}"))


def compared_types(
    expected: Mapping[str, ValueType], received: Mapping[str, ValueType], columns: Iterable[str]
) -> dict[str, ValueType]:
    """Column to the type as which it is compared. Raises EngineError for missing or incompatible columns."""
    types = {}
    for name in columns:
        if name not in received:
            raise EngineError(f"results have no column {name!r}; they have {', '.join(received)}")
        expected_type = expected.get(name, ValueType("missing"))
        for path, one, other in differences(expected_type, received[name], name):
            raise EngineError(f"results have column {path!r} as {other}, and {one} is expected")
        for path, type_ in incomparable(expected_type, name):
            raise EngineError(f"results have column {path!r} as {type_}, which cannot be compared")
        types[name] = common(expected_type, received[name])
    return types


Fingerprints = dict[tuple[int, int], tuple[int, int, int]]
"""(bucket, label) to the row count and two hash sums. Labels: 0 not required, 1 required, 2 late."""


def _by_fingerprint(con: duckdb.DuckDBPyConnection, query: DiffQuery) -> Counts:
    expected_prints = _fingerprints(con, query, query.expected, "true")
    received_prints = _fingerprints(con, query, query.received, query.in_time)
    required_rows = {bucket: rows for (bucket, label), (rows, *_) in expected_prints.items() if label == 1}
    empty = required_rows.keys() - {bucket for bucket, _ in received_prints}
    missing_rows = sum(required_rows[bucket] for bucket in empty)
    missing = Counts(expected=missing_rows, missing=missing_rows, examples=_missing_examples(con, query, empty))
    remaining = sum(required_rows.values()) - missing_rows
    # Buckets that need a join: required rows differ, rows were late, or other rows came that differ.
    dirty = {
        key[0]
        for key in expected_prints.keys() | received_prints.keys()
        if (key[1] == 1 or key in received_prints) and expected_prints.get(key) != received_prints.get(key)
    } - empty
    if not dirty:
        return missing + Counts(expected=remaining, matched=remaining)
    return missing + _joined(con, query, sql.among(query, dirty), remaining)


def _fingerprints(con: duckdb.DuckDBPyConnection, query: DiffQuery, rows: str, in_time: str) -> Fingerprints:
    fingerprints = sql.fingerprints(query, rows, in_time)
    return {(bucket, label): tuple(sums) for bucket, label, *sums in con.execute(fingerprints).fetchall()}


def _missing_examples(
    con: duckdb.DuckDBPyConnection, query: DiffQuery, buckets: Set[int]
) -> tuple[dict[str, Any], ...]:
    """Examples of missing rows, from buckets without any received row."""
    if not buckets:
        return ()
    missing = f"({query.required}) AND {sql.among(query, buckets)}"
    chosen = f"SELECT {_example(query)} FROM {query.expected} WHERE {missing} LIMIT {EXAMPLES_MAX}"
    ids = [row[0] for row in con.execute(chosen).fetchall()]
    return _examples(con, query, [("missing", 0, 0, 0, ids, None)])


def _example(query: DiffQuery) -> str:
    """An identity and its key as one struct, as SQL."""
    ids = ", ".join(f"{quote(name)} := {quote(name)}" for name in query.identity)
    return f"struct_pack({ids}, {_KEY} := {sql.key(query)})"


def _joined(con: duckdb.DuckDBPyConnection, query: DiffQuery, suspects: str, required_rows: int | None) -> Counts:
    """Counts by joining the suspected identities; `judged` is how many expected rows are judged, where known."""
    examples = f"min({_example(query)}, {EXAMPLES_MAX})"
    groups = sql.groups(query, suspects)
    faults = con.execute(
        f"SELECT __fault, count(*), sum(greatest(__n - 1, 0)), sum(least(greatest(__n - 1, 0), __conflicts)),"
        f" {examples}, {examples} FILTER (__n > 1) FROM ({groups}) GROUP BY __fault"
    ).fetchall()
    number = {fault: count for fault, count, *_ in faults}
    bad = {fault: number.get(fault, 0) for fault in ("missing", "wrong", "late")}
    total = sum(bad.values()) + number.get("matched", 0) if required_rows is None else required_rows
    return Counts(
        expected=total,
        matched=total - sum(bad.values()),
        extra=number.get("extra", 0),
        duplicate=sum(int(row[2]) for row in faults),
        conflicting=sum(int(row[3]) for row in faults),
        examples=_examples(con, query, faults),
        wrong_columns=_wrong_columns(con, query, suspects) if bad["wrong"] and query.values else {},
        **bad,
    )


def _wrong_columns(con: duckdb.DuckDBPyConnection, query: DiffQuery, suspects: str) -> dict[str, int]:
    differing = sql.wrong_columns(query, suspects)
    (counts,) = con.execute(differing).fetchall()
    return {name: count for name, count in zip(query.values, counts, strict=True) if count}


def _examples(
    con: duckdb.DuckDBPyConnection, query: DiffQuery, faults: list[tuple[Any, ...]]
) -> tuple[dict[str, Any], ...]:
    """Examples of each fault with expected and received values."""
    bad = [(fault, id_) for fault, _, _, _, ids, _ in faults if fault not in (None, "matched") for id_ in ids]
    bad += [("duplicate", id_) for *_, ids in faults for id_ in ids or ()]
    # The first of each fault, then the second of each, so that every kind of fault is shown.
    chosen = sorted(bad, key=lambda pair: [other for other in bad if other[0] == pair[0]].index(pair))[:EXAMPLES_MAX]
    if not chosen:
        return ()
    keys = {id_[_KEY] for _, id_ in chosen}
    expected_values = _rows_of(con, query, query.expected, keys)
    received_values = _rows_of(con, query, query.received, keys)
    return tuple(
        {"fault": fault}
        | shown({name: id_[name] for name in query.identity}, query.types)
        | {"expected": expected_values.get(id_[_KEY], []), "received": received_values.get(id_[_KEY], [])}
        for fault, id_ in chosen
    )


def _rows_of(
    con: duckdb.DuckDBPyConnection, query: DiffQuery, rows: str, keys: Set[int]
) -> dict[int, list[dict[str, Any]]]:
    """Key of an identity to the values of one side, at most a few rows each."""
    columns = ", ".join([sql.key(query), *map(quote, query.values)])
    among = ", ".join(map(str, keys))
    result: dict[int, list[dict[str, Any]]] = {}
    for key, *values in con.execute(
        f"SELECT {columns} FROM {rows} WHERE {sql.key(query)} IN ({among}) LIMIT {10 * EXAMPLES_MAX}"
    ).fetchall():
        result.setdefault(key, []).append(shown(dict(zip(query.values, values, strict=True)), query.types))
    return result


def shown(values: dict[str, Any], types: Mapping[str, ValueType]) -> dict[str, Any]:
    """Values in normal form for JSON: times in ISO 8601, bytes in hexadecimal, NaN and infinities as texts."""
    return {name: _plain(value, types[name]) for name, value in values.items()}


def _plain(value: Any, type_: ValueType) -> Any:
    if value is None:
        return None
    if type_.name == STRUCT:
        return shown(value, dict(type_.parts))
    if type_.name == LIST:
        return [_plain(each, type_["element"]) for each in value]
    if type_.name == MAP:
        return [shown(entry, dict(type_.parts)) for entry in value]
    if type_.name == TIMESTAMP:
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value)).isoformat()
    if isinstance(value, float) and not math.isfinite(value):  # JSON has no such numbers
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value.hex() if isinstance(value, bytes) else value
