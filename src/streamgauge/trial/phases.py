"""The phases of a trial: warm-up, measured span, tail and drain.

`PhaseRunner` runs them. A `TrialPolicy` decides at the end of warm-up and span whether to extend it, and at each poll
whether to stop early. The policies of trials with a verdict are in `trial.policies`.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

from streamgauge.core.clock import US
from streamgauge.core.errors import DriverError, is_full
from streamgauge.core.trial import TrialSpans
from streamgauge.harness.monitors import MachineSpeed, Monitors, loopback_bytes
from streamgauge.harness.start_processes import TestBed
from streamgauge.loadgen.plan import Plan
from streamgauge.metrics.records import Tick
from streamgauge.metrics.trial_log import TrialLog
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.system.child_processes import delay_interrupts
from streamgauge.system.process_limits import LimitWatch
from streamgauge.trial.events import Observer, PhaseBegan, Progress, ignore

TICK_S = 0.5
STATUS_EVERY_S = 2.0
SETTLE_US = US
"""Lead of the announced end, which every generator must not have passed yet."""
CLOSING_US = 5 * US
"""Wait for the batch that closes windows after the last input's commit, beside the engine's intervals and while the
engine reports work on a batch."""
CLOSING_INTERVALS = 2
"""The closing batch begins one interval after the last input's batch and takes at most another."""
SILENT_US, FIRST_CHUNK_US = 2 * US, 20 * US
"""A generator that offers nothing for so long has failed. Before its first chunk it may still read the data of the
plan, and a broker that has just started may be slow to store it."""
DRAIN_S = 60.0
LATER = 1.5
"""How much later than the latest results of the span the last ones may be, where they come after their commit."""
DRAIN_INTERVALS = CLOSING_INTERVALS + 2
"""One interval until the last input is read, one for its batch, and those of the closing batch."""


@dataclass(frozen=True)
class Extension:
    """A phase goes on by so much, for this reason."""

    more_us: int
    reason: str


class TrialPolicy:
    """The decisions of one kind of trial. This base class is for load without a verdict.

    Attributes:
        pace_us: event time whose backlog stops the plan; None for open loop.
        drain_s: seconds to wait for results after the plan's end, beside a few intervals.
        interval_s: the engine's batch interval; 0 if unknown.
        hold_us: how long generators continue past the plan's end while an extension is decided.
        kept_us: latest event time that is committed only when later events come.
        closes_late: sinks whose results may come one batch after the last input.
        results_apart: whether results may come after their input was committed.
        stops_early: whether a reason to stop early ends the trial. If not, only a full queue does, because generators
            that reached its limit offer nothing more.
    """

    pace_us: int | None = None
    drain_s: float = 0.0
    interval_s: float = 0.0
    hold_us: int = 0
    kept_us: int = 0
    closes_late: tuple[str, ...] = ()
    results_apart: bool = False
    stops_early: bool = True

    def warmup_extension(self, record: TrialRecord) -> Extension | None:
        """At the end of the warm-up: its extension, or None."""
        return None

    def early_stop_reason(self, record: TrialRecord, now_us: int) -> str | None:
        """After each poll: why the trial need not go on, or None."""
        return None

    def span_extension(self, record: TrialRecord) -> Extension | None:
        """At the end of the span: its extension, or None."""
        return None

    def tail_skip_reason(self, record: TrialRecord) -> str | None:
        """At the end of the span: why the tail is not needed, or None."""
        return None


class PacedLoad(TrialPolicy):
    """Load that measures an engine's pace or warms it up: at most `pace_us` of event time may wait."""

    def __init__(self, pace_us: int) -> None:
        self.pace_us = pace_us


class EndTrial(Exception):
    """Ends the trial; `TrialRecord` has the reason."""


