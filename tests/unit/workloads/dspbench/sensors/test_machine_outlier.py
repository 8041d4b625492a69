"""Machine Outlier: worked by hand, against plain Python, by truth and by class, and as an engine runs its steps."""

import itertools
import math
import pickle
from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.dataflow import graph
from streamgauge.dataflow.builder import source
from streamgauge.dataflow.lineage import with_lineage
from streamgauge.dataflow.nodes import Flow, Process
from streamgauge.dataflow.operators.api import TIME
from streamgauge.engines.duckdb_oracle.engine import Oracle
from streamgauge.engines.operator_runtime import OperatorRuntime
from streamgauge.workloads.dspbench.sensors.machine_outlier import ALERTS, SUMMED, AlertTrigger, alerts_truth
from tests.unit.helpers_duckdb import duckdb_session
from tests.unit.workloads import helpers_cuts
from tests.unit.workloads.helpers_cuts import BOTH, made, without_truth

Event = tuple[int, int | None, int | None, float | None, float | None]
"""(microsecond, cluster, machine, cpu, memory); the n-th has event id n, and ingest time n."""
Alert = tuple[int, int, int, int, float, float, int, int]
"""(end of its batch, cluster, machine, reading, score, sum, event time, ingest time)."""
MS, INTERVAL, END = 1000, 10_000, 1_000_000
"""Microseconds: one, a batch of most tests, and after every time of a test."""
BUCKETS = 2


flow_of = partial(helpers_cuts.flow_of, "machine_outlier", interval="10ms")
TYPES = {"cluster": "int32", "machine": "int32", "cpu": "float64", "memory": "float64"}


def table(events: list[Event]) -> pa.Table:
    rows = helpers_cuts.table([event[1:] for event in events], [event[0] for event in events], **TYPES)
    return rows.append_column("ingest_time", rows["event_id"])


def alerts_of(results: pa.Table) -> list[Alert]:
    ends = results.column("window_end").cast(pa.int64()).to_pylist()
    names = ("cluster", "machine", "reading", "score", "stream_score", "event_time", "ingest_time")
    return sorted(zip(ends, *(results.column(name).to_pylist() for name in names), strict=True))


def answer(flow: Flow, rows: pa.Table) -> pa.Table:
    return Oracle().answer(with_lineage(flow), {"machines": rows}, duckdb_session()).to_arrow_table()


MALFORMED: list[tuple[int | None, int | None, float | None, float | None]] = [
    (1, 1, None, 0.0), (1, 1, math.nan, 0.0), (1, 1, 1.001, 0.0), (1, 1, -0.001, 0.0), (1, 1, 0.5, None),
    (None, 1, 1.0, 1.0), (1, None, 1.0, 1.0),
]  # fmt: skip


def seven_batches() -> list[Event]:
    """In each, machines 1 to 3 of cluster 1 are idle and machine 4 uses all of its processor: the centre is (1/4, 0).

    Their scores are 1.25 and 1.75. Cluster 2 has one machine. Each batch has another malformed reading.
    """
    events: list[Event] = []
    for number in range(7):
        start = number * INTERVAL  # the first reading is of the batch that begins with it
        events += [
            (start, 1, 1, 0.0, 0.0), (start + 2 * MS, 1, 4, 1.0, 0.0), (start + 4 * MS, 1, 2, 0.0, 0.0),
            (start + 5 * MS, 2, 9, 1.0, 1.0), (start + 6 * MS, 1, 3, 0.0, 0.0),
            (start + 8 * MS, *MALFORMED[number]),
        ]  # fmt: skip
    return events


@BOTH
def test_worked_by_hand(variant: Any) -> None:
    """After k batches the sums are k * 1.25, three times, and k * 1.75: M and m are k * 1.25, and k / 2 > 2 sqrt(2)
    from k = 6 on. The times are those of the batch's last reading that is none of the malformed."""
    results = answer(variant(flow_of()), table(seven_batches()))
    assert alerts_of(results) == [
        (6 * INTERVAL, 1, 4, 0, 1.75, 10.5, 56 * MS, 34),
        (7 * INTERVAL, 1, 4, 0, 1.75, 12.25, 66 * MS, 40),
    ]  # fmt: skip
    row = results.sort_by("window_end").to_pylist()[0]
    assert (row["cpu"], row["memory"]) == (1.0, 0.0)
    assert (row["window_end"] - row["window_start"]).total_seconds() == 0.01


@BOTH
@pytest.mark.parametrize(("window", "sums"), [(5, []), (6, [10.5, 10.5])])
def test_the_last_scores_are_summed(variant: Any, window: int, sums: list[float]) -> None:
    """Five of machine 4 lie 2.5 above five of the others, which is too little; six lie 3 above six."""
    results = answer(variant(flow_of(anomaly_scorer_window_length=window)), table(seven_batches()))
    assert [alert[5] for alert in alerts_of(results)] == sums


