"""Answers: compares what arrived with what should have, row by row, and counts every kind of fault [method 9].

Not the reference itself (the oracle computes that), and no verdict. Terms: *identity*, the columns that tell one result
from another; *judged*, the expected rows that must be there (the measured span; others may be there or not, and their
values are not looked at, but a row that was never expected is extra wherever it lies).

How: both sides are reduced, in one pass each, to a count and two sums of row hashes for each bucket of identities.
Equal buckets hold equal rows, and no join is done; only identities of unequal buckets are joined. Buckets of event ids
are ranges, so what an engine failed to deliver at the end lies in few of them. Floats cannot be hashed within a
tolerance, so a comparison of floats joins everything. All of it is DuckDB's, so it works out of core where the
connection has a temp directory.

Counts are rows. Each judged identity is one of matched, missing, wrong or late, and they add up to `expected`; each
identity never expected is extra; every further row of any identity is a duplicate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from streamgauge.core.errors import EngineError
from streamgauge.core.lineage_columns import EMISSION_TIME
from streamgauge.core.schema import quote
from streamgauge.core.value_types import (
    FLOAT,
    INT,
    LIST,
    MAP,
    STRUCT,
    TIMESTAMP,
    ValueType,
    common,
    differences,
    from_duckdb,
    incomparable,
)
from streamgauge.diff import sql
from streamgauge.diff.sql import DiffQuery

if TYPE_CHECKING:
    import duckdb

EXAMPLES_MAX = 10
_KEY = "__key"

Relation = str | Callable[[], Any]
"""A relation of the connection by name, or a function that gives the rows anew at each call (Arrow table, reader or
dataset): for rows that are generated and never stored."""


@dataclass(frozen=True)
class Counts:
    """What a comparison found; the fields are those of `result.Verification` of the same names."""

    expected: int = 0
    matched: int = 0
    missing: int = 0
    extra: int = 0
    duplicate: int = 0
    wrong: int = 0
    late: int = 0
    examples: tuple[dict[str, Any], ...] = ()

    def __add__(self, other: Counts) -> Counts:
        """Both comparisons together; the first examples are kept."""
        numbers = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self) if f.name != "examples"}
        return Counts(**numbers, examples=(self.examples + other.examples)[:EXAMPLES_MAX])

    def as_dict(self) -> dict[str, Any]:
        """For `Verification(judged=True, independent=True, reference="...", **counts.as_dict())`."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def compare(
    con: duckdb.DuckDBPyConnection,
    expected: Relation,
    received: Relation,
    identity: Sequence[str],
    columns: Sequence[str],
    judged: str = "true",
    float_tolerance: float = 1e-9,
    update: bool = False,
    deadline_us: int | None = None,
) -> Counts:
    """Compares `received` with `expected` in `columns` (and `identity`), null-safe.

    `judged`: a DuckDB predicate over the columns of both sides, in which timestamps are BIGINT microseconds.
    `float_tolerance`: relative. `update`: received rows are successive values; every one must be in `expected` (the
    values at every event time, or at the received ones), and of those the last one of each key must be there, and
    every one whose column `__due` is true.
    `deadline_us`: a right row with a later `emission_time` is late. Identities of `expected` must differ.
    Raises EngineError where received columns are missing or of another kind of type.
    """
    values = tuple(name for name in columns if name not in identity)
    question = DiffQuery(tuple(identity), values, judged, float_tolerance, update, deadline_us)
    expected_types, received_types = _types(con, expected), _types(con, received)
    compared = compared_types(expected_types, received_types, (*question.identity, *values))
    if deadline_us is not None:
        compared_types({EMISSION_TIME: ValueType(INT)}, received_types, (EMISSION_TIME,))
    if update and sql.DUE not in expected_types:
        raise ValueError(f"expected updates have no column {sql.DUE}")
    sides = _Sides(con, question, expected, received, expected_types, received_types, compared)
    if update or any(compared[name].has(FLOAT) for name in values):
        return _joined(sides, "true", None)
    return _by_fingerprint(sides)


