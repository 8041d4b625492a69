"""Smart Grid: worked by hand, against plain Python, by truth and by class, and wherever batches end."""

import math
from collections import defaultdict
from statistics import fmean
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.clock import US
from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import Flow
from streamgauge.workloads.dspbench.sensors.smart_grid import group_numbers, medians_between, twice_the_medians
from tests.unit.workloads import helpers_cuts
from tests.unit.workloads.helpers_cuts import BOTH, answered, job_of, made, results_in_batches, without_truth

WORK, LOAD = 0, 1
Plug = tuple[int | None, int | None, int | None]
"""(house, household, plug)."""
Event = tuple[float, Plug, float | None, int]
"""(second, plug, value, property)."""


def flow_of(sink: str, **parameters: Any) -> Flow:
    """The flow of one sink."""
    return next(one for one in helpers_cuts.flow_of("smart_grid", **parameters).each() if one.sink.name == sink)


def table(events: list[Event]) -> pa.Table:
    rows = [(value, kind, *plug) for _, plug, value, kind in events]
    types = {"value": "float64", "property": "int32", "house_id": "int32", "household_id": "int32", "plug_id": "int32"}
    return helpers_cuts.table(rows, [round(second * US) for second, *_ in events], **types)


def answer(flow: Flow, rows: pa.Table) -> pa.Table:
    """The results with event times; times of windows as whole microseconds."""
    results = answered(flow, {"plugs": rows})
    timed = [field.with_type(pa.int64()) if pa.types.is_timestamp(field.type) else field for field in results.schema]
    return results.cast(pa.schema(timed))


