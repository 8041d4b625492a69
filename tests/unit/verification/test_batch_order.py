"""Updates over a broker: batches end at different event times in each partition, and every value is exact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from streamgauge.core.clock import US
from streamgauge.core.schema import EMISSION_TIME, EVENT_TIME
from streamgauge.dataflow.nodes import Flow
from streamgauge.verification.batch_order import NEVER_READ, BatchNumbers
from streamgauge.verification.expected import verify
from streamgauge.workloads.registry import get
from tests.unit.helpers_answers import ADS, PURCHASES, START, UPDATES, Case, faults, planted, with_value, without

BOTH = PURCHASES.union(ADS).running(keys="user_id", n="count(*)").sink("updates")
MEANS = PURCHASES.running(keys="user_id", n="avg(price)").sink("updates")
FIRSTS = PURCHASES.distinct(keys="user_id").running(keys="price", n="count(*)").sink("updates")
LAG_US = 300_000


@pytest.fixture
def over_broker(case: Callable[..., Case]) -> Callable[..., Case]:
    """A trial over a broker: partition 1 is always read 0.3 s less far than partition 0."""

    def made(flow: Flow, **more: Any) -> Case:
        trial = case(flow, **more)
        experiment = trial.resolved.experiment.model_copy(update={"transport": "kafka"})
        keyless = get("identity")
        trial.resolved = replace(
            trial.resolved, experiment=experiment, workload=keyless, parameters=keyless.parameters()
        )
        log = trial.record.trial_log.deliveries[1]
        last = len(log) - 2  # the last batch reads both partitions to the end
        log[:] = [
            replace(
                part,
                from_us=part.from_us - LAG_US if part.from_us > START else part.from_us,
                to_us=part.to_us - LAG_US if index < last else part.to_us,
            )
            for index, part in enumerate(log)
        ]
        return trial

    return made


def rows_of(trial: Case, streams: tuple[int, ...] = (0,)) -> list[tuple[int, int, int, int]]:
    """(batch, event time, user, price) of every event, from the plan and the reads alone."""
    plan, rows = trial.record.trial_log.plan, []
    for stream in streams:
        for partition, log in enumerate(trial.record.trial_log.deliveries):
            name = plan.streams[stream].name
            for part in (each for each in log if each.stream == name):
                first, last = (plan.count_before(stream, partition, when) for when in (part.from_us, part.to_us))
                batch = plan.batch(stream, partition, first, last, ["event_time", "user_id", "price"])
                rows += [(part.batch, *row.values()) for row in batch.to_pylist()]
    return sorted(rows)


def updates_of(rows: list[tuple[int, int, int, int]], value: Callable[[list[int]], Any]) -> list[pa.Table]:
    """After each batch, the value of each key that the batch had rows of."""
    tables, prices, times = [], dict[int, list[int]](), dict[int, int]()
    for number in range(20):
        changed = set()
        for _, time, user, price in (row for row in rows if row[0] == number):
            prices.setdefault(user, []).append(price)
            times[user] = max(times.get(user, 0), time)
            changed.add(user)
        keys = sorted(changed)
        tables.append(
            pa.table({
                "user_id": pa.array(keys, pa.int32()), "n": [value(prices[key]) for key in keys],
                EVENT_TIME: pa.array([times[key] for key in keys], pa.int64()),
                EMISSION_TIME: pa.array([times[key] + US for key in keys], pa.int64()),
            })
        )  # fmt: skip
    return tables


@pytest.mark.parametrize(
    ("flow", "streams", "value"),
    [(UPDATES, (0,), len), (BOTH, (0, 1), len), (MEANS, (0,), lambda prices: sum(prices) / len(prices))],
    ids=["count", "two streams", "average"],
)
def test_each_update_is_that_of_what_its_batch_had_read(
    over_broker: Callable[..., Case], make: Any, flow: Flow, streams: tuple[int, ...], value: Callable[[list[int]], Any]
) -> None:
    """Of every partition its own prefix. No event time says that."""
    trial = over_broker(flow)
    tables = updates_of(rows_of(trial, streams), value)
    trial.receive(make, updates=tables)
    found = verify(trial.resolved, trial.record)
    assert faults(found.verification) == {}
    assert found.verification.matched == sum(len(rows) for rows in tables)
    assert "no common event time" not in found.verification.sentence


@pytest.mark.parametrize("batch", [9, 19])
@pytest.mark.parametrize("fault", ["wrong", "duplicate", "extra", "missing"])
def test_a_fault_of_an_update_is_found(over_broker: Callable[..., Case], make: Any, batch: int, fault: str) -> None:
    """On the way and at the end."""
    trial = over_broker(UPDATES)
    tables = updates_of(rows_of(trial), len)
    tables[batch] = planted(tables[batch], UPDATES, fault, 50)
    trial.receive(make, updates=tables)
    assert faults(verify(trial.resolved, trial.record).verification) == {fault: 1}


def test_a_row_that_was_counted_a_batch_too_early_is_wrong(over_broker: Callable[..., Case], make: Any) -> None:
    """The value is right by event time; a lower bound by time alone would accept it."""
    trial = over_broker(UPDATES)
    tables = updates_of(rows_of(trial), len)
    tables[9] = with_value(tables[9], "n", 50, tables[10].column("n")[50].as_py())
    trial.receive(make, updates=tables)
    assert faults(verify(trial.resolved, trial.record).verification) == {"wrong": 1}


def test_events_that_no_batch_read_are_missing(over_broker: Callable[..., Case], make: Any) -> None:
    """An engine that stops reading one partition owes its events."""
    trial = over_broker(UPDATES)
    log = trial.record.trial_log.deliveries[1]
    del log[24:]  # of two streams, from batch 12 on
    trial.receive(make, updates=updates_of(rows_of(trial), len))
    found = faults(verify(trial.resolved, trial.record).verification)
    assert set(found) == {"missing"}
    assert found["missing"] == 100  # the values of all keys with the events that were never read


def test_of_a_trial_that_ended_early_committed_batches_count(over_broker: Callable[..., Case], make: Any) -> None:
    """The engine died after ten batches."""
    trial = over_broker(UPDATES, engine_failed="it died", drained=False)
    tables = updates_of(rows_of(trial), len)[:10]
    trial.receive(make, updates=tables)
    found = verify(trial.resolved, trial.record).verification
    assert faults(found) == {}
    trial.receive(make, updates=[*tables[:9], without(tables[9], 3)])
    assert faults(verify(trial.resolved, trial.record).verification) == {"missing": 1}


def test_the_first_row_of_a_key_is_that_of_the_first_batch_that_had_one(
    over_broker: Callable[..., Case], make: Any
) -> None:
    """Then the earliest of that batch, though a partition behind it may have an earlier one later."""
    trial = over_broker(FIRSTS)
    firsts: dict[int, tuple[int, int, int, int]] = {}
    for row in rows_of(trial):
        firsts.setdefault(row[2], row)
    rows = [(batch, time, price, user) for batch, time, user, price in firsts.values()]
    tables = [table.rename_columns(["price", *table.column_names[1:]]) for table in updates_of(sorted(rows), len)]
    trial.receive(make, updates=tables)
    assert faults(verify(trial.resolved, trial.record).verification) == {}


def test_the_batch_of_an_event_is_that_which_read_it(over_broker: Callable[..., Case]) -> None:
    """Events behind the last read have none."""
    log = over_broker(UPDATES).record.trial_log
    numbers, plan = BatchNumbers(log), log.plan
    for partition, lag_us in ((0, 0), (1, LAG_US)):
        total = plan.count_before(0, partition, plan.end_us)
        batches = numbers.batches_of("purchases", partition, 0, total)
        times = plan.event_times(0, partition, 0, total)
        for batch in (1, 7):
            inside = times[batches == batch]
            assert START + batch * US - lag_us <= inside[0] <= inside[-1] < START + (batch + 1) * US - lag_us
        assert (batches[times >= START + 20 * US] == NEVER_READ).all()
    assert numbers.batches_of("nothing", 0, 2, 6).tolist() == [NEVER_READ] * 4


def test_a_read_may_end_between_events_of_one_microsecond(over_broker: Callable[..., Case]) -> None:
    """Then its offset tells them apart. One of an earlier plan has other sequences."""
    log = over_broker(UPDATES).record.trial_log
    of_partition = log.deliveries[0]
    place = next(at for at, each in enumerate(of_partition) if (each.batch, each.stream) == (3, "purchases"))
    part = of_partition[place]
    after = log.plan.count_before(0, 0, part.to_us)
    of_partition[place] = replace(part, to_sequence=after + 2)
    assert BatchNumbers(log).batches_of("purchases", 0, after - 1, after + 3).tolist() == [3, 3, 3, 4]
    of_partition.insert(0, replace(part, from_us=START - US, to_us=START, to_sequence=5000, batch=0))
    assert BatchNumbers(log).batches_of("purchases", 0, 0, 1).tolist() == [0]
