"""Which results of a user job cannot be compared is known from Spark's types, before anything runs."""

import pytest
from pyspark.sql import types as T
from pyspark.sql.types import DataType, StructType

from streamgauge.core.value_types import DECIMAL, FLOAT, INT, STRING, TIMESTAMP, ValueType, list_of
from streamgauge.engines.spark.user_job.result_types import problems, value_type


@pytest.fixture
def nested() -> StructType:
    window = StructType().add("start", T.TimestampType()).add("end", T.TimestampNTZType())
    map_ = T.MapType(T.StringType(), T.DecimalType(9, 2))
    return StructType().add("w", window).add("l", T.ArrayType(map_)).add("n", T.ByteType())


def test_types_lose_their_widths_and_zones(nested: StructType) -> None:
    assert str(value_type(nested)) == (
        "struct<w: struct<start: timestamp, end: timestamp>, l: array<map<string, decimal>>, n: int>"
    )


@pytest.mark.parametrize(
    ("type_", "place"),
    [
        (T.NullType(), "a"),
        (StructType().add("b", T.ArrayType(T.VariantType())), "a.b.element"),
        (T.MapType(T.StringType(), T.YearMonthIntervalType()), "a.value"),
        (StructType().add("x", T.LongType()).add("X", T.LongType()), "a"),
    ],
    ids=["void", "variant", "months", "names alike"],
)
def test_what_cannot_be_compared_is_named_by_its_place(type_: DataType, place: str) -> None:
    (problem,) = problems("my_job.py: f()", StructType().add("a", type_), (), {})
    assert f"and {place} cannot" in problem.rule
    assert 'drop("a")' in problem.way_out


def test_a_reference_in_other_types_is_named_by_its_place(nested: StructType) -> None:
    """A decimal beside a float, and a number beside a time, can be compared; a text beside a decimal cannot."""
    n, map_ = ValueType(INT), nested["l"].dataType
    assert not list(problems("f()", nested, ("n",), {"n": n}))
    of_texts = list_of(ValueType("map", (("key", ValueType(STRING)), ("value", ValueType(STRING)))))
    (problem,) = problems("f()", nested, (), {"l": of_texts})
    assert "l.element.value" in problem.rule
    assert problem.got == DECIMAL
    of_floats = list_of(ValueType("map", (("key", ValueType(STRING)), ("value", ValueType(FLOAT)))))
    assert value_type(map_) != of_floats
    assert not list(problems("f()", nested, (), {"l": of_floats, "n": ValueType(TIMESTAMP)}))


def test_a_map_is_no_key(nested: StructType) -> None:
    (problem,) = problems("f()", nested, ("l",), {})
    assert "and l has one" in problem.rule
    assert problem.got == "array<map<string, decimal>>"
