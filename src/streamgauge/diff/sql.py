"""The SQL of a comparison: columns in normal form, buckets, and the fault of each identity.

It only builds text; `diff.compare` runs it. Helper columns start with two underscores, which flow columns never do.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

from streamgauge.core.schema import EMISSION_TIME, EVENT_ID, EVENT_TIME, WINDOW_START, quote, quoted
from streamgauge.core.value_types import ValueType
from streamgauge.diff.value_sql import normal, same

BUCKETS = 256
DUE = "__due"
"""Marks expected updates that must have come although another value of their key follows."""
RANGE_BITS = 18
"""The low bits of event ids within one bucket: a quarter of a million events of one partition."""


@dataclass(frozen=True)
class DiffQuery:
    """The parameters of a comparison: `identity`, `values` (the other columns) and rules; see `compare`."""

    identity: tuple[str, ...]
    values: tuple[str, ...]
    required: str
    float_tolerance: float
    update: bool
    deadline_us: int | None

    @property
    def in_time(self) -> str:
        return "true" if self.deadline_us is None else f"{quote(EMISSION_TIME)} <= {self.deadline_us}"


def normal_rows(relation: str, types: Mapping[str, ValueType], to: Mapping[str, ValueType]) -> str:
    """The rows with each column in normal form, as the type in `to` if it is there."""
    columns = [f"{normal(quote(name), type_, to.get(name, type_))} AS {quote(name)}" for name, type_ in types.items()]
    return f"(SELECT {', '.join(columns)} FROM {relation})"


def key(question: DiffQuery) -> str:
    """A hash of the identity, to find its rows."""
    return f"hash(to_json(struct_pack({', '.join(f'{quote(name)} := {quote(name)}' for name in question.identity)})))"


def bucket(question: DiffQuery) -> str:
    """The bucket of an identity: a range of event ids, else a hash (of the window's start alone if there is one).

    Results of windows that are still open at the end are missing, so their buckets hold no other window if possible.
    """
    if question.identity == (EVENT_ID,):
        return f"coalesce({quote(EVENT_ID)} >> {RANGE_BITS}, -1)"
    hashed = (WINDOW_START,) if WINDOW_START in question.identity else question.identity
    return f"(hash({quoted(hashed)}) & {BUCKETS - 1})::BIGINT"


def among(question: DiffQuery, buckets: Set[int]) -> str:
    """A predicate: whether the row's identity is in one of the buckets."""
    return f"{bucket(question)} IN ({', '.join(map(str, sorted(buckets)))})"


def fingerprints(question: DiffQuery, types: Mapping[str, ValueType], rows: str, in_time: str) -> str:
    """Per bucket and label (0 not required, 1 required, 2 required and late): row count, sum and xor of row hashes.

    The outer hash is needed because DuckDB combines columns linearly, so swapped values would cancel out. Nested values
    are hashed as JSON, because for DuckDB `[]` and NULL have equal hashes, and so have `[[1], [2]]` and `[[1, 2]]`.
    """
    columns = (*question.identity, *question.values)
    whole = ", ".join(f"to_json({quote(name)})" if types[name].parts else quote(name) for name in columns)
    label = f"CASE WHEN ({question.required}) THEN CASE WHEN {in_time} THEN 1 ELSE 2 END ELSE 0 END"
    hashed = f"SELECT {bucket(question)} AS __b, {label} AS __label, hash(hash({whole})) AS __h FROM {rows}"
    return f"SELECT __b, __label, count(*), sum(__h), bit_xor(__h) FROM ({hashed}) GROUP BY __b, __label"


def groups(question: DiffQuery, types: Mapping[str, ValueType], expected: str, received: str, suspects: str) -> str:
    """One row per identity: its `__fault` (null if it was not required), and its number of received rows `__n`.

    `__conflicts` of these rows have another value than the expected one.
    """
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
    conflicts = "count(*) FILTER (__came AND __judged AND NOT coalesce(__same, false)) AS __conflicts"
    return f"SELECT {by}, count(__came) AS __n, {conflicts}, {_FAULT} AS __fault FROM ({pairs}) GROUP BY {by}"


def _expected(question: DiffQuery, expected: str, suspects: str) -> str:
    """Expected rows with `__judged` (its value is compared) and `__must` (it must have come)."""
    required = f"coalesce({question.required}, false)"
    rows = f"SELECT *, true AS __known, {required} AS __judged"
    if not question.update:
        return f"{rows}, {required} AS __must FROM {expected} AS x WHERE {suspects}"
    keys = quoted([name for name in question.identity if name != EVENT_TIME])
    last = f"{quote(EVENT_TIME)} = max({quote(EVENT_TIME)}) OVER (PARTITION BY {keys})"
    return f"{rows}, {required} AND ({DUE} OR {last}) AS __must FROM {expected}"


_FAULT = (
    "CASE WHEN NOT coalesce(bool_or(__known), false) THEN 'extra'"
    " WHEN count(__came) = 0 THEN CASE WHEN bool_or(__must) THEN 'missing' END"
    " WHEN NOT bool_or(__judged) THEN NULL"
    " WHEN bool_or(__same AND __in_time) THEN 'matched' WHEN bool_or(__same) THEN 'late' ELSE 'wrong' END"
)
