"""Fitted fields and choices: frequencies, quantiles, nulls, refusals; any slice alone: `test_fields`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

from streamgauge.loadgen.fields import FieldSpec
from streamgauge.loadgen.fitted import Choice, Fitted
from streamgauge.loadgen.random import PhiloxBits
from tests.unit.helpers_refusals import assert_refused

BITS = PhiloxBits(1, 0, 0, 0)
FIELDS: list[FieldSpec] = [
    Choice("country", ("BR", "DE", "FR"), (6, 3, 1)),
    Choice("flag", (True, False)),
    Choice("one", (7,)),
    Fitted("key", "int", (5, 9), (2.0, 1.0, 3.0), (100.0, 200.0, 1000.0)),
    Fitted("price", "double", (9.99, None), (1.0, 1.0, 8.0), (0.0, 50.0), 2),
    Fitted("big", "bigint", (), (1.0,), (0.0, 1e12)),
    Fitted("seen", "timestamp", (None,), (1.0, 1.0), (1.7e15, 1.8e15)),
    Fitted("text", "string", ("a", None), (3.0, 1.0)),
    Fitted("raw", "binary", (b"a", b"bc"), (3.0, 1.0)),
    Choice("town", ("São Paulo", "Köln")),
]
N = 40_000


def column(field: FieldSpec, first: int = 0, last: int = N) -> Any:
    return field.column(BITS, first, last)


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_row_bytes_are_what_a_row_takes(field: FieldSpec) -> None:
    """Arrow counts the same, nulls and letters of several bytes included."""
    assert field.row_bytes == pytest.approx(column(field, 0, 20_000).nbytes / 20_000, rel=0.01)


def test_values_come_as_often_as_their_weights_say() -> None:
    counts = {pair["values"]: pair["counts"] / N for pair in pc.value_counts(column(FIELDS[0])).to_pylist()}
    assert counts == pytest.approx({"BR": 0.6, "DE": 0.3, "FR": 0.1}, abs=0.01)


def test_what_is_no_value_lies_between_the_quantiles() -> None:
    """Half of the rows are 5 or 9; of the others half lie in each half of the quantiles, evenly."""
    keys = column(FIELDS[3]).to_numpy()
    assert np.mean(keys == 5) == pytest.approx(1 / 3, abs=0.01)
    assert np.mean(keys == 9) == pytest.approx(1 / 6, abs=0.01)
    rest = keys[keys >= 100]
    assert len(rest) == np.sum((keys != 5) & (keys != 9))
    assert np.mean(rest < 200) == pytest.approx(0.5, abs=0.02)
    assert np.mean(rest >= 600) == pytest.approx(0.25, abs=0.02)


def test_nulls_and_decimals_are_kept() -> None:
    """Nulls as often as their weight says; numbers with as many places as the sample has."""
    prices = column(FIELDS[4])
    assert prices.null_count / N == pytest.approx(0.1, abs=0.01)
    numbers = prices.drop_null().to_numpy()
    assert np.array_equal(np.round(numbers, 2), numbers)
    assert len(np.unique(numbers)) > 1000


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: Choice("c", ()), "values of one type"),
        (lambda: Choice("c", (1, "a")), "values of one type"),
        (lambda: Choice("c", ([1],)), "values of one type"),
        (lambda: Choice("c", (1, 2), (1.0,)), "a weight for each value"),
        (lambda: Choice("c", (1, 2), (0.0, 0.0)), "not all 0"),
        (lambda: Choice("c", (1, 2), (1.0, float("nan"))), "at least 0"),
        (lambda: Choice("c", (1, 2**63)), "whole numbers of 64 bits at most"),
    ],
)
def test_refusals(make: Callable[[], object], rule: str) -> None:
    assert_refused(rule, make)
