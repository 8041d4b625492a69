"""What a query in real-time mode tells besides its results: how far it has read for certain, batch by batch."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from streamgauge.engines.spark.io import kafka_realtime as module
from streamgauge.engines.spark.io.kafka_realtime import PositionReports
from streamgauge.transports.kafka.result_messages import Mark
from streamgauge.transports.kafka.topics import topic_of


class FakeQuery:
    """A query that has made so many batches, one more at every look."""

    def __init__(self, batches: int) -> None:
        self._left, self._made = batches, 0

    @property
    def isActive(self) -> bool:
        self._made += 1
        return self._made <= self._left

    @property
    def lastProgress(self) -> Any:
        ends = json.dumps({topic_of("run", "ads"): {"0": 100 * self._made}})
        return SimpleNamespace(batchId=min(self._made, 3), sources=[SimpleNamespace(endOffset=ends)])


class Marks:
    """A broker that is away for a while."""

    def __init__(self, away: int) -> None:
        self._away = away
        self.taken: list[Mark] = []

    def send(self, mark: Mark) -> None:
        if self._away:
            self._away -= 1
            raise RuntimeError("the broker has not kept 1 marks")
        self.taken.append(mark)


def test_what_a_broker_has_not_taken_is_told_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Until it has, even where no further batch comes; each batch that was taken once."""
    monkeypatch.setattr(module, "POLL_S", 0.0)
    marks: Any = Marks(away=4)
    PositionReports(marks, "q0", "run").follow(FakeQuery(8))
    assert [(mark.endless, [place.offset for place in mark.positions]) for mark in marks.taken] == [(True, [500])]
    assert capsys.readouterr().err.count("could not report read positions yet") == 4
    straight: Any = Marks(away=0)
    PositionReports(straight, "q0", "run").follow(FakeQuery(8))
    assert len(straight.taken) == 3