def outliers(flow: Flow, rows: pa.Table) -> dict[tuple[int, int], tuple[int, int]]:
    """(a window's end in seconds, house) to (outliers, plugs)."""
    results = answer(flow, rows).to_pylist()
    assert all(row["share"] == row["outliers"] / row["plugs"] for row in results)
    shares = {(row["window_end"] // US, row["house"]): (row["outliers"], row["plugs"]) for row in results}
    assert len(shares) == len(results)
    return shares


def predictions(flow: Flow, rows: pa.Table, by: tuple[str, ...]) -> dict[tuple[int, ...], tuple[float, float]]:
    """(a slice's beginning in seconds, house and so on) to (average load, prediction)."""
    results = answer(flow, rows).to_pylist()
    loads = {
        (row["window_start"] // US, *(row[name] for name in by)): (row["avg_load"], row["predicted_load"])
        for row in results
    }
    assert len(loads) == len(results)
    return loads


HOUSE, PLUG = ("house",), ("house", "household", "plug")
A, B, C = (1, 1, 1), (1, 2, 1), (2, 1, 1)
"""Plugs of one number: of two households of a house, and of another house."""


@BOTH
def test_outliers_worked_by_hand(variant: Any) -> None:
    """Windows of 4 s every 2 s. A median of two is their mean; a plug that draws as much as all do is no outlier."""
    events: list[Event] = [
        (0, A, 10.0, LOAD), (0, B, 30.0, LOAD), (0, C, 20.0, LOAD),
        (1, A, 20.0, LOAD), (1, B, 50.0, LOAD), (1, C, 20.0, LOAD),
        (3, A, 90.0, LOAD), (3, C, 5.0, LOAD),
    ]  # fmt: skip
    assert outliers(variant(flow_of("house_outliers", range="4s", slide="2s")), table(events)) == {
        # Until 2 s: A 15, B 40, C 20; all of 10 20 20 20 30 50: 20.
        (2, 1): (1, 2), (2, 2): (0, 1),
        # Until 4 s: A 20, B 40, C 20; all of 5 10 20 20 | 20 30 50 90: 20.
        (4, 1): (1, 2), (4, 2): (0, 1),
        # From 2 s: A 90, C 5; both: 47.5. B said nothing.
        (6, 1): (1, 1), (6, 2): (0, 1),
    }  # fmt: skip


@BOTH
def test_a_windows_results_are_of_its_borders_and_its_last_event(variant: Any) -> None:
    """The window's own beginning and end, not those of the step that gathers a house's plugs; and no other house's
    event is its last.
    """
    events: list[Event] = [(0.5, A, 10.0, LOAD), (1, B, 30.0, LOAD), (1.25, A, 10.0, LOAD), (1.5, C, 1.0, LOAD)]
    results = answer(variant(flow_of("house_outliers", range="4s", slide="2s")), table(events)).to_pylist()
    first = {row["house"]: row for row in results if row["window_end"] == 2 * US}
    assert {row["window_start"] for row in first.values()} == {-2 * US}
    assert {house: row["event_time"] for house, row in first.items()} == {1: 1_250_000, 2: 1_500_000}
    assert {row["window_end"] - row["window_start"] for row in results} == {4 * US}


@BOTH
def test_a_second_window_beside_the_first_by_hand(variant: Any) -> None:
    """Of 2 s and of 4 s, both every 2 s; the first stays what it is alone."""
    events: list[Event] = [(0, A, 10.0, LOAD), (0, C, 20.0, LOAD), (2, A, 50.0, LOAD), (2, C, 20.0, LOAD)]
    parameters = {"range": "2s", "slide": "2s", "second_range": "4s"}
    assert outliers(variant(flow_of("house_outliers", **parameters)), table(events)) == {
        (2, 1): (0, 1), (2, 2): (1, 1), (4, 1): (1, 1), (4, 2): (0, 1),
    }  # fmt: skip
    assert outliers(variant(flow_of("second_house_outliers", **parameters)), table(events)) == {
        (2, 1): (0, 1), (2, 2): (1, 1),
        # Until 4 s: A 30, C 20; all of 10 20 20 50: 20.
        (4, 1): (1, 1), (4, 2): (0, 1),
        (6, 1): (1, 1), (6, 2): (0, 1),
    }  # fmt: skip


def test_the_second_window_has_a_sink_and_operators_of_its_own() -> None:
    flow = helpers_cuts.flow_of("smart_grid", second_range="20s")
    assert [sink.name for sink in flow.sinks][:2] == ["house_outliers", "second_house_outliers"]
    names = [node.name for node in graph.operators(flow)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(("rate", "events"), [(0.2, 1), (1000.0, 1000), (2e6, 2_000_000)])
def test_plugs_clocks_go_as_fast_at_every_rate(rate: float, events: int) -> None:
    """A search asks one question: a second of events is as long by a plug's clock whatever the rate."""
    value: Any = job_of("smart_grid", rate, speed=60).streams[0].fields[0]
    assert (value.speed, value.events_per_second) == (60, events)


@BOTH
def test_medians_are_compared_to_the_milliwatt(variant: Any) -> None:
    """Half a milliwatt of a mean of two counts as well; what is finer is rounded."""
    events: list[Event] = [
        (0, A, 0.082, LOAD), (0, A, 0.083, LOAD), (0, C, 0.082, LOAD),  # A 0.0825, all 0.082
        (2, A, 0.0824, LOAD), (2, C, 0.0816, LOAD),  # both 0.082
    ]  # fmt: skip
    results = outliers(variant(flow_of("house_outliers", range="2s", slide="2s")), table(events))
    assert results == {(2, 1): (1, 1), (2, 2): (0, 1), (4, 1): (0, 1), (4, 2): (0, 1)}


MALFORMED: list[Event] = [
    (0, A, None, LOAD), (0, A, math.nan, LOAD), (0, A, -0.25, LOAD), (0, A, 1e6 + 1, LOAD), (0, A, math.inf, LOAD),
    (0, A, 500.0, WORK), (0, (None, 1, 1), 500.0, LOAD), (0, (1, None, 1), 500.0, LOAD), (0, (1, 1, None), 500.0, LOAD),
]  # fmt: skip


@BOTH
@pytest.mark.parametrize("sink", ["house_outliers", "house_predictions", "plug_predictions"])
def test_what_is_malformed_counts_nowhere(variant: Any, sink: str) -> None:
    """Nor do readings of work; loads of 0 and of a megawatt are well formed."""
    sound: list[Event] = [(0, A, 0.0, LOAD), (0, C, 1e6, LOAD)]
    flow = variant(flow_of(sink))

    def results(events: list[Event]) -> list[Any]:
        return sorted(map(str, answer(flow, table(events)).to_pylist()))

    assert len(results(sound)) >= 2
    assert results(MALFORMED + sound) == results(sound)
    assert results(MALFORMED) == []


def slices_of(plug: Plug, loads: dict[int, tuple[float, ...]]) -> list[Event]:
    """Readings of a plug: number of a slice of 2 s to its loads."""
    return [
        (2 * number + 0.1 * place, plug, load, LOAD)
        for number, all_ in loads.items()
        for place, load in enumerate(all_)
    ]


HISTORY = slices_of(A, {0: (8.0, 12.0), 1: (20.0,), 2: (40.0,), 3: (100.0,), 4: (60.0,), 5: (0.0,), 7: (30.0,)})
HISTORY += slices_of(B, {0: (5.0,), 1: (7.0,)})
THREE_A_DAY = {"slice_length": "2s", "slices_per_day": 3}


@BOTH
def test_predictions_of_plugs_worked_by_hand(variant: Any) -> None:
    """Three slices a day: slice i + 2 is at the time of day of slices i - 1, i - 4, ..."""
    assert predictions(variant(flow_of("plug_predictions", **THREE_A_DAY)), table(HISTORY), PLUG) == {
        (0, *A): (10.0, 10.0),  # there was no day before
        (2, *A): (20.0, 15.0),  # slice 0: 10
        (4, *A): (40.0, 30.0),  # slice 1: 20
        (6, *A): (100.0, 70.0),  # slice 2: 40
        (8, *A): (60.0, 57.5),  # slices 3 and 0: the median of 100 and 10 is 55
        (10, *A): (0.0, 20.0),  # slices 4 and 1: that of 60 and 20 is 40
        (14, *A): (30.0, 42.5),  # of slices 6, 3 and 0, two are there: 55
        (0, *B): (5.0, 5.0),
        (2, *B): (7.0, 6.0),
    }


@BOTH
def test_predictions_of_houses_worked_by_hand(variant: Any) -> None:
    """A house's load is the sum of its plugs' averages, not the mean of its readings."""
    assert predictions(variant(flow_of("house_predictions", **THREE_A_DAY)), table(HISTORY), HOUSE) == {
        (0, 1): (15.0, 15.0),  # 10 + 5, though the mean of 8, 12 and 5 is less
        (2, 1): (27.0, 21.0),  # slice 0: 15
        (4, 1): (40.0, 33.5),  # slice 1: 27
        (6, 1): (100.0, 70.0),  # slice 2: 40
        (8, 1): (60.0, 58.75),  # slices 3 and 0: the median of 100 and 15 is 57.5
        (10, 1): (0.0, 21.75),  # slices 4 and 1: that of 60 and 27 is 43.5
        (14, 1): (30.0, 43.75),  # slices 3 and 0
    }


@BOTH
def test_a_prediction_is_for_the_slice_after_the_next(variant: Any) -> None:
    """It stands with its own slice, and says when the other one begins."""
    results = answer(variant(flow_of("plug_predictions", **THREE_A_DAY)), table(HISTORY)).to_pylist()
    assert all(row["window_end"] == row["window_start"] + 2 * US for row in results)
    assert all(row["predicted_for"] == row["window_start"] + 4 * US for row in results)
    assert {row["event_time"] for row in results if row["house"] == 1 and row["window_start"] == 0} == {0, 100_000}


VALUES = st.one_of(st.none(), st.just(math.nan), st.integers(-2, 12).map(lambda n: n / 4))
PLUGS = st.tuples(st.integers(1, 2), st.integers(1, 2), st.integers(1, 2))
EVENTS = st.lists(
    st.tuples(st.integers(0, 60).map(lambda n: n / 4), PLUGS, VALUES, st.sampled_from([LOAD, LOAD, LOAD, WORK])),
    max_size=40,
)


@given(EVENTS, st.sampled_from([(1, 1), (2, 1), (3, 1), (4, 2), (6, 2)]))
def test_class_and_truth_agree_on_outliers(events: list[Event], window: tuple[int, int]) -> None:
    """Whatever comes."""
    range_s, slide_s = window
    flow = flow_of("house_outliers", range=range_s, slide=slide_s, slice_length="1s")
    assert outliers(without_truth(flow), table(events)) == outliers(flow, table(events))


@given(EVENTS, st.integers(1, 2), st.integers(3, 6), st.sampled_from([HOUSE, PLUG]))
def test_class_and_truth_agree_on_predictions(
    events: list[Event], slice_s: int, per_day: int, by: tuple[str, ...]
) -> None:
    """Of plugs and of houses."""
    flow = flow_of(f"{by[-1]}_predictions", slice_length=slice_s, slices_per_day=per_day)
    truth, results = (predictions(each, table(events), by) for each in (flow, without_truth(flow)))
    assert results == {key: pytest.approx(pair, rel=1e-12) for key, pair in truth.items()}


US_SLICES = {"range": "10us", "slide": "10us", "slice_length": "10us", "slices_per_day": 3}
"""Of ten microseconds each, as the times of `cuts` are small."""
CUTS = st.lists(st.integers(0, 420), max_size=6)


def windows(numbers: list[int]) -> dict[str, pa.Array]:
    """The borders of windows of ten microseconds by their numbers."""
    stamp = pa.timestamp("us", "UTC")
    starts = [10 * number for number in numbers]
    return {
        "window_start": pa.array(starts, pa.int64()).cast(stamp),
        "window_end": pa.array([start + 10 for start in starts], pa.int64()).cast(stamp),
    }


def ids(plugs: list[Plug]) -> dict[str, pa.Array]:
    return {name: pa.array([plug[place] for plug in plugs], pa.int32()) for place, name in enumerate(PLUG)}


@given(
    st.dictionaries(
        st.tuples(st.integers(0, 40), PLUGS, st.integers(0, 4)), st.integers(1, 3), min_size=1, max_size=40
    ),
    CUTS,
)
def test_medians_do_not_depend_on_where_batches_end(counted: dict[tuple[int, Plug, int], int], cuts: list[int]) -> None:
    """Cut between any two windows, into fresh instances, as engines do."""
    numbers, plugs, loads = (list(each) for each in zip(*sorted(counted), strict=True))
    rows = pa.table({
        **ids(plugs), "load_mw": pa.array(loads, pa.int64()), **windows(numbers),
        "readings": pa.array([counted[key] for key in sorted(counted)], pa.int64()),
    })  # fmt: skip
    times = [10 * number + 9 for number in numbers]
    assert len(results_in_batches(flow_of("house_outliers", **US_SLICES), rows, times, cuts)) == len(counted)


@given(
    st.dictionaries(st.tuples(st.integers(0, 40), PLUGS), st.integers(0, 20), min_size=1, max_size=60),
    CUTS,
)
def test_predictions_do_not_depend_on_where_batches_end(averages: dict[tuple[int, Plug], int], cuts: list[int]) -> None:
    """Cut between any two slices, with a snapshot into a fresh instance at every cut, as engines do."""
    numbers, plugs = (list(each) for each in zip(*sorted(averages), strict=True))
    loads = [float(averages[key]) for key in sorted(averages)]
    rows = pa.table({**ids(plugs), **windows(numbers), "avg_load": pa.array(loads, pa.float64())})
    times = [10 * number + 9 for number in numbers]
    assert len(results_in_batches(flow_of("plug_predictions", **US_SLICES), rows, times, cuts)) == len(averages)


def test_times_before_1970_have_their_time_of_day_too() -> None:
    """Slices -3, -2 and -1 are a day, as 0, 1 and 2 are: -2 looks at -3, and -1 at -2."""
    rows = pa.table({**ids([A, A, A]), **windows([-3, -2, -1]), "avg_load": pa.array([4.0, 8.0, 6.0])})
    whole = results_in_batches(flow_of("plug_predictions", **US_SLICES), rows, [-21, -11, -1], [])
    assert [row["predicted_load"] for row in whole] == [4.0, 6.0, 7.0]


def test_planted_houses_stand_out_at_the_defaults() -> None:
    """Ten houses at 10 000 events/s for 10 s: every sink has results. Of the planted house nearly all plugs draw more
    than all plugs do, of the others about half; some predictions have a history, which others have not.
    """
    flow, inputs = made("smart_grid", 10_000.0, 10.0)
    flows, rows = {one.sink.name: one for one in flow.each()}, inputs["plugs"]
    shares: dict[int, list[float]] = defaultdict(list)
    for (_, house), (outlying, plugs) in outliers(flows["house_outliers"], rows).items():
        shares[house].append(outlying / plugs)
    assert sorted(shares) == list(range(10))
    assert {len(each) for each in shares.values()} == {9}  # 10 s in windows of 10 s every 2 s
    assert fmean(shares[0]) > 0.8
    assert all(0.2 < fmean(each) < 0.7 for house, each in shares.items() if house)
    for by, least in ((HOUSE, 50), (PLUG, 2000)):
        results = predictions(flows[f"{by[-1]}_predictions"], rows, by)
        assert len(results) >= least
        assert {load == predicted for load, predicted in results.values()} == {True, False}


def test_numbers_of_rows() -> None:
    """Equal in all columns, and none left out; of no rows there are none."""
    ones, twos = np.array([7, 5, 7, 7]), np.array([1, 1, 2, 1])
    assert group_numbers(ones, twos).tolist() == [1, 0, 2, 1]
    assert group_numbers(ones).tolist() == [1, 0, 1, 1]
    assert group_numbers(np.empty(0)).tolist() == []


def test_medians_of_counted_values() -> None:
    """9 9 9 1 of one group and 2 4 of another; then 5 counted two times."""
    groups, values, counts = np.array([0, 1, 0, 1]), np.array([9, 4, 1, 2]), np.array([3, 1, 1, 1])
    assert twice_the_medians(groups, values, counts).tolist() == [18, 6]
    assert twice_the_medians(np.array([0]), np.array([5]), np.array([2])).tolist() == [10]
    nothing = np.empty(0, np.int64)
    assert twice_the_medians(nothing, nothing, nothing).tolist() == []


def test_medians_of_pieces() -> None:
    """In any order, overlapping, and empty."""
    results = medians_between(np.array([3.0, 1.0, 2.0, 8.0]), np.array([0, 1, 2, 0]), np.array([3, 4, 2, 4]))
    assert results.tolist() == pytest.approx([2.0, 2.0, math.nan, 2.5], nan_ok=True)
