"""Verification without an engine: what arrives is made from the oracle's answer, with faults planted in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from streamgauge.engines.oracle.lower import sql
from streamgauge.events import EMISSION_TIME, EVENT_TIME, INGEST_TIME, US, WINDOW_END, Schema
from streamgauge.experiment import build
from streamgauge.flow import schema
from streamgauge.flow.lineage import identity
from streamgauge.flow.nodes import Flow
from streamgauge.flow.reach import reach_us
from streamgauge.flow.stream import flow as flow_of
from streamgauge.flow.stream import source, tumble
from streamgauge.measure.latency import Missing
from streamgauge.report.store import RunFolder
from streamgauge.result import Verification
from streamgauge.run import verify as module
from streamgauge.run.check import Ready, check
from streamgauge.run.comparison import Verified, comparison
from streamgauge.run.conduct import Conducted
from streamgauge.run.journal import IngestTimes, Ints, handed_over
from streamgauge.run.replay import Input
from streamgauge.run.spool import Received
from streamgauge.run.verify import verify

START = 1_700_000_000 * US
DEADLINE = START + 21 * US
FAULTS = ("missing", "extra", "duplicate", "wrong", "late")

FIELDS = Schema.of(user_id="int", price="int")
PURCHASES, ADS = source("purchases", FIELDS), source("ads", FIELDS)
ROWS = PURCHASES.where("price > 50").select(user_id="user_id", double="price * 2").sink("rows")
WINDOWS = PURCHASES.window(tumble("2s"), keys="user_id").aggregate(spent="sum(price)").sink("windows")
PAIRS = (
    PURCHASES.where("price > 90")
    .join(ADS.select(user_id="user_id", cost="price"), window=tumble("2s"), on="user_id")
    .sink("pairs")
)
UPDATES = PURCHASES.running(keys="user_id", n="count(*)").sink("updates")
VALUES = {"rows": "double", "windows": "spent", "pairs": "cost", "updates": "n"}


@dataclass
class Case:
    """A trial of a flow: 2 partitions at 1000 events/s for 20 s, a batch a second; 5 s to 15 s are measured."""

    ready: Ready
    done: Conducted
    folder: Path

    def answer(self, sink: str = "") -> pa.Table:
        """The oracle's rows for all that was offered, by event time; each came a second after it was due."""
        one = next(each for each in self.ready.of_each_sink() if sink in ("", each.flow.sink.name))
        columns = schema.columns(one.lineage_flow.sink.input)
        windowed = f", epoch_us({WINDOW_END})" if WINDOW_END in columns else ""
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            relations = self._inputs(connection, one)
            asked = f"SELECT *, greatest({EVENT_TIME}{windowed}) + {US} AS {EMISSION_TIME}"
            return connection.sql(
                f"{asked} FROM ({sql(one.lineage_flow, relations)}) ORDER BY {EVENT_TIME}"
            ).to_arrow_table()

    def updates(self) -> list[pa.Table]:
        """The running count of every key as it stood after each batch."""
        with duckdb.connect() as connection:
            self._inputs(connection, self.ready)
            times = f"max({EVENT_TIME}) AS {EVENT_TIME}, max({INGEST_TIME}) AS {INGEST_TIME}"
            after = f"max({EVENT_TIME}) + {US} AS {EMISSION_TIME}"
            asked = f"SELECT user_id, count(*) AS n, {times}, {after} FROM input_purchases WHERE {EVENT_TIME} < "
            ends = (START + second * US for second in range(1, 21))
            return [connection.sql(f"{asked} {end} GROUP BY user_id").to_arrow_table() for end in ends]

    def _inputs(self, connection: duckdb.DuckDBPyConnection, one: Ready) -> dict[str, str]:
        made = Input(self.done.journal.plan, IngestTimes(self.done.journal), one.columns)
        for name, reader in made.readers(START, self.done.spans.end_us).items():
            connection.register(f"input_{name}", reader.read_all())
        return {name: f"input_{name}" for name in one.columns}

    def receive(self, make: Any, **sinks: Iterable[pa.Table]) -> Case:
        """Let these rows be what each sink committed, a table a batch."""
        journal = self.done.journal
        journal.sinks = tuple(sink.name for sink in self.ready.flow.sinks)
        journal.commits = [
            self._commit(make, sink, batch, rows) for sink, tables in sinks.items() for batch, rows in enumerate(tables)
        ]
        return self

    def _commit(self, make: Any, sink: str, batch: int, rows: pa.Table) -> Any:
        path = self.folder / f"{sink}-{batch}.arrow"
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
            writer.write_table(rows, max_chunksize=1000)
        paths = [str(path)] if rows.num_rows else []
        return make.commit(batch, START + (batch + 2) * US, rows.num_rows, sink=sink, paths=paths)