class PhaseRunner:
    """Conducts one trial on a started test bed.

    Args:
        testbed: the processes.
        plan: the trial's plan; its first event is at `spans.start_us`.
        spans: the planned spans.
        chunk_us: event time of a record batch.
        policy: decides about extensions, an early end and waits.
        observe: receives all events.
    """

    def __init__(
        self,
        testbed: TestBed,
        plan: Plan,
        spans: TrialSpans,
        chunk_us: int,
        policy: TrialPolicy,
        observe: Observer = ignore,
    ) -> None:
        self._testbed, self._plan, self._chunk_us, self._policy, self._observe = (
            testbed,
            plan,
            chunk_us,
            policy,
            observe,
        )
        self.record = TrialRecord(TrialLog(plan, testbed.sinks), spans, earlier_trials=testbed.trials > 0)
        self._monitors = Monitors(testbed.processes, testbed.clock.now_us)
        self._reference_work = MachineSpeed()
        self._limits = LimitWatch()
        self._status_due = 0.0
        self._unexcused_us: dict[int, int] = {}
        """Since when the generator of a partition has no reason to offer nothing; absent if it has one."""
        self._busy_us: dict[str, int] = {}
        """Time of the engine's last report of work on a batch, by query."""

    def conduct(self) -> TrialRecord:
        """Runs the trial to its end. Failures of engine and driver go into the record; only defects raise."""
        record, policy = self.record, self._policy
        try:
            self._testbed.begin(self._plan, record.spans.end_us + policy.hold_us, self._chunk_us, policy.pace_us)
            self._run_phase(
                "warm-up", lambda: record.spans.measured_from_us, policy.warmup_extension, record.prolong_warmup
            )
            self._run_phase("measured", lambda: record.spans.measured_to_us, policy.span_extension, record.extend_span)
            self._end_if(policy.tail_skip_reason(record))
            self._tail()
            self._drain()
            # Generators of a paced load that was not drained still send.
            self._testbed.require_no_lost_events(record.drained)
        except EndTrial:
            pass
        except DriverError as error:
            record.fail_driver(str(error), is_full(error))
        except KeyboardInterrupt:
            record.interrupted = True
        if record.ended_early:
            # Halt and verdict take seconds; another Ctrl-C in this time must not escape here.
            with suppress(KeyboardInterrupt):
                self._show()
        self._wind_up()
        return record

    def _run_phase(
        self,
        phase: str,
        end_us: Callable[[], int],
        extension_of: Callable[[TrialRecord], Extension | None],
        extend: Callable[[int, str], None],
    ) -> None:
        """Runs a phase to its end, and on while the policy extends it."""
        self._observe(PhaseBegan(phase))
        self._run_until(end_us)
        while extension := extension_of(self.record):
            extend(extension.more_us, extension.reason)
            self._testbed.extend(self.record.spans.end_us + self._policy.hold_us)
            self._run_until(end_us)

    def _tail(self) -> None:
        """Announces the plan's end only now, because the load must not stop while an extension is decided."""
        if self._policy.hold_us:
            self.record.spans = self.record.spans.ending(self._testbed.clock.now_us() + SETTLE_US)
            self._testbed.extend(self.record.spans.end_us)
        self._observe(PhaseBegan("tail"))
        self._run_until(lambda: self.record.spans.end_us)

    def _run_until(self, when_us: Callable[[], int]) -> None:
        while (now_us := self._testbed.clock.now_us()) < when_us():
            time.sleep(min(TICK_S, (when_us() - now_us) / US + 0.001))
            self._poll()
            self._end_if(self._policy.early_stop_reason(self.record, self._testbed.clock.now_us()))

    def _end_if(self, reason: str | None) -> None:
        if reason is None:
            return
        if not (self._policy.stops_early or self.record.trial_log.overflowed):
            self.record.hopeless = reason
            return
        self.record.early_stop = reason
        raise EndTrial

    def _poll(self) -> None:
        trial_log, asked_us = self.record.trial_log, self._testbed.clock.now_us()
        tick = poll(self._testbed, trial_log)
        now_us = self._testbed.clock.now_us()
        self.record.held_back |= any(self._testbed.paused)
        if tick.ended or tick.overflowed:
            self._unexcused_us = {}
        else:
            silent = self._without_excuse()
            self._unexcused_us = {partition: self._unexcused_us.get(partition, now_us) for partition in silent}
            self._require_offers(asked_us)
        if not trial_log.usages or now_us - trial_log.usages[-1].time_us >= US:
            trial_log.usages.extend(self._monitors.sample())
            if self._monitors.background_percent is not None:
                trial_log.background.append((now_us, self._monitors.background_percent))
            trial_log.loopback.append((now_us, loopback_bytes()))
            trial_log.reference_work.append((now_us, self._reference_work.cpu_us()))
        discard_committed(self._testbed, trial_log)
        self._check_engine()
        self._show()

    def _show(self) -> None:
        self._observe(Progress(self.record, self._testbed.clock.now_us()))

    def _without_excuse(self) -> list[int]:
        """The partitions whose generator may not pause.

        It may only at the pace of a load without a verdict, while it says so and events of its own partition wait to be
        read.
        """
        if self._policy.pace_us is None:
            return list(range(self._plan.partitions))
        waits = zip(self._testbed.waiting_events(), self._testbed.paused, strict=True)
        return [partition for partition, (events, paused) in enumerate(waits) if events <= 0 or not paused]

    def _require_offers(self, asked_us: int) -> None:
        """Raises DriverError if a generator without an excuse offers nothing of its plan.

        `asked_us`: when it was asked for its log.
        """
        spans = self.record.spans
        for partition, unexcused_us in self._unexcused_us.items():
            chunks = self.record.trial_log.chunks[partition]
            last, patience_us = (chunks[-1], SILENT_US) if chunks else (None, FIRST_CHUNK_US)
            reached_us, offered_us = (last.to_us, last.published_us) if last else (spans.start_us, 0)
            since_us = max(min(reached_us + self._chunk_us, spans.end_us), offered_us, unexcused_us)
            if reached_us < spans.end_us and asked_us - since_us >= patience_us:
                self.record.driver_silent = True
                raise DriverError(
                    f"the driver offered nothing to partition {partition} since"
                    f" {(since_us - spans.start_us) / US:.1f} s after the start, although its events were due"
                )

    def _check_engine(self) -> None:
        if time.monotonic() < self._status_due:
            return
        self._status_due = time.monotonic() + STATUS_EVERY_S
        status = self._testbed.engine_status()
        if not status.alive:
            self._testbed.require_all_topics()  # a deleted topic is not the engine's failure
            self.record.engine_failed = status.reason or "the engine ended"
            self.record.engine_disk_full, self.record.engine_rejected = status.disk_full, status.rejected
            raise EndTrial
        self._busy_us |= dict.fromkeys(status.busy, self._testbed.clock.now_us())

    def _drain(self) -> None:
        self._observe(PhaseBegan("drain"))
        deadline = time.monotonic() + self._policy.drain_s + DRAIN_INTERVALS * self._policy.interval_s
        while time.monotonic() < deadline and not self.record.drained:
            time.sleep(0.1)
            self._poll()
            all_committed = self.record.trial_log.committed_until() >= self._committed_to_us
            if all_committed and self._windows_closed() and self._results_had_time():
                self.record.drained = True

    @property
    def _committed_to_us(self) -> int:
        """The event time up to which everything is committed in the end."""
        return self.record.spans.end_us - self._policy.kept_us

    def _results_had_time(self) -> bool:
        """Whether results of the span's last events would be here, if hardly later than the latest ones that came.

        A program may commit what it has read before it has written the results.
        """
        spans = self.record.spans
        if not self._policy.results_apart:
            return True
        late_us = [
            commit.latency_us_p99 or 0.0
            for commit in self.record.trial_log.commits
            if commit.committed_us >= spans.measured_from_us
        ]
        return self._testbed.clock.now_us() >= spans.measured_to_us + LATER * max(late_us, default=0.0)

    def _windows_closed(self) -> bool:
        # A micro-batch moves the watermark, and the next one closes the windows. The tail usually causes more batches,
        # unless one large batch took it whole. Engines that close at once run no further batch, so the wait is bounded.
        trial_log = self.record.trial_log
        late = {commit.query for commit in trial_log.commits if commit.sink in self._policy.closes_late}
        return all(self._has_closed(query, trial_log.of_query(query)) for query in late)

    def _has_closed(self, query: str, trial_log: TrialLog) -> bool:
        last = min(batch for (_, batch), end in trial_log.batch_ends().items() if end >= self._committed_to_us)
        arrived_us = [commit.committed_us for commit in trial_log.commits if commit.batch == last]
        now_us = self._testbed.clock.now_us()
        waited_us = now_us - max(*arrived_us, self._busy_us.get(query, 0)) if arrived_us else 0
        commits_us = sorted({commit.committed_us for commit in trial_log.commits})
        # As long as the query's longest batch so far, at least.
        longest_us = max((later - earlier for earlier, later in pairwise(commits_us)), default=0)
        patience_us = max(CLOSING_US + CLOSING_INTERVALS * self._policy.interval_s * US, longest_us)
        return waited_us >= patience_us or any(commit.batch > last for commit in trial_log.commits)

    def _wind_up(self) -> None:
        try:
            self._testbed.halt()
            poll(self._testbed, self.record.trial_log)
        except KeyboardInterrupt:
            self.record.interrupted = True
        except DriverError as error:
            self.record.fail_driver(str(error), is_full(error))
        if limit := self._limits.reached(self.record.driver_failed or self.record.engine_failed):
            # It says nothing about the engine or the driver.
            self.record.driver_failed, self.record.limit_reached = limit, True
        # After the last poll, whose results came in time.
        self.record.deadline_us = self._testbed.clock.now_us()


def poll(testbed: TestBed, trial_log: TrialLog) -> Tick:
    """Adds everything since the last poll to the log. Raises DriverError like `TestBed.tick`.

    It holds Ctrl-C back: processes report everything once, so an interrupted poll would lose data.
    """
    with delay_interrupts():
        tick = testbed.tick()
        trial_log.add(tick)
    return tick


def drain_backlog(testbed: TestBed, trial_log: TrialLog, timeout_s: float) -> bool:
    """Between trials: waits until everything offered is committed. Returns False after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    testbed.level()
    while time.monotonic() < deadline:
        tick = poll(testbed, trial_log)
        discard_committed(testbed, trial_log)
        committed_us = trial_log.committed_until()
        # No read of a broker's partition reaches the event time at which another partition was halted later.
        all_events = committed_us > 0 and trial_log.committed_events() == trial_log.running.offered_events
        if committed_us >= tick.frontier_us or all_events:
            return True
        time.sleep(0.1)
    return False


def discard_committed(testbed: TestBed, trial_log: TrialLog) -> None:
    """Drops what no query will read again."""
    if before_us := trial_log.forgettable_until():
        testbed.commit(before_us)
