"""The one conductor of a trial, from the plan's first event to the last result; judging comes after.

1. begin: generators follow the plan from the next whole second on
2. warm-up, prolonged while the engine is still starting; measured span: watch once a half second; end early only where
   it is hopeless
3. at the end of the span: extend it (at most twice) where the trends are undecided
4. tail: the plan goes on for the flow's reach, so that every measured result closes by itself
5. drain: wait until the sink has committed what was offered, up to a deadline
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from streamgauge.errors import DriverError, is_full
from streamgauge.events import US
from streamgauge.measure.monitors import Monitors, loopback_bytes
from streamgauge.measure.records import Tick
from streamgauge.measure.reference_work import ReferenceWork
from streamgauge.run.journal import Journal
from streamgauge.run.rig import Rig
from streamgauge.system.interrupts import held_back

if TYPE_CHECKING:
    from streamgauge.load.plan import Plan

TICK_S = 0.5
STATUS_EVERY_S = 2.0
SETTLE_US = US
"""How far ahead the end is set once it is known: every generator is still before it."""
CLOSING_US = 5 * US
"""So long after the last input's commit a batch that closes windows is waited for, besides the engine's intervals and
while the engine says that it works on one.
"""
CLOSING_INTERVALS = 2
"""The batch that closes windows begins one interval after the last input's, and takes as long as one at most."""
DRAIN_S = 60.0
DRAIN_INTERVALS = CLOSING_INTERVALS + 2
"""One until the last input is read, one for its batch, and then what the closing batch is given."""


@dataclass(frozen=True)
class Spans:
    """The planned spans of a trial, microseconds: [start, measured_from) warm-up, [measured_from, measured_to), tail
    until end.
    """

    start_us: int
    measured_from_us: int
    measured_to_us: int
    end_us: int

    def ending(self, end_us: int) -> Spans:
        return Spans(self.start_us, self.measured_from_us, self.measured_to_us, max(self.end_us, end_us))

    def later(self, by_us: int) -> Spans:
        """The same with a longer warm-up."""
        return Spans(
            self.start_us, *(time + by_us for time in (self.measured_from_us, self.measured_to_us, self.end_us))
        )

    def longer(self, by_us: int) -> Spans:
        return Spans(self.start_us, self.measured_from_us, self.measured_to_us + by_us, self.end_us + by_us)


@dataclass
class Conducted:
    """What a trial left to judge. Its warm-up was prolonged, and its span extended, for what is named, each time.

    `disk_full`: why the driver failed.
    """

    journal: Journal
    spans: Spans
    looks: int = 1
    prolonged_us: int = 0
    prolonged_for: list[str] = field(default_factory=list)
    extended_for: list[str] = field(default_factory=list)
    engine_failed: str = ""
    driver_failed: str = ""
    disk_full: bool = False
    hopeless: str = ""
    interrupted: bool = False
    drained: bool = False
    deadline_us: int = 0
    earlier_trials: bool = False

    @property
    def ended_early(self) -> bool:
        return bool(self.hopeless or self.engine_failed or self.driver_failed or self.interrupted)

    @property
    def owes_all(self) -> bool:
        """Whether every result was due: an engine that has not delivered by the deadline owes it still."""
        return not self.ended_early

    @property
    def measured_until(self) -> int:
        """The end of what was measured: that of the span, or where a trial ended early."""
        return self.offered_spans.measured_to_us

    @property
    def offered_spans(self) -> Spans:
        """The spans as they were: of a trial that ended early, no more of each than was offered."""
        spans = self.spans
        if not self.ended_early:
            return spans
        until = self.offered_until()
        borders = (spans.measured_from_us, spans.measured_to_us, spans.end_us)
        return Spans(spans.start_us, *(min(border, until) for border in borders))

    def offered_until(self) -> int:
        """The event time up to which every generator offered all there was."""
        reached = [log[-1].to_us if log else self.spans.start_us for log in self.journal.chunks]
        return min([self.spans.end_us, *(reached or [self.spans.start_us])])


class Stop(Exception):
    """Ends the watching; the reason stands in `Conducted`."""


