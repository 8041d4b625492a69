"""What planted checkpoints of Spark queries say of how far they have read, and when."""

import json
import os
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamgauge.core.clock import US
from streamgauge.system.disk import Scratch
from streamgauge.transports.kafka import spark_checkpoint
from streamgauge.transports.kafka.spark_checkpoint import SparkCheckpoint, SparkCheckpoints
from streamgauge.transports.spi import COMMITS
from streamgauge.transports.topic_names import scratch_purpose

FIRSTS = {("orders", 0): 500, ("orders", 1): 40}
STREAMS = {"orders": "purchases"}


class Query:
    """A query that writes its checkpoint."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def begin(self, number: int, at_s: float, *sources: object, version: str = "v1", logged_s: float = 0.0) -> None:
        """The start of a batch at a time; `logged_s`: seconds until its offsets are logged."""
        metadata = {"batchWatermarkMs": 0, "batchTimestampMs": round(1000 * at_s), "conf": {}}
        named = "0:" if version == "v2" else ""
        lines = [
            version,
            json.dumps(metadata),
            *(f"{named}{each if each == '-' else json.dumps(each)}" for each in sources),
        ]
        self._write("offsets", number, "\n".join(lines), at_s + logged_s)

    def end(self, number: int, at_s: float) -> None:
        self._write("commits", number, 'v1\n{"nextBatchWatermarkMs":0}', at_s)

    def run(self, number: int, at_s: float, *sources: object, took_s: float = 0.5, **more: Any) -> None:
        self.begin(number, at_s, *sources, **more)
        self.end(number, at_s + max(took_s, more.get("logged_s", 0.0)))

    def _write(self, log: str, number: int, text: str, at_s: float) -> None:
        file = self.folder / log / str(number)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        (file.parent / f".{number}.crc").write_text("crc")
        os.utime(file, (at_s, at_s))


@pytest.fixture
def query(tmp_path: Path) -> Query:
    return Query(tmp_path / "checkpoint")


def news(checkpoint: SparkCheckpoint) -> list[tuple[int, float, float]]:
    return [(one.number, one.begun_us / US, one.ended_us / US) for one in checkpoint.news()]


def test_a_batch_counts_once_it_has_ended(query: Query) -> None:
    """Once, with its own times and the offsets of every partition."""
    checkpoint = SparkCheckpoint(str(query.folder), "r")
    assert checkpoint.news() == []
    query.begin(0, 100.0, {"orders": {"1": 7, "0": 5}})
    assert checkpoint.news() == []
    query.end(0, 102.5)
    (batch,) = checkpoint.news()
    assert batch.offsets == {(0, "orders", 1): 7, (0, "orders", 0): 5}
    assert (batch.begun_us, batch.ended_us) == (100 * US, round(102.5 * US))
    assert checkpoint.news() == []


def test_times_are_those_of_another_clock(query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the distance from now counts."""
    query.run(3, 100.0, {"orders": {"0": 5}})
    monkeypatch.setattr(spark_checkpoint, "time", SimpleNamespace(time_ns=lambda: 103 * 10**9))
    (batch,) = SparkCheckpoint(str(query.folder), "r").news(now_us=3 * US)
    assert (batch.begun_us, batch.ended_us) == (0, US // 2)


def test_a_repeated_batch_of_a_restarted_query_counts_once(query: Query) -> None:
    """It keeps its number and offsets. The logs below it may be gone by then."""
    checkpoint = SparkCheckpoint(str(query.folder), "r")
    for number in range(3):
        query.run(number, 100.0 + number, {"orders": {"0": 10 * number}})
    query.begin(3, 103.0, {"orders": {"0": 30}})
    assert [number for number, *_ in news(checkpoint)] == [0, 1, 2]
    for log in ("offsets", "commits"):
        (query.folder / log / "0").unlink()
    query.end(3, 110.0)
    query.run(4, 110.0, {"orders": {"0": 40}})
    # It began after the end of the one before, although both stamps are the same.
    assert news(checkpoint) == [(3, 103.0, 110.0), (4, 110.000001, 110.5)]


def test_a_torn_file_is_read_later(query: Query) -> None:
    """As one whose start was removed; a later batch says as much."""
    checkpoint = SparkCheckpoint(str(query.folder), "r")
    query.run(0, 100.0, {"orders": {"0": 5}})
    offsets = query.folder / "offsets" / "0"
    whole = offsets.read_text()
    for torn in ("", "v1", whole[:40], whole[:-4], "v9\n{}\n{}"):
        offsets.write_text(torn)
        assert checkpoint.news() == []
        assert checkpoint.topics() == set()
    query.run(1, 101.0, {"orders": {"0": 9}})
    (batch,) = checkpoint.news()
    assert batch.offsets == {(0, "orders", 0): 9}
    offsets.write_text(whole)
    assert checkpoint.news() == []


def test_other_sources_and_formats(query: Query) -> None:
    """Those without an offset, and those that are not Kafka's, are skipped; the second format names each source."""
    query.run(0, 100.0, "-", {"logOffset": 3}, 12, {"orders": {"0": 5}}, {"stream": {"shard-1": 7}})
    query.run(1, 101.0, {"orders": {"0": 6}}, version="v2")
    first, second = SparkCheckpoint(str(query.folder), "r").news()
    assert first.offsets == {(3, "orders", 0): 5}
    assert second.offsets == {(0, "orders", 0): 6}


def test_a_query_in_real_time_mode_is_found(query: Query) -> None:
    """It logs its offsets when a batch ends; one late log may be a machine that stood still."""
    checkpoint = SparkCheckpoint(str(query.folder), "r")
    for number, found in ((0, False), (1, True)):
        query.run(number, 100.0 + 5 * number, {"orders": {"0": number}}, logged_s=5.0)
        checkpoint.news()
        assert checkpoint.real_time is found


def test_the_scratch_folder_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By the run, since another process makes it; before that there is nothing."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    checkpoint = SparkCheckpoint("{scratch}/of/{run}", "r7")
    assert checkpoint.news() == []
    scratch = Scratch(scratch_purpose("r7"))
    Query(scratch.path / "of" / "r7").run(0, 100.0, {"orders": {"0": 5}})
    assert len(checkpoint.news()) == 1
    scratch.cleanup()


class Remarks(SimpleNamespace):
    def remark(self, code: str, count: int, text: str) -> None:
        self.message = (code, count, text)


def test_several_queries_are_readers_of_their_own(tmp_path: Path) -> None:
    """In the order in which their batches ended, as numbers of the run's own events; other topics are left out."""
    one, two = Query(tmp_path / "one"), Query(tmp_path / "two")
    every = SparkCheckpoints([str(one.folder), str(two.folder)], "r", FIRSTS, STREAMS)
    one.run(7, 100.0, {"orders": {"0": 510, "1": 30}, "others": {"0": 9}}, {"orders": {"0": 505}}, took_s=9.0)
    two.run(0, 101.0, {"others": {"0": 9}})
    two.run(1, 102.0, {"orders": {"0": 500}})
    first, second = every.news(time.time_ns() // 1000)
    assert first.positions == [("purchases", 2, 0, 0)]
    assert second.positions == [("purchases", 0, 0, 10), ("purchases", 0, 1, 0), ("purchases", 1, 0, 5)]
    assert (second.ended_us - first.ended_us) / US == pytest.approx(6.5, abs=0.1)
    receiver: Any = Remarks()
    every.remark(receiver)
    assert receiver.message[:2] == (COMMITS, 2)
    assert "checkpoints, where a batch ended every 6.5 s" in receiver.message[2]


def test_what_shows_nothing_is_a_problem(tmp_path: Path) -> None:
    """A checkpoint that is missing or of other topics, once it had time; a batch that goes on is none."""
    one, two = Query(tmp_path / "one"), Query(tmp_path / "two")
    every = SparkCheckpoints([str(one.folder), str(two.folder)], "r", FIRSTS, STREAMS)
    one.begin(0, 100.0, {"orders": {"0": 510}})
    two.run(0, 100.0, {"others": {"0": 9}})
    every.news(0)
    assert every.problem(had_time=False) == ""
    assert f"the checkpoint {two.folder} named no input of the program" in every.problem(had_time=True)
    two.run(1, 101.0, {"orders": {"0": 510}})
    every.news(0)
    assert every.problem(had_time=True) == ""
    for number in (2, 3):
        two.run(number, 100.0 + 10 * number, {"orders": {"0": 510}}, logged_s=6.0)
    every.news(0)
    assert "runs in real-time mode" in every.problem(had_time=False)
