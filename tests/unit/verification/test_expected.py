"""Verification without an engine: each planted fault of rows, windows, pairs, updates and several sinks is counted."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.core.clock import US
from streamgauge.core.schema import EVENT_TIME, WINDOW_END
from streamgauge.dataflow.builder import flow as flow_of
from streamgauge.dataflow.nodes import Flow
from streamgauge.metrics.delivery_times import handed_over
from streamgauge.verification.expected import verify
from streamgauge.verification.sink_comparison import comparison
from tests.unit.helpers_answers import (
    DEADLINE,
    FAULTS,
    FLOWS,
    PAIRS,
    ROWS,
    START,
    UPDATES,
    WINDOWS,
    Case,
    faults,
    latency_of,
    planted,
    with_value,
    without,
)

# --- what is said ---


# --- rows, windows and pairs ---


@FLOWS
def test_right_answers_match(case: Callable[..., Case], make: Any, flow: Flow) -> None:
    """In whatever order and in however many files; what is expected is what the measured span and the warm-up owe."""
    trial = case(flow)
    rows = trial.answer()
    found = trial.verified(
        make, **{flow.sink.name: [rows.slice(rows.num_rows // 3), rows.slice(0, rows.num_rows // 3)]}
    )
    due = pc.sum(pc.less(rows.column(EVENT_TIME), START + 15 * US)).as_py()
    assert faults(found.verification) == {}
    assert found.verification.expected == found.verification.matched == due > 0
    assert found.sinks[0].rows == rows.num_rows
    assert latency_of(found).lower_bounds == 0


@FLOWS
@pytest.mark.parametrize("fault", FAULTS)
def test_each_planted_fault_is_counted(case: Callable[..., Case], make: Any, flow: Flow, fault: str) -> None:
    """One row dropped, invented, doubled, altered or late is that fault, once, and nothing else."""
    trial = case(flow)
    rows = trial.answer()
    found = trial.verified(make, **{flow.sink.name: [planted(rows, flow, fault, rows.num_rows // 2)]})
    assert faults(found.verification) == {fault: 1}
    assert [example["fault"] for example in found.verification.examples] == [fault]
    assert latency_of(found).lower_bounds == (1 if fault == "missing" else 0)


@FLOWS
def test_of_what_lies_after_the_span_only_inventions_and_repetitions_are_faults(
    case: Callable[..., Case], make: Any, flow: Flow
) -> None:
    """The tail is there to close what was measured; it may be cut off anywhere."""
    trial = case(flow)
    rows = trial.answer()
    last = rows.num_rows - 1
    seen = {}
    for fault in FAULTS:
        seen[fault] = trial.faults(make, **{flow.sink.name: [planted(rows, flow, fault, last)]})
    assert seen == {fault: {fault: 1} if fault in ("extra", "duplicate") else {} for fault in FAULTS}


@pytest.mark.parametrize(
    ("delivery", "restarted", "allows"),
    [
        ("exactly_once", True, {}),
        ("at_least_once", True, {"duplicate": 1}),
        ("at_least_once", False, {}),
        ("at_most_once", True, {}),
        (None, True, {}),
    ],
)
def test_what_the_engine_promises_less_is_no_fault(
    case: Callable[..., Case], make: Any, delivery: Any, restarted: bool, allows: dict[str, int]
) -> None:
    """A repeated and a lost row; no engine states a loss. Exactly once is not stated in the result, and None is the
    affair of a program.
    """
    trial = case(ROWS)
    engine = replace(trial.resolved.engine, delivery=delivery)
    rows = trial.answer()
    place = rows.num_rows // 2
    trial.receive(make, rows=[planted(planted(rows, ROWS, "duplicate", place), ROWS, "missing", place // 2)])
    record = replace(trial.record, restarted=restarted)
    found = verify(replace(trial.resolved, engine=engine), record).verification
    assert (found.duplicate, found.missing) == (1, 1)
    assert (found.delivery, found.allowed) == (None if delivery == "exactly_once" else delivery, allows)
    assert found.fault_count == 2 - len(allows)


def test_rows_from_outside_all_slices_are_extra(case: Callable[..., Case], make: Any) -> None:
    """Invented rows before the plan's first event and after its last lie in some slice too."""
    trial = case(ROWS)
    rows = trial.answer()
    odd = [with_value(rows.slice(0, 1), EVENT_TIME, 0, when) for when in (5, START - 1, DEADLINE + US)]
    odd = [with_value(row, "event_id", 0, 2**40 + n) for n, row in enumerate(odd)]
    assert trial.faults(make, rows=[rows, *odd]) == {"extra": 3}


