"""metrics/event_latency.py: known stamps in, known latencies out; and the kind of results that a sink has."""

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import flow, source, table, tumble
from streamgauge.dataflow.nodes import Flow
from streamgauge.metrics.event_latency import (
    ENGINE_BATCH,
    Kind,
    LatencyBySecond,
    LatencyRule,
    Missing,
    has_matches,
    kind_of,
    latencies_of,
    sink_latencies,
)

T0 = 1_700_000_000_000_000
S = 1_000_000


def batch(
    event: list[int], emission: list[int], ingest: list | None = None, end: list[int] | None = None
) -> pa.RecordBatch:
    """Results with stamps in microseconds after T0."""
    columns = {"event_time": pa.array([T0 + t for t in event], pa.int64())}
    if ingest is not None:
        columns["ingest_time"] = pa.array([None if t is None else T0 + t for t in ingest], pa.int64())
    columns["emission_time"] = pa.array([T0 + t for t in emission], pa.int64())
    if end is not None:
        columns["window_end"] = pa.array([T0 + t for t in end], pa.timestamp("us", "UTC"))
    return pa.RecordBatch.from_pydict(columns)


def measured(
    rule: LatencyRule, *batches: pa.RecordBatch, span: tuple[int, int] = (0, 60 * S), missing: tuple[Missing, ...] = ()
) -> Any:
    """The latencies of a sink, whose figures are there or None."""
    return sink_latencies(batches, rule, (T0 + span[0], T0 + span[1]), missing)


ROW = LatencyRule("row")


def test_row_wise_results_count_from_event_and_from_ingest_time() -> None:
    """Emission minus event time, and minus ingest time, side by side."""
    latency = measured(ROW, batch([0, 10], [1000, 1500], ingest=[400, 500])).latencies
    assert (latency.event_time_us.min, latency.event_time_us.max) == (1000, 1490)
    assert (latency.processing_time_us.min, latency.processing_time_us.max) == (600, 1000)
    assert latency.closing_delay_us is None
    assert latency.match_time_us is None


def test_rows_are_chosen_by_event_time_never_by_arrival() -> None:
    """A result of the span counts however late it arrives; one of another time does not, whenever it arrives."""
    rows = batch([-1, 0, 5 * S, 10 * S], [100, 200, 99 * S, 10 * S + 1])
    latency = measured(ROW, rows, span=(0, 10 * S)).latencies.event_time_us
    assert (latency.count, latency.min, latency.max) == (2, 200, pytest.approx(94 * S, rel=1e-3))


def test_windows_count_as_windows_not_as_rows() -> None:
    """A thousand keys of one window are one observation, so no p90 is printed. Window ends may have any unit."""
    end = [4 * S] * 1000 + [8 * S] * 1000
    rows = batch([t - 5 for t in end], [t + 300 for t in end], ingest=list(end), end=end)
    result = measured(LatencyRule("window"), rows)
    ends = rows.column("window_end").cast(pa.timestamp("ns", "UTC"))
    index = rows.schema.get_field_index("window_end")
    assert measured(LatencyRule("window"), rows.set_column(index, "window_end", ends)).latencies == result.latencies
    latency = result.latencies.event_time_us
    assert (latency.count, latency.effective_count) == (2000, 2)
    assert (latency.p50, latency.p90) == (305, None)
    assert (result.latencies.closing_delay_us.min, result.latencies.closing_delay_us.max) == (300, 300)


def closed_and_observed(*rows: tuple[int, int], missing: tuple[tuple[int, int], ...] = ()) -> tuple[int | None, int]:
    """Of results (event time, window end), in seconds, of which the span has those of 0 to 10 s."""
    times, ends = zip(*rows, strict=True)
    came = batch([t * S for t in times], [99 * S] * len(rows), end=[end * S for end in ends])
    never = [T0 + np.array([one[n] * S for one in missing], np.int64) for n in (0, 1)]
    lost = (Missing(T0 + 99 * S, never[0], window_end_us=never[1]),) if missing else ()
    latency = measured(LatencyRule("window"), came, span=(0, 10 * S), missing=lost)
    return latency.windows_closed, latency.effective_count


