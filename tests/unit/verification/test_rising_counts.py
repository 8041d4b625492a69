"""Updates of an engine that does not say what it had read: what holds for every order of reading, and no more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from streamgauge.core.clock import US
from streamgauge.core.schema import EMISSION_TIME, EVENT_TIME
from streamgauge.dataflow.nodes import Flow
from streamgauge.verification.expected import verify
from streamgauge.workloads.registry import get
from tests.unit.helpers_answers import PURCHASES, START, UPDATES, Case, faults, planted, with_value, without

LAG_US = 700_000
LARGEST = PURCHASES.running(keys="user_id", n="max(price)").sink("updates")


@pytest.fixture
def without_batches(case: Callable[..., Case]) -> Callable[..., Case]:
    """A trial over a broker, of an engine without batches."""

    def made(flow: Flow, **more: Any) -> Case:
        trial = case(flow, **more)
        experiment = trial.resolved.experiment.model_copy(update={"transport": "kafka"})
        keyless, engine = get("identity"), replace(trial.resolved.engine, has_batch_ids=False)
        trial.resolved = replace(
            trial.resolved, experiment=experiment, engine=engine, workload=keyless, parameters=keyless.parameters()
        )
        return trial

    return made


def updates_of(trial: Case, largest: bool = False) -> list[pa.Table]:
    """The value of each key that changed, every second; partition 1 is always read 0.7 s less far."""
    plan, rows = trial.record.trial_log.plan, []
    for partition in range(plan.partitions):
        count = plan.count_before(0, partition, plan.start_us + 20 * US)
        batch = plan.batch(0, partition, 0, count, ["event_time", "user_id", "price"])
        rows += [((row["event_time"] - START + partition * LAG_US) // US, *row.values()) for row in batch.to_pylist()]
    tables, values, times = [], Counter[int](), dict[int, int]()
    for second in range(21):
        changed = [row[1:] for row in rows if row[0] == second]
        for time, user, price in changed:
            values[user] = max(values[user], price) if largest else values[user] + 1
            times[user] = max(times.get(user, 0), time)
        keys = sorted({user for _, user, _ in changed})
        columns: dict[str, Any] = {
            "user_id": pa.array(keys, pa.int32()), "n": pa.array([values[key] for key in keys]),
            EVENT_TIME: pa.array([times[key] for key in keys], pa.int64()),
            EMISSION_TIME: pa.array([times[key] + US for key in keys], pa.int64()),
        }  # fmt: skip
        columns["n"] = columns["n"].cast(pa.int32() if largest else pa.int64())
        tables.append(pa.table(columns))
    return tables


def found_of(trial: Case, make: Any, tables: list[pa.Table]) -> Any:
    trial.receive(make, updates=tables)
    return verify(trial.resolved, trial.record).verification


def test_any_order_of_reading_is_right(without_batches: Callable[..., Case], make: Any) -> None:
    """Each key is compared once, at its end; no value on the way belongs to a prefix by event time."""
    trial = without_batches(UPDATES)
    found = found_of(trial, make, updates_of(trial))
    assert faults(found) == {}
    assert (found.expected, found.matched) == (100, 100)
    assert found.sentence.endswith("so last values are compared, and that counts only rise")


def test_fewer_updates_are_right_too(without_batches: Callable[..., Case], make: Any) -> None:
    """An engine may leave updates out, except for the last of each key."""
    trial = without_batches(UPDATES)
    tables = updates_of(trial)
    assert faults(found_of(trial, make, [tables[3], *tables[12:]])) == {}


@pytest.mark.parametrize("fault", ["wrong", "duplicate", "extra"])
def test_a_fault_at_the_end_is_found(without_batches: Callable[..., Case], make: Any, fault: str) -> None:
    """Each counts once."""
    trial = without_batches(UPDATES)
    tables = updates_of(trial)
    tables[20] = planted(tables[20], UPDATES, fault, 50)
    assert faults(found_of(trial, make, tables)) == {fault: 1}


def test_a_key_without_updates_is_missing(without_batches: Callable[..., Case], make: Any) -> None:
    """All of its updates were lost."""
    trial = without_batches(UPDATES)
    key = 50
    tables = [table.filter(pa.array([user != key for user in table["user_id"].to_pylist()])) for table in
              updates_of(trial)]  # fmt: skip
    assert faults(found_of(trial, make, tables)) == {"missing": 1}


def test_a_last_update_that_was_lost_leaves_a_wrong_value(without_batches: Callable[..., Case], make: Any) -> None:
    """The value before it is not that of the whole input."""
    trial = without_batches(UPDATES)
    tables = updates_of(trial)
    tables[20] = without(tables[20], 3)
    assert faults(found_of(trial, make, tables)) == {"wrong": 1}


@pytest.mark.parametrize("value", [0, 10_000])
def test_a_count_that_falls_or_is_too_great_is_wrong(
    without_batches: Callable[..., Case], make: Any, value: int
) -> None:
    """On the way: the one that fell, or the one above the truth, and those after it, which fell from it."""
    trial = without_batches(UPDATES)
    tables = updates_of(trial)
    user = tables[9]["user_id"][50].as_py()
    tables[9] = with_value(tables[9], "n", 50, value)
    found = found_of(trial, make, tables)
    later = sum(user in table["user_id"].to_pylist() for table in tables[10:])
    assert faults(found) == {"wrong": 1 if value == 0 else later}
    assert found.examples[0]["fault"] == "wrong"


def test_an_update_that_came_again_is_a_duplicate(without_batches: Callable[..., Case], make: Any) -> None:
    """As an engine that delivers at least once gives after a restart."""
    trial = without_batches(UPDATES)
    tables = updates_of(trial)
    assert faults(found_of(trial, make, [*tables[:10], tables[9].slice(3, 2), *tables[10:]])) == {"duplicate": 2}


def test_values_that_are_no_counts_may_repeat(without_batches: Callable[..., Case], make: Any) -> None:
    """A row that came late in event time may leave a maximum and its time as they were."""
    trial = without_batches(LARGEST)
    tables = updates_of(trial, largest=True)
    assert faults(found_of(trial, make, [*tables[:10], tables[9], *tables[10:]])) == {}
    tables[20] = with_value(tables[20], "n", 0, 1)
    assert faults(found_of(trial, make, tables)) == {"wrong": 1}


def test_of_a_trial_that_ended_early_counts_must_rise(without_batches: Callable[..., Case], make: Any) -> None:
    """What was owed is not known, so no value is missing."""
    trial = without_batches(UPDATES, engine_failed="it died", drained=False)
    tables = updates_of(trial)[:10]
    found = found_of(trial, make, tables)
    assert (faults(found), found.expected) == ({}, 0)
    tables[9] = with_value(tables[9], "n", 50, 1)
    assert faults(found_of(trial, make, tables)) == {"wrong": 1}


def test_without_any_result_all_keys_are_missing(without_batches: Callable[..., Case], make: Any) -> None:
    """Nothing came from an engine that read everything."""
    trial = without_batches(UPDATES)
    assert faults(found_of(trial, make, [])) == {"missing": 100}
