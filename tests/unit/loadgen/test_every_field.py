"""Every field that a workload makes: any slice alone, its type, what a value takes, and what is refused."""

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.core.schema import arrow_type
from streamgauge.loadgen.datasets.calls import Called, Caller
from streamgauge.loadgen.fields import FieldSpec
from streamgauge.loadgen.random import PhiloxBits
from streamgauge.workloads import registry
from tests.unit.helpers_refusals import assert_refused

ROWS = 34_000
EVERY = {
    f"{name}-{field.name}": (field, PhiloxBits(1, number, 1, place))
    for name in registry.names()
    for number, stream in enumerate(registry.get(name).build(registry.get(name).read({}), 1000.0).streams)
    for place, field in enumerate(stream.fields)
}


def column(field: FieldSpec, bits: PhiloxBits, first: int, last: int) -> pa.Array:
    made = field.column(bits, first, last)
    return pa.array(made) if isinstance(made, np.ndarray) else made


@pytest.mark.parametrize(("field", "bits"), EVERY.values(), ids=EVERY)
def test_any_slice_is_the_same(field: FieldSpec, bits: PhiloxBits) -> None:
    """Also across the ends of blocks, and an empty one; a value takes about what the queue's bound counts on."""
    whole = column(field, bits, 0, ROWS)
    assert whole.type == arrow_type(field.sql_type)
    for first, last in ((0, 1), (16_380, 16_390), (32_760, 33_000), (ROWS - 1, ROWS), (5, 5)):
        assert str(column(field, bits, first, last).to_pylist()) == str(whole[first:last].to_pylist())  # NaN is NaN
    assert field.row_bytes == pytest.approx(whole.nbytes / ROWS, rel=0.1)


@pytest.mark.parametrize("contacts", [0, 500])
def test_contacts_are_other_subscribers(contacts: int) -> None:
    """The workload cannot refuse these by itself, because the most depends on another parameter."""
    assert_refused("called.contacts", Called, "called", Caller("calling", 500, 20, 0.02), 0, contacts, 0.1)
