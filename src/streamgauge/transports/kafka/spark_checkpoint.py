"""How far the Spark queries of a user's program have read, seen from outside: by the logs in their checkpoints.

A query writes `offsets/N` before its batch N, and `commits/N` once that has ended. Both are text and renamed into their
places. It keeps the newest 100. A restarted query repeats a batch that has no `commits/N`, under the same number.
"""

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from streamgauge.core.clock import US
from streamgauge.system.disk import scratch_folder
from streamgauge.transports.kafka.group_offsets import remark_gap
from streamgauge.transports.kafka.topics import TopicPartition
from streamgauge.transports.spi import Receiver
from streamgauge.transports.topic_names import scratch_purpose

SourceOffsets = dict[tuple[int, str, int], int]
"""(number of the source, topic, partition) to the offset after the last message that was read."""
LATE_US, LATE_BATCHES = 4 * US, 2
"""Micro-batches log their offsets within milliseconds of their start. Real-time mode does at their end, after 5 s at
least."""
VOID = "-"
"""The offset of a source that has none yet."""


@dataclass(frozen=True)
class CheckpointBatch:
    """A batch that has ended or goes on: its start by Spark's own stamp, its end by that of its commit, microseconds.

    - `place`: that of its checkpoint. `ended_us`: 0 while it goes on.
    - `positions`: its offsets for `Receiver.read`, once its sources are readers of the run.
    """

    place: str
    number: int
    begun_us: int
    ended_us: int
    offsets: SourceOffsets
    positions: Sequence[tuple[str, int, int, int]] = ()


