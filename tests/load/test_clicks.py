"""Clicks: any slice alone, shares as asked for, what a value takes, and what is refused."""

from __future__ import annotations

import pytest

from streamgauge.errors import InputError
from streamgauge.load.access_log import addresses
from streamgauge.load.bits import Bits
from streamgauge.load.clicks import Address, Page, Visitor
from streamgauge.load.fields import FieldSpec

BITS = Bits(seed=1, stream=0, partition=0, field=0)
FIELDS = [Address("ip", 65_536), Page("url", 1000, 0.25), Visitor("client", 65_536, 0.25)]
EACH = pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)


@EACH
def test_any_slice_is_the_same(field: FieldSpec) -> None:
    """Also across the ends of blocks."""
    whole = field.column(BITS, 0, 70_000).to_pylist()
    for first, last in ((0, 1), (32_760, 33_000), (69_999, 70_000), (5, 5)):
        assert field.column(BITS, first, last).to_pylist() == whole[first:last]


@EACH
def test_what_a_value_takes_is_about_what_is_said(field: FieldSpec) -> None:
    """The queue's bound in memory counts on it."""
    assert field.row_bytes == pytest.approx(field.column(BITS, 0, 20_000).nbytes / 20_000, rel=0.1)


def test_shares_are_those_asked_for() -> None:
    """A quarter without a page, a quarter without a name; nobody is without an address."""
    ips, pages, clients = (field.column(BITS, 0, 20_000).to_pylist() for field in FIELDS)
    assert pages.count("") == pytest.approx(5000, abs=200)
    assert clients.count(None) == pytest.approx(5000, abs=200)
    assert set(ips) <= set(addresses(65_536).to_pylist())
    assert FIELDS[2].nullable
    assert not Visitor("client", 10, 0.0).nullable


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Address("ip", 0), "ip.clients"),
        (lambda: Page("url", 0, 0.1), "url.pages"),
        (lambda: Page("url", 10, 1.5), "url.malformed"),
        (lambda: Visitor("client", 0, 0.1), "client.visitors"),
        (lambda: Visitor("client", 10, -0.1), "client.nameless"),
    ],
)
def test_what_is_refused(make: object, named: str) -> None:
    """By the name of the field and the setting."""
    with pytest.raises(InputError, match=named):
        make()  # type: ignore[operator]