@dataclass(frozen=True)
class _Sides:
    """Both sides of a comparison, the types of their columns, and what those are `compared` as."""

    con: duckdb.DuckDBPyConnection
    question: DiffQuery
    expected: Relation
    received: Relation
    expected_types: dict[str, ValueType]
    received_types: dict[str, ValueType]
    compared: dict[str, ValueType]

    @contextmanager
    def open(self) -> Iterator[tuple[str, str]]:
        """Both as bracketed queries whose columns are in normal form."""
        with _named(self.con, self.expected, "expected") as e, _named(self.con, self.received, "received") as r:
            yield (
                sql.normal_rows(e, self.expected_types, self.compared),
                sql.normal_rows(r, self.received_types, self.compared),
            )


@contextmanager
def _named(con: duckdb.DuckDBPyConnection, relation: Relation, side: str) -> Iterator[str]:
    if isinstance(relation, str):
        yield relation
        return
    name = f"answers_{side}"
    con.register(name, relation())
    try:
        yield name
    finally:
        con.unregister(name)


def _types(con: duckdb.DuckDBPyConnection, relation: Relation) -> dict[str, ValueType]:
    with _named(con, relation, "described") as name:
        return types_of(con, name)


def types_of(con: duckdb.DuckDBPyConnection, relation: str) -> dict[str, ValueType]:
    """Column name to its type."""
    found = con.sql(f"SELECT * FROM {relation}")
    return dict(zip(found.columns, map(from_duckdb, found.types), strict=True))


def compared_types(
    expected: Mapping[str, ValueType], received: Mapping[str, ValueType], columns: Iterable[str]
) -> dict[str, ValueType]:
    """What the values of these columns are compared as. EngineError where a column is missing or of another kind."""
    found = {}
    for name in columns:
        if name not in received:
            raise EngineError(f"results have no column {name!r}; they have {', '.join(received)}")
        wanted = expected.get(name, ValueType("missing"))
        for place, one, other in differences(wanted, received[name], name):
            raise EngineError(f"results have column {place!r} as {other}, and {one} is expected")
        for place, type_ in incomparable(wanted, name):
            raise EngineError(f"results have column {place!r} as {type_}, which cannot be compared")
        found[name] = common(wanted, received[name])
    return found


Fingerprints = dict[tuple[int, int], tuple[int, int, int]]
"""(bucket, label) to the number of rows and two sums of their hashes. Labels: 0 not judged, 1 judged, 2 too late."""


def _by_fingerprint(sides: _Sides) -> Counts:
    with sides.open() as (expected, received):
        wanted = _fingerprints(sides, expected, "true")
        got = _fingerprints(sides, received, sides.question.in_time)
    judged = {bucket: rows for (bucket, label), (rows, *_) in wanted.items() if label == 1}
    empty = judged.keys() - {bucket for bucket, _ in got}
    lost = sum(judged[bucket] for bucket in empty)
    all_lost = Counts(expected=lost, missing=lost, examples=_lost_examples(sides, empty))
    rest = sum(judged.values()) - lost
    dirty = _unequal(wanted, got) - empty
    if not dirty:
        return all_lost + Counts(expected=rest, matched=rest)
    return all_lost + _joined(sides, sql.among(sides.question, dirty), rest)


def _unequal(wanted: Fingerprints, got: Fingerprints) -> set[int]:
    """Buckets that need a join: judged rows differ, rows came too late, or rows not judged came that differ."""
    judged = {bucket for bucket, label in wanted.keys() | got.keys() if label == 1}
    differ = {bucket for bucket in judged if wanted.get((bucket, 1)) != got.get((bucket, 1))}
    came = {bucket for bucket, label in got if label != 1 and got[bucket, label] != wanted.get((bucket, label))}
    return differ | came


def _fingerprints(sides: _Sides, rows: str, in_time: str) -> Fingerprints:
    query = sql.fingerprints(sides.question, sides.compared, rows, in_time)
    return {(bucket, label): tuple(sums) for bucket, label, *sums in sides.con.execute(query).fetchall()}


