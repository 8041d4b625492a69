"""The recorder's endpoint for a program of the user's own: its results, and the progress of its consumer group.

The program knows nothing of us. So results are cut into slices of time, and its progress is read from outside: from the
committed offsets of its group, or, if it never commits, from the event times of its results.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.errors import DriverError
from streamgauge.core.lineage_columns import EVENT_TIME
from streamgauge.transports.kafka.client.group_offsets import GroupOffsets
from streamgauge.transports.kafka.client.program_results import ResultFormat, parse
from streamgauge.transports.kafka.client.results_endpoint import CONSUME_MAX, SETTINGS, SLICE_US, WAIT_S
from streamgauge.transports.kafka.client.settings import KafkaSettings
from streamgauge.transports.kafka.topic_names import group_of, results_of, topic_of
from streamgauge.transports.spi import COMMITS, FOREIGN, NEVER_COMMITTED, EndpointConfig, Receiver

QUERY, SINK = "program", "results"
POLL_S = 0.5
"""How often the broker is asked for the group's offsets."""
COMMITS_S = 12.0
"""A group without committed offsets so long after its first result is taken as one that never commits. The clients of
Kafka commit every 5 s by default."""
QUIET_S = 5.0
"""A program that never commits is taken to have read everything once neither input nor results came for so long."""
FOREIGN_MIN = 20
"""Foreign messages without any result that show a wrong encoding."""
CLOSE_S = 5.0


@dataclass(frozen=True)
class ProgramTopics:
    """What the recorder must know of a program; `EndpointConfig.program` has it as plain data.

    - `streams`: its inputs. `partitions`: those of each input topic.
    - `group`: its consumer group; empty for one of the run's own.
    - `results`: the fields of `ResultFormat`.
    - `timeout_s`: how long it may take from the first event to its first result.
    """

    streams: Sequence[str]
    partitions: int
    group: str
    results: Mapping[str, Any]
    timeout_s: float


