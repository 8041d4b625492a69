"""The SQL of a comparison: values in normal form, buckets, and the fault of each identity.

It only builds text; `diff.compare` runs it. Helper columns start with two underscores, which flow columns never do.

Normal forms, at any depth: integers, timestamps and intervals are BIGINT (microseconds), floats are DOUBLE, decimals
are their digits, maps are lists of entries sorted by key. Floats are equal within a relative tolerance.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass

from streamgauge.core.schema import (
    EMISSION_TIME,
    EVENT_ID,
    EVENT_TIME,
    WINDOW_START,
    equal_columns,
    quote,
    quoted,
    text_literal,
)
from streamgauge.core.value_types import (
    DECIMAL,
    FLOAT,
    INT,
    INTERVAL,
    LIST,
    MAP,
    STRUCT,
    TIME,
    TIMESTAMP,
    ValueType,
    list_of,
)

_DIGITS = "CAST({0} AS VARCHAR)"
_FORMS = {
    INT: "CAST({0} AS BIGINT)",
    FLOAT: "CAST({0} AS DOUBLE)",
    TIMESTAMP: "epoch_us({0})",
    INTERVAL: "epoch_us({0})",
    TIME: "CAST({0} AS TIME)",
    DECIMAL: f"CASE WHEN contains({_DIGITS}, '.') THEN rtrim(rtrim({_DIGITS}, '0'), '.') ELSE {_DIGITS} END",
}
"""Decimals are compared by all their digits, as text without the zeros that one of two scales adds: there is no type
that holds every one of 38 digits."""


def normal(value: str, type_: ValueType, to: ValueType, floats: bool = True, depth: int = 0) -> str:
    """The normal form of an expression as type `to`. `floats=False` replaces floats by a constant."""
    if to.name == FLOAT:
        return _FORMS[FLOAT].format(value) if floats else "0"
    if type_.name == STRUCT:
        fields = ", ".join(
            f"{quote(name)} := {normal(_field(value, name), type_[name], part, floats, depth)}"
            for name, part in to.parts
        )
        return f"CASE WHEN {value} IS NOT NULL THEN struct_pack({fields}) END"
    if type_.name == LIST:
        each = f"v{depth}"
        element = normal(each, type_["element"], to["element"], floats, depth + 1)
        return value if element == each else f"list_transform({value}, lambda {each}: {element})"
    if type_.name == MAP:
        entries = normal(f"map_entries({value})", _entries(type_), _entries(to), floats, depth)
        return f"list_sort({entries})"
    return _FORMS.get(type_.name, "{0}").format(value)


def same(e: str, r: str, type_: ValueType, depth: int = 0) -> str:
    """Null-safe equality of two expressions in normal form (never null)."""
    equal = f"{e} IS NOT DISTINCT FROM {r}"
    if not type_.has(FLOAT):
        return equal
    if type_.name == FLOAT:
        # infinities and NaN only equal themselves
        near = f"abs({e} - {r}) <= {FLOAT_TOLERANCE!r} * greatest(abs({e}), abs({r}))"
        return f"({equal} OR coalesce(isfinite({e}) AND isfinite({r}) AND {near}, false))"
    if type_.name == STRUCT:
        each = (same(_field(e, name), _field(r, name), part, depth) for name, part in type_.parts)
        return f"({equal} OR {e} IS NOT NULL AND {r} IS NOT NULL AND {' AND '.join(each)})"
    return f"({equal} OR coalesce(len({e}) = len({r}) AND {_same_elements(e, r, type_, depth)}, false))"


def _same_elements(e: str, r: str, type_: ValueType, depth: int) -> str:
    """Equality of elements of two lists of equal length. Entries of maps with float keys are matched in any order."""
    if type_.name == MAP and type_["key"].has(FLOAT):
        entry = same(f"e{depth}", f"r{depth}", _entries(type_)["element"], depth + 1)
        any_ = f"list_bool_or(list_transform({r}, lambda r{depth}: {entry}))"
        return f"list_bool_and(list_transform({e}, lambda e{depth}: {any_}))"
    element = _entries(type_)["element"] if type_.name == MAP else type_["element"]
    both = same(f"p{depth}[1]", f"p{depth}[2]", element, depth + 1)
    return f"list_bool_and(list_transform(list_zip({e}, {r}), lambda p{depth}: {both}))"


def _entries(map_: ValueType) -> ValueType:
    return list_of(ValueType(STRUCT, map_.parts))


def _field(value: str, name: str) -> str:
    return f"struct_extract({value}, {text_literal(name)})"


FLOAT_TOLERANCE = 1e-9
"""Relative: sums depend on the order of the events."""
BUCKETS = 256
DUE = "__due"
"""Marks expected updates that must have come although another value of their key follows."""
RANGE_BITS = 18
"""The low bits of event ids within one bucket: a quarter of a million events of one partition."""


@dataclass(frozen=True)
class DiffQuery:
    """The parameters of a comparison: `identity`, `values` (the other columns) and rules; see `compare`.

    `expected`, `received`: both sides, as bracketed queries in the normal form of the `types` of these columns.
    """

    identity: tuple[str, ...]
    values: tuple[str, ...]
    types: Mapping[str, ValueType]
    expected: str
    received: str
    required: str
    update: bool
    deadline_us: int | None

    @property
    def in_time(self) -> str:
        return "true" if self.deadline_us is None else f"{quote(EMISSION_TIME)} <= {self.deadline_us}"


def normal_rows(relation: str, types: Mapping[str, ValueType], to: Mapping[str, ValueType]) -> str:
    """The rows with each column in normal form, as the type in `to` if it is there."""
    columns = [f"{normal(quote(name), type_, to.get(name, type_))} AS {quote(name)}" for name, type_ in types.items()]
    return f"(SELECT {', '.join(columns)} FROM {relation})"


def key(query: DiffQuery) -> str:
    """A hash of the identity, to find its rows."""
    return f"hash(to_json(struct_pack({', '.join(f'{quote(name)} := {quote(name)}' for name in query.identity)})))"


def bucket(query: DiffQuery) -> str:
    """The bucket of an identity: a range of event ids, else a hash (of the window's start alone if there is one).

    Results of windows that are still open at the end are missing, so their buckets hold no other window if possible.
    """
    if query.identity == (EVENT_ID,):
        return f"coalesce({quote(EVENT_ID)} >> {RANGE_BITS}, -1)"
    hashed = (WINDOW_START,) if WINDOW_START in query.identity else query.identity
    return f"(hash({quoted(hashed)}) & {BUCKETS - 1})::BIGINT"


def among(query: DiffQuery, buckets: Set[int]) -> str:
    """A predicate: whether the row's identity is in one of the buckets."""
    return f"{bucket(query)} IN ({', '.join(map(str, sorted(buckets)))})"


def fingerprints(query: DiffQuery, rows: str, in_time: str) -> str:
    """Per bucket and label (0 not required, 1 required, 2 required and late): row count, sum and xor of row hashes.

    The outer hash is needed because DuckDB combines columns linearly, so swapped values would cancel out. Nested values
    are hashed as JSON, because for DuckDB `[]` and NULL have equal hashes, and so have `[[1], [2]]` and `[[1, 2]]`.
    """
    whole = ", ".join(
        f"to_json({quote(name)})" if query.types[name].parts else quote(name)
        for name in (*query.identity, *query.values)
    )
    label = f"CASE WHEN ({query.required}) THEN CASE WHEN {in_time} THEN 1 ELSE 2 END ELSE 0 END"
    hashed = f"SELECT {bucket(query)} AS __b, {label} AS __label, hash(hash({whole})) AS __h FROM {rows}"
    return f"SELECT __b, __label, count(*), sum(__h), bit_xor(__h) FROM ({hashed}) GROUP BY __b, __label"


def groups(query: DiffQuery, suspects: str) -> str:
    """One row per identity: its `__fault` (null if it was not required), and its number of received rows `__n`.

    `__conflicts` of these rows have another value than the expected one.
    """
    equal, on = " AND ".join(_equal_values(query)) or "true", equal_columns(query.identity, "e", "r")
    ids = [quote(name) for name in query.identity]
    either = ", ".join(f"CASE WHEN e.__known THEN e.{name} ELSE r.{name} END AS {name}" for name in ids)
    came = f"SELECT *, true AS __came, ({query.in_time}) AS __in_time FROM {query.received} AS x WHERE {suspects}"
    pairs = (
        f"SELECT {either}, __known, __came, __judged, __must, {equal} AS __same, __in_time"
        f" FROM ({_expected(query, suspects)}) AS e FULL JOIN ({came}) AS r ON {on}"
    )
    by = ", ".join(ids)
    conflicts = "count(*) FILTER (__came AND __judged AND NOT coalesce(__same, false)) AS __conflicts"
    return f"SELECT {by}, count(__came) AS __n, {conflicts}, {_FAULT} AS __fault FROM ({pairs}) GROUP BY {by}"


def wrong_columns(query: DiffQuery, suspects: str) -> str:
    """One row: for each value column, how many wrong rows have another value there."""
    equal = _equal_values(query)
    ids = f"struct_pack({', '.join(f'{quote(name)} := e.{quote(name)}' for name in query.identity)})"
    counts = ", ".join(f"count(DISTINCT {ids}) FILTER (NOT {each})" for each in equal)
    rows, on = f"SELECT * FROM {query.received} AS x WHERE {suspects}", equal_columns(query.identity, "e", "r")
    pairs = f"({_expected(query, suspects)}) AS e JOIN ({rows}) AS r ON {on}"
    return f"SELECT {counts} FROM {pairs} WHERE __judged AND NOT ({' AND '.join(equal)})"


def _equal_values(query: DiffQuery) -> list[str]:
    return [same(f"e.{quote(name)}", f"r.{quote(name)}", query.types[name]) for name in query.values]


def _expected(query: DiffQuery, suspects: str) -> str:
    """Expected rows with `__judged` (its value is compared) and `__must` (it must have come)."""
    required = f"coalesce({query.required}, false)"
    rows = f"SELECT *, true AS __known, {required} AS __judged"
    if not query.update:
        return f"{rows}, {required} AS __must FROM {query.expected} AS x WHERE {suspects}"
    keys = quoted([name for name in query.identity if name != EVENT_TIME])
    last = f"{quote(EVENT_TIME)} = max({quote(EVENT_TIME)}) OVER (PARTITION BY {keys})"
    return f"{rows}, {required} AND ({DUE} OR {last}) AS __must FROM {query.expected}"


_FAULT = (
    "CASE WHEN NOT coalesce(bool_or(__known), false) THEN 'extra'"
    " WHEN count(__came) = 0 THEN CASE WHEN bool_or(__must) THEN 'missing' END"
    " WHEN NOT bool_or(__judged) THEN NULL"
    " WHEN bool_or(__same AND __in_time) THEN 'matched' WHEN bool_or(__same) THEN 'late' ELSE 'wrong' END"
)