@pytest.fixture
def case(make: Any, tmp_path: Path) -> Callable[..., Case]:
    any_workload = check(build({"workload": "windowed_aggregation", "load": {"rate": 1000, "generators": 2}}))

    def made(flow: Flow, **more: Any) -> Case:
        ready = replace(any_workload, flow=flow, reach_us=reach_us(flow))
        done = make.story(plan=make.plan(streams=2)).done(**more)
        return Case(ready, done, tmp_path)

    return made


def faults(found: Verification) -> dict[str, int]:
    assert found.judged
    return {name: getattr(found, name) for name in FAULTS if getattr(found, name)}


def with_value(rows: pa.Table, column: str, place: int, value: Any) -> pa.Table:
    """The table with one value changed."""
    chosen = pa.array(np.arange(rows.num_rows) == place)
    changed = pc.if_else(chosen, pa.scalar(value, rows.schema.field(column).type), rows.column(column))
    return rows.set_column(rows.schema.get_field_index(column), column, changed)


def without(rows: pa.Table, place: int) -> pa.Table:
    return pa.concat_tables([rows.slice(0, place), rows.slice(place + 1)])


def planted(rows: pa.Table, flow: Flow, fault: str, place: int) -> pa.Table:
    """The rows with one fault at a place."""
    one, value, id_ = rows.slice(place, 1), VALUES[flow.sink.name], identity(flow)[0]
    match fault:
        case "missing":
            return without(rows, place)
        case "duplicate":
            return pa.concat_tables([rows, one])
        case "wrong":
            return with_value(rows, value, place, one.column(value)[0].as_py() + 1)
        case "late":
            return with_value(rows, EMISSION_TIME, place, DEADLINE + 1)
        case _:
            return pa.concat_tables([rows, with_value(one, id_, 0, 2**30)])


# --- what is said ---


@pytest.mark.parametrize(
    ("flow", "ended", "said"),
    [
        (ROWS, "", "results expected, "),
        (WINDOWS, "", "windows expected, "),
        (PAIRS, "", "results expected, "),
        (ROWS, "the engine died", "results expected of what was committed, "),
    ],
)
def test_the_sentence_says_what_was_expected(
    case: Callable[..., Case], make: Any, flow: Flow, ended: str, said: str
) -> None:
    """Of a run that ended before its input was committed, less is owed than was offered."""
    asked = case(flow, drained=not ended, engine_failed=ended)
    asked.receive(make, **{flow.sink.name: [without(asked.answer(), 0)]})
    found = verify(asked.ready, asked.done).verification
    assert found.sentence == f"{found.expected:,} {said}{found.matched:,} matched, 1 missing"


# --- rows, windows and pairs ---

FLOWS = pytest.mark.parametrize("flow", [ROWS, WINDOWS, PAIRS], ids=lambda flow: flow.sink.name)


