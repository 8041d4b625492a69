"""Consumes topics of results: one thread only receives and stamps messages, another one handles them in larger pieces.

So slow parsing delays no time stamp.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterable
from typing import Any

from streamgauge.core.errors import DriverError
from streamgauge.transports.kafka.client.settings import ABSOLUTE_PATH_OPTIONS, KafkaSettings
from streamgauge.transports.spi import Receiver

SETTINGS: dict[str, Any] = {
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
    "fetch.wait.max.ms": 10,
    "socket.nagle.disable": True,
    "fetch.error.backoff.ms": 10,
    **ABSOLUTE_PATH_OPTIONS,
    "log_level": 0,
}
CONSUME_MAX = 50_000
"""The largest number of messages per consume call."""
WAIT_S = 0.02
CLOSE_S = 5.0
Take = Callable[[list[Any], int], None]
"""take(messages, time of their arrival): handles messages that were received together."""


class ResultsConsumer:
    """Reads partitions from given offsets to the end of the run. It joins no group.

    Args:
        settings: the brokers and the log-in.
        name: the id by which brokers know the client.
        receiver: its clock stamps messages, and failures are reported to it.
    """

    def __init__(self, settings: KafkaSettings, name: str, receiver: Receiver) -> None:
        from confluent_kafka import Consumer

        client = {**SETTINGS, **settings.of_client, "group.id": name, "error_cb": lambda _: None}
        self._client: Any = Consumer(client)
        self.location, self._receiver = settings.brokers, receiver
        self._received: queue.SimpleQueue[tuple[list[Any], int]] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(
        self, places: Iterable[tuple[str, int, int]], take: Take, between: Callable[[], None], *loops: Callable[[], Any]
    ) -> None:
        """Reads from `places`, each a topic, its partition and the first offset.

        `take` and then `between` are called in one thread; each of `loops` again and again in one of its own.
        """
        from confluent_kafka import TopicPartition

        def pass_on() -> None:
            with contextlib.suppress(queue.Empty):
                self._checked(take, *self._received.get(timeout=WAIT_S))
                for _ in range(self._received.qsize()):
                    self._checked(take, *self._received.get_nowait())
            between()

        self._client.assign([TopicPartition(*place) for place in places])
        for loop in (self._receive, pass_on, *loops):
            thread = threading.Thread(target=self._safely, args=(loop,), name="results", daemon=True)
            self._threads.append(thread)
            thread.start()

    def sleep(self, seconds: float) -> None:
        """Waits in a loop, not longer than until `close`."""
        self._closing.wait(seconds)

    def close(self) -> None:
        self._closing.set()
        for thread in self._threads:
            thread.join(CLOSE_S)
        self._client.close()

    def _receive(self) -> None:
        """Receives available messages and stamps them on arrival."""
        first = self._client.poll(WAIT_S)
        if first is None:
            return
        self._received.put(([first], self._receiver.now_us()))
        if more := self._client.consume(CONSUME_MAX, timeout=0):
            self._received.put((more, self._receiver.now_us()))

    def _checked(self, take: Take, messages: list[Any], received_at_us: int) -> None:
        if errors := [message.error() for message in messages if message.error() is not None]:
            raise DriverError(errors[0].str())
        take(messages, received_at_us)

    def _safely(self, once: Callable[[], Any]) -> None:
        try:
            while not self._closing.is_set():
                once()
        except Exception as error:  # reported, because no caller waits for this thread
            self._receiver.fail(f"results could not be received from the broker: {error}")
            self._closing.set()
