"""Malformed values: the others untouched, shares and forms as asked for, and what is refused."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.loadgen.datasets.calls import Called, Caller, Duration
from streamgauge.loadgen.datasets.texts import IsSpam, Message
from streamgauge.loadgen.fields import (
    Decimal,
    FieldSpec,
    Integer,
    InTurn,
    Malformed,
    OwnNumber,
    StreamSpec,
    Text,
    with_malformed,
)
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.random import PhiloxBits
from streamgauge.loadgen.rate_profile import parse_profile
from tests.unit.helpers_refusals import assert_refused

BITS = PhiloxBits(seed=1, stream=0, partition=0, field=0)
CASES: list[tuple[FieldSpec, tuple[Any, ...]]] = [
    (Decimal("double", 0.0, 1.0), (None, math.nan, -1.0)),
    (Integer("int", 1, 10), (None, -1)),
    (OwnNumber("bigint"), (None,)),
    (Text("string", 2), (None, "???")),
    (IsSpam("boolean", Message("message", 2, 10, 0.5), 1), (None,)),
    (InTurn("never_null", 100), (-1,)),
]
EACH = pytest.mark.parametrize(("whole", "forms"), CASES, ids=lambda one: getattr(one, "name", ""))


def listed(values: Any) -> list[Any]:
    """Values of any kind; what is no number equals itself."""
    plain = values.tolist() if isinstance(values, np.ndarray) else values.to_pylist()
    return ["nan" if value != value else value for value in plain]


@EACH
def test_a_share_has_one_of_the_forms_and_all_else_is_as_it_was(whole: FieldSpec, forms: tuple[Any, ...]) -> None:
    """Of a tenth of the values each form is as likely; every other value is the one that it would have been."""
    events = 60_000
    before, after = (listed(field.column(BITS, 0, events)) for field in (whole, with_malformed(whole, 0.1, *forms)))
    changed = [value for value, old in zip(after, before, strict=True) if value != old]
    assert len(changed) == pytest.approx(0.1 * events, rel=0.05)
    for form in listed(pa.array(forms)):
        assert changed.count(form) == pytest.approx(len(changed) / len(forms), rel=0.1)


def test_any_value_is_as_likely_to_be_malformed() -> None:
    """What it would have been has no say in it."""
    whole = Decimal("double", 0.0, 1.0)
    column: pa.Array = with_malformed(whole, 0.1, None).column(BITS, 0, 60_000)
    assert whole.column(BITS, 0, 60_000)[np.flatnonzero(column.is_null())].mean() == pytest.approx(0.5, abs=0.02)


def test_all_values_can_be_malformed_or_none() -> None:
    """A share of 1, and one of 0, which costs nothing; its column is not nullable."""
    field = Integer("int", 1, 10)
    assert set(listed(with_malformed(field, 1.0, -1, -2).column(BITS, 0, 1000))) == {-1, -2}
    assert with_malformed(field, 0.0, None) is field


def test_fields_that_follow_another_follow_what_is_whole() -> None:
    """Who is called does not depend on whether the stream tells who called."""
    caller = Caller("calling", 100, 5, 0.1)
    called = Called("called", caller, 0, 8, 0.1)
    batches = []
    for field in (with_malformed(caller, 0.5, None), caller):
        stream = StreamSpec("calls", (field, called, Duration("duration", caller, 0)))
        plan = Plan((stream,), parse_profile("constant", 1000.0, 1.0), 0, 1.0, 1, 1)
        batches.append(plan.batch(0, 0, 0, 1000, ["called", "duration"]))
    assert batches[0].equals(batches[1])


@pytest.mark.parametrize(("share", "forms"), [(-0.1, (None,)), (1.1, (None,)), (math.nan, (None,)), (0.1, ())])
def test_what_is_no_share_or_no_form_is_refused(share: float, forms: tuple[Any, ...]) -> None:
    """With the rule."""
    assert_refused("must be", Malformed, "int", Integer("int", 1, 10), share, forms)
