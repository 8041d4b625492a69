"""Deliveries by the offsets of a broker's log, and its append times."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.clock import US
from streamgauge.core.schema import event_id_base
from streamgauge.harness.broker_log import SAMPLES_MAX, Offsets, append_times
from streamgauge.loadgen.fields import Integer, StreamSpec
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.rate_profile import parse_profile
from streamgauge.transports.spi import OutputProgress, ReadPosition

SPECS = (StreamSpec("ads", (Integer("n", 1, 9),), 0.5), StreamSpec("purchases", (Integer("n", 1, 9),), 0.5))
RATE = 1000
START = 1000 * US


def plan_from(start_us: int, seconds: float = 10.0, partitions: int = 1) -> Plan:
    return Plan(SPECS, parse_profile("constant", RATE, seconds), start_us, seconds, 1, partitions)


def begun(partitions: int = 1) -> tuple[Offsets, Plan]:
    plan, offsets = plan_from(START, partitions=partitions), Offsets(partitions)
    offsets.begin(plan, [{"ads": 0, "purchases": 0}] * partitions)
    return offsets, plan


def read(to_offset: int, batch: int = 0, when_us: int = 7, **more: object) -> ReadPosition:
    values = {"query": "q0", "reader": 0, "stream": "ads", "partition": 0, **more}
    return ReadPosition(batch=batch, to_offset=to_offset, when_us=when_us, **values)


def test_each_event_is_in_the_batch_that_took_it() -> None:
    """By the plan's own times: what lies before a batch's end are as many events as it has read."""
    offsets, plan = begun()
    (first,), (second,) = offsets.deliveries([read(300)])[0], offsets.deliveries([read(301, 1, 9)])[0]
    assert (first.events, second.events) == (300, 1)
    assert plan.count_before(0, 0, first.to_us) == 300
    assert (second.from_us, plan.count_before(0, 0, second.to_us)) == (first.to_us, 301)
    assert (first.ingest_us, second.ingest_us, second.batch) == (7, 9, 1)
    assert (first.first, second.again) == (True, False)


def test_streams_readers_and_partitions_go_each_their_way() -> None:
    """What another reader has had before is shared, and stamped as it was then."""
    offsets, _ = begun(2)
    offsets.deliveries([read(10)])
    ((more,), (other,)) = offsets.deliveries([read(10, query="q1", when_us=8), read(4, partition=1)])
    assert (more.shared, more.ingest_us, more.read_us, more.events) == (True, 7, 8, 10)
    assert (other.shared, other.events) == (False, 4)
    ((mine,), _) = offsets.deliveries([read(6, stream="purchases")])
    assert (mine.stream, mine.events, mine.shared) == ("purchases", 6, False)


def test_what_every_reader_has_read_is_known() -> None:
    """The slowest reader of a partition, of any of its streams, says it."""
    offsets, plan = begun(2)
    assert [plan.count_before(0, partition, time) for partition, time in enumerate(offsets.reached_us())] == [0, 0]
    offsets.deliveries([read(10), read(4, stream="purchases"), read(8, partition=1)])
    low, other = offsets.reached_us()
    assert plan.count_before(1, 0, low) == 4
    assert other == plan.event_times(1, 1, 0, 1)[0]  # of its purchases nothing was read
    offsets.deliveries([read(9, stream="purchases", partition=1)])
    assert plan.count_before(0, 1, offsets.reached_us()[1]) == 8


def test_a_rare_stream_holds_no_reader_back() -> None:
    """After the next plan began its reader is at its first event there, though it has read nothing of that plan."""
    specs = (StreamSpec("ads", (Integer("n", 1, 9),), 0.999), StreamSpec("purchases", (Integer("n", 1, 9),), 0.001))
    first, later = (
        Plan(specs, parse_profile("constant", RATE, 10.0), start, 10.0, 1, 1) for start in (START, START + 60 * US)
    )
    offsets = Offsets(1)
    offsets.begin(first, [{"ads": 0, "purchases": 0}])
    sent = {name: first.count_before(number, 0, START + 5 * US) for number, name in enumerate(("ads", "purchases"))}
    offsets.deliveries([read(sent["ads"]), read(sent["purchases"], stream="purchases")])
    offsets.begin(later, [sent])
    offsets.deliveries([read(sent["ads"] + 100, 1), read(sent["purchases"], 1, stream="purchases")])
    assert offsets.reached_us() == [later.start_us]


def test_the_end_of_a_plan_is_its_end() -> None:
    """Everything that it has was read: no event says where that is."""
    offsets, plan = begun()
    ((whole,),) = offsets.deliveries([read(RATE // 2 * 10)])
    assert whole.to_us == plan.end_us


def test_a_plan_that_was_halted_counts_for_what_was_sent() -> None:
    """The next one begins before its end would have been: what it has of that time was never there."""
    offsets, plan = begun()
    offsets.deliveries([read(300)])
    halted = START + US
    sent = plan.count_before(0, 0, halted)
    offsets.begin(plan_from(halted + US), [{"ads": sent, "purchases": plan.count_before(1, 0, halted)}])
    ((both,),) = offsets.deliveries([read(sent + 50, 1)])
    ((last,),) = offsets.deliveries([read(sent + 90, 2)])
    assert (both.events, last.events) == (sent - 300 + 50, 40)


def test_a_batch_that_is_begun_anew_is_read_once_more() -> None:
    """After a restart its mark comes again: from where it began, by the same reader. One without news reads nothing."""
    offsets, _ = begun()
    assert offsets.deliveries([read(0)]) == [[]]
    offsets.deliveries([read(100), read(250, 1)])
    ((again,),) = offsets.deliveries([read(250, 1, when_us=20)])
    assert (again.again, again.events, again.ingest_us) == (True, 150, 7)
    ((on,),) = offsets.deliveries([read(260, 2)])
    assert (on.again, on.events) == (False, 10)
    assert offsets.deliveries([read(260, 3)]) == [[]]


def test_what_results_show_is_read_of_every_stream() -> None:
    """Up to their latest event time, over plans that follow each other; a late report takes nothing back."""
    offsets, plan = begun()
    time_us = int(plan.event_times(0, 0, 299, 300)[0])
    reads = offsets.reads_of([OutputProgress("q0", 0, time_us + 1, 7)])
    assert {(one.stream, one.partition) for one in reads} == {("ads", 0), ("purchases", 0)}
    ((ads, purchases),) = offsets.deliveries(reads)
    assert (ads.stream, ads.events, ads.ingest_us) == ("ads", 300, 7)
    assert purchases.events == plan.count_before(1, 0, time_us + 1)
    assert offsets.deliveries(offsets.reads_of([OutputProgress("q0", 1, time_us - 5000, 8)])) == [[]]
    later = plan_from(plan.end_us)
    offsets.begin(later, [{"ads": RATE * 5, "purchases": RATE * 5}])
    reads = offsets.reads_of([OutputProgress("q0", 2, later.end_us, 9)])
    assert [one.to_offset for one in reads] == [RATE * 10, RATE * 10]
    assert [part.to_us for part in offsets.deliveries(reads)[0]] == [later.end_us, later.end_us]


@given(
    st.lists(
        st.tuples(st.booleans(), st.integers(0, 400), st.integers(0, 400)),
        min_size=1,
        max_size=20,
    )
)
def test_a_query_without_batches_reads_nothing_twice(steps: list[tuple[bool, int, int]]) -> None:
    """What its results show and what it tells for certain come in any order, each in a batch of its own: every event
    is read once, up to the furthest that was reported.
    """
    offsets, plan = begun()
    parts, furthest = [], 0
    for batch, (certain, number, when_us) in enumerate(steps):
        until_us = int(plan.event_times(0, 0, number, number + 1)[0])
        shown = offsets.reads_of([OutputProgress("q0", batch, until_us, when_us)])
        (position,) = [read(number, batch, when_us)] if certain else [one for one in shown if one.stream == "ads"]
        parts += offsets.deliveries([position])[0]
        furthest = max(furthest, position.to_offset)
    assert sum(part.events for part in parts) == furthest
    assert all(part.first for part in parts)


@given(st.lists(st.tuples(st.integers(0, 300), st.booleans(), st.booleans(), st.booleans()), min_size=1, max_size=20))
def test_what_is_forgotten_changes_no_count(steps: list[tuple[int, bool, bool, bool]]) -> None:
    """Two queries read on, and begin their last batch anew now and then; what lies before the last batches of both is
    forgotten, as a test bed does: deliveries stay the same, the books get short.
    """
    (whole, plan), (short, _) = begun(), begun()
    last = {"q0": (0, 0, 0), "q1": (0, 0, 0)}  # batch, from, to
    for when_us, (more, first, anew, forget) in enumerate(steps, 7):
        query = "q0" if first else "q1"
        batch, begin, end = last[query]
        last[query] = (batch, begin, end) if anew else (batch + 1, end, end + more)
        position = read(last[query][2], last[query][0], when_us, query=query)
        assert short.deliveries([position]) == whole.deliveries([position])
        assert short.reached_us() == whole.reached_us()
        if forget and (before := min(begin for _, begin, _ in last.values())):
            short.forget(int(plan.event_times(0, 0, before, before + 1)[0]))
    short.forget(START + 60 * US)
    assert all(log._first == [] for log in short._reads.values())


def test_samples_are_events_of_the_last_plan() -> None:
    """One of each tenth of the span, with its offset and its planned time; of few events each once."""
    offsets, plan = begun(2)
    later = plan_from(plan.end_us, partitions=2)
    offsets.begin(later, [{"ads": 2500, "purchases": 2500}] * 2)
    sampled = {place: (at, times) for place, at, times in offsets.samples(later.start_us, later.start_us + 2 * US, 10)}
    assert set(sampled) == {("ads", 0), ("ads", 1), ("purchases", 0), ("purchases", 1)}
    at, times = sampled["ads", 1]
    count = later.count_before(0, 1, later.start_us + 2 * US)
    assert [(offset - 2500) * 10 // count for offset in at] == list(range(10))
    assert len({offset % 10 for offset in at}) > 1  # in step with nothing
    assert times == [int(later.event_times(0, 1, offset - 2500, offset - 2499)[0]) for offset in at]
    few = {place: at for place, at, _ in offsets.samples(later.start_us, later.start_us + 5000, 10)}
    assert all(len(set(at)) == len(at) < 10 for at in few.values())
    assert all(at == times == [] for _, at, times in offsets.samples(later.start_us, later.start_us, 10))


def test_a_read_ends_at_a_sequence_of_its_plan() -> None:
    """Which tells events of one microsecond apart; sequences begin anew with each plan."""
    offsets, _ = begun()
    ((first,),) = offsets.deliveries([read(300)])
    offsets.begin(plan_from(START + 20 * US), [{"ads": 400, "purchases": 0}])
    *_, last = offsets.deliveries([read(420, 1)])[0]
    assert (first.to_sequence, last.to_sequence) == (300, 20)


class Carrier:
    """Has an event an offset's milliseconds after the start, and results that are given."""

    def __init__(self, rows: Mapping[str, pa.Table]) -> None:
        self._rows = rows
        self.chosen: Sequence[int] = ()

    def appended_us(self, stream: str, partition: int, offsets: Sequence[int]) -> list[int]:
        assert stream == "ads"
        assert list(offsets) == sorted(set(offsets))
        return [START + 1000 * offset + partition for offset in offsets]

    def results(self, since_us: int, choose: Callable[[int], Sequence[int]]) -> Mapping[str, pa.Table]:
        self.chosen = choose(1_000_000)
        return self._rows


