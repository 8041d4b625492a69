"""The SQL of one value: its normal form, and equality of two normal forms, for any nesting.

Normal forms: integers, timestamps and intervals are BIGINT (microseconds), floats are DOUBLE, decimals are their
digits, maps are lists of entries sorted by key. Floats are equal within a relative tolerance at any depth.
"""

from __future__ import annotations

from streamgauge.core.schema import quote
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


def same(e: str, r: str, type_: ValueType, tolerance: float, depth: int = 0) -> str:
    """Null-safe equality of two expressions in normal form (never null)."""
    equal = f"{e} IS NOT DISTINCT FROM {r}"
    if not type_.has(FLOAT):
        return equal
    if type_.name == FLOAT:
        # infinities and NaN only equal themselves
        near = f"abs({e} - {r}) <= {tolerance!r} * greatest(abs({e}), abs({r}))"
        return f"({equal} OR coalesce(isfinite({e}) AND isfinite({r}) AND {near}, false))"
    if type_.name == STRUCT:
        each = (same(_field(e, name), _field(r, name), part, tolerance, depth) for name, part in type_.parts)
        return f"({equal} OR {e} IS NOT NULL AND {r} IS NOT NULL AND {' AND '.join(each)})"
    return f"({equal} OR coalesce(len({e}) = len({r}) AND {_same_elements(e, r, type_, tolerance, depth)}, false))"


def _same_elements(e: str, r: str, type_: ValueType, tolerance: float, depth: int) -> str:
    """Equality of elements of two lists of equal length. Entries of maps with float keys are matched in any order."""
    if type_.name == MAP and type_["key"].has(FLOAT):
        entry = same(f"e{depth}", f"r{depth}", _entries(type_)["element"], tolerance, depth + 1)
        any_ = f"list_bool_or(list_transform({r}, lambda r{depth}: {entry}))"
        return f"list_bool_and(list_transform({e}, lambda e{depth}: {any_}))"
    element = _entries(type_)["element"] if type_.name == MAP else type_["element"]
    both = same(f"p{depth}[1]", f"p{depth}[2]", element, tolerance, depth + 1)
    return f"list_bool_and(list_transform(list_zip({e}, {r}), lambda p{depth}: {both}))"


def _entries(map_: ValueType) -> ValueType:
    return list_of(ValueType(STRUCT, map_.parts))


def _field(value: str, name: str) -> str:
    text = name.replace("'", "''")
    return f"struct_extract({value}, '{text}')"
