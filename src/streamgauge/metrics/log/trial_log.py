"""The log of one trial: what the driver saw, and the figures that follow from it. Nothing here asks the SUT.

A job of several sinks may be several queries of the engine, each with batches and a pace of its own. Whatever is said
of the job as a whole is then said of the slowest: an event is committed when every query that reads it has committed
it, and the sinks have come as far as the one that is furthest behind. `of_sink` and `of_query` give a part's log.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from streamgauge.core.clock import US
from streamgauge.core.units import FAR_FUTURE_US
from streamgauge.metrics.log.columnar_log import Log, chunk_log, spent_log, usage_log
from streamgauge.metrics.log.live_figures import Batch, Ints, OnlineMetrics
from streamgauge.metrics.records import Commit, Tick, Usage
from streamgauge.transports.busy_time import BusyInterval
from streamgauge.transports.spi import Chunk, Delivery

if TYPE_CHECKING:
    from streamgauge.loadgen.plan import Plan

Floats = NDArray[np.float64]

SCHEDULE_DELAY_POINTS = 8
"""A chunk's events are spread evenly over its span, so this many points of it stand for them all."""


@dataclass
class TrialLog:
    """Grows while a trial runs. Times are microseconds of the run's clock.

    `sinks` are the names of those that owe results; `rows_ignored` counts, for each sink, rows that were not accepted;
    `ignored_before` those of earlier trials, since the recorder of a warm test bed counts on.
    `delivering`, `receiving`, `writing`: when the driver kept the system waiting, as in a `Tick`; they may overlap.
    `stood_still`: when a standstill of the recorder ended, and how long it was.
    `memory_full_us`: of an overflow by bytes, the event time that waited then; None of one by seconds.
    `background`: CPU of all that is neither driver nor SUT, percent of one core.
    `reference_work`: CPU time of the same small piece of work at that moment, microseconds.
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
    _fed: _Fed | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def running(self) -> OnlineMetrics:
        """The figures that are asked while a trial runs, with all that is known by now."""
        return self._up_to_date().running

    def add(self, tick: Tick) -> None:
        """Take in what happened; what belongs to an earlier trial of a warm test bed is left out."""
        start_us = self.plan.start_us
        if not self.chunks:
            self.chunks = [chunk_log() for _ in tick.chunks]
            self.deliveries = [[] for _ in tick.deliveries]
        for mine, new in zip(self.chunks, tick.chunks, strict=True):
            mine.extend(chunk for chunk in new if chunk.to_us > start_us)
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
            # Where one generator stops nothing can be read beyond it, and the others fill up too: the first one counts.
            self.overflowed, self.memory_full_us = True, tick.memory_full_us
        if self.ignored_before is None:
            self.ignored_before = tick.rows_ignored
        more = {sink: rows - self.ignored_before.get(sink, 0) for sink, rows in tick.rows_ignored.items()}
        self.rows_ignored = {sink: rows for sink, rows in more.items() if rows}

    def all_deliveries(self) -> list[Delivery]:
        return [part for log in self.deliveries for part in log]

    def of_sink(self, name: str) -> TrialLog:
        """The same trial, as far as one sink is concerned: its commits alone; all that was read is kept."""
        commits = [commit for commit in self.commits if commit.sink == name]
        ignored = {name: self.rows_ignored.get(name, 0)}
        return replace(self, sinks=(name,), commits=commits, rows_ignored=ignored)

    def of_query(self, query: str) -> TrialLog:
        """What one query read and committed, and nothing else of the trial; it grows with this log."""
        return self._up_to_date().of_query.get(query) or _without_reads(self)

    def queries(self) -> tuple[str, ...]:
        """The queries that have read or committed anything, by name."""
        return tuple(sorted(self._up_to_date().of_query))

    def by_query(self) -> tuple[TrialLog, ...]:
        """What each query read and committed, by its name."""
        return tuple(self.of_query(query) for query in self.queries())

    def batch_ends(self) -> dict[Batch, int]:
        """Engine batch to the event time up to which it read."""
        return {number: batch.end_us for number, batch in self.running.batches.items() if batch.end_us}

    def committed_until(self) -> int:
        """The event time up to which every sink of the SUT has committed; 0 before the first commit of one."""
        reached = [self.running.furthest(sink) for sink in self.sinks]
        return min((ends[-1] if ends else 0 for ends in reached), default=0)

    def forgettable_until(self) -> int:
        """The event time before which nobody will read again; 0 where somebody may read everything.

        One batch of each query is kept back: a query that dies between the sink's commit and its own reads it again.
        """
        return min((self.running.read_everywhere(sink) for sink in self.sinks), default=0)

    def aborted_between(self, from_us: int, to_us: int) -> int:
        """How many reads were cut off; an engine that is stopped after the span may well cut off some."""
        return sum(from_us <= when < to_us for when in self.aborted_us)

    def retried_tasks(self, from_us: int, to_us: int, as_a_rule: bool) -> int:
        """How many tasks ran again in that time, at least: by what was read again, and by what was sent again.

        Before the span the engine may still be starting, as with reads that are cut off.
        """
        sent_again = sum(from_us <= when < to_us for when in self.retried_us)
        return max(self.reads_again(from_us, to_us, as_a_rule), sent_again)

    def reads_again(self, from_us: int, to_us: int, as_a_rule: bool) -> int:
        """How many reads in that time were of what had been read before; each counts when it was, not by its stamp.

        `as_a_rule`: a job that uses an input twice reads it again in every batch; only reads beyond that are counted,
        and those are the last of their batch.
        """
        again: dict[tuple[str, Batch], list[int]] = defaultdict(list)
        for part in self.all_deliveries():
            if part.again:
                again[_reading(part)].append(part.when_us)
        usual = self._usually_again(again) if as_a_rule else {}
        beyond = (when for reading, times in again.items() for when in sorted(times)[usual.get(reading[0], 0) :])
        return sum(from_us <= when < to_us for when in beyond)

    def _usually_again(self, again: dict[tuple[str, Batch], list[int]]) -> dict[str, int]:
        """Stream to how often each committed batch reads it again, at least."""
        committed = {(commit.query, commit.batch) for commit in self.commits}
        usual: dict[str, int] = {}
        for reading in {_reading(part) for part in self.all_deliveries()}:
            stream, batch = reading
            if batch in committed:
                times = len(again.get(reading, ()))
                usual[stream] = min(usual.get(stream, times), times)
        return usual

    def offered_events(self) -> int:
        return self.running.offered_events

    def committed_events(self) -> int:
        return int(self.running.committed_by(FAR_FUTURE_US))

    def ingested_since(self, from_us: int) -> int:
        """Events delivered for the first time since then, each delivery whole."""
        return int(self.running.delivered_by(FAR_FUTURE_US) - self.running.delivered_by(from_us))

    def events_in_time(self, from_us: int, to_us: int, delay_us: int) -> tuple[Ints, Ints]:
        """(planned, offered in time) events by second of the plan: in time is what was available `delay_us` after the
        second's end. One late chunk within a second is slip, and judged as that; here a second of the plan is lost.

        A chunk that reaches into another second gives each its own events, and has until its own end: seconds are no
        whole number of chunks, and do not begin with one.
        """
        borders = [*range(from_us, max(to_us, from_us + 1), US), to_us]
        spans = list(pairwise(borders))
        kept = np.zeros(len(spans), np.int64)
        for partition, log in enumerate(self.chunks):
            for chunk in _reaching_into(log, from_us, to_us):
                for second in _seconds_of(chunk, from_us, to_us):
                    low, high = spans[second]
                    due_us = max(low + US, chunk.to_us) + delay_us
                    kept[second] += self._part(partition, chunk, low, high) if chunk.published_us <= due_us else 0
        return np.array([self.plan.planned_events(low, high) for low, high in spans], np.int64), kept

    def _part(self, partition: int, chunk: Chunk, from_us: int, to_us: int) -> int:
        """How many of a chunk's events are due in [from_us, to_us), by the plan that it was made of."""
        low, high = max(chunk.from_us, from_us), min(chunk.to_us, to_us)
        if (low, high) == (chunk.from_us, chunk.to_us):
            return chunk.events
        part, whole = (self._planned_of(partition, *span) for span in ((low, high), (chunk.from_us, chunk.to_us)))
        return chunk.events * part // max(1, whole)

    def _planned_of(self, partition: int, from_us: int, to_us: int) -> int:
        count = self.plan.count_before
        streams = range(len(self.plan.streams))
        return sum(count(each, partition, to_us) - count(each, partition, from_us) for each in streams)

    def schedule_delays(self, from_us: int, to_us: int) -> Floats:
        """Slip in microseconds of evenly spread events of the span, one row of points a chunk's span, flattened.

        The common frontier lets nobody read a span before the last of all generators has published its chunk of it.
        """
        points = (np.arange(SCHEDULE_DELAY_POINTS) + 0.5) / SCHEDULE_DELAY_POINTS
        low_us, high_us, events, published_us = self._chunks_between(from_us, to_us)
        spans, place = np.unique(np.stack([low_us, high_us]), axis=1, return_inverse=True)
        last_us, due = np.zeros(spans.shape[1], np.int64), np.zeros(spans.shape[1], np.int64)
        np.maximum.at(last_us, place.ravel(), published_us)
        np.add.at(due, place.ravel(), events)
        delays_us = last_us[:, None] - (spans[0][:, None] + points * (spans[1] - spans[0])[:, None])
        return np.asarray(delays_us[due > 0].ravel(), np.float64)

    def backlog_peaks(self) -> tuple[Ints, Ints]:
        """(time, events) of the backlog just before each batch's first delivery: one sample a batch, always the same
        phase. For one query: take those of several one by one, with `by_query`.

        A micro-batch takes all there is, so the backlog after a delivery is always near nothing; what grows under
        overload is how much has gathered by the next one.
        """
        firsts = sorted((batch.read_us, max(batch.from_us, self.plan.start_us)) for _, batch in self.running.firsts())
        events = [self.plan.planned_events(since, when) for when, since in firsts]
        return np.array([when for when, _ in firsts], np.int64), np.array(events, np.int64)

    def backlog_waits(self) -> tuple[Ints, Floats]:
        """(time, seconds of event time) of the same samples: how long ago the oldest event that waits was due.

        What a trend is judged by. Events say that an engine falls behind only where their rate stays the same.
        """
        firsts = sorted((batch.read_us, batch.from_us) for _, batch in self.running.firsts())
        times, since = np.array(firsts, np.int64).reshape(-1, 2).T
        return times, np.maximum(0, times - np.maximum(since, self.plan.start_us)) / US

    def work_shares(self) -> tuple[Ints, Floats]:
        """(first read, share) of each batch: how long it took until it was committed, by the event time it took; one
        query.
        """
        found = sorted(
            (batch.read_us, (batch.committed_us - batch.read_us) / (batch.end_us - batch.from_us))
            for _, batch in self.running.firsts()
            if batch.committed_us and batch.end_us > batch.from_us
        )
        return np.array([when for when, _ in found], np.int64), np.array([share for _, share in found], float)

    def output_lags(self) -> tuple[Ints, Floats]:
        """(time, seconds) that the output was behind the plan, one sample a commit of the SUT's sink; for one query.

        A committed batch has given all that its input implies, so the output frontier is the event time up to which
        that input went. Windows alone would be a staircase of a handful of steps. Where a commit names no batch of
        the transport's, the largest event time among its results stands for it.
        """
        times, frontiers = self._output_frontier()
        moved = np.diff(frontiers) > 0
        return times[moved], (times - frontiers[1:])[moved] / US

    def output_lags_at_reads(self) -> tuple[Ints, Floats] | None:
        """The same, just before each batch's first delivery: the phase in which the backlog is sampled. None where a
        batch was read before all that was read earlier had been committed.

        Of an engine that reads on only when it is done nothing can wait inside. What its lag at commits has besides is
        how long each batch took, which changes from batch to batch while the engine keeps up.
        """
        reads = sorted((batch.read_us, batch.end_us) for _, batch in self.running.firsts())
        times, ends = np.array(reads, np.int64).reshape(-1, 2).T
        committed_us, frontiers = self._output_frontier()
        at_reads = frontiers[np.searchsorted(committed_us, times)]
        taken = np.maximum.accumulate(np.concatenate([[self.plan.start_us], ends]))[:-1]
        return None if (at_reads < taken).any() else (times, (times - at_reads) / US)

    def waiting_at(self, when_us: int) -> float:
        """Seconds of event time due by then and not delivered, for one query: no less gathers until its next
        delivery.
        """
        return max(0, when_us - max(self.running.read_until(when_us), self.plan.start_us)) / US

    def lag_at(self, when_us: int) -> float:
        """Seconds that the output was behind the plan then, for one query: no less until its next commit."""
        committed_us, frontiers = self._output_frontier()
        return float(when_us - frontiers[np.searchsorted(committed_us, when_us)]) / US

    def _output_frontier(self) -> tuple[Ints, Ints]:
        """(n,) times of the commits, ascending, and (n + 1,) how far the output had come before them and after each."""
        commits, batches = sorted(self.commits, key=lambda one: one.committed_us), self.running.batches
        reached = [batches[one.query, one.batch].end_us or one.frontier_us for one in commits]
        times = np.array([one.committed_us for one in commits], np.int64)
        return times, np.maximum.accumulate(np.array([self.plan.start_us, *reached], np.int64))

    def _chunks_between(self, from_us: int, to_us: int) -> tuple[Ints, Ints, Ints, Ints]:
        """(from, to, events, published) of the chunks that begin in the span."""
        reaching = (chunk for log in self.chunks for chunk in _reaching_into(log, from_us, to_us))
        inside = [(c.from_us, c.to_us, c.events, c.published_us) for c in reaching if c.from_us >= from_us]
        low_us, high_us, events, published_us = np.array(inside, np.int64).reshape(-1, 4).T
        return low_us, high_us, events, published_us

    def _up_to_date(self) -> _Fed:
        logs: list[Sequence[Any]] = [*self.chunks, *self.deliveries, self.commits]
        if self._fed is None or not self._fed.goes_on(logs):
            self._fed = _Fed(self, logs)
        self._fed.take_in(self)
        return self._fed