@FLOWS
def test_right_answers_match(case: Callable[..., Case], make: Any, flow: Flow) -> None:
    """In whatever order and in however many files; what is expected is what the measured span and the warm-up owe."""
    asked = case(flow)
    rows = asked.answer()
    asked.receive(make, **{flow.sink.name: [rows.slice(rows.num_rows // 3), rows.slice(0, rows.num_rows // 3)]})
    found = verify(asked.ready, asked.done)
    due = pc.sum(pc.less(rows.column(EVENT_TIME), START + 15 * US)).as_py()
    assert faults(found.verification) == {}
    assert found.verification.expected == found.verification.matched == due > 0
    assert found.sinks[0].rows == rows.num_rows
    assert latency_of(found).lower_bounds == 0


@FLOWS
@pytest.mark.parametrize("fault", FAULTS)
def test_each_planted_fault_is_counted(case: Callable[..., Case], make: Any, flow: Flow, fault: str) -> None:
    """One row dropped, invented, doubled, altered or late is that fault, once, and nothing else."""
    asked = case(flow)
    rows = asked.answer()
    place = rows.num_rows // 2
    asked.receive(make, **{flow.sink.name: [planted(rows, flow, fault, place)]})
    found = verify(asked.ready, asked.done)
    assert faults(found.verification) == {fault: 1}
    assert [example["fault"] for example in found.verification.examples] == [fault]
    assert latency_of(found).lower_bounds == (1 if fault == "missing" else 0)


@FLOWS
def test_of_what_lies_after_the_span_only_inventions_and_repetitions_are_faults(
    case: Callable[..., Case], make: Any, flow: Flow
) -> None:
    """The tail is there to close what was measured; it may be cut off anywhere."""
    asked = case(flow)
    rows = asked.answer()
    last = rows.num_rows - 1
    seen = {}
    for fault in FAULTS:
        asked.receive(make, **{flow.sink.name: [planted(rows, flow, fault, last)]})
        seen[fault] = faults(verify(asked.ready, asked.done).verification)
    assert seen == {fault: {fault: 1} if fault in ("extra", "duplicate") else {} for fault in FAULTS}


def test_rows_from_outside_all_slices_are_extra(case: Callable[..., Case], make: Any) -> None:
    """Invented rows before the plan's first event and after its last lie in some slice too."""
    asked = case(ROWS)
    rows = asked.answer()
    odd = [with_value(rows.slice(0, 1), EVENT_TIME, 0, when) for when in (5, START - 1, DEADLINE + US)]
    odd = [with_value(row, "event_id", 0, 2**40 + n) for n, row in enumerate(odd)]
    asked.receive(make, rows=[rows, *odd])
    assert faults(verify(asked.ready, asked.done).verification) == {"extra": 3}


@pytest.mark.parametrize(
    ("flow", "counted", "bounds"),
    [(ROWS, {"missing": 1, "extra": 1}, 1), (WINDOWS, {"wrong": 1}, 0), (PAIRS, {"wrong": 1}, 0)],
    ids=lambda one: one.sink.name if isinstance(one, Flow) else "",
)
def test_a_result_without_an_event_time_is_a_wrong_answer(
    case: Callable[..., Case], make: Any, flow: Flow, counted: dict[str, int], bounds: int
) -> None:
    """Where slices of event time are compared, the right row is missing in its own, and this one was not expected."""
    asked = case(flow)
    rows = asked.answer()
    asked.receive(make, **{flow.sink.name: [with_value(rows, EVENT_TIME, rows.num_rows // 2, None)]})
    found = verify(asked.ready, asked.done)
    assert faults(found.verification) == counted
    assert latency_of(found).lower_bounds == bounds
    assert "1 results of the trial carry no event time" in " ".join(found.sinks[0].latencies.latencies.notes)


def test_a_file_without_any_event_time_is_extra_and_kept(case: Callable[..., Case], make: Any, tmp_path: Path) -> None:
    """Nothing but nulls in one file: as many rows that nobody expected, and the results can be written."""
    asked = case(ROWS)
    rows = asked.answer()
    odd = rows.slice(0, 2).set_column(rows.schema.get_field_index(EVENT_TIME), EVENT_TIME, pa.nulls(2, pa.int64()))
    odd = odd.set_column(rows.schema.get_field_index("event_id"), "event_id", pa.array([2**40, 2**40 + 1]))
    folder = RunFolder(tmp_path / "kept")
    folder.path.mkdir()
    found = verify(asked.receive(make, rows=[rows, odd]).ready, asked.done, folder)
    assert faults(found.verification) == {"extra": 2}
    assert pq.read_table(folder.path / "results.parquet").column(EVENT_TIME).null_count == 2


def test_a_pair_whose_window_ended_before_the_first_event_is_told(case: Callable[..., Case], make: Any) -> None:
    """That window has no last event to count a latency from: a fault of the answers, and nothing is raised."""
    asked = case(PAIRS)
    rows = asked.answer()
    asked.receive(make, pairs=[rows, with_value(rows.slice(0, 1), WINDOW_END, 0, START - 60 * US)])
    assert faults(verify(asked.ready, asked.done).verification) == {"duplicate": 1}


def test_nothing_received_is_all_missing(case: Callable[..., Case], make: Any) -> None:
    """Every row that was due is there as a lower bound: it took at least until the deadline."""
    asked = case(ROWS).receive(make, rows=[])
    found = verify(asked.ready, asked.done)
    times = asked.answer().column(EVENT_TIME).to_numpy()
    assert faults(found.verification) == {"missing": np.count_nonzero(times < START + 15 * US)}
    latency = latency_of(found)
    measured = np.count_nonzero((times >= START + 5 * US) & (times < START + 15 * US))
    assert latency.count == latency.lower_bounds == measured
    assert latency.min >= 6 * US


def latency_of(found: Verified) -> Any:
    latency = found.sinks[0].latencies.latencies.event_time_us
    assert latency is not None
    return latency


# --- lower bounds ---


@FLOWS
def test_a_missing_result_counts_from_what_it_would_have_counted_from(
    case: Callable[..., Case], make: Any, flow: Flow
) -> None:
    """Up to the deadline, in both latencies; for a pair from the last event of its window."""
    asked = case(flow)
    rows = asked.answer()
    place = rows.num_rows // 2
    lost = rows.slice(place, 1).to_pylist()[0]
    base, stamp = lost[EVENT_TIME], lost[INGEST_TIME]
    if flow is PAIRS:
        end = round(lost[WINDOW_END].timestamp()) * US
        base, stamp = last_before(asked, end), end + 5000
    asked.receive(make, **{flow.sink.name: [without(rows, place)]})
    latencies = verify(asked.ready, asked.done).sinks[0].latencies.latencies
    assert latencies.event_time_us is not None
    assert latencies.processing_time_us is not None
    assert latencies.event_time_us.max == pytest.approx(DEADLINE - base, rel=1e-3)
    assert latencies.processing_time_us.max == pytest.approx(DEADLINE - stamp, rel=1e-3)


def test_a_missing_window_that_was_never_read_has_no_processing_time(case: Callable[..., Case], make: Any) -> None:
    """Nothing was handed out, so there is nothing to count from; its event time is known."""
    asked = case(WINDOWS)
    asked.receive(make, windows=[asked.answer().slice(0, 0)])
    asked.done.journal.hand_outs = [[] for _ in asked.done.journal.hand_outs]
    latencies = verify(asked.ready, asked.done).sinks[0].latencies.latencies
    assert latencies.event_time_us is not None
    assert latencies.event_time_us.lower_bounds > 0
    assert latencies.processing_time_us is None


def test_what_a_trial_that_ended_early_still_owed_is_a_bound_and_no_fault(case: Callable[..., Case], make: Any) -> None:
    """Ten batches were committed: later rows are not missing, but those of the span waited until the deadline."""
    asked = case(ROWS, drained=False, engine_failed="the engine died")
    rows = asked.answer()
    came = rows.filter(pc.less(rows.column(EVENT_TIME), START + 10 * US))
    empty = came.slice(0, 0)
    asked.receive(make, rows=[came, *[empty] * 9])
    found = verify(asked.ready, asked.done)
    times = rows.column(EVENT_TIME)
    owed = pc.sum(pc.and_(pc.greater_equal(times, START + 10 * US), pc.less(times, START + 15 * US))).as_py()
    assert faults(found.verification) == {}
    assert found.verification.expected == came.num_rows
    assert latency_of(found).lower_bounds == owed
    asked.receive(make, rows=[came.slice(1), *[empty] * 9])
    assert faults(verify(asked.ready, asked.done).verification) == {"missing": 1}


def test_a_window_that_ends_where_a_batch_did_is_owed_one_batch_later(case: Callable[..., Case], make: Any) -> None:
    """The last event before the cut of 10 s leaves the watermark below it: eleven batches do not close that window."""
    asked = case(WINDOWS, drained=False, engine_failed="the engine died")
    rows = asked.answer()
    ends = pc.cast(rows.column(WINDOW_END), pa.int64())
    closed = rows.filter(pc.less_equal(ends, START + 8 * US))
    for came, found in ((closed, {}), (closed.slice(1), {"missing": 1})):
        asked.receive(make, windows=[came, *[came.slice(0, 0)] * 10])
        assert faults(verify(asked.ready, asked.done).verification) == found
    asked.receive(make, windows=[closed, *[closed.slice(0, 0)] * 11])
    due = pc.sum(pc.equal(ends, START + 10 * US)).as_py()
    assert faults(verify(asked.ready, asked.done).verification) == {"missing": due}


@FLOWS
def test_an_engine_that_hangs_at_the_end_owes_what_it_did_not_deliver(
    case: Callable[..., Case], make: Any, flow: Flow
) -> None:
    """It lived, read, and committed until shortly before the span's end; at the deadline the rest is missing."""
    asked = case(flow, drained=False)
    rows = asked.answer()
    came = rows.filter(pc.less(rows.column(EVENT_TIME), START + 13 * US))
    asked.receive(make, **{flow.sink.name: [came, *[came.slice(0, 0)] * 12]})
    found = verify(asked.ready, asked.done).verification
    due = pc.sum(pc.less(rows.column(EVENT_TIME), START + 15 * US)).as_py()
    assert faults(found) == {"missing": due - came.num_rows}
    assert found.expected == due


# --- the last event of a window ---


def last_before(asked: Case, end_us: int, streams: Iterable[int] = (0, 1)) -> int:
    """The greatest event time before `end_us`, by making every event."""
    plan = asked.done.journal.plan
    times = [
        plan.event_times(stream, partition, 0, plan.count_before(stream, partition, plan.end_us))
        for stream in streams
        for partition in range(plan.partitions)
    ]
    return max(int(each[each < end_us].max()) for each in times)


ENDS: Ints = np.array([START + 4 * US, START + 2 * US, START + 4 * US, START + 2_500_000], np.int64)


def test_the_last_event_in_a_window_is_found_for_each_end(case: Callable[..., Case]) -> None:
    """Of all partitions and streams that the flow reads; ends may come in any order, and again."""
    asked = case(PAIRS)
    last = module._LastInWindow(asked.ready, asked.done)
    assert last.event_time(ENDS).tolist() == [last_before(asked, int(end)) for end in ENDS]
    assert last.ingest_time(ENDS).tolist() == [START + second * US + 5000 for second in (4, 2, 4, 3)]


def test_streams_that_the_flow_does_not_read_have_no_part_in_it(case: Callable[..., Case]) -> None:
    """A purchase after the last advertisement changes nothing for a flow of advertisements alone."""
    asked = case(ADS.sink("ads"))
    found = module._LastInWindow(asked.ready, asked.done).event_time(ENDS).tolist()
    assert found == [last_before(asked, int(end), [1]) for end in ENDS]
    assert found != [last_before(asked, int(end)) for end in ENDS]


def lost(asked: Case, ends: Ints) -> Missing:
    """What enters the latencies where a result of each of these windows never came."""
    with comparison(asked.done) as compared:
        for end in ends:
            compared.connection.execute(f"INSERT INTO lost VALUES ({end - 1}, {end + 7}, {end})")
        (found,) = compared.lost(module._rule(asked.ready, asked.done))
        return found


def test_a_joins_missing_results_count_from_the_last_event(case: Callable[..., Case]) -> None:
    """Both stamps are the driver's, and not those of the pair."""
    asked = case(PAIRS)
    found = lost(asked, ENDS)
    assert found.window_end_us is not None
    assert sorted(found.window_end_us) == sorted(ENDS)
    assert sorted(found.event_time_us) == sorted(last_before(asked, int(end)) for end in ENDS)
    assert found.ingest_time_us is not None
    assert sorted(found.ingest_time_us) == [START + second * US + 5000 for second in (2, 3, 4, 4)]
    assert found.deadline_us == DEADLINE


def test_a_join_whose_events_were_never_read_has_no_ingest_time(case: Callable[..., Case]) -> None:
    """Nothing after 20 s was handed out."""
    assert lost(case(PAIRS), np.array([START + 2 * US, START + 30 * US])).ingest_time_us is None


ANY_PAIR = PURCHASES.join(ADS.select(user_id="user_id", cost="price"), window=tumble("2s"), on="user_id")


@pytest.mark.parametrize(
    ("flow", "kind"),
    [
        (ANY_PAIR.sink("pairs"), "join"),
        (ANY_PAIR.where("cost > 3").sink("pairs"), "join"),
        (ANY_PAIR.select(user_id="user_id", cost="cost").sink("pairs"), "row"),
        (ANY_PAIR.window(tumble("4s"), keys="user_id").aggregate(n="count(*)").sink("pairs"), "window"),
    ],
)
def test_only_what_still_shows_a_joins_window_counts_from_its_end(
    case: Callable[..., Case], flow: Flow, kind: str
) -> None:
    """A select may leave the window's end out, and an aggregate closes windows of its own."""
    asked = case(flow)
    assert module._rule(asked.ready, asked.done).kind == kind


def test_a_joins_results_without_their_window_are_verified(make: Any, case: Callable[..., Case]) -> None:
    asked = case(ANY_PAIR.select(user_id="user_id", cost="cost").sink("pairs"))
    found = verify(asked.receive(make, pairs=[asked.answer("pairs")]).ready, asked.done)
    assert found.verification.right, found.verification.sentence
    assert found.sinks[0].latencies.latencies.event_time_us is not None


def test_other_results_keep_their_own_times(case: Callable[..., Case]) -> None:
    found = lost(case(WINDOWS), ENDS)
    assert sorted(found.event_time_us) == sorted(ENDS - 1)
    assert found.ingest_time_us is not None
    assert sorted(found.ingest_time_us) == sorted(ENDS + 7)


# --- several sinks ---


def test_each_sink_is_verified_alone_and_all_are_summed(case: Callable[..., Case], make: Any) -> None:
    """A fault of one sink is no fault of another; examples and the sentence name it."""
    asked = case(flow_of(ROWS, WINDOWS))
    rows, windows = asked.answer("rows"), asked.answer("windows")
    dropped = without(rows, 1000)
    asked.receive(make, rows=[planted(dropped, ROWS, "duplicate", 500)], windows=[windows])
    found = verify(asked.ready, asked.done)
    assert [(sink.name, faults(sink.verification)) for sink in found.sinks] == [
        ("rows", {"missing": 1, "duplicate": 1}),
        ("windows", {}),
    ]
    assert faults(found.verification) == {"missing": 1, "duplicate": 1}
    assert found.verification.expected == sum(sink.verification.expected for sink in found.sinks)
    assert {example["sink"] for example in found.verification.examples} == {"rows"}
    assert found.verification.sentence.startswith("rows: ")
    assert "; windows: " in found.verification.sentence
    assert found.windows_closed == found.sinks[1].latencies.windows_closed
    assert found.sinks[0].latencies.windows_closed is None


def test_a_sink_that_got_nothing_is_missing_beside_one_that_is_right(case: Callable[..., Case], make: Any) -> None:
    asked = case(flow_of(ROWS, WINDOWS))
    asked.receive(make, rows=[asked.answer("rows")], windows=[])
    of_rows, of_windows = verify(asked.ready, asked.done).sinks
    assert faults(of_rows.verification) == {}
    assert faults(of_windows.verification) == {"missing": of_windows.verification.expected}


def test_the_slowest_sink_is_the_one_whose_results_come_latest(case: Callable[..., Case], make: Any) -> None:
    """Windows wait for their end; rows do not."""
    asked = case(flow_of(ROWS, WINDOWS))
    asked.receive(make, rows=[asked.answer("rows")], windows=[asked.answer("windows")])
    assert verify(asked.ready, asked.done).slowest.name == "windows"


# --- updates ---


def test_right_updates_match(case: Callable[..., Case], make: Any) -> None:
    """Values on the way, and the last of every key."""
    asked = case(UPDATES)
    asked.receive(make, updates=asked.updates())
    found = verify(asked.ready, asked.done).verification
    assert faults(found) == {}
    assert found.matched == 20 * 100


@pytest.mark.parametrize(
    ("batch", "fault"), [(9, "wrong"), (19, "wrong"), (9, "duplicate"), (9, "extra"), (19, "late")]
)
def test_each_fault_of_an_update_is_counted(case: Callable[..., Case], make: Any, batch: int, fault: str) -> None:
    """On the way and at the end."""
    asked = case(UPDATES)
    tables = asked.updates()
    tables[batch] = planted(tables[batch], UPDATES, fault, 50)
    asked.receive(make, updates=tables)
    assert faults(verify(asked.ready, asked.done).verification) == {fault: 1}


@pytest.mark.parametrize(("batch", "counted"), [(9, {"extra": 1}), (19, {"missing": 1, "extra": 1})])
def test_an_update_without_an_event_time_is_extra(
    case: Callable[..., Case], make: Any, batch: int, counted: dict[str, int]
) -> None:
    """Its time is part of what tells it from another; the last of its key must be there."""
    asked = case(UPDATES)
    tables = asked.updates()
    tables[batch] = with_value(tables[batch], EVENT_TIME, 50, None)
    asked.receive(make, updates=tables)
    assert faults(verify(asked.ready, asked.done).verification) == counted


def test_only_the_last_update_of_a_key_must_be_there(case: Callable[..., Case], make: Any) -> None:
    """An engine may leave out what another value follows."""
    asked = case(UPDATES)
    tables = asked.updates()
    asked.receive(make, updates=[*tables[:9], without(tables[9], 50), *tables[10:]])
    assert faults(verify(asked.ready, asked.done).verification) == {}
    asked.receive(make, updates=[*tables[:19], without(tables[19], 50)])
    found = verify(asked.ready, asked.done)
    assert faults(found.verification) == {"missing": 1}
    assert latency_of(found).lower_bounds == 0


# --- what came, and when it was handed over ---


def test_results_of_an_earlier_trial_are_left_out(case: Callable[..., Case], make: Any) -> None:
    """On a warm rig its last windows close in this trial; on a fresh one the same row was invented."""
    rows = case(ROWS).answer()
    old = with_value(with_value(rows.slice(0, 1), EVENT_TIME, 0, START - US), "event_id", 0, 2**40)
    counts = []
    for earlier in (True, False):
        asked = case(ROWS, earlier_trials=earlier)
        asked.receive(make, rows=[pa.concat_tables([rows, old])])
        counts.append(faults(verify(asked.ready, asked.done).verification))
    assert counts == [{}, {"extra": 1}]


def test_received_rows_are_cut_by_event_time(case: Callable[..., Case], make: Any) -> None:
    """From inclusive, to exclusive, over several files; none is lost between two spans."""
    asked = case(ROWS)
    rows = asked.answer()
    asked.receive(make, rows=[rows.slice(0, 4000), rows.slice(4000), rows.slice(0, 0)])
    received = Received(asked.done)
    border = rows.column(EVENT_TIME)[3999].as_py()
    before, after = received.table(to_us=border), received.table(from_us=border)
    assert pc.max(before.column(EVENT_TIME)).as_py() < border == pc.min(after.column(EVENT_TIME)).as_py()
    assert before.num_rows + after.num_rows == rows.num_rows
    assert received.table(DEADLINE, DEADLINE).num_rows == 0


def test_the_hand_over_of_an_event_is_that_of_its_chunk(case: Callable[..., Case], make: Any) -> None:
    """The latest of all generators; times beyond the chunks get the nearest one."""
    asked = case(ROWS)
    log = asked.done.journal.chunks[1]
    log[3] = replace(log[3], published_us=log[3].published_us + 50_000)
    times = START + np.array([-5, 0, 99_999, 100_000, 350_000, 400_000, 10**9])
    ends = START + np.array([100_000, 100_000, 100_000, 200_000, 450_000, 500_000, 20 * US])
    assert handed_over(asked.done.journal)(times).tolist() == (ends + 1000).tolist()


def test_results_are_kept_as_they_came(case: Callable[..., Case], make: Any, tmp_path: Path) -> None:
    """One Parquet file a sink, with times that a reader knows as times."""
    asked = case(flow_of(ROWS, WINDOWS))
    rows, windows = asked.answer("rows"), asked.answer("windows")
    asked.receive(make, rows=[rows], windows=[windows])
    folder = RunFolder(tmp_path / "kept")
    folder.path.mkdir()
    verify(asked.ready, asked.done, folder)
    kept = pq.read_table(folder.path / "results-rows.parquet")
    assert kept.column("double") == rows.column("double")
    assert kept.schema.field(EMISSION_TIME).type == pa.timestamp("us", "UTC")
    assert kept.column(EMISSION_TIME).cast(pa.int64()) == rows.column(EMISSION_TIME)
    assert pq.read_metadata(folder.path / "results-windows.parquet").num_rows == windows.num_rows
