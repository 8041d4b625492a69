"""Lines of an access log: times that move on, shares as asked for.

Clicks: shares as asked for.
"""

from collections import Counter

import pyarrow as pa
import pytest

from streamgauge.loadgen.datasets.web import MALFORMED_LENGTH, STATUSES, AccessLine, Address, Page, Visitor, addresses
from streamgauge.loadgen.random import PhiloxBits

BITS = PhiloxBits(seed=1, stream=0, partition=0, field=0)


def lines(field: AccessLine, first: int, last: int) -> list[str]:
    return field.column(BITS, first, last).to_pylist()


def test_the_logs_clock_moves_on_with_its_lines() -> None:
    """A second every so many lines, from the morning of 18 June 1998 on, minutes and days carried."""
    times = [line.split("[")[1].split("]")[0] for line in lines(AccessLine("line", 100, 2, 0.0), 0, 130)]
    assert times[:3] == ["18/Jun/1998:00:00:00 +0000"] * 2 + ["18/Jun/1998:00:00:01 +0000"]
    assert times[120] == "18/Jun/1998:00:01:00 +0000"


def test_statuses_and_malformed_lines_have_the_given_shares() -> None:
    """Statuses within three standard errors, and as many malformed lines as planted, each cut off."""
    made = lines(AccessLine("line", 100, 1000, 0.2), 0, 50_000)
    cut = [line for line in made if len(line) == MALFORMED_LENGTH]
    assert len(cut) == pytest.approx(10_000, abs=3 * (50_000 * 0.2 * 0.8) ** 0.5)
    seen = Counter(line.split('" ')[1].split(" ")[0] for line in made if len(line) > MALFORMED_LENGTH)
    for status, share in STATUSES.items():
        assert seen[status] == pytest.approx(40_000 * share, abs=3 * (40_000 * share) ** 0.5 + 3)


def test_clients_have_addresses_of_their_own() -> None:
    """As many as there are clients, each with four numbers below 256."""
    made = addresses(65_536).to_pylist()
    assert len(set(made)) == 65_536
    assert all(len(one.split(".")) == 4 and max(map(int, one.split("."))) < 256 for one in made[:1000])


FIELDS = [Address("ip", 65_536), Page("url", 1000, 0.25), Visitor("client", 65_536, 0.25)]


def test_clicks_lack_pages_and_names_in_the_given_shares() -> None:
    """A quarter without a page, a quarter without a name; nobody is without an address."""
    columns: list[pa.Array] = [field.column(BITS, 0, 20_000) for field in FIELDS]
    ips, pages, clients = (column.to_pylist() for column in columns)
    assert pages.count("") == pytest.approx(5000, abs=200)
    assert clients.count(None) == pytest.approx(5000, abs=200)
    assert set(ips) <= set(addresses(65_536).to_pylist())
    assert FIELDS[2].nullable
    assert not Visitor("client", 10, 0.0).nullable
