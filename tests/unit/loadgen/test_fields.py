"""Fields and streams: types, ranges, slices, refusals."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.schema import arrow_type
from streamgauge.loadgen.fields import (
    Decimal,
    FieldSpec,
    Integer,
    Key,
    Payload,
    StreamSpec,
    Text,
    sum_to_one,
    vocabulary,
)
from streamgauge.loadgen.random import PhiloxBits
from tests.unit.helpers_refusals import problem_of
from tests.unit.loadgen.test_fitted import FIELDS as FITTED

BITS = PhiloxBits(1, 0, 0, 0)
FIELDS = [
    Key("user", 1000),
    Key("pack", 5000, "normal"),
    Key("page", 300, "zipf", 1.2),
    Key("one", 9, "single"),
    Integer("price", -3, 100),
    Decimal("amount", -1.5, 2.5),
    Text("line", 7),
    Payload("data", 300_000),
]


def values(field: FieldSpec, first: int, last: int) -> pa.Array:
    column = field.column(BITS, first, last)
    return pa.array(column) if isinstance(column, np.ndarray) else column


@pytest.mark.parametrize("field", [*FIELDS, *FITTED], ids=lambda field: field.name)
@given(data=st.data())
def test_a_slice_equals_the_whole(field: FieldSpec, data: st.DataObject) -> None:
    """A column made for a slice alone is the slice of the column, and has the type that the field says."""
    first = data.draw(st.integers(0, 10**9))
    low, high = sorted(data.draw(st.tuples(st.integers(0, 20), st.integers(0, 20))))
    whole = values(field, first, first + 20)
    assert values(field, first + low, first + high).equals(whole.slice(low, high - low))
    assert whole.type == arrow_type(field.sql_type)


def test_decimals_are_uniform() -> None:
    """Decimals stay in [low, high), with the middle as mean (six standard errors)."""
    column = Decimal("amount", -1.0, 3.0).column(BITS, 0, 100_000)
    assert column.min() >= -1.0
    assert column.max() < 3.0
    assert column.mean() == pytest.approx(1.0, abs=6 * 4 / np.sqrt(12 * 100_000))


def test_text_is_words_of_the_vocabulary() -> None:
    """Every line has the number of words asked for, all known, the first word of the vocabulary most often."""
    words = [word for line in Text("line", 7).column(BITS, 0, 2000).to_pylist() for word in line.split(" ")]
    assert len(words) == 7 * 2000
    assert set(words) <= set(vocabulary().to_pylist())
    assert max(set(words), key=words.count) == vocabulary()[0].as_py()


def test_payloads_have_their_size_and_are_random() -> None:
    """Payloads have the size asked for, also across the end of the pool; bytes are about even."""
    column = Payload("data", 1000).column(BITS, 1000, 3000)
    assert {len(value) for value in column.to_pylist()} == {1000}
    assert np.bincount(np.frombuffer(column[0].as_py() * 1, dtype=np.uint8), minlength=256).max() < 25
    assert column[0].as_py() != column[1].as_py()


WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: Key("user", 0), "user.domain"),
    (lambda: Key("user", 2**31), "user.domain"),
    (lambda: Key("user", 2**25, "zipf"), "user.domain"),
    (lambda: Key("user", 10, "gauss"), "user.distribution"),
    (lambda: Key("user", 10, "zipf", float("nan")), "user.exponent"),
    (lambda: Integer("price", 2, 1), "price"),
    (lambda: Integer("price", 0, 2**31), "price"),
    (lambda: Decimal("amount", 1.0, 1.0), "amount"),
    (lambda: Text("line", 0), "line.words"),
    (lambda: Payload("data", 0), "data.size_bytes"),
    (lambda: StreamSpec("s", ()), "stream s"),
    (lambda: StreamSpec("s", (Integer("a", 0, 1), Integer("a", 0, 1))), "stream s"),
    (lambda: StreamSpec("s", (Integer("event_time", 0, 1),)), "stream s"),
    (lambda: StreamSpec("s", (Integer("a", 0, 1),), 0.0), "stream s.share"),
]


@pytest.mark.parametrize(("make", "setting"), WRONG)
def test_wrong_fields_are_refused(make: Callable[[], Any], setting: str) -> None:
    """A field or stream that cannot be is refused when made, by the setting's name."""
    assert problem_of(make).setting == setting


@pytest.mark.parametrize("field", [*FIELDS[:-1], Payload("data", 100), Text("word", 1)], ids=lambda field: field.name)
def test_row_bytes_are_what_a_row_takes(field: FieldSpec) -> None:
    """Bounds of queues and batches rest on it; Arrow counts the same, but for the lengths of texts, which vary."""
    assert field.row_bytes == pytest.approx(values(field, 0, 20_000).nbytes / 20_000, rel=0.005)


def test_an_event_takes_what_its_columns_take() -> None:
    """Those that are made of it, lineage among them; without a choice it is all that can be made."""
    stream = StreamSpec("s", (Integer("price", 0, 1), Payload("data", 100)))
    assert stream.bytes_of(("price", "event_time")) == 4 + 8
    assert stream.row_bytes == 4 + 104 + 8 + 8


def test_shares_make_the_rate_whole_but_for_rounding() -> None:
    """Ten tenths do, which added up are not 1; what is no number does not."""
    assert sum([0.1] * 10) != 1
    assert sum_to_one([0.1] * 10)
    assert not sum_to_one([0.5, 0.4999])
    assert not sum_to_one([float("nan"), 1.0])
