"""A test bed of words, and a clock that moves only when the conductor sleeps."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from streamgauge.core.clock import US
from streamgauge.core.errors import DriverError
from streamgauge.core.trial import TrialSpans
from streamgauge.engines.spi import EngineStatus
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.trial.events import Progress, TrialEvent
from streamgauge.trial.phases import DRAIN_S, Extension, PhaseRunner, TrialPolicy

START = 1_700_000_000 * US
SPANS = TrialSpans(START, START + 5 * US, START + 15 * US, START + 20 * US)


@dataclass
class FakeClock:
    """Stands still unless the conductor sleeps."""

    now: int = START - US // 2

    def now_us(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds >= 0
        self.now += max(1, round(seconds * US))

    def monotonic(self) -> float:
        return self.now / US


@dataclass
class FakeTestBed:
    """Gives what a story's trial would have given by now; records what it was requested to do."""

    story: Any
    make: Any
    clock: FakeClock
    sinks: tuple[str, ...] = ("",)
    trials: int = 0
    requests: list[tuple[Any, ...]] = field(default_factory=list)
    status: EngineStatus = field(default_factory=lambda: EngineStatus(True))
    statuses: int = 0
    not_carried: str = ""
    not_kept: str = ""
    on_tick: Callable[[int], object] = lambda now_us: None
    until_us: int = 0
    given_us: int = 0
    waiting: list[int] = field(default_factory=lambda: [0, 0])
    paused: list[bool] = field(default_factory=lambda: [True, True])
    silent_from_us: int | None = None
    silent: tuple[int, ...] = (0, 1)
    """The partitions that get nothing from `silent_from_us` on."""
    ticks: dict[tuple[int, int], Any] = field(default_factory=dict)
    events: list[TrialEvent] = field(default_factory=list)

    def begin(self, plan: Any, end_us: int, chunk_us: int, pace_us: int | None = None) -> None:
        self.trials += 1
        self.until_us = end_us
        self.requests.append(("begin", end_us, chunk_us, pace_us))

    def extend(self, end_us: int) -> None:
        self.until_us = end_us
        self.requests.append(("extend", end_us))

    def halt(self) -> None:
        self.requests.append(("halt", self.clock.now))

    def level(self) -> None:
        self.requests.append(("level", self.clock.now))

    def waiting_events(self) -> list[int]:
        return self.waiting

    def commit(self, before_us: int) -> None:
        self.requests.append(("commit", before_us))

    def tick(self) -> Any:
        """What happened since the last look."""
        self.on_tick(self.clock.now)
        since, self.given_us = self.given_us, self.clock.now
        whole = [self.batch(number) for number in range((self.until_us - START) // US)]

        def new(when_us: int) -> bool:
            return since < when_us <= self.given_us

        def offered(when_us: int, partition: int) -> bool:
            silent_from_us = self.silent_from_us if partition in self.silent else None
            return new(when_us) and (silent_from_us is None or when_us < silent_from_us)

        partitions = range(self.story.plan.partitions)
        return self.make.tick(
            [[c for tick in whole for c in tick.chunks[p] if offered(c.published_us, p)] for p in partitions],
            [[h for tick in whole for h in tick.deliveries[p] if new(h.ingest_us)] for p in partitions],
            [commit for tick in whole for commit in tick.commits if new(commit.committed_us)],
            frontier_us=min(self.clock.now, self.until_us),
        )

    def batch(self, number: int) -> Any:
        key = (number, self.story.commit_after_us)
        if key not in self.ticks:
            self.ticks[key] = self.story.tick(number)
        return self.ticks[key]

    def require_all_topics(self) -> None:
        require(self.not_carried)

    def require_no_lost_events(self, all_sent: bool = False) -> None:
        self.requests.append(("all sent", all_sent))
        require(self.not_kept)

    def engine_status(self) -> EngineStatus:
        self.statuses += 1
        return self.status

    def processes(self) -> list[Any]:
        return []

    def requests_named(self, what: str) -> list[tuple[Any, ...]]:
        return [one for one in self.requests if one[0] == what]

    def after(self, second: float, action: Callable[[], object]) -> None:
        """Calls `action` at every tick after a second of the plan."""
        self.on_tick = lambda now_us: now_us > START + second * US and action()

    def replaced(self, change: Callable[[int, Any], Any]) -> None:
        """Every batch is `change(number, tick)` of what it would have been."""
        plain = self.batch
        self.batch = lambda number: change(number, plain(number))  # type: ignore[method-assign]


def require(failure: str) -> None:
    if failure:
        raise DriverError(failure)


def conductor(
    testbed: FakeTestBed, on_progress: Callable[[TrialRecord], object] | None = None, **more: Any
) -> PhaseRunner:
    """With a policy that waits for results, and has `more` in place of its own attributes and methods."""
    fake: Any = testbed
    policy = TrialPolicy()
    for name, value in {"drain_s": DRAIN_S, **more}.items():
        setattr(policy, name, value)

    def observe(event: TrialEvent) -> None:
        testbed.events.append(event)
        if on_progress is not None and isinstance(event, Progress):
            on_progress(event.record)

    return PhaseRunner(fake, testbed.story.plan, SPANS, testbed.make.chunk_us, policy, observe)


def extensions(more_us: list[int]) -> Any:
    """A decision of a policy, called until there is no more."""
    left = iter(more_us)
    return lambda _: next((Extension(each, "undecided") for each in left), None)