def _without_reads(trial_log: TrialLog) -> TrialLog:
    return replace(trial_log, sinks=(), chunks=[], deliveries=[[] for _ in trial_log.deliveries], commits=[])


class _Fed:
    """What has been taken in of a log's logs: the running figures, and each query's own log."""

    def __init__(self, trial_log: TrialLog, logs: list[Sequence[Any]]) -> None:
        self._logs = logs
        self._taken = [0] * len(logs)
        self.running = OnlineMetrics(trial_log.plan)
        self.of_query: dict[str, TrialLog] = {}

    def goes_on(self, logs: list[Sequence[Any]]) -> bool:
        """Whether these are the logs taken in so far, perhaps with more at their ends."""
        same = len(logs) == len(self._logs) and all(new is old for new, old in zip(logs, self._logs, strict=True))
        return same and all(len(log) >= taken for log, taken in zip(logs, self._taken, strict=True))

    def take_in(self, trial_log: TrialLog) -> None:
        """All that is new."""
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
            self._commit(trial_log, commit)

    def _commit(self, trial_log: TrialLog, commit: Commit) -> None:
        mine = self._query(trial_log, commit.query)
        mine.commits.append(commit)
        if commit.sink not in mine.sinks:
            mine.sinks = tuple(name for name in trial_log.sinks if name in (*mine.sinks, commit.sink))

    def _query(self, trial_log: TrialLog, query: str) -> TrialLog:
        if query not in self.of_query:
            self.of_query[query] = _without_reads(trial_log)
        return self.of_query[query]


def _reaching_into(log: Log[Chunk], from_us: int, to_us: int) -> Iterator[Chunk]:
    """A generator's chunks, which come in order, that have any of [from_us, to_us).

    Found, not looked through: a trial that runs asks often, and only of its last seconds, where few of them lie.
    """
    first = bisect_right(log, from_us, key=lambda chunk: chunk.to_us)
    return takewhile(lambda chunk: chunk.from_us < to_us, map(log.__getitem__, range(first, len(log))))


def _seconds_of(chunk: Chunk, from_us: int, to_us: int) -> range:
    """The seconds of [from_us, to_us), counted from its begin, that a chunk which reaches into it has events of."""
    low, high = max(chunk.from_us, from_us), min(chunk.to_us, to_us)
    return range((low - from_us) // US, -(-(high - from_us) // US))


def _reading(part: Delivery) -> tuple[str, Batch]:
    """Which stream was read, in which batch."""
    return part.stream, (part.query, part.batch)
