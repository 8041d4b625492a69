"""Parts that Python makes: which aggregates have them, and that joined they are what the rows give as a whole."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import source
from streamgauge.dataflow.nodes import RunningAggregate
from streamgauge.engines.spark.lowering import partial_aggregation

ROWS = source("rows", Schema.from_types(who="string", n="int", big="bigint", share="double", at="timestamp"))


def node(keys: str | tuple[str, ...] = "who", **aggregates: str) -> RunningAggregate:
    found = ROWS.running(aggregates, keys=keys, name="made").sink("out").sink.input
    assert isinstance(found, RunningAggregate)
    return found


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("count(*)", ("_count_", "count", "", "bigint", "sum(_count_)")),
        ("count(share)", ("_count_share", "count", "share", "bigint", "sum(_count_share)")),
        ("MAX(big)", ("_max_big", "max", "big", "bigint", "max(_max_big)")),
        (" min( at ) ", ("_min_at", "min", "at", "timestamp", "min(_min_at)")),
        ("sum(n)", ("_sum_n", "sum", "n", "bigint", "sum(_sum_n)")),
    ],
)
def test_what_has_a_part(text: str, part: tuple[str, ...]) -> None:
    """The part's column, function, argument and type, and what joins it."""
    assert partial_aggregation.parts_of(node(value=text)) == (partial_aggregation.Part(*part),)


@pytest.mark.parametrize("text", ["sum(big)", "sum(share)", "max(share)", "avg(n)", "max(n + 1)", "count(*) + 1"])
def test_what_has_none(text: str) -> None:
    """Sums that may overflow or round, least and greatest of what may be no number, and all that is not one function of
    one column: then no aggregate of the node has parts.
    """
    assert partial_aggregation.parts_of(node(rows="count(*)", value=text)) is None


VALUES = st.none() | st.integers(-(2**31), 2**31 - 1)
WHOLE = {"rows": "count(*)", "there": "count(n)", "least": "min(n)", "most": "max(n)", "total": "sum(n)"}


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "", None]), VALUES), max_size=40), st.integers(0, 40))
def test_parts_joined_are_the_whole(rows: list[tuple[str | None, int | None]], border: int) -> None:
    """Wherever the rows are cut, nulls among keys and values included, and however often a part is asked for."""
    grouping = partial_aggregation._grouping(node(**WHOLE, again="max(n)"))
    table = pa.table(
        {"who": pa.array([who for who, _ in rows], pa.string()), "n": pa.array([n for _, n in rows], pa.int32())}
    )
    found: dict[str | None, list[Any]] = {}
    for piece in (table.slice(0, border), table.slice(border)):
        for one in grouping.parts(piece).to_pylist():
            found.setdefault(one["who"], []).append(one)
    assert found.keys() == {who for who, _ in rows}
    for who, of_key in found.items():
        values = [n for other, n in rows if other == who and n is not None]
        assert sum(one["_count_"] for one in of_key) == sum(other == who for other, _ in rows)
        assert sum(one["_count_n"] for one in of_key) == len(values)
        assert _joined(min, of_key, "_min_n") == min(values, default=None)
        assert _joined(max, of_key, "_max_n") == max(values, default=None)
        assert _joined(sum, of_key, "_sum_n") == (sum(values) if values else None)


def _joined(how: Any, of_key: list[dict[str, Any]], name: str) -> int | None:
    there = [one[name] for one in of_key if one[name] is not None]
    return how(there) if there else None


def test_every_kind_of_row_has_rows_of_its_own() -> None:
    """Columns one after the other, null beside each other's rows."""
    made = partial_aggregation._stack_columns(
        [pa.array([1, 2]), pa.array([], pa.string()), pa.array([7])], ["a", "b", "rows"]
    )
    assert made.to_pydict() == {"a": [1, 2, None], "b": [None] * 3, "rows": [None, None, 7]}
