"""The recorder's endpoint for a program of the user's own: its results, and the progress of its consumer group.

The program knows nothing of us. So results are cut into slices of time, and its progress is read from outside: from the
committed offsets of its group, the checkpoints of its Spark queries, or the event times of its results.
"""

import contextlib
import threading
import time
from dataclasses import dataclass, field
from itertools import groupby
from math import inf
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.errors import DriverError
from streamgauge.core.schema import EVENT_TIME
from streamgauge.transports.kafka.group_offsets import POLL_S, GroupOffsets, RunOffsets
from streamgauge.transports.kafka.inlet import SLICE_US, KafkaInlet, ResultsConsumer
from streamgauge.transports.kafka.program_results import ResultParser
from streamgauge.transports.kafka.settings import KafkaSettings
from streamgauge.transports.kafka.spark_checkpoint import SparkCheckpoints
from streamgauge.transports.spi import FOREIGN, NEVER_COMMITTED, UNOBSERVED, EndpointConfig, Inlet, Receiver
from streamgauge.transports.topic_names import variables

QUERY = "program"
COMMITS_S = 12.0
"""A group without committed offsets so long after its first result is taken as one that never commits. The clients of
Kafka commit every 5 s by default."""
QUIET_S = 5.0
"""A program that never commits is taken to have read everything once neither input nor results came for so long."""
FOREIGN_MIN = 20
"""Foreign messages without any result that show a wrong encoding."""
FOREIGN_S = 10.0
"""Seconds beyond the reach in which an output may have foreign messages only, such as a program's first heartbeats."""


@dataclass
class _Output:
    """One topic of results, and the messages that wait to be parsed."""

    sink: str
    topic: str
    parser: ResultParser
    values: list[bytes | None] = field(default_factory=list)
    received_us: list[int] = field(default_factory=list)
    results: int = 0
    messages: int = 0
    foreign: int = 0
    first_foreign: str = ""
    until_us: int = 0

    def parse(self, now_us: int) -> pa.Table:
        """The results among the waiting messages, which are counted."""
        values, received_us = self.values, self.received_us
        self.values, self.received_us = [], []
        parsed = self.parser.parse(values, received_us, now_us)
        self.messages += len(values)
        self.foreign += parsed.foreign
        self.first_foreign = self.first_foreign or parsed.first
        if parsed.results.num_rows:
            self.results += parsed.results.num_rows
            latest_us = pc.max(parsed.results.column(EVENT_TIME)).as_py()
            self.until_us = max(self.until_us, 0 if latest_us is None else latest_us + 1)
        return parsed.results

    @property
    def foreign_in_words(self) -> str:
        return (
            f"{self.foreign:,} of {self.messages:,} messages on {self.topic} are no results and count as none; the "
            f"first: {self.first_foreign}"
        )


def open_inlet(at: EndpointConfig, receiver: Receiver) -> Inlet:
    """The endpoint for the results of an engine, or of a program of the user's own."""
    return (ProgramInlet if at.program else KafkaInlet)(at, receiver)