class ProgramInlet:
    """Implements `Inlet`.

    Args:
        at: the brokers (in its options), and `ProgramTopics` as plain data.
        receiver: stores results.
    """

    def __init__(self, at: EndpointConfig, receiver: Receiver) -> None:
        from confluent_kafka import Consumer, TopicPartition

        settings, self._receiver = KafkaSettings.of(at.options), receiver
        self._brokers, self._topics = settings.brokers, ProgramTopics(**at.program)
        self._format = ResultFormat(**self._topics.results)
        client = {"bootstrap.servers": settings.brokers, **settings.login}
        own = {**SETTINGS, **client, "group.id": f"streamgauge-{at.token}-results", "error_cb": lambda _: None}
        self._client: Any = Consumer(own)
        self._output, self._group_id = results_of(at.token), group_of(at.token, self._topics.group)
        self._client.assign([TopicPartition(self._output, 0, 0)])
        self._streams = {topic_of(at.token, stream): stream for stream in self._topics.streams}
        places = [(topic, each) for topic in self._streams for each in range(self._topics.partitions)]
        self._group = GroupOffsets(client, self._group_id, places)
        self._received: queue.SimpleQueue[tuple[list[Any], int]] = queue.SimpleQueue()
        self._values: list[bytes | None] = []
        self._received_us: list[int] = []
        self._begun_us, self._batch, self._until_us = 0, 0, 0
        self._results = self._foreign = self._messages = 0
        self._last_result_s, self._first_result_s, self._first_event_s = time.monotonic(), 0.0, 0.0
        self._first_foreign = ""
        self._offsets: dict[tuple[str, int], int] = {}
        self._moves_s: list[float] = []
        self._ends: tuple[dict[tuple[str, int], int], float] = ({}, 0.0)
        self._lock, self._closing = threading.Lock(), threading.Event()
        loops = {"results taken": self._take, "results": self._pass_on, "progress": self._follow}
        self._threads = [
            threading.Thread(target=self._safely, args=(loop,), name=name, daemon=True) for name, loop in loops.items()
        ]
        for thread in self._threads:
            thread.start()

    @property
    def location(self) -> str:
        return self._brokers

    def close(self) -> None:
        self._closing.set()
        for thread in self._threads:
            thread.join(CLOSE_S)
        self._client.close()
        self._group.close()

    def _safely(self, once: Any) -> None:
        try:
            while not self._closing.is_set():
                once()
        except Exception as error:  # reported, because no caller waits for this thread
            self._receiver.fail(f"results could not be received from the broker: {error}")
            self._closing.set()

    def _take(self) -> None:
        """Receives available messages and stamps them on arrival."""
        first = self._client.poll(WAIT_S)
        if first is None:
            return
        self._received.put(([first], self._receiver.now_us()))
        if more := self._client.consume(CONSUME_MAX, timeout=0):
            self._received.put((more, self._receiver.now_us()))

    def _pass_on(self) -> None:
        with contextlib.suppress(queue.Empty):
            self._hold(*self._received.get(timeout=WAIT_S))
            for _ in range(self._received.qsize()):
                self._hold(*self._received.get_nowait())
        if self._values and self._receiver.now_us() - self._begun_us >= SLICE_US:
            with self._lock:
                self._cut()

    def _hold(self, messages: list[Any], received_at_us: int) -> None:
        if errors := [message.error() for message in messages if message.error() is not None]:
            raise DriverError(errors[0].str())
        if not self._values:
            self._begun_us = self._receiver.now_us()
        self._values += [message.value() for message in messages]
        self._received_us += [received_at_us] * len(messages)

    def _cut(self) -> None:
        """Passes on the held messages as one slice."""
        values, received_us = self._values, self._received_us
        self._values, self._received_us = [], []
        self._messages += len(values)
        parsed = parse(values, received_us, self._format, self._receiver.now_us())
        if parsed.foreign:
            self._foreign += parsed.foreign
            self._first_foreign = self._first_foreign or parsed.first
            self._receiver.remark(FOREIGN, self._foreign, self._foreign_in_words())
        if rows := parsed.results.num_rows:
            self._results += rows
            self._last_result_s = time.monotonic()
            self._first_result_s = self._first_result_s or self._last_result_s
            self._until_us = max(self._until_us, (pc.max(parsed.results.column(EVENT_TIME)).as_py() or 0) + 1)
            self._store(parsed.results)

    def _store(self, results: pa.Table) -> None:
        self._batch += 1
        address = {"query": QUERY, "batch": self._batch, "partition": 0, "attempt": 0, "sink": SINK}
        batches = iter(results.combine_chunks().to_batches())
        with contextlib.suppress(DriverError):  # the receiver has reported it; the rest is discarded
            self._receiver.receive(address, self._format.schema, batches, stamped=True)
        if not self._offsets:  # the results show it until the group commits
            self._receiver.reached(QUERY, self._batch, self._until_us)
        self._receiver.commit(QUERY, self._batch, [[0, 0]], [SINK])

    def _foreign_in_words(self) -> str:
        return (
            f"{self._foreign:,} of {self._messages:,} messages on {self._output} are no results and count as "
            f"none; the first: {self._first_foreign}"
        )

    @property
    def _never_commits(self) -> bool:
        waited_s = time.monotonic() - self._first_result_s if self._first_result_s else 0.0
        return not self._offsets and waited_s > COMMITS_S

    def _follow(self) -> None:
        """Reports how far the group has committed, and judges whether the program works at all."""
        self._closing.wait(POLL_S)
        try:
            committed = self._group.committed()
            needs_ends = not self._results or self._never_commits
            ends = self._group.ends() if needs_ends else {}
        except DriverError:  # a broker that is gone for long is noticed by the driver's clients
            return
        with self._lock:
            if committed != self._offsets and committed:
                self._report(committed)
            if ends:
                self._note_ends(ends)
                self._judge(sum(ends.values()))
            if self._never_commits:
                self._infer(ends)

    def _report(self, committed: dict[tuple[str, int], int]) -> None:
        """Reports committed offsets as the reads of a batch without results."""
        self._offsets = committed
        self._moves_s.append(time.monotonic())
        if self._values:
            self._cut()
        self._read(committed)
        if len(self._moves_s) > 1:
            gap_s = median(later - one for one, later in zip(self._moves_s, self._moves_s[1:], strict=False))
            text = f"progress is that of the committed offsets of group {self._group_id}, which moved every"
            self._receiver.remark(COMMITS, len(self._moves_s), f"{text} {gap_s:.2g} s, so the backlog contains that")

    def _read(self, positions: Mapping[tuple[str, int], int]) -> None:
        self._batch += 1
        places = [(self._streams[topic], 0, partition, offset) for (topic, partition), offset in positions.items()]
        self._receiver.read(QUERY, self._batch, places)
        self._receiver.commit(QUERY, self._batch, [], [SINK])

    def _note_ends(self, ends: dict[tuple[str, int], int]) -> None:
        if any(ends.values()) and not self._first_event_s:
            self._first_event_s = time.monotonic()
        if ends != self._ends[0]:
            self._ends = (ends, time.monotonic())

    def _infer(self, ends: dict[tuple[str, int], int]) -> None:
        """Progress of a program that never commits: what its results show, and everything once all is quiet."""
        text = f"group {self._group_id} has committed no offset, so how far it had read is not known"
        self._receiver.remark(NEVER_COMMITTED, 1, f"{text}; progress is inferred from its results, and lag is null")
        quiet_s = time.monotonic() - max(self._ends[1], self._last_result_s)
        if ends and QUIET_S < quiet_s <= QUIET_S + 2 * POLL_S:
            self._read(ends)

    def _judge(self, events: int) -> None:
        """Rejects a program that reads nothing, writes nothing, or writes only foreign messages."""
        if self._results or not self._first_event_s:
            return
        topics, read = self._topics, sum(self._offsets.values())
        waited_s = time.monotonic() - self._first_event_s
        if self._foreign >= FOREIGN_MIN or (self._foreign and waited_s > topics.timeout_s):
            fields = ", ".join(f"{name} {kind}" for name, kind in self._format.types.items())
            self._receiver.reject(
                f"{self._foreign_in_words()}. A result must be a JSON object with these fields: {fields}. Correct what "
                "the program writes, or [output] and the columns of the reference"
            )
        elif waited_s > topics.timeout_s:
            seen = f"its group {self._group_id} has committed {read:,} of {events:,} events" if read else (
                f"its group {self._group_id} has committed none of {events:,} events"
            )  # fmt: skip
            advice = "Check that it writes there ($STREAMGAUGE_OUTPUT)" if read else (
                f"Check that it reads {', '.join(self._streams)} ($STREAMGAUGE_INPUT) as group {self._group_id} "
                "($STREAMGAUGE_GROUP) from the earliest offset, and writes there ($STREAMGAUGE_OUTPUT)"
            )  # fmt: skip
            self._receiver.reject(
                f"no message came on {self._output} within {topics.timeout_s:g} s of the first event, and {seen}. "
                f"{advice}; if results may take longer, raise timeout in its file"
            )
