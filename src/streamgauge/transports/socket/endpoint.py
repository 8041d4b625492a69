"""The generator's endpoint for sockets: accepts one connection of this run, and sends lines as fast as they are read.

Events are lines of text, with a field separator that texts do not contain. Spark's receiver sends no token, so the
process at the other end is identified instead (`of_this_run`).

There is no redelivery: a lost connection loses unread events. `mark_delivered` reports progress when the recorder knows
that a batch has started, so events in a receiver without a batch count as waiting.
"""

import os
import socket
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress

import psutil
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.errors import DriverError
from streamgauge.transports.outlet import Outlet
from streamgauge.transports.spi import Chunk, EndpointConfig, OutletConfig

SEPARATOR, END = "\x1f", "\n"
_ENDS = r"[\n\r\x1f]"
"""Characters that would end a field or a line."""
_WAY_OUT = ", which the socket transport cannot carry. Use --transport memory"


def lines_of(batch: pa.RecordBatch) -> pa.Array:
    """One line per event, including its end.

    Raises:
        DriverError: a value is null, or a text contains a character that ends a field or line.
    """
    pieces: list[pa.Array | pa.Scalar] = []
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if column.null_count:
            raise DriverError(f"column {field.name} has nulls{_WAY_OUT}")
        if pa.types.is_string(field.type) and pc.any(pc.match_substring_regex(column, _ENDS)).as_py():
            raise DriverError(f"column {field.name} has a line end or a field separator within a text{_WAY_OUT}")
        pieces += [column.cast(pa.string()), pa.scalar(SEPARATOR)]
    pieces[-1] = pa.scalar(END)
    return pc.binary_join_element_wise(*pieces, "")


def bytes_of(lines: pa.Array) -> pa.Buffer:
    """The concatenated lines, without a copy."""
    if not len(lines):
        return pa.py_buffer(b"")
    _, offsets, values = lines.buffers()
    borders = pa.Array.from_buffers(pa.int32(), len(lines) + 1, [None, offsets], offset=lines.offset)
    first, last = borders[0].as_py(), borders[-1].as_py()
    return values.slice(first, last - first)


MAPPED = "::ffff:"


def of_this_run(address: tuple[str, int]) -> bool:
    """Whether the connection comes from a process of this run, a descendant of our parent process.

    Processes of other users cannot be inspected, and are not accepted.
    """
    for connection in psutil.net_connections("tcp"):
        # A JVM's IPv6 sockets show the IPv4 address with a prefix.
        if connection.pid is not None and (at := connection.laddr) and (at.ip.removeprefix(MAPPED), at.port) == address:
            with suppress(psutil.Error):
                process = psutil.Process(connection.pid)
                return os.getppid() in {process.pid, *(parent.pid for parent in process.parents())}
    return False


SEND_BUFFER = 65_536
"""The kernel's send buffer (it may double it). Bytes in it count as read, so it is small."""
PIECE = 262_144
"""Bytes per send call, so that the number of waiting bytes is accurate."""

WAITING = "{seconds:.1f} s wait to be in a batch, {bytes} bytes to be taken"


class SocketOutlet(Outlet):
    """The outlet.

    Args:
        at: where it listens.
        config: the stream and the limits.
        trusted: checks who connects, because Spark's receiver cannot send a token.
    """

    def __init__(
        self, at: EndpointConfig, config: OutletConfig, trusted: Callable[[tuple[str, int]], bool] = of_this_run
    ) -> None:
        super().__init__(config)
        self._trusted, self._changed = trusted, threading.Condition(self._lock)
        self._pending: deque[memoryview] = deque()
        self._listener = socket.create_server((at.host, at.port), backlog=1)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        host, port = self._listener.getsockname()
        self.location = f"tcp://{host}:{port}"
        threading.Thread(target=self._serve, name="lines", daemon=True).start()

    def prepared(self, _: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The events as lines, in one column."""
        return pa.RecordBatch.from_arrays([lines_of(batch)], names=["line"])

    def offer(self, from_us: int, to_us: int, batches: dict[str, pa.RecordBatch], published_us: int) -> None:
        """Sends a chunk of `prepared` events. A chunk without events only moves the frontier.

        Raises:
            Overflow: more event time or bytes wait than the limits allow; nothing was sent.
        """
        events = sum(batch.num_rows for batch in batches.values())
        new = [memoryview(bytes_of(batch.column(0))) for batch in batches.values() if batch.num_rows]
        with self._changed:
            if new:
                self._refuse_beyond(from_us, to_us, sum(map(len, new)), WAITING)
            self._count(Chunk(from_us, to_us, events, published_us), batches)
            self._pending.extend(view[start : start + PIECE] for view in new for start in range(0, len(view), PIECE))
            self._bytes += sum(map(len, new))
            self._changed.notify()

    def _serve(self) -> None:
        connection = self._accepted()
        try:
            with connection:
                while True:
                    with self._changed:
                        self._changed.wait_for(lambda: bool(self._pending))
                        piece = self._pending[0]
                    connection.sendall(piece)
                    with self._changed:  # it waits until it was sent
                        self._bytes -= len(self._pending.popleft())
        except OSError:
            self.note_aborted()

    def _accepted(self) -> socket.socket:
        """The only accepted connection; the listener closes after it."""
        while True:
            connection, address = self._listener.accept()
            if self._trusted(address):
                self._listener.close()
                return connection
            connection.close()
