"""What a test bed makes of its processes' reports."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamgauge.core.errors import DriverError
from streamgauge.harness.start_processes import TestBed
from streamgauge.metrics.records import Commit, GeneratorReport, RecorderReport
from streamgauge.transports.spi import Chunk, Delivery

COMMIT = Commit("q", 1, "results", 8, 7, 3, 5, None, ["a.arrow"])
QUIET = RecorderReport(commits=[], reads=[], reached=[], rows_ignored={}, failed="", disk_full=False)
BUSY = replace(
    QUIET, commits=[COMMIT], rows_ignored={"results": 1}, retried_us=[6], receiving=[(1, 2)], writing=[(2, 3)],
    stood_still=[(9, 1)],
)  # fmt: skip


def generator(reached_us: int, **fields: Any) -> GeneratorReport:
    """One that has offered and delivered one chunk."""
    report = GeneratorReport(
        reached_us, False, None, True, "", [Chunk(0, reached_us, 3, 6)],
        [Delivery("purchases", 0, reached_us, 3, 7, 1, again=False)], [reached_us], [(reached_us, reached_us + 1)],
    )  # fmt: skip
    return replace(report, **fields)


def testbed_of(folder: Path, generators: list[GeneratorReport], recorder: RecorderReport) -> TestBed:
    """A test bed whose children answer with these reports."""
    bed = bed_of(folder, len(generators), len(generators))
    bed._generators = [child([one]) for one in generators]
    bed._recorder = child(recorder)
    return bed


def bed_of(folder: Path, generators: int, partitions: int) -> TestBed:
    settings: Any = SimpleNamespace(generators=generators, partitions=partitions)
    return TestBed(settings, SimpleNamespace, folder, SimpleNamespace())


def child(report: list[GeneratorReport] | RecorderReport) -> Any:
    answer = json.dumps([one.to_json() for one in report] if isinstance(report, list) else report.to_json())
    return SimpleNamespace(ask=lambda request: {"status": json.loads(answer)}[request])


def test_a_tick_has_the_reports_of_all_processes(tmp_path: Path) -> None:
    """Lists of generators stay apart where a trial needs them apart; the slowest says how far all have come."""
    generators = [generator(5), generator(4, ended=False, overflowed=True, memory_full_us=20)]
    bed = testbed_of(tmp_path, generators, BUSY)
    tick = bed.tick()
    chunks, deliveries = [one.chunks for one in generators], [one.deliveries for one in generators]
    assert (tick.chunks, tick.deliveries) == (chunks, deliveries)
    assert (tick.frontier_us, tick.ended, tick.overflowed, tick.memory_full_us) == (4, False, True, 20)
    assert (tick.aborted_us, tick.delivering) == ([5, 4], [(5, 6), (4, 5)])
    recorded = (tick.commits, tick.rows_ignored, tick.retried_us, tick.receiving, tick.writing, tick.stood_still)
    assert recorded == ([COMMIT], {"results": 1}, [6], [(1, 2)], [(2, 3)], [(9, 1)])
    assert (bed.reached_us, bed._reported_results) == (5, ["a.arrow"])


@pytest.mark.parametrize(("generators", "partitions"), [(1, 1), (2, 2), (2, 5), (3, 4), (1, 4)])
def test_each_partition_has_one_writer(tmp_path: Path, generators: int, partitions: int) -> None:
    """Replies come in the order of the partitions, whichever process wrote them."""
    bed = bed_of(tmp_path, generators, partitions)
    written = [list(bed._written_by(number)) for number in range(generators)]
    assert sorted(each for of_one in written for each in of_one) == list(range(partitions))
    children: list[Any] = [SimpleNamespace(ask=lambda _, own=own: own) for own in written]
    bed._generators = children
    assert bed._ask_all("positions") == list(range(partitions))


def test_every_process_that_failed_is_named(tmp_path: Path) -> None:
    """Except a generator with a full queue: the trial judges that."""
    full = generator(4, overflowed=True, failed="the queue is full")
    failed = replace(QUIET, failed="no space", disk_full=True)
    bed = testbed_of(tmp_path, [full, generator(5, failed="out of memory", deliveries=[])], failed)
    with pytest.raises(DriverError, match=r"^no space; out of memory$") as raised:
        bed.tick()
    assert raised.value.disk_full
    assert (bed.waiting_events(), bed.reached_us) == ([0, 3], 5)  # for the trials that may follow
    assert testbed_of(tmp_path, [full], QUIET).tick().overflowed


def tick_with(chunks: list[list[Chunk]], deliveries: list[list[Delivery]]) -> Any:
    return SimpleNamespace(chunks=chunks, deliveries=deliveries)


def read(query: str, events: int, again: bool = False) -> Delivery:
    return Delivery("ads", 0, 5, events, 7, 1, again, query)


def test_events_wait_until_the_slowest_reader_has_them(tmp_path: Path) -> None:
    """Of all trials, by partition: each stream by its slowest reader, and a redelivery takes nothing."""
    bed = testbed_of(tmp_path, [generator(5), generator(5)], QUIET)
    bed._count(tick_with([[Chunk(0, 5, 100, 5)], [Chunk(0, 5, 20, 5)]], [[], []]))
    assert bed.waiting_events() == [100, 20]
    bed._count(tick_with([[], []], [[read("q0", 100), read("q1", 40), read("q1", 40, again=True)], [read("q0", 20)]]))
    assert bed.waiting_events() == [60, 20]
    bed._count(tick_with([[], []], [[read("q1", 60)], []]))
    assert bed.waiting_events() == [0, 20]
    bed._count(tick_with([[], []], [[], [read("q1", 20)]]))
    assert bed.waiting_events() == [0, 0]
