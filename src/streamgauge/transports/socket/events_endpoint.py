"""The generator's endpoint for sockets: accepts one connection of this run, and sends lines as fast as they are read.

There is no redelivery: a lost connection loses unread events. `mark_delivered` reports progress when the recorder knows
that a batch has started, so events in a receiver without a batch count as waiting.
"""

from __future__ import annotations

import socket
import threading
from collections import deque
from collections.abc import Callable

import pyarrow as pa

from streamgauge.core.clock import US
from streamgauge.transports.send_log import WriteOnlyOutlet
from streamgauge.transports.socket.lines import bytes_of, lines_of
from streamgauge.transports.socket.peer import of_this_run
from streamgauge.transports.spi import Chunk, EndpointConfig, OutletConfig, Overflow

SEND_BUFFER = 65_536
"""The kernel's send buffer (it may double it). Bytes in it count as read, so it is small."""
PIECE = 262_144
"""Bytes per send call, so that the number of waiting bytes is accurate."""


class SocketOutlet(WriteOnlyOutlet):
    """Implements `Outlet`.

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
        self._bytes = 0
        self._aborted: list[int] = []
        self._listener = socket.create_server((at.host, at.port), backlog=1)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        self._at = self._listener.getsockname()
        threading.Thread(target=self._serve, name="lines", daemon=True).start()

    @property
    def location(self) -> str:
        return f"tcp://{self._at[0]}:{self._at[1]}"

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
        self._refuse_beyond(self._waiting_with(from_us, to_us), sum(map(len, new)))
        with self._changed:
            self._count(Chunk(from_us, to_us, events, published_us), batches)
            self._pending.extend(view[start : start + PIECE] for view in new for start in range(0, len(view), PIECE))
            self._bytes += sum(map(len, new))
            self._changed.notify()

    def drain_aborted(self) -> list[int]:
        with self._changed:
            aborted, self._aborted = self._aborted, []
            return aborted

    def _refuse_beyond(self, waiting_us: int, more_bytes: int) -> None:
        if more_bytes and (waiting_us > self._config.bound_us or self._bytes + more_bytes > self._config.bytes_max):
            self.overflowed = True
            self.memory_full_us = waiting_us if waiting_us <= self._config.bound_us else None
            raise Overflow(
                f"{waiting_us / US:.1f} s wait to be in a batch, {self._bytes + more_bytes} bytes to be taken"
            )

    def _serve(self) -> None:
        connection = self._accepted()
        try:
            with connection:
                while True:
                    connection.sendall(self._next())
                    with self._changed:
                        self._bytes -= len(self._pending.popleft())
        except OSError:
            with self._changed:
                self._aborted.append(self._config.now_us())

    def _next(self) -> memoryview:
        """The first waiting piece; it stays in the queue until it was sent."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._pending))
            return self._pending[0]

    def _accepted(self) -> socket.socket:
        """The only accepted connection; the listener closes after it."""
        while True:
            connection, address = self._listener.accept()
            if self._trusted(address):
                self._listener.close()
                return connection
            connection.close()