def test_results_that_never_came_count_for_their_window_as_those_that_did() -> None:
    """It counts as observed with them, never as closed; one missing key of a window of another time does not do it."""
    assert closed_and_observed((3, 4), (10, 9), missing=((8, 9), (8, 9))) == (1, 2)
    assert closed_and_observed((3, 4), (11, 12), (11, 12), missing=((9, 12),)) == (1, 1)
    assert closed_and_observed((3, 4), missing=((9, 12), (11, 12), (11, 12))) == (1, 1)


@given(st.lists(st.tuples(st.integers(-5, 15), st.integers(0, 6)), min_size=1, max_size=60), st.data())
def test_how_results_come_in_batches_does_not_change_which_windows_count(
    rows: list[tuple[int, int]], data: st.DataObject
) -> None:
    """Those that have at least half of their results in the span, by the definition."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    parts = [rows[low:high] for low, high in pairwise([0, *cuts, len(rows)]) if high > low]
    came = [batch([t for t, _ in part], [99] * len(part), end=[end for _, end in part]) for part in parts]
    latency = measured(LatencyRule("window"), *came, span=(0, 10))
    inside = {end: [0 <= t < 10 for t, window in rows if window == end] for _, end in rows}
    assert latency.windows_closed == sum(2 * sum(ones) >= len(ones) for ones in inside.values())
    assert latency.effective_count == latency.windows_closed


def test_updates_of_one_engine_batch_count_once_however_many_parts_it_came_in() -> None:
    """Two tasks of a batch, and a large part sent as two: stamps differ, and it is one observation all the same.
    Without known batches, updates that leave together are one.
    """
    assert measured(LatencyRule("update"), batch([0, 1, 2], [10, 10, 20])).effective_count == 2
    parts = [(b"q/7", [10, 10]), (b"q/7", [11, 12]), (b"q/8", [20, 21])]
    named = [batch([0, 1], emission).replace_schema_metadata({ENGINE_BATCH: name}) for name, emission in parts]
    assert measured(LatencyRule("update"), *named).effective_count == 2


@pytest.mark.parametrize(("batches", "lost"), [(50, ["p99, p99_9"]), (100, ["p99_9"]), (1000, [])])
def test_rows_carry_no_more_than_the_batches_that_they_came_in(batches: int, lost: list[str]) -> None:
    """A thousand rows would carry p99; where they came in fifty batches, one slow batch may be all of it. Rows whose
    batches are not known count as they are.
    """
    times = list(range(20))
    rows = [batch(times, [n + 90] * 20, ingest=times) for n in range(batches)]
    named = [one.replace_schema_metadata({ENGINE_BATCH: b"q/%d" % n}) for n, one in enumerate(rows)]
    result = measured(ROW, *named)
    latency, notes = result.latencies.event_time_us, result.latencies.notes
    assert (latency.count, latency.effective_count) == (20 * batches, batches)
    assert ", ".join([name for name in ("p99", "p99_9") if getattr(latency, name) is None]) == "".join(lost)
    assert [note.split(":")[0] for note in notes] == lost
    assert all(f"in {batches} batches" in note for note in notes)
    unnamed = measured(ROW, *rows)
    assert (unnamed.effective_count, unnamed.latencies.notes) == (20 * batches, ())


def test_results_that_never_came_are_in_no_batch() -> None:
    """The note counts those that came."""
    rows = batch(list(range(20)), list(range(20, 40))).replace_schema_metadata({ENGINE_BATCH: b"q/0"})
    latency = measured(LatencyRule("row"), rows, missing=(Missing(T0 + 100, T0 + np.arange(5)),))
    assert "since 20 results came in 1 batches" in latency.latencies.notes[0]
    assert latency.latencies.event_time_us.count == 25


def test_a_join_counts_from_what_the_driver_computed() -> None:
    """[K §IV]: the window's times come from the plan; the row-wise maximum is reported as match time, and may lie
    before the span.
    """
    before = measured(LatencyRule("join", lambda end: end - 1), batch([-50], [5000], end=[4000]))
    assert before.latencies.event_time_us.count == 1
    rule = LatencyRule("join", lambda end: end - 1, lambda end: end + 10)
    latency = measured(rule, batch([100, 200], [5000, 5000], ingest=[150, 250], end=[4000, 4000])).latencies
    assert latency.event_time_us.max == 1001
    assert latency.processing_time_us.max == 990
    assert (latency.match_time_us.min, latency.match_time_us.max) == (
        pytest.approx(4800, rel=1e-3),
        pytest.approx(4900, rel=1e-3),
    )


@pytest.mark.parametrize(
    ("last_ingest", "emission", "least_us"),
    [(T0 + 4010, [1000, 5000], 900), (0, [8000], 7900), (T0 + 9000, [8000], 7900)],
    ids=["early", "never delivered", "behind"],
)
def test_a_match_that_came_before_its_window_was_complete_is_no_error(
    last_ingest: int, emission: list[int], least_us: int
) -> None:
    """It has no latency from its window's last event, so none is given of that kind; match time has all of them.

    Of a system that is behind it may come long after its window's end, and yet before the window's last event was
    delivered, or without it being so.
    """
    rule = LatencyRule("join", lambda end: end - 1, lambda end: np.full_like(end, last_ingest))
    events = [100, 200][: len(emission)]
    latency = measured(rule, batch(events, emission, ingest=events, end=[4000] * len(events)))
    found = latency.latencies
    for kind in (found.event_time_us, found.processing_time_us, found.closing_delay_us):
        assert (kind.count, kind.p50, kind.max) == (len(events), None, None)
        assert f"1 of {len(events)} matches came before their window was complete" in kind.note
    assert (latency.negatives, latency.seconds) == (0, LatencyBySecond())
    assert found.match_time_us.min == pytest.approx(least_us, rel=1e-3)


def test_a_match_before_its_own_events_is_an_error() -> None:
    """The fault beside the rule above: a clock that lies about the events of a match, in and out of the span."""
    rule = LatencyRule("join", lambda end: end - 1)
    inside = measured(rule, batch([2000, 100], [1000, 5000], end=[4000, 4000]))
    outside = measured(rule, batch([70_000_000], [69_000_000], end=[68_000_000]))
    assert (inside.negatives, outside.negatives) == (1, 1)


def test_uncorrected_latency_counts_from_the_hand_over() -> None:
    """A generator that was 400 us late hides 400 us in the uncorrected figure, and none in the corrected one."""
    latency = measured(LatencyRule("row", handed_over=lambda event: event + 400), batch([0], [1000])).latencies
    assert (latency.uncorrected_us.max, latency.event_time_us.max) == (600, 1000)


def test_negative_latency_is_an_error_with_both_stamps() -> None:
    """It is counted, named with its stamps, and in no figure; one whose false event time lies beyond the span too."""
    assert measured(ROW, batch([50 * S], [5 * S], ingest=[50 * S]), span=(0, 10 * S)).negatives == 1
    latency = measured(ROW, batch([0, 500], [100, 400], ingest=[0, 0]))
    assert latency.negatives == 1
    assert (latency.latencies.event_time_us.count, latency.latencies.event_time_us.min) == (1, 100)
    assert f"emission {T0 + 400} before {T0 + 500}" in latency.latencies.notes[0]
    assert "1 negative" in latency.latencies.event_time_us.note
    # Once, though from its event and from its delivery; one from its delivery alone counts too.
    assert measured(ROW, batch([500, 0, 0], [400, 100, 300], ingest=[600, 0, 500])).negatives == 2


def test_a_window_closed_early_is_no_error_of_the_clocks() -> None:
    """Its events came before it did: the answers say what it lacks, and a driver that measured well is not blamed."""
    latency = measured(LatencyRule("window"), batch([1000, 4900], [2000, 5400], end=[4000, 5000]))
    assert latency.negatives == 0
    assert latency.latencies.event_time_us.count == 2
    assert (latency.latencies.closing_delay_us.count, latency.latencies.closing_delay_us.min) == (1, 400)
    assert f"a window closed early, emission {T0 + 2000} before {T0 + 4000}" in latency.latencies.notes[0]
    assert measured(LatencyRule("window"), batch([3900], [2000], end=[4000])).negatives == 1


def test_results_without_ingest_time_leave_processing_time_out_and_say_so() -> None:
    """Through a broker the driver cannot see the delivery: null with the reason, not a figure."""
    for rows in (batch([0], [9]), batch([0, 1], [9, 9], ingest=[1, None])):
        latency = measured(ROW, rows).latencies
        assert latency.processing_time_us is None
        assert "carry no ingest time" in latency.notes[0]


def test_missing_results_enter_as_lower_bounds() -> None:
    """Nine quick results and three that never came: the maximum is at least deadline - event time. Those of a long run
    come in many parts, which are never held together.
    """
    parts = tuple(Missing(T0 + 30 * S, np.array([T0 + s * S, T0 + 99 * S])) for s in (10, 20, 25))
    result = measured(ROW, batch([0] * 9, [100] * 9), missing=parts)
    latency = result.latencies.event_time_us
    assert (latency.count, latency.lower_bounds, latency.effective_count) == (12, 3, 12)
    assert latency.max == pytest.approx(20 * S, rel=1e-3)
    assert list(result.seconds.event_time) == [T0 // S + n for n in (0, 10, 20, 25)]


def test_missing_windows_are_late_in_every_figure_that_can_know() -> None:
    """With its end, a window that never closed counts as an observation and in the closing delay, not as closed."""
    missing = Missing(T0 + 30 * S, np.array([T0 + 7 * S]), window_end_us=np.array([T0 + 8 * S]))
    latency = measured(LatencyRule("window"), batch([3 * S], [5 * S], ingest=[4 * S], end=[4 * S]), missing=(missing,))
    assert (latency.effective_count, latency.windows_closed) == (2, 1)
    assert latency.latencies.closing_delay_us.max == pytest.approx(22 * S, rel=1e-3)
    assert latency.latencies.closing_delay_us.lower_bounds == 1
    assert latency.latencies.notes == ("processing_time: 1 missing results are not in these figures",)


def test_seconds_are_those_of_event_time() -> None:
    """Results are binned by when they happened."""
    seconds = measured(ROW, batch([2 * S] + [0] * 100, [3 * S, *range(1, 101)], ingest=[2 * S] + [0] * 100)).seconds
    assert {second: one.count for second, one in seconds.event_time.items()} == {T0 // S: 100, T0 // S + 2: 1}
    assert seconds.event_time[T0 // S].percentile(0.5) == 50
    assert seconds.processing_time[T0 // S + 2].count == 1


def test_closing_delays_have_seconds_too() -> None:
    """In the second of each result's event time, those that are missing as lower bounds; results without a window have
    none, nor has a join whose matches came before their window was complete.
    """
    second, ends = T0 // S, [4 * S, 4 * S, 8 * S]
    rows = batch([3 * S, 3 * S + 1, 7 * S], [5 * S, 5 * S, 8 * S + 500], end=ends)
    lost = Missing(T0 + 20 * S, np.array([T0 + 11 * S]), window_end_us=np.array([T0 + 12 * S]))
    latency = measured(LatencyRule("window"), rows, missing=(lost,))
    closing = latency.seconds.closing_delay
    assert {at - second: (one.count, one.max) for at, one in closing.items()} == {
        3: (2, pytest.approx(S, rel=1e-3)), 7: (1, 500), 11: (1, pytest.approx(8 * S, rel=1e-3))
    }  # fmt: skip
    assert latency.latencies.closing_delay_us.count == sum(one.count for one in closing.values())
    assert measured(ROW, batch([0], [10])).seconds.closing_delay == {}
    early = LatencyRule("join", lambda end: end - 1)
    assert measured(early, batch([1], [2], end=[4 * S])).seconds.closing_delay == {}


def without(rows: pa.RecordBatch, name: str, *places: int) -> pa.RecordBatch:
    """The rows with null in one column at some places."""
    values = [None if place in places else value for place, value in enumerate(rows.column(name).to_pylist())]
    return rows.set_column(rows.schema.get_field_index(name), name, pa.array(values, rows.column(name).type))


def test_results_without_lineage_are_refused() -> None:
    """A missing column, or a stamp that the recorder owes, is said plainly."""
    with pytest.raises(ValueError, match="window_end"):
        measured(LatencyRule("window"), batch([0], [1]))
    with pytest.raises(ValueError, match="no emission time"):
        measured(ROW, without(batch([0], [1]), "emission_time", 0))


def test_results_without_an_event_time_are_in_no_figure_and_counted() -> None:
    """They are wrong answers; of the others every figure is what it is without them, whatever batch they came in."""
    alone, good = without(batch([0], [90], ingest=[1]), "event_time", 0), batch([0, 10], [100, 150], ingest=[4, 5])
    mixed = without(batch([0, 5, 10], [100, 90, 150], ingest=[4, 1, 5]), "event_time", 1)
    for named in (b"q/1", None):
        parts = [one.replace_schema_metadata(named and {ENGINE_BATCH: named}) for one in (alone, mixed, good)]
        latency, clean = measured(ROW, *parts[:2]), measured(ROW, parts[2])
        assert latency.latencies.model_dump(exclude={"notes"}) == clean.latencies.model_dump(exclude={"notes"})
        assert latency.effective_count == clean.effective_count == (1 if named else 2)
        assert "2 results of the trial carry no event time" in " ".join(latency.latencies.notes)
        assert "no event time" not in " ".join(clean.latencies.notes)


@pytest.mark.parametrize("name", ["event_time", "window_end"])
@pytest.mark.parametrize("rule", [LatencyRule("window"), LatencyRule("join", lambda end: end - 1)])
def test_windows_without_a_time_are_in_no_figure(rule: LatencyRule, name: str) -> None:
    """Neither its latency nor its closing delay can be told without the window's end."""
    latency = measured(rule, without(batch([1, 2], [9, 9], end=[4, 4]), name, 0))
    assert latency.latencies.event_time_us.count == latency.latencies.closing_delay_us.count == 1
    assert "1 results of the trial carry no event time, or no end of their window" in " ".join(latency.latencies.notes)