@pytest.mark.parametrize(
    ("flow", "counted", "bounds"),
    [(ROWS, {"missing": 1, "extra": 1}, 1), (WINDOWS, {"wrong": 1}, 0), (PAIRS, {"wrong": 1}, 0)],
    ids=lambda one: one.sink.name if isinstance(one, Flow) else "",
)
def test_a_result_without_an_event_time_is_a_wrong_answer(
    case: Callable[..., Case], make: Any, flow: Flow, counted: dict[str, int], bounds: int
) -> None:
    """Where slices of event time are compared, the right row is missing in its own, and this one was not expected."""
    trial = case(flow)
    rows = trial.answer()
    found = trial.verified(make, **{flow.sink.name: [with_value(rows, EVENT_TIME, rows.num_rows // 2, None)]})
    assert faults(found.verification) == counted
    assert latency_of(found).lower_bounds == bounds
    assert "1 results of the trial carry no event time" in " ".join(found.sinks[0].latencies.latencies.notes)


def test_a_file_without_any_event_time_is_extra_and_kept(case: Callable[..., Case], make: Any, tmp_path: Path) -> None:
    """Nothing but nulls in one file: as many rows that nobody expected. Results are written, a file for each sink."""
    trial = case(flow_of(ROWS, WINDOWS))
    rows, windows = trial.answer("rows"), trial.answer("windows")
    odd = rows.slice(0, 2).set_column(rows.schema.get_field_index(EVENT_TIME), EVENT_TIME, pa.nulls(2, pa.int64()))
    odd = odd.set_column(rows.schema.get_field_index("event_id"), "event_id", pa.array([2**40, 2**40 + 1]))
    folder = RunFolder(tmp_path / "kept")
    folder.path.mkdir()
    found = verify(trial.receive(make, rows=[rows, odd], windows=[windows]).resolved, trial.record, folder)
    assert faults(found.verification) == {"extra": 2}
    kept = pq.read_table(folder.path / "results-rows.parquet")
    assert (kept.column(EVENT_TIME).null_count, kept.column("double").slice(0, len(rows))) == (2, rows.column("double"))
    assert pq.read_metadata(folder.path / "results-windows.parquet").num_rows == windows.num_rows


def test_a_pair_whose_window_ended_before_the_first_event_is_reported(case: Callable[..., Case], make: Any) -> None:
    """That window has no last event to count a latency from: a fault of the answers, and nothing is raised."""
    trial = case(PAIRS)
    rows = trial.answer()
    assert faults(
        trial.verified(make, pairs=[rows, with_value(rows.slice(0, 1), WINDOW_END, 0, START - 60 * US)]).verification
    ) == {"duplicate": 1}


# --- several sinks ---


def test_each_sink_is_verified_alone_and_all_are_summed(case: Callable[..., Case], make: Any) -> None:
    """A fault of one sink is no fault of another; examples and the sentence name it."""
    trial = case(flow_of(ROWS, WINDOWS))
    rows, windows = trial.answer("rows"), trial.answer("windows")
    found = trial.verified(make, rows=[planted(without(rows, 1000), ROWS, "duplicate", 500)], windows=[windows])
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


# --- updates ---


def test_right_updates_match(case: Callable[..., Case], make: Any) -> None:
    """Values on the way, and the last of every key."""
    trial = case(UPDATES)
    found = trial.verified(make, updates=trial.updates()).verification
    assert faults(found) == {}
    assert found.matched == 20 * 100


@pytest.mark.parametrize(("batch", "fault"), [
    (9, "wrong"), (19, "wrong"), (9, "duplicate"), (9, "extra"), (19, "late"), (9, "timeless"), (19, "timeless"),
])  # fmt: skip
def test_each_fault_of_an_update_is_counted(case: Callable[..., Case], make: Any, batch: int, fault: str) -> None:
    """On the way and at the end. Its time is part of what tells it from another, so without one it is extra, and the
    one with the time is missing.
    """
    trial, is_timeless = case(UPDATES), fault == "timeless"
    tables = trial.updates()
    right = tables[batch]
    tables[batch] = with_value(right, EVENT_TIME, 50, None) if is_timeless else planted(right, UPDATES, fault, 50)
    assert trial.faults(make, updates=tables) == ({"missing": 1, "extra": 1} if is_timeless else {fault: 1})


@pytest.mark.parametrize(("batch", "bounds"), [(9, 1), (19, 0)])
def test_each_batch_owes_the_last_value_of_each_of_its_keys(
    case: Callable[..., Case], make: Any, batch: int, bounds: int
) -> None:
    """Though another value follows; what was due in the measured span enters the latencies as a lower bound."""
    trial = case(UPDATES)
    tables = trial.updates()
    tables[batch] = without(tables[batch], 50)
    found = trial.verified(make, updates=tables)
    assert faults(found.verification) == {"missing": 1}
    assert latency_of(found).lower_bounds == bounds


def test_a_query_of_another_pace_hides_no_lost_update(case: Callable[..., Case], make: Any) -> None:
    """Reads are noted in parts at the borders of another query's: each batch still ends where its last part does."""
    trial = case(UPDATES)
    for log in trial.record.trial_log.deliveries:
        log[:] = [
            part
            for whole in log
            for part in (
                replace(whole, to_us=whole.to_us - 400_000),
                replace(whole, from_us=whole.to_us - 400_000, shared=True),
            )
        ]
    tables = trial.updates()
    kept = [rows if batch % 10 == 9 else rows.slice(0, 0) for batch, rows in enumerate(tables)]
    assert trial.faults(make, updates=tables) == {}
    assert trial.faults(make, updates=kept) == {"missing": 18 * 100}


def test_a_batch_without_a_common_end_owes_nothing_and_the_others_do(case: Callable[..., Case], make: Any) -> None:
    """Where readers of a batch end at different times, nobody knows which value its end has; the answer says so."""
    trial = case(UPDATES)
    tables = trial.updates()
    odd = end_early(trial, 9)
    found = trial.verified(make, updates=[*tables[:odd], without(tables[odd], 50), *tables[odd + 1 :]]).verification
    assert faults(found) == {}
    assert "1 of 20 batches ended at no common event time" in found.sentence
    assert faults(
        trial.verified(
            make, updates=[*tables[: odd + 1], without(tables[odd + 1], 50), *tables[odd + 2 :]]
        ).verification
    ) == {"missing": 1}


def end_early(trial: Case, place: int) -> int:
    """Let one reader end its batch a millisecond before the others; gives the batch."""
    log = trial.record.trial_log.deliveries[0]
    log[place] = replace(log[place], to_us=log[place].to_us - 1000)
    return log[place].batch


def test_without_any_common_cut_only_the_last_update_must_be_there(case: Callable[..., Case], make: Any) -> None:
    """As with a frontier of each partition's own."""
    trial = case(UPDATES)
    tables = trial.updates()
    first = trial.record.trial_log.deliveries[0]
    first[:] = [replace(part, to_us=part.to_us - 1000) for part in first]
    found = trial.verified(make, updates=[*(without(table, 50) for table in tables[:-1]), tables[-1]]).verification
    assert faults(found) == {}
    assert "20 of 20 batches" in found.sentence


# --- what came, and when it was handed over ---


def test_results_of_an_earlier_trial_are_left_out(case: Callable[..., Case], make: Any) -> None:
    """On a warm test bed its last windows close in this trial; on a fresh one the same row was invented."""
    rows = case(ROWS).answer()
    old = with_value(with_value(rows.slice(0, 1), EVENT_TIME, 0, START - US), "event_id", 0, 2**40)
    counts = []
    for earlier in (True, False):
        counts.append(case(ROWS, earlier_trials=earlier).faults(make, rows=[pa.concat_tables([rows, old])]))
    assert counts == [{}, {"extra": 1}]


@pytest.mark.parametrize("latest", [0, 1])
def test_the_hand_over_of_an_event_is_that_of_its_chunk(case: Callable[..., Case], make: Any, latest: int) -> None:
    """The latest of all generators, whichever that is; times beyond the chunks get the nearest one."""
    trial = case(ROWS)
    trial.record.trial_log.chunks[latest] = log = list(trial.record.trial_log.chunks[latest])
    log[3] = replace(log[3], published_us=log[3].published_us + 50_000)
    times = START + np.array([-5, 0, 99_999, 100_000, 350_000, 400_000, 10**9])
    ends = START + np.array([100_000, 100_000, 100_000, 200_000, 450_000, 500_000, 20 * US])
    assert handed_over(trial.record.trial_log)(times).tolist() == (ends + 1000).tolist()
    first = handed_over(trial.record.trial_log, by_all=False)(times)
    assert first.tolist() == (ends - [0, 0, 0, 0, 50_000, 0, 0] + 1000).tolist()


def test_updates_are_not_compared_row_by_row_with_every_cut() -> None:
    """Of a reader of batches DuckDB expects one row, and would join it with the batches' ends by a nested loop."""
    record: Any = SimpleNamespace(trial_log=None)
    with comparison(record) as compared:
        compared.connection.register("events", pa.table({"user_id": [1, 2], "t": [1, 2]}).to_reader())
        compared.connection.register("cuts", pa.table({"cut": [1, 2, 3]}))
        query = "SELECT * FROM events ASOF JOIN cuts ON events.t < cuts.cut"
        plan = str(compared.connection.execute(f"EXPLAIN {query}").fetchall())
        assert "Asof Join" in plan
        assert "Group By" not in plan, "the nested loop takes the first of each group"
