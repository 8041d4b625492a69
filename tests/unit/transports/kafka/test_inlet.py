"""The recorder's endpoint for an engine with a consumer group. Broker and receiver are made up."""

from types import SimpleNamespace
from typing import Any

import pytest

from streamgauge.transports.kafka import group_offsets, inlet
from streamgauge.transports.kafka.inlet import KafkaInlet
from streamgauge.transports.kafka.result_messages import MARK, Mark
from streamgauge.transports.kafka.topics import TopicPartition
from streamgauge.transports.spi import EndpointConfig
from streamgauge.transports.topic_names import topic_of


class Busy:
    """An inlet whose handling of messages falls behind its questions for offsets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: int) -> None:
        self.reads: list[tuple[Any, ...]] = []
        self.ends: list[str] = []
        topic, left = topic_of("run", "ads"), iter(answers)
        self.answer = lambda *_: {(topic, 0): next(left)}
        monkeypatch.setattr(inlet, "ResultsConsumer", lambda *_: self)
        monkeypatch.setattr(group_offsets, "AdminClient", lambda _: None)
        monkeypatch.setattr(group_offsets, "committed_of", self.committed)
        KafkaInlet(EndpointConfig("", 0, "run", {"brokers": "b:1"}, None, ((topic, 0, 0),), "group"), self)

    def committed(self, *_: object) -> dict[TopicPartition, int]:
        return self.answer()

    # What the consumer of results does.
    def start(self, places: Any, sort: Any, go_on: Any, follow: Any) -> None:
        self.go_on, self.follow = go_on, follow
        begun = SimpleNamespace(key=lambda: MARK, value=lambda: Mark("q", 0, True, {}, [], endless=True).to_bytes())
        sort([begun], 1)

    def sleep(self, seconds: float) -> None: ...

    # The receiver.
    def now_us(self) -> int:
        return 1

    def read(self, query: str, batch: int, positions: Any, when_us: int | None = None) -> None:
        self.reads += positions

    def commit(self, *_: Any) -> None: ...

    def reached(self, *_: Any) -> None: ...

    def remark(self, *_: Any) -> None: ...


def test_a_busy_recorder_reports_the_newest_offsets_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would report progress later and later, if it handled every answer in turn."""
    busy = Busy(monkeypatch, 10, 20, 30)
    for _ in range(3):
        busy.follow()
    busy.go_on()
    busy.go_on()
    assert busy.reads == [("ads", 0, 0, 30)]
