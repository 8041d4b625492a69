"""Plans whose partitions have the events of their keys: where events go, how many, and that nothing else changes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.clock import US
from streamgauge.loadgen.datasets.calls import Called, Caller
from streamgauge.loadgen.datasets.leads import Owner, Round
from streamgauge.loadgen.datasets.plugs import PlugId, grid
from streamgauge.loadgen.datasets.sensors import Cluster, Reading
from streamgauge.loadgen.datasets.web import Visitor
from streamgauge.loadgen.fields import (
    Decimal,
    FieldSpec,
    Integer,
    InTurn,
    Key,
    OwnNumber,
    StreamSpec,
    Text,
    with_malformed,
)
from streamgauge.loadgen.fitted import Choice
from streamgauge.loadgen.plan import ByKeyShare, ByRow, Plan
from streamgauge.loadgen.random import TABLE_DOMAIN_MAX, PhiloxBits, key_texts, partitions_of, probabilities
from streamgauge.loadgen.rate_profile import parse_profile
from streamgauge.loadgen.replay.columns import ReplayRequest, recorded
from tests.unit.helpers_refusals import assert_refused

START = 1_700_000_000_000_000
KEYS: dict[str, FieldSpec] = {
    "uniform": Key("k", 1000),
    "normal": Key("k", 300, "normal"),
    "zipf": Key("k", 5000, "zipf"),
    "few": Key("k", 3),
    "choice": Choice("k", ("BR", "DE", "FR", "NZ", "ZA"), (3, 1, 1, 4, 1)),
    "nulls": with_malformed(Key("k", 50), 0.1, None),
    "in turn": InTurn("k", 40),
    "owners": Owner("k", 9, 0.1),
    "visitors": Visitor("k", 200, 0.1),
    "callers": Caller("k", 300, 10, 0.2),
    "houses": PlugId("k", 12, "house"),
}


def plan_of(key: FieldSpec, partitions: int, rate_per_s: float = 5000.0, profile: str = "ramp:100") -> Plan:
    spec = StreamSpec("s", (Integer("price", 1, 9), key, OwnNumber("id")), key=key.name)
    return Plan((spec,), parse_profile(profile, rate_per_s, 20.0), START, 20.0, partitions, 1, keyed=True)


def column(plan: Plan, partition: int, name: str, stream: int = 0) -> pa.Array:
    return plan.batch(stream, partition, 0, plan.count_before(stream, partition, plan.end_us), [name]).column(0)


@pytest.mark.parametrize("partitions", [2, 3, 8])
@pytest.mark.parametrize("name", KEYS)
def test_every_event_is_in_the_partition_of_its_key(name: str, partitions: int) -> None:
    """As a Kafka producer would have chosen it. Only events without a key may be anywhere."""
    plan = plan_of(KEYS[name], partitions)
    for partition in range(partitions):
        keys = key_texts(column(plan, partition, "k")).drop_null()
        assert set(partitions_of(keys, partitions).tolist()) <= {partition}


@pytest.mark.parametrize("name", ["uniform", "normal", "zipf", "few"])
def test_keys_are_as_frequent_as_declared(name: str) -> None:
    """Over all partitions together, because each has the share of the rate that its keys have."""
    field: Any = KEYS[name]
    plan = plan_of(field, 4, 20_000.0, "constant")
    keys = np.concatenate([column(plan, each, "k").to_numpy() for each in range(4)])
    expected = len(keys) * probabilities(field.distribution, field.domain)
    assert (np.abs(np.bincount(keys, minlength=field.domain) - expected) <= 6 * np.sqrt(expected) + 6).all()
    assert abs(len(keys) - 400_000) <= 4


@given(st.sampled_from(sorted(KEYS)), st.integers(1, 6), st.data())
def test_offset_and_event_time_determine_each_other(name: str, partitions: int, data: st.DataObject) -> None:
    """The count before a time is the sequence of the first event at or after it."""
    plan = plan_of(KEYS[name], partitions)
    partition = data.draw(st.integers(0, partitions - 1))
    total = plan.count_before(0, partition, plan.end_us)
    times = plan.event_times(0, partition, 0, total)
    assert (np.diff(times) >= 0).all()
    assert total == 0 or START <= times[0] <= times[-1] < plan.end_us
    t_us = START + data.draw(st.integers(-10, 20 * US + 10))
    assert plan.count_before(0, partition, t_us) == np.searchsorted(times, t_us)
    if total:
        moment = int(times[data.draw(st.integers(0, total - 1))])
        assert plan.count_before(0, partition, moment) == np.searchsorted(times, moment)


@given(st.sampled_from(sorted(KEYS)), st.integers(0, 20 * US), st.integers(0, 20 * US))
def test_planned_events_are_those_of_all_partitions(name: str, one: int, other: int) -> None:
    """And about the rate says."""
    plan, low, high = plan_of(KEYS[name], 3), START + min(one, other), START + max(one, other)
    counts = [plan.count_before(0, each, high) - plan.count_before(0, each, low) for each in range(3)]
    assert plan.planned_events(low, high) == sum(counts)
    due = plan.profile.events_by((high - START) / US) - plan.profile.events_by((low - START) / US)
    assert abs(sum(counts) - due) <= 4


@pytest.mark.parametrize("name", KEYS)
def test_a_slice_is_part_of_the_whole(name: str) -> None:
    """Any slice can be made alone."""
    plan = plan_of(KEYS[name], 3)
    partition = int(np.argmax(plan.partition_shares(0)))
    assert plan.batch(0, partition, 300, 700) == plan.batch(0, partition, 0, 900).slice(300, 400)


@pytest.mark.parametrize(("key", "partitions"), [("k", 1), (None, 3)])
def test_one_partition_and_streams_without_keys_are_as_without_keys(key: str | None, partitions: int) -> None:
    """Bit for bit: partitions take turns where a stream declares no key, or a transport takes none."""
    spec = StreamSpec("s", (KEYS["zipf"],), key=key)
    plain = Plan((spec,), parse_profile("constant", 100.0, 40.0), START, 40.0, partitions, 1)
    assert replace(plain, keyed=True).batch(0, partitions - 1, 0, 1000) == plain.batch(0, partitions - 1, 0, 1000)


def test_a_partition_without_keys_is_empty() -> None:
    """With one key, all events are in one partition."""
    plan = plan_of(Key("k", 100, "single"), 4)
    counts = [plan.count_before(0, each, plan.end_us) for each in range(4)]
    assert sorted(counts)[:3] == [0, 0, 0]
    assert sorted(plan.partition_shares(0)) == [0, 0, 0, 1]
    assert plan.planned_events(START, plan.end_us) == sum(counts)
    assert plan.batch(0, counts.index(0), 0, 0).num_rows == 0


def test_a_field_that_depends_on_the_key_sees_the_partitions_keys() -> None:
    """A reading belongs to the device of its row: devices differ by more than a device's own readings do."""
    device = Key("device", 20)
    spec = StreamSpec("sensors", (device, Reading("temp", device, 0, 22.0, 0.0)), key="device")
    plan = Plan((spec,), parse_profile("constant", 1000.0, 20.0), START, 20.0, 3, 1, keyed=True)
    for partition in range(3):
        devices, values = (column(plan, partition, name).to_numpy() for name in ("device", "temp"))
        for each in np.unique(devices):
            of_one = values[devices == each]
            assert of_one.max() - of_one.min() <= 0.06 * of_one.mean()
        assert values.max() - values.min() > 0.06 * values.mean()


