"""The binder gives Spark's names of types, and refuses what a flow has no type for."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from streamgauge.core.schema import TYPES, quote
from streamgauge.dataflow.expressions.types import DUCKDB_TYPES, Refused, bound_type


def test_every_type_of_a_flow_has_a_duckdb_type_and_comes_back() -> None:
    """A column of each type is bound to that type again."""
    assert set(DUCKDB_TYPES) == {*TYPES, *(f"array<{type_}>" for type_ in TYPES)}
    for type_ in DUCKDB_TYPES:
        assert bound_type('"x"', (("x", type_),)) == type_
    assert quote('a"b') == '"a""b"'  # a name never ends its own quotes


def test_other_types_are_refused() -> None:
    """A decimal is no type of a flow."""
    with pytest.raises(Refused, match="DECIMAL"):
        bound_type("1.5", ())


def test_what_cannot_be_bound_is_refused() -> None:
    """DuckDB's own reason is given in one line."""
    with pytest.raises(Refused, match="cannot be typed") as refused:
        bound_type("nosuch(1)", (("x", "int"),))
    assert "\n" not in refused.value.rule
    assert "x (int)" in refused.value.way_out


def test_threads_bind_at_the_same_time() -> None:
    """Each thread has a connection of its own."""
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda n: bound_type(f"{n} + 1", ()), range(8))) == ["int"] * 8