class ProgramInlet:
    """Implements `Inlet`.

    Args:
        at: the brokers (in its options), and the topics and the group of the program.
        receiver: stores results.
    """

    def __init__(self, at: EndpointConfig, receiver: Receiver) -> None:
        settings, self._receiver = KafkaSettings(**at.options), receiver
        assert at.program is not None
        self._topics = at.program
        self._streams = {topic: stream for stream, topic in self._topics.input_topics(at.token).items()}
        self._outputs = {
            topic: _Output(sink, topic, ResultParser(self._topics.outputs[sink]))
            for sink, topic in self._topics.output_topics(at.token).items()
        }
        self._sinks = [each.sink for each in self._outputs.values()]
        self._group = GroupOffsets(at, self._streams)
        firsts = {(topic, each): first for topic, each, first in at.starts if topic in self._streams}
        by, folders = self._topics.progress.by, self._topics.progress.checkpoints
        self._by_group, self._by_results = by in ("", "group"), by == "results"
        self._checkpoints = SparkCheckpoints(folders, at.token, firsts, self._streams) if folders else None
        self._group_must_commit = by == "group" or (self._by_group and len({each for _, each in firsts}) > 1)
        self._begun_us, self._batch = 0, 0
        self._going_on: dict[tuple[str, int], int] = {}
        """The batches in checkpoints whose reads were reported, and not their ends; to their numbers."""
        self._last_result_s, self._first_result_s, self._first_event_s = time.monotonic(), 0.0, 0.0
        self._ends: tuple[RunOffsets, float] = ({}, 0.0)
        self._inferred: RunOffsets = {}
        self._lock = threading.Lock()
        self._consumer = ResultsConsumer(settings, f"streamgauge-{at.token}-results", receiver)
        self.location = settings.brokers
        places = [place for place in at.starts if place[0] in self._outputs]
        self._consumer.start(places, self._hold, self._go_on, self._follow)

    @property
    def _holds(self) -> bool:
        return any(each.values for each in self._outputs.values())

    def _hold(self, messages: list[Any], received_at_us: int) -> None:
        with self._lock:
            if not self._holds:
                self._begun_us = self._receiver.now_us()
            for topic, run in groupby(messages, key=lambda message: message.topic()):
                output, before = self._outputs[topic], len(self._outputs[topic].values)
                output.values += [message.value() for message in run]
                output.received_us += [received_at_us] * (len(output.values) - before)

    def _go_on(self) -> None:
        with self._lock:
            if self._holds and self._receiver.now_us() - self._begun_us >= SLICE_US:
                self._cut()

    def _cut(self) -> None:
        """Passes on the held messages as one slice."""
        now_us = self._receiver.now_us()
        parsed = {each.sink: each.parse(now_us) for each in self._outputs.values() if each.values}
        if foreign := [each for each in self._outputs.values() if each.foreign]:
            self._receiver.remark(
                FOREIGN, sum(each.foreign for each in foreign), "; ".join(each.foreign_in_words for each in foreign)
            )
        if tables := {sink: results for sink, results in parsed.items() if results.num_rows}:
            self._last_result_s = time.monotonic()
            self._first_result_s = self._first_result_s or self._last_result_s
            self._batch += 1
            for sink, results in tables.items():
                address = {"query": QUERY, "batch": self._batch, "partition": 0, "attempt": 0, "sink": sink}
                batches = iter(results.combine_chunks().to_batches())
                with contextlib.suppress(DriverError):  # the receiver has reported it; the rest is discarded
                    self._receiver.receive(address, results.schema, batches, stamped=True)
            until_us = min(each.until_us for each in self._outputs.values())
            if not (self._has_committed or self._checkpoints):  # the results show it until the group commits
                self._remark_inferred()
                if until_us:
                    self._receiver.reached(QUERY, self._batch, until_us)
            self._receiver.commit(QUERY, self._batch, [[0, 0]], self._sinks)

    @property
    def _has_committed(self) -> bool:
        """Whether the group has committed an event of this run. Its offsets may be of an earlier use."""
        return any(self._group.offsets.values())

    def _had(self, seconds: float) -> bool:
        """Whether the first result came longer ago."""
        return self._first_result_s > 0 and time.monotonic() - self._first_result_s > seconds

    @property
    def _never_commits(self) -> bool:
        if self._by_group:
            return not (self._has_committed or self._group_must_commit) and self._had(COMMITS_S)
        return self._by_results and self._had(0.0)

    def _follow(self) -> None:
        """Reports how far the program has read, and judges whether it works at all."""
        self._consumer.failed.wait(POLL_S)
        try:
            committed = self._group.committed() if self._by_group else {}
            needs_ends = self._never_commits or not all(each.results for each in self._outputs.values())
            ends = self._group.ends() if needs_ends else {}
        except DriverError:  # a broker that is gone for long is noticed by the driver's clients
            return
        with self._lock:
            if self._group.note(committed):
                self._report()
            if self._checkpoints:
                self._report_batches(self._checkpoints)
            if ends:
                if any(ends.values()):
                    self._first_event_s = self._first_event_s or time.monotonic()
                if ends != self._ends[0]:
                    self._ends = (ends, time.monotonic())
                if reason := self._foreign_only() or self._silence(sum(ends.values())):
                    self._receiver.reject(reason)
            if reason := self._unobserved():
                self._receiver.remark(UNOBSERVED, 1, "how far the program had read is not known, so its lag is null")
                self._receiver.reject(reason)
            elif self._never_commits:
                self._infer(ends)

    def _report(self) -> None:
        """Reports committed offsets as the reads of a batch without results."""
        if self._has_committed:
            self._receiver.remark(UNOBSERVED, 0, "")
            self._receiver.remark(NEVER_COMMITTED, 0, "")
        if self._holds:
            self._cut()
        self._read(self._group.offsets)
        self._group.remark(self._receiver)

    def _report_batches(self, checkpoints: SparkCheckpoints) -> None:
        """Reports the reads of batches that have ended or go on, at the times that the checkpoints say."""
        for batch in checkpoints.news(self._receiver.now_us()):
            if self._holds:
                self._cut()
            name = batch.place, batch.number
            if name not in self._going_on:
                self._batch += 1
                self._going_on[name] = self._batch
                self._receiver.read(QUERY, self._batch, batch.positions, batch.begun_us)
            if batch.ended_us:
                self._receiver.commit(QUERY, self._going_on.pop(name), [], self._sinks, batch.ended_us)
        checkpoints.remark(self._receiver)

    @property
    def _checkpoint_line(self) -> str:
        """The line of its file by which the progress of a Spark program is known."""
        folder = "/path/of/its/checkpoint" if self._topics.attached else "{scratch}/checkpoint"
        return f'progress = {{ spark_checkpoint = ["{folder}"] }}'

    def _unobserved(self) -> str:
        """Why a program is rejected if nothing shows how far it has read; empty if something does, or still may."""
        patience_s = max(COMMITS_S, self._topics.timeout_s)
        if self._checkpoints:  # a batch is logged before its results are written
            return self._checkpoints.problem(self._had(COMMITS_S))
        if self._has_committed or not (self._group_must_commit and self._had(patience_s)):
            return ""
        return (
            f"group {self._group.group} had committed no offset {patience_s:g} s after the first result, so nothing "
            "showed how far the program had read. Let it commit as that group (if it does so more seldom, raise "
            "timeout in its file), or add a line to its file. For Spark, which commits to no group, the "
            f"checkpointLocation of each query: {self._checkpoint_line}. For any other "
            'program, with --partitions 1: progress = "results"'
        )

    def _read(self, offsets: RunOffsets) -> None:
        self._batch += 1
        self._receiver.read(QUERY, self._batch, self._group.positions(offsets))
        self._receiver.commit(QUERY, self._batch, [], self._sinks)

    def _remark_inferred(self) -> None:
        """From the first result until the group commits, since a short trial may end before it would have."""
        group = f"group {self._group.group} has committed no offset"
        if self._group_must_commit:
            code, text = UNOBSERVED, f"{group} yet"
        elif self._by_results:
            code, text = NEVER_COMMITTED, "the program's file names nothing else that shows how far it had read"
        else:
            spark = f"Spark commits none: {self._checkpoint_line} in its file"
            code, text = NEVER_COMMITTED, f"{group}, so how far it had read is not known ({spark})"
        self._receiver.remark(code, 1, f"{text}; progress is inferred from its results, and lag is null")

    def _infer(self, ends: RunOffsets) -> None:
        """A program that never commits is taken to have read everything once all is quiet."""
        quiet_s = time.monotonic() - max(self._ends[1], self._last_result_s)
        if ends and quiet_s > QUIET_S and ends != self._inferred:
            self._inferred = ends
            self._read(ends)

    @property
    def _waited_s(self) -> float:
        """Seconds since the first event; 0 before it."""
        return time.monotonic() - self._first_event_s if self._first_event_s else 0.0

    def _foreign_only(self) -> str:
        """Why an output is rejected that has only foreign messages, whatever others have; empty if none has."""
        for output in self._outputs.values():
            if output.results or not output.foreign:
                continue
            timeout_s = min(FOREIGN_S if output.foreign >= FOREIGN_MIN else inf, self._topics.timeout_s)
            if self._waited_s - output.parser.topic.reach_s > timeout_s:
                fields = ", ".join(f"{name} {kind}" for name, kind in output.parser.topic.types.items())
                return (
                    f"{output.foreign_in_words}. A result must be {output.parser.format.words} with these "
                    f"fields: {fields}. Correct what the program writes, or its output and reference in its file"
                )
        return ""

    def _silence(self, events: int) -> str:
        """Why a program is rejected that reads or writes nothing; empty if it has messages, or time left."""
        limit_s, read, group_id = self._topics.first_result_s, sum(self._group.offsets.values()), self._group.group
        silent = {topic: each.sink for topic, each in self._outputs.items() if not each.messages}
        if any(each.results for each in self._outputs.values()) or not silent or self._waited_s <= limit_s:
            return ""
        writes, reads = variables("output", silent.values(), self._sinks), variables("input", self._streams.values())
        group = "$STREAMGAUGE_GROUP"
        if self._topics.attached:  # it has no variables of ours
            writes, reads, group = "topic of the output", "topic of the input", "group in its file"
        if read:
            seen = f"its group {group_id} has committed {read:,} of {events:,} events"
            advice = f"Check that it writes there ({writes})"
        else:
            seen, as_group = f"{events:,} events were sent", ""
            if self._by_group:
                seen = f"its group {group_id} has committed none of {events:,} events"
                as_group = f" as group {group_id} ({group})"
            advice = (
                f"Check that it reads {', '.join(self._streams)} ({reads}){as_group} from the earliest offset, and "
                f"writes there ({writes})"
            )
        return (
            f"no message came on {', '.join(silent)} within {limit_s:g} s of the first event, and {seen}. "
            f"{advice}; if results may take longer, raise timeout in its file"
        )
