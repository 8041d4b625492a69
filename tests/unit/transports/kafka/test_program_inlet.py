"""How a program is judged by its results and its group's offsets, and when it is rejected. Broker and clock are made
up.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest

from streamgauge.core.clock import US
from streamgauge.core.errors import DriverError
from streamgauge.transports.kafka import group_offsets
from streamgauge.transports.kafka import program_inlet as program_endpoint
from streamgauge.transports.kafka.inlet import SLICE_US
from streamgauge.transports.kafka.program_inlet import (
    COMMITS_S,
    FOREIGN_MIN,
    FOREIGN_S,
    QUIET_S,
    ProgramInlet,
)
from streamgauge.transports.kafka.topics import TopicPartition
from streamgauge.transports.spi import COMMITS, FOREIGN, NEVER_COMMITTED, UNOBSERVED, EndpointConfig
from streamgauge.transports.topic_names import InputTopic, OutputTopic, ProgramTopics, ProgressSource
from tests.unit.transports.kafka.test_spark_checkpoint import Query

NOW_US = 1_800_000_000 * US
OF = OutputTopic({"ts": "bigint"}, ("ts",), "ts", reach_s=20.0)
HEARTBEAT = b'{"alive": true}'
TIMEOUT_S = 40.0
ORDERS: TopicPartition = ("orders", 0)
FIRST = 500
"""The offset of the run's first event."""