def _lost_examples(sides: _Sides, buckets: Set[int]) -> tuple[dict[str, Any], ...]:
    """Of buckets of which nothing came at all."""
    if not buckets:
        return ()
    question = sides.question
    lost = f"({question.judged}) AND {sql.among(question, buckets)}"
    with sides.open() as (expected, _):
        query = f"SELECT {_example(question)} FROM {expected} WHERE {lost} LIMIT {EXAMPLES_MAX}"
        ids = [row[0] for row in sides.con.execute(query).fetchall()]
    return _examples(sides, [("missing", 0, 0, ids, None)])


def _example(question: DiffQuery) -> str:
    """An identity as one value, its key with it."""
    ids = ", ".join(f"{quote(name)} := {quote(name)}" for name in question.identity)
    return f"struct_pack({ids}, {_KEY} := {sql.key(question)})"


def _joined(sides: _Sides, suspects: str, judged: int | None) -> Counts:
    """Counts by joining the suspected identities; `judged` is how many expected rows are judged, where known."""
    some = f"min({_example(sides.question)}, {EXAMPLES_MAX})"
    with sides.open() as (expected, received):
        found = sides.con.execute(
            f"SELECT __fault, count(*), sum(greatest(__n - 1, 0)), {some}, {some} FILTER (__n > 1)"
            f" FROM ({sql.groups(sides.question, sides.compared, expected, received, suspects)}) GROUP BY __fault"
        ).fetchall()
    number = {fault: count for fault, count, *_ in found}
    bad = {fault: number.get(fault, 0) for fault in ("missing", "wrong", "late")}
    total = sum(bad.values()) + number.get("matched", 0) if judged is None else judged
    return Counts(
        expected=total,
        matched=total - sum(bad.values()),
        extra=number.get("extra", 0),
        duplicate=sum(int(row[2]) for row in found),
        examples=_examples(sides, found),
        **bad,
    )


def _examples(sides: _Sides, found: list[tuple[Any, ...]]) -> tuple[dict[str, Any], ...]:
    """Some of each fault, with what was expected and what came."""
    bad = [(fault, id_) for fault, _, _, ids, _ in found if fault not in (None, "matched") for id_ in ids]
    bad += [("duplicate", id_) for *_, ids in found for id_ in ids or ()]
    chosen = sorted(bad, key=lambda pair: _turn(bad, pair))[:EXAMPLES_MAX]
    if not chosen:
        return ()
    keys = {id_[_KEY] for _, id_ in chosen}
    with sides.open() as (expected, received):
        should = _rows_of(sides, expected, keys)
        came = _rows_of(sides, received, keys)
    return tuple(
        {"fault": fault}
        | shown({name: id_[name] for name in sides.question.identity}, sides.compared)
        | {"expected": should.get(id_[_KEY], []), "received": came.get(id_[_KEY], [])}
        for fault, id_ in chosen
    )


def _turn(bad: list[tuple[str, dict[str, Any]]], pair: tuple[str, dict[str, Any]]) -> int:
    """The place of an example among those of its fault, so that each kind of fault is shown."""
    return [other for other in bad if other[0] == pair[0]].index(pair)


def _rows_of(sides: _Sides, rows: str, keys: Set[int]) -> dict[int, list[dict[str, Any]]]:
    """Key of an identity to the values that one side has for it, at most a few rows each."""
    question = sides.question
    columns = ", ".join([sql.key(question), *map(quote, question.values)])
    among = ", ".join(map(str, keys))
    query = f"SELECT {columns} FROM {rows} WHERE {sql.key(question)} IN ({among}) LIMIT {10 * EXAMPLES_MAX}"
    result: dict[int, list[dict[str, Any]]] = {}
    for key, *values in sides.con.execute(query).fetchall():
        result.setdefault(key, []).append(shown(dict(zip(question.values, values, strict=True)), sides.compared))
    return result


def shown(values: dict[str, Any], types: Mapping[str, ValueType]) -> dict[str, Any]:
    """Values in normal form as JSON can hold them: times in ISO 8601, bytes in hexadecimal."""
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
    return value.hex() if isinstance(value, bytes) else value