def rows_of(*events: tuple[int, int, int]) -> dict[str, pa.Table]:
    """(partition, number, event time in seconds since the start) of each result; all were there after 9 s."""
    ids = [event_id_base(0, partition) + number for partition, number, _ in events]
    times = [START + seconds * US for *_, seconds in events]
    columns = {"event_id": ids, "event_time": times, "emission_time": [START + 9 * US] * len(events)}
    return {"out": pa.table(columns)}


def of(rows: Mapping[str, pa.Table]) -> tuple[Any, Carrier]:
    offsets, broker = Offsets(2), Carrier(rows)
    for first, begin_us in ((0, START - 10 * US), (500, START)):
        offsets.begin(plan_from(begin_us, partitions=2), [{"ads": first, "purchases": 0}] * 2)
    return append_times(broker, offsets, "ads", "out", START, START + 5 * US), broker


def test_an_event_is_looked_for_where_its_plan_has_put_it() -> None:
    """A warm test bed has had another plan before; two results may be of one event; what lies outside is left out."""
    sampled, broker = of(rows_of((0, 7, 1), (1, 3, 2), (0, 2, 0), (0, 7, 1), (0, 9, 5)))
    assert (sampled.event_us - START).tolist() == [507_000, 503_001, 502_000, 507_000]
    assert (sampled.result_us - START).tolist() == [9 * US] * 4
    assert sampled.rows.column_names == ["event_id", "event_time"]
    assert len(broker.chosen) == SAMPLES_MAX


def test_nothing_is_known_where_nothing_is_reported() -> None:
    """Of another clock, and of a span without a result."""
    assert of({})[0] is None
    assert of(rows_of((0, 9, 5)))[0] is None