@BOTH
def test_several_readings_of_a_machine_in_one_batch(variant: Any) -> None:
    """The seven batches' first six as one: 24 sums, k * 1.25 three times each and k * 1.75, k = 1 to 6. At place 12 is
    5, at place 0 is 1.25: above 8.75 lies only the sixth sum of machine 4, since its fifth is 8.75."""
    events = [event for event in seven_batches() if event[0] < 6 * INTERVAL]
    results = answer(variant(flow_of(interval="1s")), table(events))
    assert alerts_of(results) == [(1_000_000, 1, 4, 5, 1.75, 10.5, 56 * MS, 34)]


SUMS_AND_ABNORMAL: list[tuple[list[float], list[int]]] = [
    ([1, 2, 3, 5], []),  # M = 3, m = 1: 5 is not above 5
    ([1, 2, 3, 5.5], [3]),
    ([1, 2, 3, 4, 5], []),  # M = 3, m = 1
    ([1, 2, 3, 4, 5.5], [4]),
    ([2, 2, 2, 4.5], []),  # above 2 M - m = 2, not above 2 + 2.83
    ([2, 2, 2, 5], [3]),
    ([5, 2, 2, 2], [0]),
    ([3, 5.5, 2, 1], [1]),  # the least comes last
    ([1, 9], []),  # M = 9
    ([9], []),
    ([6, 2, 2, 2, 2, 7], [0, 5]),
]


def abnormal_machines(variant: Any, sums: list[float], scores: list[float]) -> list[int]:
    """The numbers of those that are abnormal in a batch of these sums and last scores."""
    trigger = source("machines", SUMMED).process(
        AlertTrigger, keys="cluster", gives=ALERTS, identity=("machine", "window_end"),
        parameters={"interval_us": INTERVAL}, truth=alerts_truth(INTERVAL), name="alert_trigger",
    )  # fmt: skip
    values = [(0, machine, 0, 0, 0, 0, *both) for machine, both in enumerate(zip(scores, sums, strict=True))]
    types = TYPES | {"batch": "int64", "reading": "int32", "score": "float64", "stream_score": "float64"}
    order = ("cluster", "machine", "batch", "reading", "cpu", "memory", "score", "stream_score")
    rows = helpers_cuts.table(values, [INTERVAL - 1] * len(sums), **{name: types[name] for name in order})
    rows = rows.append_column("ingest_time", rows["event_id"])
    return sorted(answer(variant(trigger.sink("alerts")), rows).column("machine").to_pylist())


@BOTH
@pytest.mark.parametrize(("sums", "abnormal"), SUMS_AND_ABNORMAL)
def test_a_sum_lies_far_from_the_middle_and_from_the_least(
    variant: Any, sums: list[float], abnormal: list[int]
) -> None:
    """The one of the least sum has the least score, the others lie half above it."""
    scores = [1.0 if number == sums.index(min(sums)) else 1.5 for number in range(len(sums))]
    assert abnormal_machines(variant, sums, scores) == abnormal


@BOTH
@pytest.mark.parametrize(
    ("scores", "abnormal"),
    [([1, 1, 1, 1.1], []), ([1, 1, 1, 1.125], [3]), ([1.5, 1, 1.5, 1.125], [3]), ([1.5, 1.5, 1.5, 1.5], [])],
)
def test_the_last_score_lies_above_the_least_of_the_batch(
    variant: Any, scores: list[float], abnormal: list[int]
) -> None:
    """By more than 0.1, whichever has the least; a machine that is as the others by now is passed."""
    assert abnormal_machines(variant, [2, 2, 2, 5], scores) == abnormal


READINGS = st.one_of(
    st.tuples(st.integers(1, 4), st.sampled_from([0.0, 0.125, 0.25]), st.sampled_from([0.0, 0.25])),
    st.tuples(st.integers(1, 4), st.sampled_from([0.1, 0.3]), st.sampled_from([0.0, 0.2])),
    st.tuples(st.just(5), st.sampled_from([1.0, 0.75]), st.just(1.0)),
    st.tuples(st.sampled_from([1, 5, None]), st.sampled_from([None, math.nan, -0.5, 1.5]), st.just(0.5)),
)
"""Most machines use little and one much, so that some sums are abnormal. Some metrics lie between those of the grid."""
STEPS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from([1, 1, 1, 2]), READINGS), min_size=25, max_size=60)


def events_of(steps: list[tuple[int, int, Any]]) -> list[Event]:
    times = itertools.accumulate(step for step, *_ in steps)
    return [(time * MS, cluster, *reading) for time, (_, cluster, reading) in zip(times, steps, strict=True)]


@given(STEPS, st.integers(1, 12))
def test_class_and_truth_agree(steps: list[tuple[int, int, Any]], window: int) -> None:
    """To the last bit."""
    flow, rows = flow_of(anomaly_scorer_window_length=window), table(events_of(steps))
    assert alerts_of(answer(without_truth(flow), rows)) == alerts_of(answer(flow, rows))


