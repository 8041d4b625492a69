"""Figures of a growing journal: whatever comes in whatever steps, they are what the whole logs say."""

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.clock import US
from streamgauge.core.units import FAR_FUTURE_US
from streamgauge.metrics.live_figures import OnlineMetrics
from streamgauge.metrics.trial_log import TrialLog
from streamgauge.transports.spi import Chunk, Delivery

START = 1_700_000_000 * US
SINKS = ("dear", "counts")
QUERIES = ("q0", "q1")

STEPS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 5), st.booleans(), st.booleans()), max_size=40
)
"""(partition, query, batch, whether it is a re-read, whether the batch's commit comes before the read is known)."""


def tick_of_step(make: Any, place: int, step: tuple[int, int, int, bool, bool], done: set[tuple[int, int]]) -> Any:
    """`done` are the (query, batch) that were committed: the recorder accepts none twice."""
    partition, query, batch, again, early = step
    when = START + place * US // 2
    parts: list[list[Delivery]] = [[], []]
    parts[partition] = [
        Delivery("purchases", when - US, when + batch, 10 + place, when, batch, again, QUERIES[query], batch % 2)
    ]
    chunks = [[Chunk(when, when + US // 2, 5, when + US)], [Chunk(when, when + US // 4, place, when)]]
    commit = make.commit(batch + early, when + 5, query=QUERIES[query], sink=SINKS[query])
    new = (query, batch + early) not in done
    done.add((query, batch + early))
    return make.tick(chunks, parts, [commit] if new else [])


def latest(trial_log: TrialLog, sink: str) -> list[tuple[str, int]]:
    """The sink's two committed batches with the highest numbers, of those that read anything."""
    done, ends = {(one.query, one.batch) for one in trial_log.commits if one.sink == sink}, trial_log.batch_ends()
    return sorted(batch for batch in done if batch in ends)[-2:]


def forgettable(trial_log: TrialLog, sink: str) -> int:
    """What every partition had read of every stream, by the sink's latest batch but one."""
    if len(batches := latest(trial_log, sink)) < 2:
        return 0
    query, last = batches[0]
    readers = {(part.stream, part.reader) for part in trial_log.all_deliveries() if part.query == query}
    return min(
        max(
            (part.to_us for part in log if (part.query, part.stream, part.reader) == (query, *reader)
             and part.batch <= last), default=0,
        )
        for log in trial_log.deliveries for reader in readers
    )  # fmt: skip


def committed(trial_log: TrialLog, sink: str) -> int:
    """What its query had read everywhere, by the sink's latest batch."""
    return max((reached(trial_log, *batch) for batch in latest(trial_log, sink)), default=0)


def reached(trial_log: TrialLog, query: str, last: int) -> int:
    """What every reader of a query had read of every partition by a batch; its first event is unread until then."""
    return min(
        max(end_us, int(trial_log.plan.event_times(0, partition, 0, 1)[0]))
        for (partition, _), end_us in ends_by(trial_log, query, last).items()
    )


def ends_by(trial_log: TrialLog, query: str, last: int) -> dict[tuple[int, int], int]:
    """The end of what each reader of a query had read of each partition by a batch; 0 if nothing."""
    reads = [(partition, part) for partition, log in enumerate(trial_log.deliveries) for part in log]
    return {
        (partition, reader): max(
            (part.to_us for of, part in reads if (of, part.query, part.reader) == (partition, query, reader)
             and part.batch <= last), default=0,
        )
        for partition in range(2) for reader in {part.reader for _, part in reads if part.query == query}
    }  # fmt: skip


@given(STEPS)
def test_running_figures_are_those_of_the_whole_logs(make: Any, steps: list[Any]) -> None:
    """Asked after every tick, each is what a pass over all that came would give."""
    trial_log, done = TrialLog(make.plan(), SINKS), set[tuple[int, int]]()
    for place, step in enumerate(steps, 1):
        trial_log.add(tick_of_step(make, place, step, done))
        reads = trial_log.all_deliveries()
        assert trial_log.running.offered_events == sum(chunk.events for log in trial_log.chunks for chunk in log)
        assert trial_log.batch_ends() == {key: max(p.to_us for p in parts) for key, parts in by_batch(reads).items()}
        moments = START + np.array([0, place - 2, place - 1, place + 9]) * US // 2
        assert trial_log.running.taken_by(moments).tolist() == [of_slowest(reads, when.__gt__) for when in moments]
        assert trial_log.running.taken_events() == of_slowest(reads, lambda _: True)
        when_us = {(one.query, one.batch): one.committed_us for one in trial_log.commits}
        came = [replace(p, read_us=when_us.get((p.query, p.batch), FAR_FUTURE_US)) for p in reads]
        assert trial_log.running.committed_by(moments).tolist() == [of_slowest(came, when.__gt__) for when in moments]
        assert trial_log.committed_until() == min(committed(trial_log, sink) for sink in SINKS)
        assert trial_log.forgettable_until() == min(forgettable(trial_log, sink) for sink in SINKS)
        for sink in SINKS:
            alone = trial_log.of_sink(sink)
            assert alone.committed_until() == committed(trial_log, sink)
            assert alone.forgettable_until() == forgettable(trial_log, sink)
        delivered = [sum(p.events for p in reads if p.first and p.ingest_us < when) for when in moments]
        assert trial_log.running.delivered_by(moments).tolist() == delivered
        assert trial_log.queries() == tuple(
            sorted({part.query for part in reads} | {c.query for c in trial_log.commits})
        )
        for query in trial_log.queries():
            assert trial_log.of_query(query).waiting_at(START + 3 * US) == waiting(trial_log, query, START + 3 * US)
            assert peaks_of(trial_log.of_query(query)) == plain_peaks(trial_log, query)
            assert trial_log.of_query(query).commits == [one for one in trial_log.commits if one.query == query]


def by_batch(reads: list[Delivery]) -> dict[tuple[str, int], list[Delivery]]:
    result = defaultdict(list)
    for part in reads:
        result[part.query, part.batch].append(part)
    return result


def of_slowest(reads: list[Delivery], chosen: Callable[[int], bool]) -> int:
    """Events whose read was at a chosen time, re-reads left out: of each stream as many as its slowest reader has."""
    counts: dict[str, Counter[tuple[str, int]]] = defaultdict(Counter)
    for part in reads:
        counts[part.stream][part.query, part.reader] += part.events * (chosen(part.when_us) and not part.again)
    return sum(min(readers.values()) for readers in counts.values())


def waiting(trial_log: TrialLog, query: str, when_us: int) -> float:
    reads = [part for part in trial_log.all_deliveries() if part.query == query and not part.again]
    begun = [part.batch for part in reads if part.when_us < when_us]
    return max(0, when_us - max(START, reached(trial_log, query, max(begun)) if begun else 0)) / US


def peaks_of(trial_log: TrialLog) -> Counter[tuple[int, int]]:
    times, events = trial_log.backlog_peaks()
    assert (np.diff(times) >= 0).all()
    return Counter(zip(times.tolist(), events.tolist(), strict=True))


def plain_peaks(trial_log: TrialLog, query: str) -> Counter[tuple[int, int]]:
    batches: dict[int, list[Delivery]] = defaultdict(list)
    for part in trial_log.all_deliveries():
        if part.query == query and not part.again:
            batches[part.batch].append(part)
    return Counter(_plain_peak(trial_log, query, number, parts) for number, parts in batches.items())


def _plain_peak(trial_log: TrialLog, query: str, number: int, parts: list[Delivery]) -> tuple[int, int]:
    """When a batch was first read, and what each partition had waiting then, if they had been read unevenly."""
    plan, when = trial_log.plan, min(part.when_us for part in parts)
    ends = ends_by(trial_log, query, number - 1)
    if len(set(ends.values())) == 1:
        return when, plan.planned_events(max(min(part.from_us for part in parts), START), when)
    waiting = 0
    for partition in {partition for partition, _ in ends}:
        read = min(end for (of, _), end in ends.items() if of == partition)
        waiting += max(plan.count_before(0, partition, when) - plan.count_before(0, partition, read), 0)
    return when, waiting


def test_logs_that_are_replaced_are_taken_in_anew(make: Any) -> None:
    """A part of a log, made by cutting its logs, has the figures of that part."""
    trial_log = make.story(seconds=20).trial_log()
    assert trial_log.running.offered_events == 20_000
    trial_log.chunks = [log[: len(log) // 2] for log in trial_log.chunks]
    assert trial_log.running.offered_events == 10_000
    del trial_log.chunks[0][10:]
    assert trial_log.running.offered_events == sum(chunk.events for log in trial_log.chunks for chunk in log)


def test_no_read_is_taken_in_twice(make: Any, monkeypatch: Any) -> None:
    """So a look costs after an hour what it cost at first."""
    met: list[Delivery] = []
    monkeypatch.setattr(OnlineMetrics, "add_reads", lambda _, parts, partition: met.extend(parts))
    trial_log = TrialLog(make.plan())
    for tick in make.story(seconds=20).ticks():
        trial_log.add(tick)
        trial_log.committed_until()
        assert trial_log.running.offered_events
    assert Counter(met) == Counter(trial_log.all_deliveries())
