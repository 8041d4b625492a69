"""A trial as the driver would have seen it: made by rule, so that every figure can be computed by hand."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from streamgauge.config.experiment import build
from streamgauge.core.clock import US
from streamgauge.core.trial import TrialSpans
from streamgauge.dataflow.nodes import Flow
from streamgauge.dataflow.reach import reach_us
from streamgauge.loadgen.fields import Integer, Key, StreamSpec
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.rate_profile import parse_profile
from streamgauge.metrics.records import Commit, Tick, Usage
from streamgauge.metrics.trial_log import TrialLog
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.preflight.settings_checks import check
from streamgauge.transports.spi import Chunk, Delivery
from tests.unit.helpers_answers import Case

START = 1_700_000_000 * US
CHUNK_US = 100_000
EVENTS_BEFORE: dict[Plan, dict[tuple[int, int, int], int]] = {}
"""Of each plan the events before a border, by (stream, partition, border): most tests share their plan."""
FIELDS = (Key("user_id", 100), Integer("price", 1, 100))


@cache
def plan_of(
    rate: float = 1000.0, seconds: float = 60.0, partitions: int = 2, streams: int = 1, profile: str = "constant"
) -> Plan:
    shares = [1.0] if streams == 1 else [0.75, 0.25]
    names = ("purchases", "ads")
    specs = tuple(StreamSpec(name, FIELDS, share) for name, share in zip(names, shares, strict=False))
    return Plan(specs, parse_profile(profile, rate, seconds), START, seconds, partitions, 1)


def commit_of(batch: int, committed_us: int, rows: int = 10, frontier_us: int = 0, **more: Any) -> Commit:
    values = {"query": "", "sink": "", "emitted_us": committed_us - 1, "latency_us_p50": None, "paths": [], **more}
    return Commit(batch=batch, committed_us=committed_us, rows=rows, frontier_us=frontier_us, **values)


@dataclass
class Story:
    """A test bed's ticks, one for each batch of the engine.

    Generators offer every 0.1 s, `schedule_delay_us` after the chunk's end. Batch n is read `read_after_us` after
    second n + 1, takes all events before that second, and is committed `commit_after_us` later.
    """

    plan: Plan = field(default_factory=plan_of)
    seconds: int = 20
    schedule_delay_us: int = 1000
    read_after_us: int = 5000
    commit_after_us: int = 400_000
    growth_us: int = 0

    def __post_init__(self) -> None:
        self._before = EVENTS_BEFORE.setdefault(self.plan, {})

    def ticks(self) -> list[Tick]:
        return [self.tick(batch) for batch in range(self.seconds)]

    def tick(self, batch: int) -> Tick:
        low, high = START + batch * US, START + (batch + 1) * US
        when = high + self.read_after_us + batch * self.growth_us
        return tick_of(
            [self.chunks(partition, low, high) for partition in range(self.plan.partitions)],
            [self.reads(partition, low, high, when, batch) for partition in range(self.plan.partitions)],
            [commit_of(batch, when + self.commit_after_us, frontier_us=high - 1)],
            frontier_us=high,
        )

    def chunks(self, partition: int, low: int, high: int) -> list[Chunk]:
        starts = range(low, high, CHUNK_US)
        return [
            Chunk(
                start,
                start + CHUNK_US,
                self.count(partition, start, start + CHUNK_US),
                start + CHUNK_US + self.schedule_delay_us,
            )
            for start in starts
        ]

    def reads(self, partition: int, low: int, high: int, when: int, batch: int) -> list[Delivery]:
        return [
            Delivery(stream.name, low, high, self.count(partition, low, high, index), when, batch, False)
            for index, stream in enumerate(self.plan.streams)
        ]

    def count(self, partition: int, low: int, high: int, stream: int | None = None) -> int:
        streams = range(len(self.plan.streams)) if stream is None else (stream,)
        return sum(self._count_of(each, partition, high, low) for each in streams)

    def _count_of(self, stream: int, partition: int, high: int, low: int) -> int:
        """Events of [low, high); where one chunk or batch ends the next one begins, so each border is asked once."""
        for border in (high, low):
            if (stream, partition, border) not in self._before:
                self._before[stream, partition, border] = self.plan.count_before(stream, partition, border)
        return self._before[stream, partition, high] - self._before[stream, partition, low]

    def trial_log(self) -> TrialLog:
        trial_log = TrialLog(self.plan)
        for tick in self.ticks():
            trial_log.add(tick)
        return trial_log

    def record(self, **more: Any) -> TrialRecord:
        """Conducted: 5 s of warm-up, 10 s measured, 5 s of tail."""
        spans = TrialSpans(START, START + 5 * US, START + 15 * US, START + 20 * US)
        return TrialRecord(self.trial_log(), spans, **{"drained": True, "deadline_us": START + 21 * US, **more})


def tick_of(chunks: list[list[Chunk]], deliveries: list[list[Delivery]], commits: list[Commit], **more: Any) -> Tick:
    values = {"frontier_us": START, "rows_ignored": {}, "overflowed": False, "ended": False, **more}
    return Tick(chunks=chunks, deliveries=deliveries, commits=commits, **values)


def usage_of(second: float, name: str, role: Any, cpu: float = 50.0, memory: int = 100, waiting: float = 0.0) -> Usage:
    return Usage(START + round(second * US), name, role, cpu, memory, waiting)


@dataclass(frozen=True)
class Makers:
    """What tests in this folder make trials of."""

    start: int = START
    chunk_us: int = CHUNK_US
    story: Callable[..., Story] = Story
    plan: Callable[..., Plan] = plan_of
    commit: Callable[..., Commit] = commit_of
    tick: Callable[..., Tick] = tick_of
    usage: Callable[..., Usage] = usage_of


@pytest.fixture(scope="session")
def make() -> Makers:
    """Makers of stories, plans, commits, ticks and usages."""
    return Makers()


@pytest.fixture(scope="module")
def resolved() -> ResolvedExperiment:
    """A checked experiment with finite reach."""
    values: dict[str, Any] = {"workload": "windowed_aggregation", "load": {"rate": 1000, "duration": "30s"}}
    return check(build(values))


@pytest.fixture
def case(make: Any, tmp_path: Path) -> Callable[..., Case]:
    any_workload = check(build({"workload": "windowed_aggregation", "load": {"rate": 1000, "generators": 2}}))

    def made(flow: Flow, **more: Any) -> Case:
        resolved = replace(any_workload, flow=flow, reach_us=reach_us(flow))
        record = make.story(plan=make.plan(streams=2)).record(**more)
        return Case(resolved, record, tmp_path)

    return made