def rows_of(spec: StreamSpec, partitions: int, names: list[str]) -> list[list[tuple[int, ...]]]:
    """The rows of each partition of a keyed plan of 10,000 events."""
    plan = Plan((spec,), parse_profile("constant", 1000.0, 10.0), START, 10.0, partitions, 1, keyed=True)
    counts = [plan.count_before(0, each, plan.end_us) for each in range(partitions)]
    batches = [plan.batch(0, each, 0, count, names) for each, count in enumerate(counts)]
    return [[tuple(row.values()) for row in batch.to_pylist()] for batch in batches]


def test_learners_in_turn_count_their_own_rounds() -> None:
    """Each learner has rounds 1, 2, ... without a gap, though a partition has only some learners."""
    spec = StreamSpec("events", (InTurn("learner", 7), Round("round", 7)), key="learner")
    for rows in rows_of(spec, 3, ["learner", "round"]):
        for learner in {learner for learner, _ in rows}:
            rounds = [each for of, each in rows if of == learner]
            assert rounds == list(range(1, len(rounds) + 1))


def test_what_belongs_to_a_key_is_that_of_the_rows_key() -> None:
    """The cluster of the machine; and nobody calls himself. Each share of callers is as declared."""
    machine = InTurn("machine", 20)
    spec = StreamSpec("machines", (Cluster("cluster", machine, 1, 4), machine), key="machine")
    rows = [row for of in rows_of(spec, 3, ["cluster", "machine"]) for row in of]
    assert {machine for _, machine in rows} == set(range(20))
    assert all(cluster == machine % 4 for cluster, machine in rows)
    caller = Caller("calling", 100, 10, 0.25)
    calls = StreamSpec("calls", (caller, Called("called", caller, 0, 8, 0.1)), key="calling")
    pairs = [row for of in rows_of(calls, 3, ["calling", "called"]) for row in of]
    assert all(calling != called < 100 for calling, called in pairs)
    assert abs(sum(calling >= 100 for calling, _ in pairs) / len(pairs) - 0.25) < 0.02