class SparkCheckpoint:
    """The checkpoint of one query.

    Args:
        place: its folder; `{scratch}` stands for the program's scratch folder, `{run}` for the run's id.
        run: the id of the run.
    """

    def __init__(self, place: str, run: str) -> None:
        self.place, self._run = place.replace("{run}", run), run
        self._last, self._ended_us, self._late, self._logged_us, self._begun = -1, 0, 0, 0, -1

    @property
    def real_time(self) -> bool:
        """Whether its query runs in real-time mode, which says nothing of a batch before its end."""
        return self._late >= LATE_BATCHES

    def news(self, now_us: int | None = None) -> list[CheckpointBatch]:
        """The batches that have ended since the last call, in order.

        `now_us`: the time now, by the clock that their times shall have; None for that of the files.
        """
        later_us = 0 if now_us is None else now_us - time.time_ns() // 1000
        found, folder = [], self._folder()
        for number in _numbers(folder / "commits"):
            if number <= self._last:
                continue
            try:
                begun_us, ends = _logged(folder, number)
                logged_us, ended_us = (
                    (folder / log / str(number)).stat().st_mtime_ns // 1000 for log in ("offsets", "commits")
                )
            except (OSError, ValueError, KeyError):  # torn, or gone: the next one says as much
                continue
            # Not by the files of a copied checkpoint, which are of one moment, and later than all stamps.
            is_late = logged_us - max(begun_us, self._logged_us) > LATE_US
            self._late, self._logged_us = self._late + 1 if is_late else 0, logged_us
            # Stamps are rounded down, and a batch begins after the one before.
            begun_us = max(begun_us, self._ended_us + 1)
            self._last, self._ended_us = number, max(ended_us, begun_us)
            found.append(CheckpointBatch(self.place, number, begun_us + later_us, self._ended_us + later_us, ends))
        return found

    def begun(self, now_us: int) -> list[CheckpointBatch]:
        """The batch that goes on, once, to be called after `news`; its `ended_us` is 0."""
        number, begun_us, ends = self._latest()
        if number <= max(self._last, self._begun):
            return []
        self._begun = number
        begun_us = max(begun_us, self._ended_us + 1)
        return [CheckpointBatch(self.place, number, begun_us + now_us - time.time_ns() // 1000, 0, ends)]

    def topics(self) -> set[str]:
        """The topics of its last batch, whether or not that has ended; empty without one."""
        return {topic for _, topic, _ in self._latest()[2]}

    def _latest(self) -> tuple[int, int, SourceOffsets]:
        """(number, start, offsets) of its last batch; -1 without one, or while its file is torn."""
        folder = self._folder()
        with suppress(OSError, ValueError, KeyError, IndexError):
            number = _numbers(folder / "offsets")[-1]
            return number, *_logged(folder, number)
        return -1, 0, {}

    def _folder(self) -> Path:
        if "{scratch}" not in self.place:
            return Path(self.place)
        return Path(self.place.replace("{scratch}", str(scratch_folder(scratch_purpose(self._run)) or os.devnull)))


def _numbers(log: Path) -> list[int]:
    """The batches that a log has, ascending."""
    try:
        return sorted(int(file.name) for file in log.iterdir() if file.name.isdigit())
    except OSError:  # the query has not begun
        return []


def _logged(folder: Path, number: int) -> tuple[int, SourceOffsets]:
    """(start of the batch, microseconds; its offsets). Raises OSError, ValueError or KeyError unless its file is whole.

    The lines: the format, metadata, and the offset of each source; in the second format after the source's name.
    """
    version, metadata, *sources = (folder / "offsets" / str(number)).read_text(encoding="utf-8").splitlines()
    if version not in ("v1", "v2"):
        raise ValueError(f"unknown format {version}")
    offsets = [source.partition(":")[2] if version == "v2" else source for source in sources]
    ends = {
        (number, topic, partition): end
        for number, offset in enumerate(offsets)
        if offset != VOID
        for topic, partition, end in _of_kafka(json.loads(offset))
    }
    return 1000 * int(json.loads(metadata)["batchTimestampMs"]), ends


def _of_kafka(offset: Any) -> Iterator[tuple[str, int, int]]:
    """(topic, partition, offset) of Kafka's source, such as `{"orders": {"0": 7}}`; nothing of any other source."""
    for topic, partitions in offset.items() if isinstance(offset, dict) else ():
        for partition, end in partitions.items() if isinstance(partitions, dict) else ():
            if partition.isdigit() and isinstance(end, int):
                yield topic, int(partition), end


class SparkCheckpoints:
    """Those of all queries of a program. Each source of a query is a reader of its own.

    Args:
        places, run: as those of `SparkCheckpoint`.
        firsts: the offset of the run's first event, for each partition.
        streams: topic to stream.
    """

    def __init__(
        self, places: Sequence[str], run: str, firsts: Mapping[TopicPartition, int], streams: Mapping[str, str]
    ) -> None:
        self._all = [SparkCheckpoint(place, run) for place in places]
        self._firsts, self._streams = firsts, streams
        self._readers: dict[tuple[str, int], int] = {}
        self._ends_us: list[int] = []

    def news(self, now_us: int) -> list[CheckpointBatch]:
        """The batches that have ended since the last call, in order of their ends, without those of other topics.

        Then the one that goes on, if there is one query: else what it reads would seem to be done with, once a batch of
        another query ends.
        """
        found = self._reads(batch for one in self._all for batch in one.news(now_us))
        found.sort(key=lambda batch: batch.ended_us)
        self._ends_us += [batch.ended_us for batch in found]
        return found + (self._reads(self._all[0].begun(now_us)) if len(self._all) == 1 else [])

    def _reads(self, batches: Iterable[CheckpointBatch]) -> list[CheckpointBatch]:
        reads = [replace(batch, positions=self._positions(batch)) for batch in batches]
        return [read for read in reads if read.positions]

    def _positions(self, batch: CheckpointBatch) -> list[tuple[str, int, int, int]]:
        return [
            (
                self._streams[topic],
                self._readers.setdefault((batch.place, source), len(self._readers)),
                partition,
                max(0, offset - first),
            )
            for (source, topic, partition), offset in batch.offsets.items()
            if (first := self._firsts.get((topic, partition))) is not None
        ]

    def problem(self, had_time: bool) -> str:
        """Why they show no progress, with a way out; empty if they do. `had_time`: whether each must, by now."""
        named = {place for place, _ in self._readers}
        for one in self._all:
            if one.real_time:
                return (
                    f"the query with the checkpoint {one.place} runs in real-time mode, which logs what it has read "
                    "only at the end of a long batch, and so shows no progress. Use micro-batches; or, with "
                    '--partitions 1, progress = "results" in its file'
                )
            if had_time and one.place not in named and not one.topics() & self._streams.keys():
                return (
                    f"results came, and the checkpoint {one.place} named no input of the program, so nothing showed "
                    "how far it had read. Correct spark_checkpoint in its file: the checkpointLocation of each query. "
                    "Real-time mode logs nothing before the end of a long batch, and needs, with --partitions 1, "
                    'progress = "results"'
                )
        return ""

    def remark(self, receiver: Receiver) -> None:
        """Reports how often batches end, once several have."""
        remark_gap(
            receiver,
            [end_us / US for end_us in self._ends_us],
            "progress is that of the program's checkpoints, where a batch ended every",
        )
