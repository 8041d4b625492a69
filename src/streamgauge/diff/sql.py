"""The SQL of a comparison of answers: columns in normal form, buckets, and what is wrong with each identity.

Text only: nothing here runs a query (`diff.compare` does). Helper columns begin with two underscores, as no column
of a flow does.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

from streamgauge.core.lineage_columns import EMISSION_TIME, EVENT_ID, EVENT_TIME
from streamgauge.core.schema import quote, quoted
from streamgauge.core.value_types import ValueType
from streamgauge.diff.value_sql import normal, same

BUCKETS = 256
DUE = "__due"
"""Of expected updates: those that must be there though another value of their key follows."""
RANGE_BITS = 18
"""Event ids of one bucket differ in so many low bits: a quarter of a million events of one partition."""


@dataclass(frozen=True)
class DiffQuery:
    """What is compared: `identity`, `values` (the other columns), and by which rules; see `compare`."""

    identity: tuple[str, ...]
    values: tuple[str, ...]
    judged: str
    float_tolerance: float
    update: bool
    deadline_us: int | None

    @property
    def in_time(self) -> str:
        return "true" if self.deadline_us is None else f"{quote(EMISSION_TIME)} <= {self.deadline_us}"


def normal_rows(relation: str, types: Mapping[str, ValueType], to: Mapping[str, ValueType]) -> str:
    """The rows with each column in normal form, as `to` where that has it."""
    columns = [f"{normal(quote(name), type_, to.get(name, type_))} AS {quote(name)}" for name, type_ in types.items()]
    return f"(SELECT {', '.join(columns)} FROM {relation})"


def key(question: DiffQuery) -> str:
    """A number that tells an identity from others, to find its rows again."""
    return f"hash(to_json(struct_pack({', '.join(f'{quote(name)} := {quote(name)}' for name in question.identity)})))"


def bucket(question: DiffQuery) -> str:
    """A number that all rows of an identity share: ranges of event ids, else hashes."""
    if question.identity == (EVENT_ID,):
        return f"coalesce({quote(EVENT_ID)} >> {RANGE_BITS}, -1)"
    return f"(hash({quoted(question.identity)}) & {BUCKETS - 1})::BIGINT"


def among(question: DiffQuery, buckets: Set[int]) -> str:
    """A predicate: the row's identity lies in one of the buckets."""
    return f"{bucket(question)} IN ({', '.join(map(str, sorted(buckets)))})"


def fingerprints(question: DiffQuery, types: Mapping[str, ValueType], rows: str, in_time: str) -> str:
    """Of each bucket and label (0 not judged, 1 judged, 2 judged and too late): rows, sum and xor of their hashes.

    The outer hash is needed: DuckDB combines columns linearly, so values exchanged between rows would cancel out.
    Nested values are hashed as JSON: to DuckDB `[]` and NULL have one hash, and so have `[[1], [2]]` and `[[1, 2]]`.
    """
    columns = (*question.identity, *question.values)
    whole = ", ".join(f"to_json({quote(name)})" if types[name].parts else quote(name) for name in columns)
    label = f"CASE WHEN ({question.judged}) THEN CASE WHEN {in_time} THEN 1 ELSE 2 END ELSE 0 END"
    hashed = f"SELECT {bucket(question)} AS __b, {label} AS __label, hash(hash({whole})) AS __h FROM {rows}"
    return f"SELECT __b, __label, count(*), sum(__h), bit_xor(__h) FROM ({hashed}) GROUP BY __b, __label"


def groups(question: DiffQuery, types: Mapping[str, ValueType], expected: str, received: str, suspects: str) -> str:
    """One row an identity: how often it came (`__n`), and its `__fault`; null where nothing was asked of it."""
    each = (
        same(f"e.{quote(name)}", f"r.{quote(name)}", types[name], question.float_tolerance) for name in question.values
    )
    equal = " AND ".join(each) or "true"
    on = " AND ".join(f"e.{quote(name)} IS NOT DISTINCT FROM r.{quote(name)}" for name in question.identity)
    ids = [quote(name) for name in question.identity]
    either = ", ".join(f"CASE WHEN e.__known THEN e.{name} ELSE r.{name} END AS {name}" for name in ids)
    came = f"SELECT *, true AS __came, ({question.in_time}) AS __in_time FROM {received} AS x WHERE {suspects}"
    pairs = (
        f"SELECT {either}, __known, __came, __judged, __must, {equal} AS __same, __in_time"
        f" FROM ({_expected(question, expected, suspects)}) AS e FULL JOIN ({came}) AS r ON {on}"
    )
    by = ", ".join(ids)
    return f"SELECT {by}, count(__came) AS __n, {_FAULT} AS __fault FROM ({pairs}) GROUP BY {by}"


def _expected(question: DiffQuery, expected: str, suspects: str) -> str:
    """Expected rows with `__judged` (its value is looked at) and `__must` (missing it is a fault)."""
    judged = f"coalesce({question.judged}, false)"
    known = f"SELECT *, true AS __known, {judged} AS __judged"
    if not question.update:
        return f"{known}, {judged} AS __must FROM {expected} AS x WHERE {suspects}"
    keys = quoted([name for name in question.identity if name != EVENT_TIME])
    last = f"{quote(EVENT_TIME)} = max({quote(EVENT_TIME)}) OVER (PARTITION BY {keys})"
    return f"{known}, {judged} AND ({DUE} OR {last}) AS __must FROM {expected}"


_FAULT = (
    "CASE WHEN NOT coalesce(bool_or(__known), false) THEN 'extra'"
    " WHEN count(__came) = 0 THEN CASE WHEN bool_or(__must) THEN 'missing' END"
    " WHEN NOT bool_or(__judged) THEN NULL"
    " WHEN bool_or(__same AND __in_time) THEN 'matched' WHEN bool_or(__same) THEN 'late' ELSE 'wrong' END"
)