def test_a_partition_has_all_plugs_of_its_houses() -> None:
    """Together partitions have every plug, each of them in one partition."""
    levels = ("house", "household", "plug")
    spec = StreamSpec("plugs", tuple(PlugId(level, 6, level) for level in levels), key="house")
    parts = [set(rows) for rows in rows_of(spec, 3, list(levels))]
    whole = grid(PhiloxBits(1, 0, 0, 0), 6)
    assert sum(map(len, parts)) == len(set().union(*parts)) == len(whole.plug)
    assert set().union(*parts) == set(zip(*(getattr(whole, level).tolist() for level in levels), strict=True))


def test_streams_with_the_same_key_have_it_in_the_same_partition() -> None:
    """So a join finds both sides of a key in one place."""
    key = Key("user", 40)
    specs = (
        StreamSpec("a", (key, Text("t", 2)), 0.25, "user"),
        StreamSpec("b", (Integer("n", 0, 9), key), 0.75, "user"),
    )
    plan = Plan(specs, parse_profile("constant", 2000.0, 20.0), START, 20.0, 4, 1, keyed=True)
    for partition in range(4):
        one, other = (set(column(plan, partition, "user", stream).to_pylist()) for stream in (0, 1))
        assert one == other


def test_rows_of_a_file_keep_their_order_and_times(tmp_path: Path) -> None:
    """Row n is event n, at the same time for any number of partitions; rows without a key take turns."""
    users = [None if n % 11 == 0 else n * n % 17 for n in range(100)]
    pq.write_table(
        pa.table({"user": pa.array(users, pa.int32()), "price": list(range(100))}), tmp_path / "rows.parquet"
    )
    spec = StreamSpec("s", (Key("user", 50), Integer("price", 0, 200)), key="user")
    (stream,) = recorded(ReplayRequest(spec, tmp_path / "rows.parquet"))
    events: list[list[tuple[int, int, int]]] = []
    for partitions in (1, 3):
        plan = Plan((stream,), parse_profile("constant", 50.0, 9.0), START, 9.0, partitions, 1, keyed=True)
        merged: list[Any] = []
        for partition in range(partitions):
            keys = key_texts(column(plan, partition, "user")).drop_null()
            assert set(partitions_of(keys, partitions).tolist()) <= {partition}
            columns = [column(plan, partition, name).to_pylist() for name in ("event_time", "user", "price")]
            merged += zip(*columns, strict=True)
        events.append(sorted(merged, key=lambda row: row[0]))
    assert events[0] == events[1]
    assert len(events[0]) == 450


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40), st.integers(0, 3), st.integers(0, 200))
def test_the_count_of_rows_is_exact(of_rows: list[int], partition: int, number: int) -> None:
    """The events of a partition below any number."""
    assignment = ByRow(np.array(of_rows, np.int16), 4)
    expected = sum(of_rows[n % len(of_rows)] == partition for n in range(number))
    assert assignment.count(partition, number) == expected
    assert (assignment.numbers(partition, 0, expected) < number).all()


@given(st.integers(1, 10**6), st.integers(0, 3), st.floats(0.001, 0.997))
def test_counts_of_shares_are_those_of_their_numbers(events: int, partition: int, share: float) -> None:
    """Up to rounding, which the plan corrects."""
    assignment = ByKeyShare(np.array([share, (1 - share) / 3, (1 - share) / 3, (1 - share) / 3]))
    number = float(assignment.numbers(partition, events, events + 1)[0])
    assert abs(assignment.count(partition, number) - events) <= 1


@pytest.mark.parametrize(
    "field",
    [Key("k", TABLE_DOMAIN_MAX + 1), Decimal("k", 0, 1), Text("k", 3), with_malformed(Key("k", 9), 0.1, -1)],
    ids=["large", "decimal", "text", "replaced"],
)
def test_a_key_that_cannot_be_split_needs_one_partition(field: FieldSpec) -> None:
    """The message names key, stream and the way out."""
    plan_of(field, 1)
    assert_refused(r"partitions: must be 1 with the key k of stream s[\s\S]*--partitions 1", plan_of, field, 2)


def test_a_key_is_a_field() -> None:
    """A misspelt one is refused with the one that was meant."""
    assert_refused(r"stream s\.key[\s\S]*try: user_id", StreamSpec, "s", (Key("user_id", 9),), key="user")
