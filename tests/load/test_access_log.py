"""Lines of an access log: any slice alone, times that move on, shares as asked for, and what is refused."""

from __future__ import annotations

from collections import Counter

import pytest

from streamgauge.errors import InputError
from streamgauge.load.access_log import MALFORMED_LENGTH, STATUSES, AccessLine, addresses
from streamgauge.load.bits import Bits

BITS = Bits(seed=1, stream=0, partition=0, field=0)


def lines(field: AccessLine, first: int, last: int) -> list[str]:
    return field.column(BITS, first, last).to_pylist()


def test_any_slice_is_the_same() -> None:
    """Also across the ends of blocks and of seconds."""
    field = AccessLine("line", 100, 7, 0.1)
    whole = lines(field, 0, 70_000)
    for first, last in ((0, 1), (32_760, 33_000), (69_999, 70_000), (5, 5)):
        assert lines(field, first, last) == whole[first:last]


def test_the_logs_clock_moves_on_with_its_lines() -> None:
    """A second every so many lines, from the morning of 18 June 1998 on, minutes and days carried."""
    made = lines(AccessLine("line", 100, 2, 0.0), 0, 130)
    times = [line.split("[")[1].split("]")[0] for line in made]
    assert times[:3] == ["18/Jun/1998:00:00:00 +0000"] * 2 + ["18/Jun/1998:00:00:01 +0000"]
    assert times[120] == "18/Jun/1998:00:01:00 +0000"


def test_shares_are_those_asked_for() -> None:
    """Statuses within three standard errors, and as many malformed lines as planted, each cut off."""
    made = lines(AccessLine("line", 100, 1000, 0.2), 0, 50_000)
    cut = [line for line in made if len(line) == MALFORMED_LENGTH]
    assert len(cut) == pytest.approx(10_000, abs=3 * (50_000 * 0.2 * 0.8) ** 0.5)
    seen = Counter(line.split('" ')[1].split(" ")[0] for line in made if len(line) > MALFORMED_LENGTH)
    for status, share in STATUSES.items():
        assert seen[status] == pytest.approx(40_000 * share, abs=3 * (40_000 * share) ** 0.5 + 3)


def test_what_a_line_takes_is_about_what_is_said() -> None:
    """The queue's bound in memory counts on it."""
    field = AccessLine("line", 65_536, 1000, 0.0)
    assert field.row_bytes == pytest.approx(field.column(BITS, 0, 20_000).nbytes / 20_000, rel=0.03)


def test_clients_have_addresses_of_their_own() -> None:
    """As many as there are clients, each with four numbers below 256."""
    made = addresses(65_536).to_pylist()
    assert len(set(made)) == 65_536
    assert all(len(one.split(".")) == 4 and max(map(int, one.split("."))) < 256 for one in made[:1000])


@pytest.mark.parametrize(
    ("values", "named"),
    [((0, 1, 0.0), "line.addresses"), ((1, 0, 0.0), "line.lines_per_second"), ((1, 1, 1.5), "line.malformed")],
)
def test_nonsense_is_refused(values: tuple[int, int, float], named: str) -> None:
    """With the setting's name."""
    with pytest.raises(InputError, match=named):
        AccessLine("line", *values)
