"""The open loop itself, on a clock and an outlet that these tests play: no process, no socket, no time that passes."""

import pickle
import threading
from collections import deque
from collections.abc import Callable
from itertools import accumulate, pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.clock import US
from streamgauge.core.schema import EVENT_TIME
from streamgauge.harness import generator_process as module
from streamgauge.loadgen.fields import Integer, Key, StreamSpec
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.rate_profile import parse_profile
from streamgauge.transports.spi import Chunk, Delivery, EndpointConfig, OutletConfig, Overflow
from tests.helpers_recording import append_and_return

RATE, STREAM = 1000.0, "purchases"
START, CHUNK_US = 1_700_000_000 * US, 100_000
SECOND = START + US


def plan_of(rate_per_s: float) -> Plan:
    """Two partitions of one stream, for a minute."""
    streams = (StreamSpec(STREAM, (Integer("price", 1, 100),)),)
    return Plan(streams, parse_profile("constant", rate_per_s, 60.0), START, 60.0, partitions=2, seed=1)


class PlayedClock:
    """Time passes only in sleeps, and as long as a test says. `at` holds what happens when a sleep until then ends."""

    def __init__(self) -> None:
        self.now = START
        self.at: dict[int, Callable[[], None]] = {}

    def now_us(self) -> int:
        return self.now

    def pass_time(self, us: int) -> None:
        self.now += us

    def sleep_until(self, when_us: int) -> None:
        self.now = max(self.now, when_us)
        self.at.pop(when_us, lambda: None)()


