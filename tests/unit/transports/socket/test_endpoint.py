"""The socket's outlet: what it sends, to whom, and what shows of a reader that is slow, or goes.

Events as lines: nothing is lost of what they carry, and what they cannot carry is refused.
"""

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any
from unittest.mock import Mock
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.clock import US
from streamgauge.core.errors import DriverError
from streamgauge.core.schema import EVENT_ID, EVENT_TIME
from streamgauge.system.child_processes import wait_until
from streamgauge.transports.socket.endpoint import MAPPED, SEPARATOR, SocketOutlet, bytes_of, lines_of
from streamgauge.transports.spi import EndpointConfig, OutletConfig, Overflow

SCHEMA = pa.schema([(name, pa.int64()) for name in (EVENT_TIME, EVENT_ID)])
WITHIN_S = 20.0
MANY = 400_000
"""Events that no buffers of the kernel hold."""
BYTES_MAX = 5_700_000
"""More than so many events have as lines, by less than waits of them beside a reader that takes none."""


def outlet_of(bound_us: int = 10 * US, bytes_max: int = 2**30, **more: Any) -> SocketOutlet:
    config = OutletConfig({"ads": SCHEMA}, bound_us, bytes_max, lambda: 7)
    return SocketOutlet(EndpointConfig("127.0.0.1", 0, "unused"), config, **more)


@contextmanager
def connected(outlet: SocketOutlet, family: socket.AddressFamily = socket.AF_INET) -> Iterator[socket.socket]:
    """With a small buffer of the reader's own, which else may take megabytes."""
    place = urlsplit(outlet.location)
    with closing(socket.socket(family)) as reader:
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        reader.settimeout(WITHIN_S)
        mapped = MAPPED if family == socket.AF_INET6 else ""
        reader.connect((f"{mapped}{place.hostname}", place.port))
        yield reader


def offer(outlet: SocketOutlet, first: int, count: int) -> None:
    """Events whose times are their numbers."""
    numbers = pa.array(range(first, first + count), pa.int64())
    batch = outlet.prepared("ads", pa.RecordBatch.from_arrays([numbers, numbers], names=SCHEMA.names))
    outlet.offer(first, first + count, {"ads": batch}, first + count)


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_lines_come_in_order_whenever_a_reader_comes(family: socket.AddressFamily) -> None:
    """What was offered before is sent first; to a JVM too, whose sockets are of IPv6."""
    outlet = outlet_of()
    offer(outlet, 0, 2)
    with connected(outlet, family) as reader, reader.makefile() as lines:
        offer(outlet, 2, 1)
        assert [next(lines) for _ in range(3)] == ["0\x1f0\n", "1\x1f1\n", "2\x1f2\n"]
    assert outlet.positions() == {"ads": 3}


def accepted(outlet: SocketOutlet, first: int, count: int) -> bool:
    try:
        offer(outlet, first, count)
    except Overflow:
        return False
    return True


def test_a_slow_reader_leaves_what_it_does_not_take() -> None:
    """More is refused while the bytes wait, and accepted once it took them."""
    outlet = outlet_of(bytes_max=BYTES_MAX)
    with connected(outlet) as reader:
        offer(outlet, 0, MANY)
        with pytest.raises(Overflow, match="bytes to be taken"):
            offer(outlet, MANY, MANY)
        with reader.makefile("rb") as lines:
            assert sum(1 for _, _ in zip(range(MANY), lines, strict=False)) == MANY
        assert wait_until(lambda: accepted(outlet, MANY, MANY), WITHIN_S)


def test_the_bound_in_bytes_is_kept() -> None:
    """Nothing is sent of a chunk that does not fit."""
    outlet = outlet_of(bytes_max=100)
    with pytest.raises(Overflow, match="bytes to be taken"):
        offer(outlet, 0, 1000)
    assert (outlet.overflowed, outlet.memory_full_us, outlet.positions()) == (True, 1000, {"ads": 0})


def test_what_is_in_no_batch_waits() -> None:
    """Also where a receiver has taken it, until a batch has begun."""
    outlet = outlet_of(bound_us=10)
    with connected(outlet) as reader:
        offer(outlet, 0, 8)
        assert reader.recv(1)
        assert outlet.waiting_us() == 8
        with pytest.raises(Overflow, match="wait to be in a batch"):
            offer(outlet, 8, 8)
        assert outlet.memory_full_us is None
        outlet.mark_delivered(8)
        offer(outlet, 8, 8)
        assert outlet.waiting_us() == 8


def test_a_peer_without_access_gets_nothing() -> None:
    """A process that this run did not start is sent away; one connection is taken, and none after it."""
    trusted = Mock(side_effect=[False, True])
    outlet = outlet_of(trusted=trusted)
    offer(outlet, 0, 1)
    with connected(outlet) as stranger:
        assert stranger.recv(1) == b""
    with connected(outlet) as reader:
        assert reader.recv(1) == b"0"
        with pytest.raises(ConnectionRefusedError), connected(outlet):
            pass
    assert trusted.call_count == 2


def test_a_reader_that_goes_is_noted() -> None:
    """As a read that was cut off."""
    outlet = outlet_of()
    with connected(outlet) as reader:
        assert reader.getsockname()
        offer(outlet, 0, MANY)
        assert reader.recv(1)
    assert wait_until(lambda: list(outlet.aborted_us) == [7], WITHIN_S)


TEXTS = st.text(st.characters(blacklist_characters="\n\r\x1f", blacklist_categories=("Cs",)))
ROWS = st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), TEXTS, st.booleans()), max_size=20)


def batch_of(rows: list[tuple[int, str, bool]]) -> pa.RecordBatch:
    numbers, texts, flags = ([row[place] for row in rows] for place in range(3))
    arrays = [pa.array(numbers, pa.int64()), pa.array(texts, pa.string()), pa.array(flags, pa.bool_())]
    return pa.RecordBatch.from_arrays(arrays, names=["number", "text", "flag"])


@given(ROWS, st.integers(0, 20), st.integers(0, 20))
def test_any_part_of_the_lines_is_read_as_it_was(rows: list[tuple[int, str, bool]], first: int, count: int) -> None:
    """A chunk is a part of what was prepared at once."""
    part = rows[first : first + count]
    read = bytes(bytes_of(lines_of(batch_of(rows)).slice(first, count))).decode()
    fields = [line.split(SEPARATOR) for line in read.split("\n")[:-1]]
    assert [(int(number), text, flag == "true") for number, text, flag in fields] == part


@pytest.mark.parametrize("text", ["two\nlines", "a\rb", "a\x1fb", None])
def test_what_lines_cannot_carry_is_refused(text: str | None) -> None:
    """It would be read as something else."""
    with pytest.raises(DriverError, match=r"column text has .*Use --transport memory"):
        lines_of(batch_of([(1, "right", True), (2, text, True)]))  # type: ignore[list-item]
