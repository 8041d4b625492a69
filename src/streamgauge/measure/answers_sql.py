"""The SQL of a comparison of answers: columns in normal form, buckets, and what is wrong with each identity.

Text only: nothing here runs a query (`measure.answers` does). Helper columns begin with two underscores, as no column
of a flow does.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

from streamgauge.events import EMISSION_TIME, EVENT_ID, EVENT_TIME, quote, quoted

BUCKETS = 256
DUE = "__due"
"""Of expected updates: those that must be there though another value of their key follows."""
RANGE_BITS = 18
"""Event ids of one bucket differ in so many low bits: a quarter of a million events of one partition."""

_INTEGERS = frozenset({
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT",
})  # fmt: skip
_FLOATS = frozenset({"FLOAT", "DOUBLE"})
FLOATS = frozenset({"float", "float[]"})
"""Kinds that are compared within a tolerance."""
UNTELLING = FLOATS | {"decimal"}
"""Kinds that tell no row from another: compared within a tolerance, or so where the other side has floats."""


@dataclass(frozen=True)
class Question:
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


def kind_of(type_: str) -> str:
    """`int`, `float`, `decimal` or `time`; `int[]` or `float[]` of a list of such; else the name of the type itself."""
    if type_.endswith("[]") and (element := kind_of(type_[:-2])) in ("int", "float"):
        return f"{element}[]"
    if type_ in _INTEGERS:
        return "int"
    if type_ in _FLOATS:
        return "float"
    if type_.startswith("DECIMAL"):
        return "decimal"
    return "time" if type_.startswith("TIMESTAMP") else type_


_DIGITS = "CAST({0} AS VARCHAR)"
_FORMS = {
    "int": "CAST({0} AS BIGINT)",
    "float": "CAST({0} AS DOUBLE)",
    "int[]": "CAST({0} AS BIGINT[])",
    "float[]": "CAST({0} AS DOUBLE[])",
    "time": "epoch_us({0})",
    "decimal": f"CASE WHEN contains({_DIGITS}, '.') THEN rtrim(rtrim({_DIGITS}, '0'), '.') ELSE {_DIGITS} END",
}
"""Decimals are compared by all their digits, as text without the zeros that one of two scales adds: there is no type
that holds every one of 38 digits."""


def with_floats(kinds: Mapping[str, str], others: Mapping[str, str]) -> dict[str, str]:
    """The kinds of one side's columns; a decimal that is a double on the other side is compared as one."""
    return {name: "float" if (kind, others.get(name)) == ("decimal", "float") else kind for name, kind in kinds.items()}


def normal(relation: str, kinds: Mapping[str, str]) -> str:
    columns = [f"{_FORMS.get(kind, '{0}').format(quote(name))} AS {quote(name)}" for name, kind in kinds.items()]
    return f"(SELECT {', '.join(columns)} FROM {relation})"


def bucket(question: Question) -> str:
    """A number that all rows of an identity share: ranges of event ids, else hashes."""
    if question.identity == (EVENT_ID,):
        return f"coalesce({quote(EVENT_ID)} >> {RANGE_BITS}, -1)"
    return f"(hash({quoted(question.identity)}) & {BUCKETS - 1})::BIGINT"


def among(question: Question, buckets: Set[int]) -> str:
    """A predicate: the row's identity lies in one of the buckets."""
    return f"{bucket(question)} IN ({', '.join(map(str, sorted(buckets)))})"


def fingerprints(question: Question, rows: str, in_time: str) -> str:
    """Of each bucket and label (0 not judged, 1 judged, 2 judged and too late): rows, sum and xor of their hashes.

    The outer hash is needed: DuckDB combines columns linearly, so values exchanged between rows would cancel out.
    """
    whole = quoted((*question.identity, *question.values))
    label = f"CASE WHEN ({question.judged}) THEN CASE WHEN {in_time} THEN 1 ELSE 2 END ELSE 0 END"
    hashed = f"SELECT {bucket(question)} AS __b, {label} AS __label, hash(hash({whole})) AS __h FROM {rows}"
    return f"SELECT __b, __label, count(*), sum(__h), bit_xor(__h) FROM ({hashed}) GROUP BY __b, __label"


def groups(question: Question, kinds: Mapping[str, str], expected: str, received: str, suspects: str) -> str:
    """One row an identity: how often it came (`__n`), and its `__fault`; null where nothing was asked of it."""
    same = " AND ".join(_same(question, kinds[name], name) for name in question.values) or "true"
    on = " AND ".join(f"e.{quote(name)} IS NOT DISTINCT FROM r.{quote(name)}" for name in question.identity)
    ids = [quote(name) for name in question.identity]
    either = ", ".join(f"CASE WHEN e.__known THEN e.{name} ELSE r.{name} END AS {name}" for name in ids)
    came = f"SELECT *, true AS __came, ({question.in_time}) AS __in_time FROM {received} AS x WHERE {suspects}"
    pairs = (
        f"SELECT {either}, __known, __came, __judged, __must, {same} AS __same, __in_time"
        f" FROM ({_expected(question, expected, suspects)}) AS e FULL JOIN ({came}) AS r ON {on}"
    )
    by = ", ".join(ids)
    return f"SELECT {by}, count(__came) AS __n, {_FAULT} AS __fault FROM ({pairs}) GROUP BY {by}"


def _expected(question: Question, expected: str, suspects: str) -> str:
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


def _same(question: Question, kind: str, name: str) -> str:
    """Null-safe equality; floats within the relative tolerance, in lists too."""
    e, r = f"e.{quote(name)}", f"r.{quote(name)}"
    equal = f"{e} IS NOT DISTINCT FROM {r}"
    if kind not in FLOATS:
        return equal
    if kind == "float":
        return f"({equal} OR {_near(question, e, r)})"
    one = f"p[1] IS NOT DISTINCT FROM p[2] OR {_near(question, 'p[1]', 'p[2]')}"
    all_ = f"list_bool_and(list_transform(list_zip({e}, {r}), lambda p: {one}))"
    return f"({equal} OR coalesce(len({e}) = len({r}) AND {all_}, false))"


def _near(question: Question, e: str, r: str) -> str:
    """Within the relative tolerance; infinities and NaN are near nothing."""
    near = f"abs({e} - {r}) <= {question.float_tolerance!r} * greatest(abs({e}), abs({r}))"
    return f"coalesce(isfinite({e}) AND isfinite({r}) AND {near}, false)"
