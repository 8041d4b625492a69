"""What a batch becomes on its way to a broker; without one, and without Spark."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest
from pyspark.sql.types import IntegerType, LongType, StructType

from streamgauge.core.schema import Schema
from streamgauge.dataflow.nodes import Source
from streamgauge.engines.spark.io import kafka
from streamgauge.engines.spark.io.kafka import KafkaAdapter, messages, report_positions
from streamgauge.engines.spi import Edge, Edges
from streamgauge.transports.kafka.result_messages import Mark
from streamgauge.transports.topic_names import topic_of

ONE = {"out": {"key": "int", "event_time": "bigint", "mean": "double"}}
TWO = {"a": {"n": "int"}, "b": {"at": "timestamp"}}


class Frame:
    """As much of a frame as is asked of it; it counts how often."""

    def __init__(self) -> None:
        self.schemas, self.selected = 0, [""]

    @property
    def schema(self) -> StructType:
        self.schemas += 1
        return StructType().add("n", IntegerType()).add("event_time", LongType())

    def selectExpr(self, *texts: str) -> Any:
        self.selected = list(texts)
        return self

    def __getattr__(self, name: str) -> Any:
        """What writes it: each step gives the next."""
        return self if name == "write" else lambda *_, **__: self


def test_a_message_is_its_row() -> None:
    frame = Frame()
    messages(frame, ONE, "q0", 7)
    key, value = frame.selected
    assert key == "'q0/7' AS key"
    row = "`key` AS `key`, `event_time` AS `event_time`, cast(`mean` AS string) AS `mean`"
    assert value == f"to_json(struct({row})) AS value"


def test_of_several_sinks_a_message_is_an_object_of_rows_that_are_there() -> None:
    frame = Frame()
    messages(frame, TWO, "q0", 7)
    first = "CASE WHEN _sink_0 IS NOT NULL THEN struct(_sink_0.`n` AS `n`) END AS `a`"
    second = "CASE WHEN _sink_1 IS NOT NULL THEN struct(unix_micros(_sink_1.`at`) AS `at`) END AS `b`"
    assert frame.selected[1] == f"to_json(struct({first}, {second})) AS value"


def test_the_types_of_a_query_are_requested_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each question crosses to the JVM, in the path of every batch; every batch's mark says them all the same."""
    sent: list[Any] = []
    monkeypatch.setattr(kafka, "Marks", lambda *_: type("Sent", (), {"send": lambda _, mark: sent.append(mark)})())
    (tmp_path / "offsets").mkdir()
    edges = Edges((Edge("", "run"),), Edge("", "run"), {}, transport_options={"brokers": "127.0.0.1:9092"})
    query, frame = SimpleNamespace(name="q0", sinks=[SimpleNamespace(name="out")]), Frame()
    start: Any = SimpleNamespace(query=query, checkpoint=tmp_path, by_batch=lambda _, write: write)
    write: Any = KafkaAdapter(edges, {}).start(cast(Any, frame), start)
    for batch in range(3):
        (tmp_path / "offsets" / str(batch)).write_text("v1\n{}\n{}\n")
        write(frame, batch)
    assert frame.schemas == 1
    assert [mark.sinks for mark in sent if mark.first] == [{"out": {"n": "int", "event_time": "bigint"}}] * 3
    assert [(mark.batch, mark.first) for mark in sent] == [(n, first) for n in range(3) for first in (True, False)]


@pytest.mark.parametrize(("options", "limited"), [({}, False), ({"max_per_trigger": "5"}, True)])
def test_the_most_events_of_a_batch_are_sparks_read_limit(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, str], limited: bool
) -> None:
    monkeypatch.setattr(kafka, "F", Mock())
    edges = Edges((Edge("", "run"),), Edge("", "run"), {"rows": ("n", "event_time", "event_id")},
                  transport_options={"brokers": "127.0.0.1:9092"})  # fmt: skip
    rows, session = Source("rows", Schema.from_types(n="int")), Mock()
    reader = session.readStream.format.return_value.options.return_value
    reader.option.return_value = reader
    KafkaAdapter(edges, options).read(session, rows, ["n"], "q0", 0)
    given = dict(call.args for call in reader.option.call_args_list)
    assert given.get("maxOffsetsPerTrigger") == ("5" if limited else None)


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


def test_what_a_broker_has_not_taken_is_sent_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Until it has, even where no further batch comes; each batch that was taken once."""
    monkeypatch.setattr(kafka, "POLL_S", 0.0)
    marks: Any = Marks(away=4)
    report_positions(marks, "q0", "run", FakeQuery(8))
    assert [(mark.endless, [place.offset for place in mark.positions]) for mark in marks.taken] == [(True, [500])]
    assert capsys.readouterr().err.count("could not report read positions yet") == 4
    straight: Any = Marks(away=0)
    report_positions(straight, "q0", "run", FakeQuery(8))
    assert len(straight.taken) == 3