class Recording:
    """An outlet that records what it is offered: `full_from` is the event time from which it has no room."""

    location = "nowhere"

    def __init__(self) -> None:
        self.overflowed, self.memory_full_us, self.full_from = False, None, None
        self.offered, self.event_times = list[Chunk](), list[int]()
        self.waits: Callable[[], int] | None = None
        self.commit, self.mark_delivered = Mock(), Mock()
        self.aborted_us, self.delivering = deque[int](), SimpleNamespace(news=list)
        self.extra_columns: Any = lambda _: (EVENT_TIME,)
        self.prepared: Any = lambda _, batch: batch

    def offer(self, from_us: int, to_us: int, batches: dict[str, pa.RecordBatch], published_us: int) -> None:
        if self.full_from is not None and to_us > self.full_from:
            self.overflowed = True
            raise Overflow("queue full")
        times = [time for batch in batches.values() for time in batch.column(EVENT_TIME).to_pylist()]
        assert all(from_us <= time < to_us for time in times)
        self.event_times += times
        self.offered.append(Chunk(from_us, to_us, len(times), published_us))

    def waiting_us(self) -> int:
        assert self.waits is not None, "an open loop does not ask how much waits"
        return self.waits()

    @property
    def frontier_us(self) -> int:
        return self.offered[-1].to_us if self.offered else 0

    def drain_logs(self) -> tuple[list[Chunk], list[Delivery]]:
        return self.offered, []

    def positions(self) -> dict[str, int]:
        return {"purchases": sum(chunk.events for chunk in self.offered)}

    def lateness(self) -> list[int]:
        """How long after its end each chunk was there, in milliseconds."""
        return [(chunk.published_us - chunk.to_us) // 1000 for chunk in self.offered]

    def spans(self) -> list[tuple[int, int]]:
        """Where each chunk begins and ends, milliseconds of the plan."""
        return [((chunk.from_us - START) // 1000, (chunk.to_us - START) // 1000) for chunk in self.offered]


class AtOnce:
    """A thread that has done its work when `start` returns."""

    def __init__(self, target: Callable[..., None], args: tuple[Any, ...], daemon: bool) -> None:
        self._work = lambda: target(*args)

    def start(self) -> None:
        self._work()

    def join(self) -> None:
        pass


class Stage:
    """A generator of one partition with what is played around it."""

    def __init__(self, folder: Path, partition: int = 0) -> None:
        self.clock: Any = PlayedClock()
        self.outlet: Any = Recording()
        self.folder = folder
        outlet = OutletConfig({}, US, 1, self.clock.now_us, partition)
        settings = module.GeneratorSettings(
            EndpointConfig("", 0, ""), outlet, self.clock, {STREAM: ["price"]}, "memory"
        )
        with patch.object(module, "transport", lambda _: SimpleNamespace(open_outlet=lambda *_: self.outlet)):
            self.generator = module.Generator(settings)

    def follow(self, plan: Plan, end_us: int, pace_us: int | None = None, chunk_us: int = CHUNK_US) -> None:
        path = self.folder / "plan"
        path.write_bytes(pickle.dumps(plan))
        self.generator.segment(str(path), end_us, chunk_us, pace_us)

    def status(self, name: str) -> Any:
        return self.generator.status()[name]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a generator does in its thread is done when `segment` returns."""
    monkeypatch.setattr(module, "Thread", AtOnce)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def planned(plan: Plan, partition: int, end_us: int) -> list[int]:
    """The event times of a partition up to `end_us`, from the plan alone."""
    last = plan.count_before(0, partition, end_us)
    return [int(time) for time in plan.batch(0, partition, 0, last, [EVENT_TIME]).column(EVENT_TIME).to_pylist()]


@pytest.mark.parametrize("partition", [0, 1])
def test_chunks_are_there_when_their_time_has_come(tmp_path: Path, partition: int) -> None:
    """One after the other without a gap, each at its end, with this partition's events of the plan and no other."""
    stage, plan = Stage(tmp_path, partition), plan_of(RATE)
    stage.follow(plan, SECOND)
    assert stage.outlet.spans() == [(at, at + 100) for at in range(0, 1000, 100)]
    assert stage.outlet.lateness() == [0] * 10
    assert stage.outlet.event_times == planned(plan, partition, SECOND)
    status = {"ended": True, "failed": "", "overflowed": False, "frontier_us": SECOND}
    assert {name: stage.status(name) for name in status} == status
    assert stage.status("chunks")[0] == (START, START + CHUNK_US, 50, START + CHUNK_US)


def test_a_chunk_that_comes_late_is_published_late_and_never_shifted(stage: Stage) -> None:
    """A generator that gets no processor for 0.35 s: its events keep the plan's times, and what was missed comes at
    once after it, each chunk with its own lateness, until the plan is caught up with.
    """
    plan = plan_of(RATE)
    stage.clock.at[START + 3 * CHUNK_US] = lambda: stage.clock.pass_time(350_000)
    stage.follow(plan, SECOND)
    assert stage.outlet.lateness() == [0, 0, 350, 250, 150, 50, 0, 0, 0, 0]
    assert stage.outlet.spans() == [(at, at + 100) for at in range(0, 1000, 100)]
    assert stage.outlet.event_times == planned(plan, 0, SECOND)


def test_chunks_are_made_before_their_time(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Making one takes as long as it takes; it must not be in the way when its time has come."""
    made_at: list[int] = []
    make = Plan.batch

    def slow(plan: Plan, *given: Any) -> pa.RecordBatch:
        made_at.append(stage.clock.now)
        stage.clock.pass_time(CHUNK_US // 2)
        return make(plan, *given)

    monkeypatch.setattr(Plan, "batch", slow)
    stage.follow(plan_of(RATE), SECOND)
    assert made_at == [chunk.from_us for chunk in stage.outlet.offered]
    assert stage.outlet.lateness() == [0] * 10


def test_a_halt_ends_the_load_at_once(stage: Stage) -> None:
    """What was made and is not due yet is not offered any more."""
    stage.clock.at[START + 4 * CHUNK_US] = stage.generator.halt
    stage.follow(plan_of(RATE), SECOND)
    assert stage.outlet.spans()[-1] == (200, 300)
    assert stage.status("ended")


def test_a_plan_that_is_extended_goes_on_without_a_gap(stage: Stage) -> None:
    """The end may be moved until it is reached, in steps that are no multiples of a chunk."""
    plan = plan_of(RATE)
    stage.clock.at[START + 2 * CHUNK_US] = lambda: stage.generator.extend(START + 450_000)
    stage.follow(plan, START + 250_000)
    assert stage.outlet.spans() == [(0, 100), (100, 200), (200, 300), (300, 400), (400, 450)]
    assert stage.outlet.event_times == planned(plan, 0, START + 450_000)


@pytest.mark.parametrize(
    ("pace_us", "waiting_us", "lateness"),
    [(200_000, [0, 300_000, 300_000, 100_000], [20, 60, 20]), (50_000, [0, 1000, 1000, 0], [20, 60, 20])],
    ids=["pace of two chunks", "pace of half a chunk"],
)
def test_a_pace_makes_the_plan_stand_still_while_too_much_waits(
    stage: Stage, pace_us: int, waiting_us: list[int], lateness: list[int]
) -> None:
    """A closed loop: the chunk is offered when there is room, at its own event times, and late by that. A chunk longer
    than the pace waits only behind unread events, or the plan would never go on.
    """
    waits = iter(waiting_us)
    stage.outlet.waits = lambda: stage.clock.pass_time(20_000) or next(waits, 0)
    stage.follow(plan_of(RATE), START + 3 * CHUNK_US, pace_us=pace_us)
    assert stage.outlet.spans() == [(0, 100), (100, 200), (200, 300)]
    assert stage.outlet.lateness() == lateness


@pytest.mark.parametrize(
    ("pace_us", "waiting_us", "paused"),
    [(None, None, False), (200_000, 0, False), (200_000, 100_000, False), (200_000, 100_001, True)],
)
def test_a_status_says_whether_the_pace_is_reached(
    stage: Stage, pace_us: int | None, waiting_us: int | None, paused: bool
) -> None:
    """With one more chunk."""
    stage.outlet.waits = lambda: 0
    stage.follow(plan_of(RATE), SECOND, pace_us=pace_us)
    stage.outlet.waits = waiting_us if waiting_us is None else lambda: waiting_us
    assert stage.status("paused") is paused


def test_a_halt_ends_the_wait_for_room(stage: Stage) -> None:
    """Nothing reads any more; the chunk that waited is not offered."""

    def stopped() -> int:
        stage.generator.halt()
        return US

    stage.outlet.waits = stopped
    stage.follow(plan_of(RATE), SECOND, pace_us=200_000)
    assert (stage.outlet.offered, stage.status("ended")) == ([], True)


def test_an_open_loop_does_not_ask_what_waits(stage: Stage) -> None:
    """Only the bound ends it: nothing is offered past it, the status says why, and what was offered stays."""
    stage.outlet.full_from = START + 3 * CHUNK_US
    stage.follow(plan_of(RATE), SECOND)
    assert stage.outlet.spans()[-1] == (200, 300)
    assert (stage.status("ended"), stage.status("overflowed")) == (True, True)
    assert stage.status("failed") == "Overflow: queue full"


def test_a_segment_does_not_answer_for_the_overflow_before_it(stage: Stage) -> None:
    """Each trial of a warm test bed begins with a clean status."""
    stage.outlet.full_from = START + 3 * CHUNK_US
    stage.follow(plan_of(RATE), SECOND)
    stage.outlet.full_from, stage.outlet.memory_full_us = None, 7
    stage.follow(plan_of(RATE), SECOND)
    assert [stage.status(name) for name in ("overflowed", "memory_full_us", "failed")] == [False, None, ""]
    assert stage.status("frontier_us") == SECOND


def test_a_new_segment_ends_the_one_before(stage: Stage) -> None:
    """Two plans never mix: from then on all chunks are those of the second."""
    other = plan_of(2 * RATE)
    stage.clock.at[START + 3 * CHUNK_US] = lambda: stage.follow(other, START + 5 * CHUNK_US)
    stage.follow(plan_of(RATE), SECOND)
    assert stage.outlet.spans() == [(0, 100), (100, 200), *[(at, at + 100) for at in range(0, 500, 100)]]
    assert [chunk.events for chunk in stage.outlet.offered] == [50] * 2 + [100] * 5


def test_a_new_segment_begins_after_the_chunk_in_flight(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or its events would be counted into the positions of the next plan."""
    in_flight, joined = threading.Event(), threading.Event()

    class Joined(threading.Thread):
        def join(self, timeout: float | None = None) -> None:
            joined.set()
            super().join(timeout)

    def slow(*chunk: Any) -> None:
        in_flight.set()
        joined.wait()
        Recording.offer(stage.outlet, *chunk)

    monkeypatch.setattr(module, "Thread", Joined)
    monkeypatch.setattr(stage.outlet, "offer", slow)
    stage.follow(plan_of(RATE), SECOND)
    in_flight.wait()
    path = str(stage.folder / "plan")
    positions = stage.generator.segment(path, START + CHUNK_US, CHUNK_US)
    joined.set()
    assert positions == {STREAM: 50}


def test_levelling_moves_the_frontier_without_events(stage: Stage) -> None:
    """Between two plans, so that what others offered may be read: once, and never back."""
    plan = plan_of(RATE)
    stage.generator.level(SECOND)
    assert stage.outlet.offered == []  # no plan was followed yet: there is nothing to level
    stage.follow(plan, START + 2 * CHUNK_US)
    for to_us in (SECOND, SECOND, START):
        stage.generator.level(to_us)
    assert stage.outlet.spans() == [(0, 100), (100, 200), (200, 1000)]
    assert stage.outlet.offered[-1].events == 0
    assert stage.outlet.event_times == planned(plan, 0, START + 2 * CHUNK_US)


def test_an_error_of_ours_is_reported_and_not_hidden(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The status has it for the runner, and the traceback goes to the process's log."""
    monkeypatch.setattr(Plan, "batch", Mock(side_effect=ValueError("no such column")))
    with pytest.raises(ValueError, match="no such column"):
        stage.follow(plan_of(RATE), SECOND)
    assert (stage.status("ended"), stage.status("failed")) == (True, "ValueError: no such column")


def test_a_process_passes_requests_to_each_of_its_partitions(tmp_path: Path) -> None:
    """Answers are in the order of the partitions, and each partition gets only how far it was read itself."""
    stages = [Stage(tmp_path, partition) for partition in (0, 1)]
    process = module.requests([stage.generator for stage in stages])
    plan, path = plan_of(RATE), tmp_path / "plan"
    path.write_bytes(pickle.dumps(plan))
    assert process["segment"](plan=str(path), end_us=SECOND, chunk_us=CHUNK_US) == [{STREAM: 0}, {STREAM: 0}]
    assert [report["frontier_us"] for report in process["status"]()] == [SECOND, SECOND]
    assert [stage.outlet.event_times for stage in stages] == [planned(plan, each, SECOND) for each in (0, 1)]
    process["mark_delivered"](before_us=[5, 7])
    assert [stage.outlet.mark_delivered.call_args.args for stage in stages] == [(5,), (7,)]


def stock_of(plan: Plan, partition: int) -> module.Stock:
    return module.Stock(plan, partition, {STREAM: ["price", EVENT_TIME]}, lambda _, batch: batch)


@given(
    lengths=st.lists(st.integers(1, 120_000), min_size=1, max_size=30),
    rate=st.sampled_from([1.0, 37.0, 1000.0, 9_999.0]),
    partition=st.integers(0, 1),
)
def test_what_is_made_ahead_is_the_plan_cut_into_chunks(lengths: list[int], rate: float, partition: int) -> None:
    """Every event once, in the chunk of its time, however long the chunks are."""
    plan, columns = plan_of(rate), ["price", EVENT_TIME]
    stock, borders = stock_of(plan, partition), list(accumulate(lengths, initial=START))
    chunks = [stock.take(low, high)[STREAM] for low, high in pairwise(borders)]
    whole = plan.batch(0, partition, 0, plan.count_before(0, partition, borders[-1]), columns)
    assert pa.Table.from_batches(chunks).combine_chunks() == pa.Table.from_batches([whole]).combine_chunks()
    for chunk, (low, high) in zip(chunks, pairwise(borders), strict=True):
        assert all(low <= time < high for time in chunk.column(EVENT_TIME).to_pylist())


def test_short_chunks_are_made_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five of 10 ms at once."""
    plan, made = plan_of(RATE), list[Any]()
    batch = Plan.batch
    monkeypatch.setattr(Plan, "batch", lambda *args: append_and_return(made, args, batch(*args)))
    stock = stock_of(plan, 0)
    for number in range(10):
        stock.take(START + number * 10_000, START + (number + 1) * 10_000)
    assert len(made) == 2


def test_a_partition_without_events_does_not_wait_for_room(stage: Stage) -> None:
    """No reader ever reads from it, so a closed loop would never go on."""
    spec = StreamSpec(STREAM, (Key("price", 9, "single"),), key="price")
    plan = Plan((spec,), parse_profile("constant", RATE, 60.0), START, 60.0, partitions=2, seed=1, keyed=True)
    lone = Stage(stage.folder, int(np.argmin(plan.partition_shares(0))))
    lone.outlet.waits = lambda: US
    lone.follow(plan, START + 3 * CHUNK_US, pace_us=200_000)
    assert [chunk.events for chunk in lone.outlet.offered] == [0, 0, 0]