class Conductor:
    """Conducts one trial on a started rig.

    Args:
        rig: the processes.
        plan: the trial's plan; its first event is at `spans.start_us`.
        spans: the planned spans.
        chunk_us: how much event time travels at once.
        on_tick: called after each look, to show progress.
        hopeless: says why a trial cannot be sustained any more, or None.
        levelling: at the end of the warm-up, says by how many microseconds it goes on, 0 for not at all.
        undecided: at the end of look n, says by how many microseconds to extend, 0 for not at all.
        failed: at the end of the span, says why the tail need not be waited for, or None.
        drain_s: how long results may keep us waiting after the plan's end, and a few intervals.
        interval_s: how far apart the engine's batches begin, 0 where that is not known.
        closes_late: sinks whose results may come one batch after the last input; a short while is waited for that.
        hold_us: how long generators go on past the plan's end while it is decided whether to extend.
        pace_us: let the plan stand still while so much event time waits: a search's overload trial.
    """

    def __init__(
        self,
        rig: Rig,
        plan: Plan,
        spans: Spans,
        chunk_us: int,
        *,
        on_tick: Callable[[Conducted], None] = lambda _: None,
        hopeless: Callable[[Conducted], str | None] = lambda _: None,
        levelling: Callable[[Conducted], int] = lambda _: 0,
        undecided: Callable[[Conducted], int] = lambda _: 0,
        failed: Callable[[Conducted], str | None] = lambda _: None,
        drain_s: float = DRAIN_S,
        interval_s: float = 0.0,
        hold_us: int = 0,
        pace_us: int | None = None,
        closes_late: tuple[str, ...] = (),
    ) -> None:
        self._rig, self._on_tick, self._hopeless, self._undecided = rig, on_tick, hopeless, undecided
        self._drain_s, self._chunk_us, self._pace_us, self._plan = drain_s, chunk_us, pace_us, plan
        self._closes_late, self._failed, self._hold_us = closes_late, failed, hold_us
        self._levelling, self._interval_s = levelling, interval_s
        self.done = Conducted(Journal(plan, rig.sinks), spans, earlier_trials=rig.trials > 0)
        self._monitors = Monitors(rig.processes, rig.clock.now_us)
        self._reference_work = ReferenceWork()
        self._status_due = 0.0
        self._busy_us: dict[str, int] = {}
        """When the engine last said of a query that it works on a batch."""

    def conduct(self) -> Conducted:
        """Run the trial to its end, whatever that is; only a defect of ours raises."""
        done = self.done
        try:
            self._rig.begin(self._plan, done.spans.end_us + self._hold_us, self._chunk_us, self._pace_us)
            self._warm_up()
            self._watch_until(lambda: done.spans.measured_to_us)
            while extension_us := self._undecided(done):
                done.spans, done.looks = done.spans.longer(extension_us), done.looks + 1
                self._rig.extend(done.spans.end_us + self._hold_us)
                self._watch_until(lambda: done.spans.measured_to_us)
            self._end_if(self._failed(done))
            self._set_end()
            self._watch_until(lambda: done.spans.end_us)
            self._drain()
            self._rig.require_kept()
        except Stop:
            pass
        except DriverError as error:
            done.driver_failed, done.disk_full = str(error), is_full(error)
        except KeyboardInterrupt:
            done.interrupted = True
            # To halt and to judge takes seconds, in which nobody should have to ask again; somebody may all the same.
            with suppress(KeyboardInterrupt):
                self._on_tick(done)
        self._wind_up()
        return done

    def _warm_up(self) -> None:
        done = self.done
        self._watch_until(lambda: done.spans.measured_from_us)
        while more_us := self._levelling(done):
            done.spans, done.prolonged_us = done.spans.later(more_us), done.prolonged_us + more_us
            self._rig.extend(done.spans.end_us + self._hold_us)
            self._watch_until(lambda: done.spans.measured_from_us)

    def _watch_until(self, when_us: Callable[[], int]) -> None:
        while (now_us := self._rig.clock.now_us()) < when_us():
            time.sleep(min(TICK_S, (when_us() - now_us) / US + 0.001))
            self._look()
            self._end_if(self._hopeless(self.done))

    def _set_end(self) -> None:
        """The load must not stop while it is decided, so only now do generators learn where the plan ends."""
        if self._hold_us:
            self.done.spans = self.done.spans.ending(self._rig.clock.now_us() + SETTLE_US)
            self._rig.extend(self.done.spans.end_us)

    def _end_if(self, reason: str | None) -> None:
        if reason is not None:
            self.done.hopeless = reason
            raise Stop

    def _look(self) -> None:
        journal = self.done.journal
        look(self._rig, journal)
        now_us = self._rig.clock.now_us()
        if not journal.usages or now_us - journal.usages[-1].time_us >= US:
            journal.usages.extend(self._monitors.sample())
            if self._monitors.others_percent is not None:
                journal.others.append((now_us, self._monitors.others_percent))
            journal.loopback.append((now_us, loopback_bytes()))
            journal.reference_work.append((now_us, self._reference_work.cpu_us()))
        self._forget_committed()
        self._check_engine()
        self._on_tick(self.done)

    def _forget_committed(self) -> None:
        if before_us := self.done.journal.forgettable_until():
            self._rig.commit(before_us)

    def _check_engine(self) -> None:
        if time.monotonic() < self._status_due:
            return
        self._status_due = time.monotonic() + STATUS_EVERY_S
        status = self._rig.engine_status()
        if not status.alive:
            self._rig.require_carried()  # an engine that finds nothing to read there is not to blame
            self.done.engine_failed = status.reason or "the engine ended"
            raise Stop
        self._busy_us |= dict.fromkeys(status.busy, self._rig.clock.now_us())

    def _drain(self) -> None:
        deadline = time.monotonic() + self._drain_s + DRAIN_INTERVALS * self._interval_s
        while time.monotonic() < deadline and not self.done.drained:
            time.sleep(0.1)
            self._look()
            all_committed = self.done.journal.committed_until() >= self.done.spans.end_us
            self.done.drained = all_committed and self._windows_closed()

    def _windows_closed(self) -> bool:
        # A micro-batch moves the watermark, and the one after it closes the windows. The tail makes more batches, but
        # not where one large batch took it whole; engines that close at once make none, so they get a while.
        whole = self.done.journal
        late = {commit.query for commit in whole.commits if commit.sink in self._closes_late}
        return all(self._has_closed(query, whole.of_query(query)) for query in late)

    def _has_closed(self, query: str, journal: Journal) -> bool:
        last = min(batch for (_, batch), end in journal.batch_ends().items() if end >= self.done.spans.end_us)
        arrived_us = [commit.committed_us for commit in journal.commits if commit.batch == last]
        now_us = self._rig.clock.now_us()
        waited_us = now_us - max(*arrived_us, self._busy_us.get(query, 0)) if arrived_us else 0
        return waited_us >= self._patience_us(journal) or any(commit.batch > last for commit in journal.commits)

    def _patience_us(self, journal: Journal) -> float:
        """How long the batch that closes windows is waited for: no shorter than any batch of the query took so far."""
        commits_us = sorted({commit.committed_us for commit in journal.commits})
        longest_us = max((later - earlier for earlier, later in pairwise(commits_us)), default=0)
        return max(CLOSING_US + CLOSING_INTERVALS * self._interval_s * US, longest_us)

    def _wind_up(self) -> None:
        try:
            self._rig.halt()
            look(self._rig, self.done.journal)
        except KeyboardInterrupt:
            self.done.interrupted = True
        except DriverError as error:
            self.done.driver_failed = self.done.driver_failed or str(error)
            self.done.disk_full = self.done.disk_full or is_full(error)
        # After the last look: what that one brought came in time.
        self.done.deadline_us = self._rig.clock.now_us()


def look(rig: Rig, journal: Journal) -> Tick:
    """Take into the journal what happened since the last look; DriverError as `Rig.tick`.

    Whole or not at all: processes tell of everything once, and what a Ctrl-C cut off between them and the journal would
    never have happened.
    """
    with held_back():
        tick = rig.tick()
        journal.add(tick)
    return tick


def drain_backlog(rig: Rig, journal: Journal, timeout_s: float) -> bool:
    """Between the trials of a warm rig: wait until everything offered is committed; False where it takes too long."""
    deadline = time.monotonic() + timeout_s
    rig.level()
    while time.monotonic() < deadline:
        tick = look(rig, journal)
        if before_us := journal.forgettable_until():
            rig.commit(before_us)
        if journal.committed_until() >= tick.frontier_us:
            return True
        time.sleep(0.1)
    return False
