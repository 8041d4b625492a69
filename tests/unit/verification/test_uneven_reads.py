"""Updates over partitions that are read unevenly: exact by batch, or what holds for every order of reading."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from streamgauge.core.clock import US
from streamgauge.core.schema import EMISSION_TIME, EVENT_TIME
from streamgauge.dataflow.nodes import Flow
from streamgauge.verification.uneven_reads import NEVER_READ, BatchNumbers
from streamgauge.workloads.registry import get
from tests.unit.helpers_answers import ADS, PURCHASES, START, UPDATES, Case, faults, planted, with_value, without

BOTH = PURCHASES.union(ADS).running(keys="user_id", n="count(*)").sink("updates")
MEANS = PURCHASES.running(keys="user_id", n="avg(price)").sink("updates")
LAG_US = 300_000


def over_kafka(trial: Case) -> Case:
    """The trial with another transport, and a workload whose messages have no keys."""
    keyless, experiment = get("identity"), trial.resolved.experiment.model_copy(update={"transport": "kafka"})
    trial.resolved = replace(trial.resolved, experiment=experiment, workload=keyless, parameters=keyless.parameters())
    return trial


@pytest.fixture
def over_broker(case: Callable[..., Case]) -> Callable[..., Case]:
    """A trial over a broker: partition 1 is always read 0.3 s less far than partition 0."""

    def made(flow: Flow, **more: Any) -> Case:
        trial = over_kafka(case(flow, **more))
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


def updates_of(
    rows: list[tuple[int, int, int, int]],
    value: Callable[[list[int]], Any],
    type_: pa.DataType | None = None,
    batches: int = 20,
) -> list[pa.Table]:
    """After each batch, the value of each key that the batch had rows of."""
    tables, prices, times = [], dict[int, list[int]](), dict[int, int]()
    for number in range(batches):
        changed = [row[1:] for row in rows if row[0] == number]
        for time, user, price in changed:
            prices.setdefault(user, []).append(price)
            times[user] = max(times.get(user, 0), time)
        keys = sorted({user for _, user, _ in changed})
        columns: dict[str, Any] = {
            "user_id": pa.array(keys, pa.int32()), "n": pa.array([value(prices[key]) for key in keys], type_),
            EVENT_TIME: pa.array([times[key] for key in keys], pa.int64()),
            EMISSION_TIME: pa.array([times[key] + US for key in keys], pa.int64()),
        }  # fmt: skip
        tables.append(pa.table(columns))
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
    found = trial.verified(make, updates=tables)
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
    assert trial.faults(make, updates=tables) == {fault: 1}


def test_a_row_that_was_counted_a_batch_too_early_is_wrong(over_broker: Callable[..., Case], make: Any) -> None:
    """The value is right by event time; a lower bound by time alone would accept it."""
    trial = over_broker(UPDATES)
    tables = updates_of(rows_of(trial), len)
    tables[9] = with_value(tables[9], "n", 50, tables[10].column("n")[50].as_py())
    assert trial.faults(make, updates=tables) == {"wrong": 1}


def test_events_that_no_batch_read_are_missing(over_broker: Callable[..., Case], make: Any) -> None:
    """An engine that stops reading one partition owes its events."""
    trial = over_broker(UPDATES)
    del trial.record.trial_log.deliveries[1][24:]  # of two streams, from batch 12 on
    # The values of all keys with the events that were never read.
    assert trial.faults(make, updates=updates_of(rows_of(trial), len)) == {"missing": 100}


def test_of_a_trial_that_ended_early_committed_batches_count(over_broker: Callable[..., Case], make: Any) -> None:
    """The engine died after ten batches."""
    trial = over_broker(UPDATES, engine_failed="it died", drained=False)
    tables = updates_of(rows_of(trial), len)[:10]
    assert faults(trial.verified(make, updates=tables).verification) == {}
    assert trial.faults(make, updates=[*tables[:9], without(tables[9], 3)]) == {"missing": 1}


def test_the_first_row_of_a_key_is_that_of_the_first_batch_that_had_one(
    over_broker: Callable[..., Case], make: Any
) -> None:
    """Then the earliest of that batch, though a partition behind it may have an earlier one later."""
    trial = over_broker(PURCHASES.distinct(keys="user_id").running(keys="price", n="count(*)").sink("updates"))
    firsts: dict[int, tuple[int, int, int, int]] = {}
    for row in rows_of(trial):
        firsts.setdefault(row[2], row)
    rows = [(batch, time, price, user) for batch, time, user, price in firsts.values()]
    tables = [table.rename_columns(["price", *table.column_names[1:]]) for table in updates_of(sorted(rows), len)]
    assert trial.faults(make, updates=tables) == {}


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


BEHIND_US = 700_000
AGGREGATES: dict[str, tuple[str, Callable[[list[int]], Any], pa.DataType]] = {
    "count": ("count(*)", len, pa.int64()),
    "maximum": ("max(price)", max, pa.int32()),
    "minimum": ("min(price)", min, pa.int32()),
    "sum": ("sum(price)", sum, pa.int64()),
    "sum of floats": ("sum(price * 0.1D)", lambda prices: sum(price * 0.1 for price in reversed(prices)), pa.float64()),
    "sum of differences": ("sum(price - 50)", lambda prices: sum(price - 50 for price in prices), pa.int64()),
    "average": ("avg(price)", lambda prices: sum(prices) / len(prices), pa.float64()),
}
"""An aggregate, its value, and its type."""


@pytest.fixture
def without_batches(case: Callable[..., Case]) -> Callable[..., Case]:
    """A trial over a broker, of an engine without batches."""

    def made(flow: Flow, **more: Any) -> Case:
        trial = over_kafka(case(flow, **more))
        trial.resolved = replace(trial.resolved, engine=replace(trial.resolved.engine, has_batch_ids=False))
        return trial

    return made


def arrivals_of(trial: Case, aggregate: str = "count") -> list[pa.Table]:
    """The value of each key that changed, every second; partition 1 is always read 0.7 s less far."""
    plan, rows = trial.record.trial_log.plan, []
    _, value, type_ = AGGREGATES[aggregate]
    for partition in range(plan.partitions):
        count = plan.count_before(0, partition, plan.start_us + 20 * US)
        batch = plan.batch(0, partition, 0, count, ["event_time", "user_id", "price"])
        rows += [
            ((row["event_time"] - START + partition * BEHIND_US) // US, *row.values()) for row in batch.to_pylist()
        ]
    return updates_of(rows, value, type_, batches=21)


def found_of(trial: Case, make: Any, tables: list[pa.Table]) -> Any:
    return trial.verified(make, updates=tables).verification


def test_any_order_of_reading_is_right(without_batches: Callable[..., Case], make: Any) -> None:
    """Each key is compared once, at its end; no value on the way belongs to a prefix by event time."""
    trial = without_batches(UPDATES)
    found = found_of(trial, make, arrivals_of(trial))
    assert faults(found) == {}
    assert (found.expected, found.matched) == (100, 100)
    assert found.sentence.endswith("so last values are compared, and earlier values are compared with bounds")


CHANGES: dict[str, tuple[Callable[[list[pa.Table]], list[pa.Table]], dict[str, int]]] = {
    "a wrong value at the end": (
        lambda tables: [*tables[:20], planted(tables[20], UPDATES, "wrong", 50)], {"wrong": 1},
    ),
    "a repetition at the end": (
        lambda tables: [*tables[:20], planted(tables[20], UPDATES, "duplicate", 50)], {"duplicate": 1},
    ),
    "an invention at the end": (lambda tables: [*tables[:20], planted(tables[20], UPDATES, "extra", 50)], {"extra": 1}),
    # The value before the lost one is not that of the whole input.
    "a last update that was lost": (lambda tables: [*tables[:20], without(tables[20], 3)], {"wrong": 1}),
    "a key without updates": (
        lambda tables: [table.filter(pc.not_equal(table["user_id"], 50)) for table in tables], {"missing": 1},
    ),
    "none of an engine that read everything": (lambda tables: [], {"missing": 100}),
    # An engine may leave updates out, except for the last of each key.
    "fewer updates": (lambda tables: [tables[3], *tables[12:]], {}),
    # As an engine that delivers at least once gives after a restart.
    "updates that came again": (
        lambda tables: [*tables[:10], tables[9].slice(3, 2), *tables[10:]], {"duplicate": 2},
    ),
    # The event time is that of an event of the key, which had been sent when the update came.
    "a time of no event": (lambda tables: [*tables[:9], shifted(tables[9], EVENT_TIME, 1), *tables[10:]], {"wrong": 1}),
    "before it was sent": (
        lambda tables: [*tables[:9], shifted(tables[9], EMISSION_TIME, -2 * US), *tables[10:]], {"wrong": 1},
    ),
    # The last one is extra, and earlier ones are wrong.
    "updates of an alien key": (
        lambda tables: [planted(table, UPDATES, "extra", 50) if second in (9, 12) else table
                        for second, table in enumerate(tables)],
        {"extra": 1, "wrong": 1},
    ),
}  # fmt: skip


def shifted(table: pa.Table, column: str, shift_us: int) -> pa.Table:
    return with_value(table, column, 50, table[column][50].as_py() + shift_us)


@pytest.mark.parametrize("fault", CHANGES)
def test_each_fault_of_last_values_is_counted(without_batches: Callable[..., Case], make: Any, fault: str) -> None:
    """Once, wherever it is."""
    trial = without_batches(UPDATES)
    change, found = CHANGES[fault]
    assert faults(found_of(trial, make, change(arrivals_of(trial)))) == found


@pytest.mark.parametrize("value", [0, 10_000])
def test_a_count_that_falls_or_is_too_great_is_wrong(
    without_batches: Callable[..., Case], make: Any, value: int
) -> None:
    """On the way: the one that fell, or the one above the truth, and those after it, which fell from it."""
    trial = without_batches(UPDATES)
    tables = arrivals_of(trial)
    user = tables[9]["user_id"][50].as_py()
    tables[9] = with_value(tables[9], "n", 50, value)
    found = found_of(trial, make, tables)
    later = sum(user in table["user_id"].to_pylist() for table in tables[10:])
    assert faults(found) == {"wrong": 1 if value == 0 else later}
    assert found.examples[0]["fault"] == "wrong"


def test_values_that_are_no_counts_may_repeat(without_batches: Callable[..., Case], make: Any) -> None:
    """A row that came late in event time may leave a maximum and its time as they were."""
    trial = without_batches(PURCHASES.running(keys="user_id", n="max(price)").sink("updates"))
    tables = arrivals_of(trial, "maximum")
    assert faults(found_of(trial, make, [*tables[:10], tables[9], *tables[10:]])) == {}
    tables[20] = with_value(tables[20], "n", 0, 1)
    assert faults(found_of(trial, make, tables)) == {"wrong": 1}


def test_of_a_trial_that_ended_early_counts_must_rise(without_batches: Callable[..., Case], make: Any) -> None:
    """What was owed is not known, so no value is missing."""
    trial = without_batches(UPDATES, engine_failed="it died", drained=False)
    tables = arrivals_of(trial)[:10]
    found = found_of(trial, make, tables)
    assert (faults(found), found.expected) == ({}, 0)
    tables[9] = with_value(tables[9], "n", 50, 1)
    assert faults(found_of(trial, make, tables)) == {"wrong": 1}


def test_what_has_no_bounds_is_counted(without_batches: Callable[..., Case], make: Any) -> None:
    """All values are right. Only a count, a maximum, a minimum and a sum of what is not negative are monotone."""
    for name, (text, _, _) in AGGREGATES.items():
        trial = without_batches(PURCHASES.running(keys="user_id", n=text).sink("updates"))
        tables = arrivals_of(trial, name)
        found = found_of(trial, make, tables)
        assert (faults(found), found.matched) == ({}, 100), name
        earlier = sum(len(table) for table in tables) - 100
        assert found.not_judged == (earlier if name in ("sum of differences", "average") else 0), name
        assert ("updates are not judged" in found.sentence) == (found.not_judged > 0)


def test_a_wrong_value_without_bounds_is_found_at_the_end_only(without_batches: Callable[..., Case], make: Any) -> None:
    """On the way it is counted as not judged."""
    trial = without_batches(MEANS)
    tables = arrivals_of(trial, "average")
    tables[9] = with_value(tables[9], "n", 50, 1e6)
    found = found_of(trial, make, tables)
    assert (faults(found), found.not_judged) == ({}, sum(len(table) for table in tables) - 100)
    tables[20] = with_value(tables[20], "n", 0, 1e6)
    assert faults(found_of(trial, make, tables)) == {"wrong": 1}


@pytest.mark.parametrize(("second", "wrong"), [(0, 1), (11, 2)], ids=["below", "above"])
def test_a_value_outside_its_bounds_is_wrong(
    without_batches: Callable[..., Case], make: Any, second: int, wrong: int
) -> None:
    """The key has it at another time. No earlier update of the key came, from which it would step back."""
    trial = without_batches(UPDATES)
    tables = arrivals_of(trial)
    user = tables[9]["user_id"][50].as_py()
    is_user = [pc.equal(table["user_id"], user) for table in tables]
    value = tables[second].filter(is_user[second])["n"][0].as_py()
    others = [table.filter(pc.invert(rows)) for table, rows in zip(tables[:9], is_user, strict=False)]
    found = found_of(trial, make, [*others, with_value(tables[9], "n", 50, value), *tables[10:]])
    assert faults(found) == {"wrong": wrong}


def test_a_minimum_below_that_of_all_is_wrong(without_batches: Callable[..., Case], make: Any) -> None:
    """And those after it, which rise."""
    trial = without_batches(PURCHASES.running(keys="user_id", n="min(price)").sink("updates"))
    tables = arrivals_of(trial, "minimum")
    tables[19] = with_value(tables[19], "n", 50, 0)
    assert faults(found_of(trial, make, tables)) == {"wrong": 1}


def test_a_flow_of_two_streams_has_bounds_too(without_batches: Callable[..., Case], make: Any) -> None:
    """A partition of one stream is another place than that of the other."""
    trial = without_batches(BOTH)
    rows = sorted((row[1], row[2]) for row in rows_of(trial, (0, 1)))
    counts, last = dict[int, int](), dict[int, int]()
    for time, user in rows:
        counts[user], last[user] = counts.get(user, 0) + 1, time
    half = rows[: len(rows) // 2]
    earlier = {user: sum(one == user for _, one in half) for user in counts}
    first = {user: max(time for time, one in half if one == user) for user in counts}
    for value, fault in ((0, {}), (500, {"wrong": 100})):
        tables = [
            pa.table({
                "user_id": pa.array(sorted(counts), pa.int32()), "n": [numbers[key] + more for key in sorted(counts)],
                EVENT_TIME: [times[key] for key in sorted(counts)],
                EMISSION_TIME: [times[key] + US for key in sorted(counts)],
            })
            for numbers, times, more in ((earlier, first, value), (counts, last, 0))
        ]  # fmt: skip
        assert faults(found_of(trial, make, tables)) == fault
