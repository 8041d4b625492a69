"""Clicks: any slice alone, shares as asked for, what a value takes, and what is refused."""

from __future__ import annotations

import pyarrow as pa
import pytest

from streamgauge.loadgen.datasets.access_log import addresses
from streamgauge.loadgen.datasets.clicks import Address, Page, Visitor
from streamgauge.loadgen.random.philox import PhiloxBits

BITS = PhiloxBits(seed=1, stream=0, partition=0, field=0)
FIELDS = [Address("ip", 65_536), Page("url", 1000, 0.25), Visitor("client", 65_536, 0.25)]


def test_shares_are_those_asked_for() -> None:
    """A quarter without a page, a quarter without a name; nobody is without an address."""
    columns: list[pa.Array] = [field.column(BITS, 0, 20_000) for field in FIELDS]
    ips, pages, clients = (column.to_pylist() for column in columns)
    assert pages.count("") == pytest.approx(5000, abs=200)
    assert clients.count(None) == pytest.approx(5000, abs=200)
    assert set(ips) <= set(addresses(65_536).to_pylist())
    assert FIELDS[2].nullable
    assert not Visitor("client", 10, 0.0).nullable
