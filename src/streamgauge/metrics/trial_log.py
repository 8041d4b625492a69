"""The log of one trial: the driver's observations, and figures derived from them. Nothing here asks the SUT.

A job with several sinks may run as several queries, each with its own batches and pace. Figures of the job are then
those of the slowest query. An event is committed when every query that reads it has committed it, and the output
frontier is that of the last sink. `of_sink` and `of_query` return partial logs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, takewhile
from typing import Any

import numpy as np

from streamgauge.core.arrays import Floats, Int64s
from streamgauge.core.clock import US
from streamgauge.core.units import FAR_FUTURE_US
from streamgauge.loadgen.plan import Plan
from streamgauge.metrics.live_figures import Batch, OnlineMetrics, spread
from streamgauge.metrics.records import Commit, Log, Tick, Usage, chunk_log, spent_log, usage_log
from streamgauge.transports.spi import BusyInterval, Chunk, Delivery

SCHEDULE_DELAY_POINTS = 8
"""Points per chunk that represent its events, which are spread evenly over its span."""


@dataclass
class TrialLog:
    """Grows while a trial runs. Times are microseconds of the run's clock.

    - `sinks`: the names of the sinks with expected results.
    - `rows_ignored`: rows that were not accepted, by sink. `ignored_before`: those of earlier trials, because the
      recorder of a warm test bed does not reset its count.
    - `delivering`, `receiving`, `writing`: intervals in which the SUT waited for the driver, as in a `Tick`; they may
      overlap.
    - `stood_still`: (end, duration) of each standstill of the recorder.
    - `memory_full_us`: after an overflow by bytes, the event time that waited; None for one by seconds.
    - `background`: CPU of all processes except driver, broker and SUT, percent of one core.
    - `reference_work`: CPU time of the reference work, microseconds.
    - `remarks`: what a reader of the figures must know, as in a `Tick`.
    """

    plan: Plan
    sinks: tuple[str, ...] = ("",)
    chunks: list[Log[Chunk]] = field(default_factory=list)
    deliveries: list[list[Delivery]] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    usages: Log[Usage] = field(default_factory=usage_log)
    aborted_us: list[int] = field(default_factory=list)
    retried_us: list[int] = field(default_factory=list)
    background: list[tuple[int, float]] = field(default_factory=list)
    loopback: list[tuple[int, int]] = field(default_factory=list)
    reference_work: list[tuple[int, float]] = field(default_factory=list)
    delivering: Log[BusyInterval] = field(default_factory=spent_log)
    receiving: Log[BusyInterval] = field(default_factory=spent_log)
    writing: Log[BusyInterval] = field(default_factory=spent_log)
    stood_still: list[tuple[int, int]] = field(default_factory=list)
    overflowed: bool = False
    memory_full_us: int | None = None
    rows_ignored: dict[str, int] = field(default_factory=dict)
    ignored_before: dict[str, int] | None = None
    remarks: dict[str, tuple[int, str]] = field(default_factory=dict)
    _unread: set[str] | None = field(default=None, init=False, repr=False, compare=False)
    """In the log of a query: the streams that no query has read."""
    _fed: _Fed | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def running(self) -> OnlineMetrics:
        """The live figures, up to date."""
        return self._up_to_date().running

    def add(self, tick: Tick) -> None:
        """Adds a tick, without records of an earlier trial of a warm test bed."""
        start_us = self.plan.start_us
        if not self.chunks:
            self.chunks = [chunk_log() for _ in tick.chunks]
            self.deliveries = [[] for _ in tick.deliveries]
        for chunks, new in zip(self.chunks, tick.chunks, strict=True):
            chunks.extend(chunk for chunk in new if chunk.to_us > start_us)
        for log, fresh in zip(self.deliveries, tick.deliveries, strict=True):
            log += [part for part in fresh if part.to_us > start_us]
        self.commits += [commit for commit in tick.commits if commit.committed_us >= start_us]
        self.aborted_us += [when for when in tick.aborted_us if when >= start_us]
        self.retried_us += [when for when in tick.retried_us if when >= start_us]
        self.delivering.extend(spent for spent in tick.delivering if spent[1] > start_us)
        self.receiving.extend(spent for spent in tick.receiving if spent[1] > start_us)
        self.writing.extend(spent for spent in tick.writing if spent[1] > start_us)
        self.stood_still += [one for one in tick.stood_still if one[0] >= start_us]
        if tick.overflowed and not self.overflowed:
            # The SUT cannot read beyond a stopped generator, so other queues fill up too. Only the first one counts.
            self.overflowed, self.memory_full_us = True, tick.memory_full_us
        self.remarks = tick.remarks
        if self.ignored_before is None:
            self.ignored_before = tick.rows_ignored
        more = {sink: rows - self.ignored_before.get(sink, 0) for sink, rows in tick.rows_ignored.items()}
        self.rows_ignored = {sink: rows for sink, rows in more.items() if rows}

    def all_deliveries(self) -> list[Delivery]:
        return [part for log in self.deliveries for part in log]

    def of_sink(self, name: str) -> TrialLog:
        """The log with the commits of one sink only, and all reads."""
        commits = [commit for commit in self.commits if commit.sink == name]
        return replace(self, sinks=(name,), commits=commits, rows_ignored={name: self.rows_ignored.get(name, 0)})

    def of_query(self, query: str) -> TrialLog:
        """The reads and commits of one query only. The log grows with this one."""
        return self._up_to_date().of_query.get(query) or _without_reads(self)

    def queries(self) -> tuple[str, ...]:
        """The names of the queries that have read or committed anything, sorted."""
        return tuple(sorted(self._up_to_date().of_query))

    def by_query(self) -> tuple[TrialLog, ...]:
        """The log of each query, sorted by name."""
        return tuple(self.of_query(query) for query in self.queries())

    def batch_ends(self) -> dict[Batch, int]:
        """Engine batch to the event time up to which it read."""
        return {number: batch.end_us for number, batch in self.running.batches.items() if batch.end_us}

    def committed_until(self) -> int:
        """The event time up to which every sink has committed; 0 before every sink's first commit."""
        return min(((self.running.furthest(sink) or [0])[-1] for sink in self.sinks), default=0)

    def forgettable_until(self) -> int:
        """The event time before which no query will read again; 0 if a query may still read everything.

        It excludes the last batch of each query, because a query that dies before its own commit reads it again.
        """
        return min((self.running.read_everywhere(sink) for sink in self.sinks), default=0)

    def retried_tasks(self, from_us: int, to_us: int, as_a_rule: bool) -> int:
        """The least number of repeated tasks in a span: redeliveries by the time of the read, or results sent again.

        Repetitions before the span do not count, because the engine may still be starting.
        `as_a_rule`: for jobs that use an input twice, and so read it again in every batch. Only the reads beyond that
        count, which are the last of their batch.
        """
        again: dict[tuple[str, Batch], list[int]] = defaultdict(list)
        for part in self.all_deliveries():
            if part.again or as_a_rule:
                again[part.stream, (part.query, part.batch)] += [part.when_us] if part.again else []
        committed = {(commit.query, commit.batch) for commit in self.commits}
        usual: dict[str, int] = {}
        for (stream, batch), times in again.items():
            if as_a_rule and batch in committed:
                usual[stream] = min(usual.get(stream, len(times)), len(times))
        beyond = (when for (stream, _), times in again.items() for when in sorted(times)[usual.get(stream, 0) :])
        return max(sum(from_us <= when < to_us for when in times) for times in (beyond, self.retried_us))

    def rows_between(self, from_us: int, to_us: int) -> float:
        """Result rows of a span, with each commit spread over the time since the previous one."""
        commits = [(commit.committed_us, commit.rows) for commit in self.commits]
        committed_us, rows = np.array(commits, np.int64).reshape(-1, 2).T
        return spread(committed_us, rows, self.plan.start_us, from_us, to_us)

    def committed_events(self) -> int:
        return int(self.running.committed_by(FAR_FUTURE_US))

    def events_in_time(self, from_us: int, to_us: int, delay_us: int) -> tuple[Int64s, Int64s]:
        """(planned, offered in time) events by second of the plan.

        In time means at most `delay_us` after the second's end.
        A late chunk within a second only counts as schedule delay. A chunk in two seconds contributes its events to
        each of them, and is due at its own end, because seconds do not begin or end with chunks.
        """
        spans = list(pairwise([*range(from_us, max(to_us, from_us + 1), US), to_us]))
        in_time = np.zeros(len(spans), np.int64)
        for partition, log in enumerate(self.chunks):
            for chunk in _reaching_into(log, from_us, to_us):
                low_us, high_us = max(chunk.from_us, from_us), min(chunk.to_us, to_us)
                for second in range((low_us - from_us) // US, -(-(high_us - from_us) // US)):
                    low, high = spans[second]
                    due_us = max(low + US, chunk.to_us) + delay_us
                    in_time[second] += self._part(partition, chunk, low, high) if chunk.published_us <= due_us else 0
        return np.array([self.plan.planned_events(low, high) for low, high in spans], np.int64), in_time

    def _part(self, partition: int, chunk: Chunk, from_us: int, to_us: int) -> int:
        """The number of a chunk's events that are due in [from_us, to_us)."""
        low, high = max(chunk.from_us, from_us), min(chunk.to_us, to_us)
        if (low, high) == (chunk.from_us, chunk.to_us):
            return chunk.events
        count, streams = self.plan.count_before, range(len(self.plan.streams))
        part, whole = (
            sum(count(each, partition, end_us) - count(each, partition, start_us) for each in streams)
            for start_us, end_us in ((low, high), (chunk.from_us, chunk.to_us))
        )
        return chunk.events * part // max(1, whole)

    def schedule_delays(self, from_us: int, to_us: int) -> Floats:
        """Schedule delays of the span, microseconds, at evenly spread points of each chunk's span, flattened.

        With the common frontier, the SUT can read a chunk's span only after the last generator has published it.
        """
        points = (np.arange(SCHEDULE_DELAY_POINTS) + 0.5) / SCHEDULE_DELAY_POINTS
        inside = [
            (chunk.from_us, chunk.to_us, chunk.events, chunk.published_us)
            for log in self.chunks
            for chunk in _reaching_into(log, from_us, to_us)
            if chunk.from_us >= from_us
        ]
        low_us, high_us, events, published_us = np.array(inside, np.int64).reshape(-1, 4).T
        spans, place = np.unique(np.stack([low_us, high_us]), axis=1, return_inverse=True)
        last_us, due = np.zeros(spans.shape[1], np.int64), np.zeros(spans.shape[1], np.int64)
        np.maximum.at(last_us, place.ravel(), published_us)
        np.add.at(due, place.ravel(), events)
        delays_us = last_us[:, None] - (spans[0][:, None] + points * (spans[1] - spans[0])[:, None])
        return np.asarray(delays_us[due > 0].ravel(), np.float64)

    def backlog_peaks(self) -> tuple[Int64s, Int64s]:
        """(time, events) of the backlog just before each batch's first delivery: one sample per batch, at one phase.

        For one query; use `by_query` for several. A micro-batch takes everything available, so the backlog after a
        delivery is always near 0. Under overload, the backlog before the next delivery grows.
        """
        firsts = sorted((batch.read_us, batch.from_us, number) for number, batch in self.running.firsts())
        events = [self._waiting_before(number, since, when) for when, since, number in firsts]
        return np.array([when for when, *_ in firsts], np.int64), np.array(events, np.int64)

    def _waiting_before(self, batch: Batch, since_us: int, when_us: int) -> int:
        """Events due and not read before a batch. Partitions that were read unevenly are counted one by one."""
        query, number = batch
        starts = self.running.ends_by((query, number - 1))
        if len(set(starts.values())) == 1:
            return self.plan.planned_events(max(since_us, self.plan.start_us), when_us)
        least: dict[tuple[str, int], int] = {}
        for (partition, stream, _), start_us in starts.items():
            least[stream, partition] = min(start_us, least.get((stream, partition), start_us))
        count = self.plan.count_before
        return sum(
            max(count(number, partition, when_us) - count(number, partition, start_us), 0)
            for (stream, partition), start_us in least.items()
            for number in (self.plan.number_of(stream),)
        )

    def backlog_waits(self) -> tuple[Int64s, Floats]:
        """(time, age in seconds) of the oldest waiting event, at the samples of `backlog_peaks`.

        The trend check uses these, because a number of events shows a trend only at a constant rate. The place that
        is furthest behind has that event, whether the batch reads it or not.
        """
        reached = self.running.reached_by
        firsts = sorted(
            (batch.read_us, reached((query, number - 1))) for (query, number), batch in self.running.firsts()
        )
        times, since = np.array(firsts, np.int64).reshape(-1, 2).T
        return times, np.maximum(0, times - np.maximum(since, self.plan.start_us)) / US

    def output_lags(self) -> tuple[Int64s, Floats]:
        """(time, seconds) of the output frontier's lag behind the plan, one sample per commit. For one query.

        A committed batch has delivered all results of its input, so the output frontier is the end of that input. The
        ends of windows alone would give few steps. Of partitions that were read unevenly the one furthest behind
        counts. If a commit names no known batch, the largest event time among its results is used.
        """
        times, frontiers = self._output_frontier()
        moved = np.diff(frontiers) > 0
        return times[moved], (times - frontiers[1:])[moved] / US

    def output_lags_at_reads(self) -> tuple[Int64s, Floats] | None:
        """The lag just before each batch's first delivery, the phase at which the backlog is sampled.

        None if a batch was read before all earlier reads were committed. For engines that read only after a commit,
        this excludes the batch durations, which vary while an engine keeps up.
        """
        reads = sorted((batch.read_us, self.running.reached_by(number)) for number, batch in self.running.firsts())
        times, ends = np.array(reads, np.int64).reshape(-1, 2).T
        committed_us, frontiers = self._output_frontier()
        at_reads = frontiers[np.searchsorted(committed_us, times)]
        taken = np.maximum.accumulate(np.concatenate([[self.plan.start_us], ends]))[:-1]
        return None if (at_reads < taken).any() else (times, (times - at_reads) / US)

    def waiting_at(self, when_us: int) -> float:
        """The age of the oldest event that waits for a batch then, seconds, for one query."""
        begun = [number for number, batch in self.running.firsts() if batch.read_us < when_us]
        read_us = self.running.reached_by(max(begun)) if begun else 0
        return max(0, when_us - max(read_us, self.plan.start_us)) / US

    def lag_at(self, when_us: int) -> float:
        """Seconds that the output was behind the plan then, for one query. It grows until the next commit."""
        committed_us, frontiers = self._output_frontier()
        return float(when_us - frontiers[np.searchsorted(committed_us, when_us)]) / US

    def _output_frontier(self) -> tuple[Int64s, Int64s]:
        """(n,) ascending times of the commits, and (n + 1,) the output frontiers before them and after each.

        Where some commits are known to end a read, only those count. Results come before it, so samples of both kinds
        would scatter by the time between.
        """
        commits, batches = sorted(self.commits, key=lambda one: one.committed_us), self.running.batches
        of_reads = [one for one in commits if batches[one.query, one.batch].end_us]
        reached = [self.running.reached_by((one.query, one.batch)) for one in of_reads]
        reached = reached or [one.frontier_us for one in commits]
        times = np.array([one.committed_us for one in of_reads or commits], np.int64)
        return times, np.maximum.accumulate(np.array([self.plan.start_us, *reached], np.int64))

    def _up_to_date(self) -> _Fed:
        logs: list[Sequence[Any]] = [*self.chunks, *self.deliveries, self.commits]
        if self._fed is None or not self._fed.goes_on(logs):
            self._fed = _Fed(self, logs)
        self._fed.take_in(self)
        return self._fed


def _without_reads(trial_log: TrialLog) -> TrialLog:
    return replace(trial_log, sinks=(), chunks=[], deliveries=[[] for _ in trial_log.deliveries], commits=[])


class _Fed:
    """The part of a log that its live figures and the logs of its queries already have."""

    def __init__(self, trial_log: TrialLog, logs: list[Sequence[Any]]) -> None:
        self._logs = logs
        self._taken = [0] * len(logs)
        self.running = OnlineMetrics(trial_log.plan, trial_log._unread)
        self.of_query: dict[str, TrialLog] = {}

    def goes_on(self, logs: list[Sequence[Any]]) -> bool:
        """Whether these are the same logs as before, perhaps with more records at their ends."""
        same = len(logs) == len(self._logs) and all(new is old for new, old in zip(logs, self._logs, strict=True))
        return same and all(len(log) >= taken for log, taken in zip(logs, self._taken, strict=True))

    def take_in(self, trial_log: TrialLog) -> None:
        """Adds all new records."""
        news = [log[taken:] for log, taken in zip(self._logs, self._taken, strict=True)]
        self._taken = [len(log) for log in self._logs]
        chunks, reads, commits = news[: len(trial_log.chunks)], news[len(trial_log.chunks) : -1], news[-1]
        for log in chunks:
            self.running.add_chunks(log)
        for partition, parts in enumerate(reads):
            self.running.add_reads(parts, partition)
            for part in parts:
                self._query(trial_log, part.query).deliveries[partition].append(part)
        self.running.add_commits(commits)
        for commit in commits:
            of_query = self._query(trial_log, commit.query)
            of_query.commits.append(commit)
            if commit.sink not in of_query.sinks:
                of_query.sinks = tuple(name for name in trial_log.sinks if name in (*of_query.sinks, commit.sink))

    def _query(self, trial_log: TrialLog, query: str) -> TrialLog:
        if query not in self.of_query:
            self.of_query[query] = _without_reads(trial_log)
            self.of_query[query]._unread = self.running.unread
        return self.of_query[query]


def _reaching_into(log: Log[Chunk], from_us: int, to_us: int) -> Iterator[Chunk]:
    """A generator's chunks, which are ordered, that overlap [from_us, to_us).

    It uses bisection, because a running trial often needs the few chunks of its last seconds.
    """
    first = bisect_right(log, from_us, key=lambda chunk: chunk.to_us)
    return takewhile(lambda chunk: chunk.from_us < to_us, map(log.__getitem__, range(first, len(log))))