def result(after_ms: int = 0) -> bytes:
    return json.dumps({"ts": NOW_US // 1000 + after_ms}).encode()


RIGHT = result()


class Followed:
    """An inlet whose broker, clock and receiver are this object. `committed` and `ends` count the run's own events."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        timeout_s: float = TIMEOUT_S,
        attached: bool = False,
        progress: ProgressSource | None = None,
        partitions: int = 1,
        **outputs: OutputTopic,
    ) -> None:
        self.now_s, self.clock_us = 1000.0, NOW_US
        self.committed: int | None = None
        self.ends, self.answers, self.failed = 0, True, Mock()
        self.calls: list[tuple[Any, ...]] = []
        self.remarks: dict[str, tuple[int, str]] = {}
        self.rejected: list[str] = []
        self.committed_us: list[int | None] = []
        for module in (program_endpoint, group_offsets):
            monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now_s))
        monkeypatch.setattr(program_endpoint, "ResultsConsumer", lambda *_: self)
        monkeypatch.setattr(group_offsets, "AdminClient", lambda _: None)
        monkeypatch.setattr(group_offsets, "committed_of", self.committed_of)
        monkeypatch.setattr(group_offsets, "ends_of", lambda *_: {ORDERS: FIRST + self.ends})
        topics = ProgramTopics(
            {"purchases": InputTopic("orders")}, {name: replace(of, topic=name) for name, of in outputs.items()},
            attached=attached, timeout_s=timeout_s, progress=progress or ProgressSource(),
        )  # fmt: skip
        receiver: Any = self
        self.places = [("orders", each) for each in range(partitions)]
        starts = (*((*place, FIRST) for place in self.places), *((name, 0, 0) for name in outputs))
        ProgramInlet(EndpointConfig("", 0, "run", {"brokers": "b:1"}, topics, starts, "streamgauge-run"), receiver)

    def committed_of(self, _: object, group: str) -> dict[TopicPartition, int]:
        assert group == "streamgauge-run"
        if not self.answers:
            raise DriverError("no answer")
        return {} if self.committed is None else {ORDERS: FIRST + self.committed}

    def follow_after(self, seconds: float, committed: int | None = None) -> None:
        """Time passes, perhaps the group commits, and the inlet looks at its offsets."""
        self.now_s += seconds
        self.committed = self.committed if committed is None else committed
        self.follow()

    # What the consumer of results does.
    def start(self, places: Any, hold: Any, go_on: Callable[[], None], follow: Callable[[], None]) -> None:
        self._hold, self.go_on, self.follow = hold, go_on, follow

    def hold(self, topic: str, *values: bytes) -> None:
        messages = [SimpleNamespace(topic=lambda: topic, value=lambda value=value: value) for value in values]
        self._hold(messages, self.clock_us)

    def write(self, topic: str, *values: bytes) -> None:
        """Messages, and the end of their slice."""
        self.hold(topic, *values)
        self.clock_us += SLICE_US
        self.go_on()

    # What the receiver does.
    def now_us(self) -> int:
        return self.clock_us

    def receive(
        self, address: Mapping[str, Any], schema: pa.Schema, batches: Iterator[pa.RecordBatch], stamped: bool
    ) -> None:
        assert stamped
        self.calls.append(("results", address["sink"], sum(batch.num_rows for batch in batches)))

    def read(self, query: str, batch: int, places: Any, when_us: int | None = None) -> None:
        self.calls.append(("read", *places))

    def reached(self, query: str, batch: int, until_us: int) -> None:
        self.calls.append(("reached", until_us - NOW_US))

    def commit(self, query: str, batch: int, accepted: Any, sinks: list[str], when_us: int | None = None) -> None:
        self.committed_us.append(when_us)

    def remark(self, code: str, count: int, text: str) -> None:
        self.remarks[code] = (count, text)
        if not count:
            del self.remarks[code]

    def reject(self, reason: str) -> None:
        self.rejected.append(reason)


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Followed]:
    return lambda of=None: Followed(monkeypatch, **(of or {"results": OF}))


@pytest.fixture
def rejected(followed: Callable[..., Followed]) -> Callable[..., list[str]]:
    """Why a program is rejected `waited_s` after the first event, with these messages on its outputs.

    Its group has committed all events.
    """

    def make(waited_s: float, of: Mapping[str, OutputTopic] | None = None, **outputs: list[bytes]) -> list[str]:
        program = followed({name: (of or {}).get(name, OF) for name in outputs})
        program.committed = program.ends = 1000
        for topic, messages in outputs.items():
            if messages:
                program.write(topic, *messages)
        program.follow()
        assert not program.rejected
        program.follow_after(waited_s)
        return program.rejected

    return make


@pytest.mark.parametrize(("waited_s", "count"), [(1.0, 0), (20.0 + FOREIGN_S + 1, 1)])
def test_first_heartbeats_reject_no_program(rejected: Callable[..., list[str]], waited_s: float, count: int) -> None:
    """Before the first window can close, an output may have nothing else."""
    reasons = rejected(waited_s, results=[HEARTBEAT] * FOREIGN_MIN)
    assert [("it has no field ts" in reason, "these fields: ts bigint" in reason) for reason in reasons] == [
        (True, True)
    ] * count


def test_each_output_is_judged_by_itself(rejected: Callable[..., list[str]]) -> None:
    """One that has foreign messages only is named, although another has results; a silent one may owe none."""
    assert "on alerts are no results" in rejected(61.0, results=[RIGHT], alerts=[HEARTBEAT] * FOREIGN_MIN)[0]
    assert not rejected(21.0 + FOREIGN_S, results=[RIGHT], alerts=[HEARTBEAT])
    assert not rejected(61.0, results=[RIGHT], alerts=[])
    assert not rejected(61.0, results=[RIGHT, *[HEARTBEAT] * FOREIGN_MIN])


def test_a_silent_program_is_rejected_after_its_timeout(rejected: Callable[..., list[str]]) -> None:
    assert not rejected(59.0, results=[], alerts=[])
    (reason,) = rejected(61.0, results=[], alerts=[])
    assert reason.startswith("no message came on results, alerts within 60 s of the first event")
    assert "has committed 1,000 of 1,000 events" in reason
    assert "writes there ($STREAMGAUGE_OUTPUT_RESULTS, $STREAMGAUGE_OUTPUT_ALERTS)" in reason
    assert "writes there ($STREAMGAUGE_OUTPUT);" in rejected(61.0, results=[])[0]


@pytest.mark.parametrize("committed", [0, 1000])
def test_the_file_is_named_for_a_silent_program_that_ran_already(
    monkeypatch: pytest.MonkeyPatch, committed: int
) -> None:
    """It was given no variables."""
    program = Followed(monkeypatch, attached=True, results=OF)
    program.ends = 1000
    program.follow_after(0, committed)
    program.follow_after(61.0)
    assert "writes there (topic of the output)" in program.rejected[0]
    assert "$" not in program.rejected[0]


def test_foreign_messages_wait_for_no_longer_than_a_short_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the file's word on how long a first result may take."""
    program = Followed(monkeypatch, timeout_s=4.0, results=OF)
    program.committed = program.ends = 1000
    program.write("results", *[HEARTBEAT] * FOREIGN_MIN)
    program.follow()
    program.follow_after(OF.reach_s + 4.1)
    assert "on results are no results" in program.rejected[0]


def test_an_output_with_foreign_messages_is_not_called_silent(rejected: Callable[..., list[str]]) -> None:
    """Only the other one is named."""
    (reason,) = rejected(61.0, of={"alerts": replace(OF, reach_s=100.0)}, results=[], alerts=[HEARTBEAT])
    assert reason.startswith("no message came on results within")
    assert "writes there ($STREAMGAUGE_OUTPUT_RESULTS);" in reason


def test_foreign_messages_wait_for_the_reach_of_their_own_output(rejected: Callable[..., list[str]]) -> None:
    """Another output may have results at once."""
    slow = replace(OF, reach_s=100.0)
    outputs = {"results": [RIGHT], "alerts": [HEARTBEAT] * FOREIGN_MIN}
    assert not rejected(99.0 + FOREIGN_S, of={"alerts": slow}, **outputs)
    assert rejected(101.0 + FOREIGN_S, of={"alerts": slow}, **outputs)


def test_foreign_messages_are_counted(followed: Callable[..., Followed]) -> None:
    """Over all slices, with the first one."""
    program = followed()
    program.write("results", RIGHT, HEARTBEAT)
    program.write("results", b"x", RIGHT)
    count, message = program.remarks[FOREIGN]
    assert count == 2
    assert message.startswith("2 of 4 messages on results")
    assert "alive" in message


def test_results_are_cut_into_slices(followed: Callable[..., Followed]) -> None:
    """From the first message that waits, whatever comes after it."""
    program = followed()
    program.hold("results", RIGHT)
    program.clock_us += SLICE_US - 1
    program.hold("results", RIGHT)
    program.go_on()
    assert program.calls == []
    program.clock_us += 1
    program.go_on()
    assert ("results", "results", 2) in program.calls
    program.calls.clear()
    program.go_on()
    assert program.calls == []


def test_results_show_progress_until_the_group_commits(followed: Callable[..., Followed]) -> None:
    """That of the output which is behind, just after its latest result; nothing while one has none."""
    program = followed({"results": OF, "alerts": OF})
    program.write("results", result(50))
    assert program.calls == [("results", "results", 1)]
    program.write("alerts", result(7), result(3))
    program.write("results", result(40))
    assert [call for call in program.calls if call[0] == "reached"] == [("reached", 7001), ("reached", 7001)]
    program.follow_after(0, 10)
    program.calls.clear()
    program.write("alerts", result(60))
    assert program.calls == [("results", "alerts", 1)]


def test_progress_is_that_of_committed_offsets(followed: Callable[..., Followed]) -> None:
    """As numbers of the run's own events, each once; results that came before are passed on before."""
    program = followed()
    for committed in (None, -3, 0):  # -3 of what was on the topic before
        program.follow_after(0, committed)
    program.hold("results", RIGHT)
    program.follow_after(0, 90)
    program.follow()
    program.answers = False
    program.follow()
    assert program.calls == [
        ("read", ("purchases", 0, 0, 0)), ("results", "results", 1), ("read", ("purchases", 0, 0, 90)),
    ]  # fmt: skip


def test_how_often_offsets_move_is_a_remark(followed: Callable[..., Followed]) -> None:
    """By the median, since one gap may be long."""
    program = followed()
    for number, gap_s in enumerate((0.0, 5.0, 60.0, 5.0)):
        program.follow_after(gap_s, 10 * number + 1)
        assert (COMMITS in program.remarks) == (number > 0)
    assert (program.remarks[COMMITS][0], "which moved every 5 s" in program.remarks[COMMITS][1]) == (4, True)


def test_a_group_commits_never_if_it_has_not_for_long(followed: Callable[..., Followed]) -> None:
    """Its lag is not known from the first result on, however short the trial is, whether the broker answers, and
    though its group stands at offset 0. The first commit withdraws the remark.
    """
    program = followed()
    program.answers = False
    program.write("results", RIGHT)
    assert NEVER_COMMITTED in program.remarks
    program.answers = True
    for after_s, committed, never in ((1, None, True), (1, 0, True), (COMMITS_S, 0, True), (0, 900, False)):
        program.follow_after(after_s, committed)
        assert (NEVER_COMMITTED in program.remarks) is never
    program.write("results", RIGHT)
    assert NEVER_COMMITTED not in program.remarks


def test_a_program_that_never_commits_has_read_everything_once_all_is_quiet(followed: Callable[..., Followed]) -> None:
    """Said once, however late the broker answers, and again after more events."""
    program = followed()
    program.write("results", RIGHT)
    program.now_s += COMMITS_S + 1
    for ends in (1000, 1200):
        program.ends = ends
        program.calls.clear()
        for after_s in (0, QUIET_S - 1):
            program.follow_after(after_s)
        assert program.calls == []
        for after_s in (30, 1):
            program.follow_after(after_s)
        assert program.calls == [("read", ("purchases", 0, 0, ends))]


@pytest.mark.parametrize(
    ("given", "rejected"),
    [
        ({}, False),
        ({"partitions": 2}, True),
        ({"progress": ProgressSource("group")}, True),
        ({"progress": ProgressSource("results")}, False),
    ],
)
def test_a_group_that_must_commit_and_does_not(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], rejected: bool
) -> None:
    """By its file, or with partitions that results do not tell apart: the reason has the line to add."""
    program = Followed(monkeypatch, **given, results=OF)
    program.write("results", RIGHT)
    assert list(program.remarks) == [UNOBSERVED if rejected else NEVER_COMMITTED]
    program.follow_after(COMMITS_S)
    assert not program.rejected
    program.follow_after(TIMEOUT_S)
    assert bool(program.rejected) is (UNOBSERVED in program.remarks) is rejected
    assert (NEVER_COMMITTED in program.remarks) is not rejected
    assert not rejected or 'progress = { spark_checkpoint = ["{scratch}/checkpoint"] }' in program.rejected[0]


def test_a_file_that_names_results_asks_no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it commits."""
    program = Followed(monkeypatch, progress=ProgressSource("results"), results=OF)
    program.committed = 10
    program.write("results", result(50))
    program.follow()
    assert program.calls == [("results", "results", 1), ("reached", 50_001)]


def test_progress_is_that_of_checkpoints(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of each batch that has ended, at its own times; neither the group nor results are asked."""
    query = Query(tmp_path)
    program = Followed(
        monkeypatch, progress=ProgressSource("spark_checkpoint", (str(tmp_path),)), partitions=2, results=OF
    )
    program.committed = 10
    program.write("results", RIGHT)
    program.hold("results", RIGHT)
    query.run(0, time.time() - 5.0, {"orders": {"0": FIRST + 20, "1": FIRST + 30}}, took_s=2.0)
    program.follow()
    read = ("read", ("purchases", 0, 0, 20), ("purchases", 0, 1, 30))
    assert program.calls == [("results", "results", 1), ("results", "results", 1), read]
    assert (program.committed_us[-1] or 0) - NOW_US == pytest.approx(-3 * US, abs=US)
    program.follow_after(TIMEOUT_S + 1)
    assert not program.rejected
    assert not program.remarks


def test_a_checkpoint_that_shows_nothing_rejects_the_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Once it had time since the first result; before, the first batch may still run."""
    program = Followed(monkeypatch, progress=ProgressSource("spark_checkpoint", (str(tmp_path / "none"),)), results=OF)
    program.write("results", RIGHT)
    program.follow()
    assert not program.rejected
    program.follow_after(TIMEOUT_S + 1)
    assert "named no input of the program" in program.rejected[0]
    assert UNOBSERVED in program.remarks


def test_a_silent_program_needs_no_group(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The advice names what it was given."""
    program = Followed(monkeypatch, progress=ProgressSource("spark_checkpoint", (str(tmp_path),)), results=OF)
    program.ends = 1000
    program.follow()
    program.follow_after(61.0)
    assert "1,000 events were sent. Check that it reads orders ($STREAMGAUGE_INPUT) from" in program.rejected[0]