def test_readings_before_1970() -> None:
    """Batches begin at whole intervals there too."""
    events = [(event[0] - 25 * MS, *event[1:]) for event in seven_batches()]
    truth, results = (alerts_of(answer(each, table(events))) for each in (flow_of(), without_truth(flow_of())))
    assert results == truth
    assert truth[0][0] > 0 > events[0][0]


def processes(flow: Flow) -> list[Process]:
    return [node for node in graph.walk(with_lineage(flow).sink.input) if isinstance(node, Process)]


def streamed(flow: Flow, rows: pa.Table, cuts: list[int], lagging: bool) -> list[Alert]:
    """All three steps as an engine runs them: each in instances by key, with a snapshot into a fresh one at every cut.

    `lagging`: the watermark is that of the batch before, so rows after it are there.
    """
    rows = rows.append_column(TIME, rows.column("event_time"))
    states: dict[tuple[str, int], bytes] = {}
    results, low = [], -1
    for cut in [*sorted(set(cuts)), END, END + 1]:
        times = rows.column(TIME).to_numpy()
        given = rows.filter(pa.array((low < times) & (times <= cut)))
        for node in processes(flow):
            given = pa.concat_tables(list(_advanced(node, given, low if lagging else cut, states)))
        results.append(given)
        low = cut
    return alerts_of(pa.concat_tables(results))


def _advanced(
    node: Process, rows: pa.Table, watermark_us: int, states: dict[tuple[str, int], bytes]
) -> Iterator[pa.Table]:
    keys = rows.column(node.keys[0]).fill_null(0).to_numpy()
    for bucket in range(BUCKETS):
        instance = OperatorRuntime(node)
        if (node.name, bucket) in states:
            instance.restore(states[node.name, bucket])
        yield from instance.advance([rows.filter(pa.array(keys % BUCKETS == bucket))], watermark_us)
        states[node.name, bucket] = instance.snapshot()


CUTS = st.one_of(
    st.integers(0, 180 * MS),
    st.builds(lambda batch, off: batch * INTERVAL + off, st.integers(1, 18), st.integers(-2, 1)),
)


@given(STEPS, st.lists(CUTS, max_size=6), st.booleans())
def test_the_answer_does_not_depend_on_where_batches_end(
    steps: list[tuple[int, int, Any]], cuts: list[int], lagging: bool
) -> None:
    """Nor on which instance has which keys, nor on how far the watermark lags."""
    events = events_of(steps)
    assert streamed(flow_of(), table(events), cuts, lagging) == alerts_of(answer(flow_of(), table(events)))


def test_a_batch_comes_once_the_watermark_has_passed_its_end() -> None:
    """Not before its last microsecond is known to be over; after it nothing is held."""
    instance = OperatorRuntime(processes(flow_of())[0])
    rows = table([(0, 1, 1, 0.0, 0.0), (4 * MS, 1, 2, 1.0, 0.0), (INTERVAL, 1, 1, 0.5, 0.5)])
    rows = rows.append_column(TIME, rows.column("event_time"))
    assert [len(each) for each in instance.advance([rows], INTERVAL - 2)] == [0]
    assert len(pickle.loads(instance.snapshot())["_waiting"]) == 3
    (results,) = instance.advance([rows.slice(0, 0)], INTERVAL - 1)
    assert results.column("score").to_pylist() == [1.5, 1.5]
    assert results.column(TIME).to_pylist() == [INTERVAL - 1] * 2
    assert results.column("event_time").to_pylist() == [4 * MS] * 2
    (rest,) = instance.advance([rows.slice(0, 0)], 2 * INTERVAL)
    assert len(rest) == 1
    assert len(pickle.loads(instance.snapshot())["_waiting"]) == 0


def test_the_overloaded_are_found_and_no_others() -> None:
    """Ten seconds of the defaults, within one phase: most readings of an overloaded machine are told of.

    The first batch is left out: there sums are of fewer than ten scores, and a malformed reading makes one of them
    smaller, which can move their median so far that a lone spike lies above it.
    """
    flow, inputs = made("machine_outlier", 10_000.0, 10.0)
    rows = inputs["machines"]
    rows = rows.append_column("ingest_time", rows.column("event_id"))
    later = rows.filter(pc.greater_equal(rows.column("event_time"), 1_000_000))
    overloaded = sum(cpu is not None and 0.8 < cpu <= 1 for cpu in later.column("cpu").to_pylist())
    alerts = answer(flow, rows)
    results = alerts.filter(pc.greater(alerts.column("event_time"), 1_000_000)).column("cpu").to_pylist()
    assert 0.85 * overloaded < len(results) < 0.03 * len(rows)
    assert min(results) > 0.8