@pytest.mark.parametrize(("ends", "gap"), [((4, 8, 12), 4), ((4, 12, 16), 4), ((4, 4), None), ((), None)])
def test_how_far_apart_windows_end_is_seen_in_their_results(ends: tuple[int, ...], gap: int | None) -> None:
    """By the least distance: a window without results leaves a longer one. Rows have none."""
    rows = batch([(end - 1) * S for end in ends], [99 * S] * len(ends), end=[end * S for end in ends])
    latency = measured(LatencyRule("window"), rows, span=(0, 20 * S)).window_gap_us
    assert latency == (None if gap is None else gap * S)
    assert measured(ROW, rows, span=(0, 20 * S)).window_gap_us is None


A = source("a", Schema.from_types(k="int", v="int"))
B = source("b", Schema.from_types(k="int", w="int"))
NAMES = table("names", {"k": [1, 2], "name": ["one", "two"]}, Schema.from_types(k="int", name="string"))
JOINED = A.join(B, window=tumble(3), on="k")
COUNTED = A.window(tumble(3), keys="k").aggregate(n="count(*)")

CASES: dict[str, tuple[Flow, Kind, bool]] = {
    "rows": (A.where("v > 1").sink("out"), "row", False),
    "updates": (A.running(keys="k", n="count(*)").sink("out"), "update", False),
    "windows": (COUNTED.sink("out"), "window", False),
    "windows, looked up": (COUNTED.lookup(NAMES, on="k").sink("out"), "window", False),
    "matches": (JOINED.sink("out"), "join", True),
    "matches, filtered": (JOINED.where("v > w").sink("out"), "join", True),
    "matches, made into others": (
        JOINED.select(window_start="window_start", window_end="window_end", sum="v + w").sink("out"), "join", True
    ),
    "matches, exploded": (JOINED.explode(x="array(v, w)").sink("out"), "join", True),
    "matches, looked up": (JOINED.lookup(NAMES, on="k").sink("out"), "join", True),
    "matches, in several steps": (
        JOINED.explode(x="array(v, w)").lookup(NAMES, on="k").where("x > 1").sink("out"), "join", True
    ),
    "windows of matches": (JOINED.window(tumble(6), keys="k").aggregate(n="count(*)").sink("out"), "window", False),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_kind_of_results(case: str) -> None:
    """Matches stay matches row by row; a window over them is a window."""
    flow_, kind, matches = CASES[case]
    assert (kind_of(flow_), has_matches(flow_)) == (kind, matches)


def test_latencies_are_those_of_any_sink() -> None:
    """Closing delays where something closes, match times where something is matched, until counted of updates."""
    always = ("event_time", "processing_time")
    assert latencies_of(A.sink("rows")) == (*always, "uncorrected")
    assert latencies_of(flow(A.sink("rows"), COUNTED.sink("counts"))) == (*always, "closing_delay", "uncorrected")
    both = flow(JOINED.explode(x="array(v, w)").sink("parts"), A.sink("rows"))
    assert latencies_of(both) == (*always, "closing_delay", "match_time", "uncorrected")
    counts = A.running(keys="k", n="count(*)").sink("counts")
    assert latencies_of(counts) == ("event_time", "until_counted", "processing_time", "uncorrected")
