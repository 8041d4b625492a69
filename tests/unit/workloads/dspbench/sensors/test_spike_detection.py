"""Spike Detection: worked by hand, against plain Python, by truth and by class, and wherever batches end."""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamgauge.dataflow.nodes import Flow
from tests.unit.workloads import helpers_cuts
from tests.unit.workloads.helpers_cuts import BOTH, answered, made, results_in_batches, table, without_truth

Reading = tuple[int, float | None]
"""(device, value); the n-th has event time and event id n."""


flow_of = partial(helpers_cuts.flow_of, "spike_detection")


def answer(flow: Flow, readings: list[Reading]) -> list[dict[str, Any]]:
    """The flow's results with their event ids, by event id."""
    return answered(flow, {"sensors": table(readings, device="int32", temp="float64")}).to_pylist()


@BOTH
def test_worked_by_hand(variant: Any) -> None:
    """Window 3, threshold 10 %: the current reading is in its average; below zero the average's size counts."""
    flow = variant(flow_of(moving_average_window=3, spike_detector_threshold=0.1))
    readings: list[Reading] = [
        (1, 10.0),  # 0: average 10, no spike
        (1, 10.0),  # 1: average 10
        (2, -10.0),  # 2: average -10: the first reading of a device is its own average
        (1, 16.0),  # 3: (10 + 10 + 16) / 3 = 12; |16 - 12| = 4 > 1.2: spike
        (1, 10.0),  # 4: (10 + 16 + 10) / 3 = 12; 2 > 1.2: spike, though the reading itself is ordinary
        (1, None),  # 5: malformed
        (1, math.nan),  # 6: malformed
        (1, 10.0),  # 7: (16 + 10 + 10) / 3 = 12: spike
        (1, 10.0),  # 8: (10 + 10 + 10) / 3: 16 has left the window
        (2, -10.0),  # 9: average -10
        (2, -16.0),  # 10: average -12; 4 > 1.2: spike
        (1, math.inf),  # 11: malformed
        (2, -12.0),  # 12: (-10 - 16 - 12) / 3 = -12.67; 0.67 < 1.27
    ]
    results = answer(flow, readings)
    assert [(row["event_id"], row["device"], row["avg"], row["value"]) for row in results] == [
        (3, 1, 12.0, 16.0), (4, 1, 12.0, 10.0), (7, 1, 12.0, 10.0), (10, 2, -12.0, -16.0),
    ]  # fmt: skip
    assert {row["message"] for row in results} == {"spike detected"}
    assert [row["event_time"] for row in results] == [3, 4, 7, 10]


@BOTH
def test_a_deviation_of_just_the_threshold_is_no_spike(variant: Any) -> None:
    """The average of 6 and 10 is 8, both lie 2 from it, and 25 % of 8 is 2; an average of 0 has no threshold."""
    flow = variant(flow_of(moving_average_window=2, spike_detector_threshold=0.25))
    assert answer(flow, [(1, 6.0), (1, 10.0)]) == []
    assert [row["event_id"] for row in answer(flow, [(1, -4.0), (1, 4.0)])] == [1]


def spikes_in_python(
    readings: Sequence[tuple[int, Fraction | float | None]], window: int, share: Fraction
) -> list[int]:
    """The definition, one reading after the other, in fractions: nothing is rounded, so a tie is one."""
    seen: dict[int, list[Fraction]] = {}
    results = []
    for number, (device, value) in enumerate(readings):
        if value is None or not math.isfinite(value):
            continue
        exact = Fraction(value)
        last = [*seen.get(device, []), exact][-window:]
        seen[device] = last
        average = sum(last) / Fraction(len(last))
        if abs(exact - average) > share * abs(average):
            results.append(number)
    return results


VALUES = st.one_of(st.none(), st.just(math.nan), st.integers(-40, 40).map(lambda n: n / 4))


@BOTH
@pytest.mark.parametrize("threshold", [0.0, 0.03])
def test_a_sensor_that_never_changes_has_no_spikes(variant: Any, threshold: float) -> None:
    """22.1 fifteen times over is not 331.5 in doubles; beside others, which their sums have nothing to do with."""
    readings: list[Reading] = [(device, value) for _ in range(40) for device, value in ((1, 22.1), (2, 0.1), (3, 0.0))]
    assert answer(variant(flow_of(moving_average_window=15, spike_detector_threshold=threshold)), readings) == []


@BOTH
@pytest.mark.parametrize("large", [1e12, 1e17, 3.4028235e38, 1e308])
def test_a_large_reading_is_gone_once_its_window_is(variant: Any, large: float) -> None:
    """Of its own device after two more readings, of another one at once: 30 is a spike of 20, 20, 30 and nothing is
    of 20, 20.
    """
    readings: list[Reading] = [(1, large), (2, 20.0), (2, 20.0), (2, 30.0), (1, 20.0), (1, 20.0), (1, 20.0), (1, 30.0)]
    results = answer(variant(flow_of(moving_average_window=3, spike_detector_threshold=0.25)), readings)
    assert [(row["event_id"], row["avg"]) for row in results if row["event_id"] in (1, 2, 3, 6, 7)] == [
        (3, pytest.approx(70 / 3)), (7, pytest.approx(70 / 3)),
    ]  # fmt: skip


@BOTH
def test_an_average_that_overflows_has_no_spikes(variant: Any) -> None:
    """1e308 twice is beyond doubles, until the first of them has left the window of two."""
    results = answer(variant(flow_of(moving_average_window=2)), [(1, 1e308), (1, 1.1e308), (1, -1.0), (1, 2.0)])
    assert [row["event_id"] for row in results] == [2, 3]


ANY = st.floats(allow_nan=False, allow_infinity=False)
CENTS = st.integers(-4000, 4000).map(lambda cents: cents / 100)
OWN = st.lists(st.tuples(st.integers(1, 3), ANY | CENTS | CENTS | st.just(22.1)), max_size=40)
"""Readings of a user's own, which are no multiples of a power of two: any doubles among hundredths."""


@given(OWN, st.integers(1, 20), st.sampled_from([0.0, 0.03, 0.5]))
def test_class_and_truth_agree_on_any_readings(readings: list[Reading], window: int, threshold: float) -> None:
    """Which are spikes, and their averages within what verification allows, also where readings nearly cancel."""
    flow = flow_of(moving_average_window=window, spike_detector_threshold=threshold)
    truth, results = answer(flow, readings), answer(without_truth(flow), readings)
    assert [row["event_id"] for row in results] == [row["event_id"] for row in truth]
    assert [row["avg"] for row in results] == pytest.approx([row["avg"] for row in truth], rel=1e-9, abs=0)


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 4000) | st.integers(90, 110)), max_size=40))
@example([(1, 97), (1, 103)])  # the average is 1.00, and 0.03 of it is just how far both lie from it
def test_readings_in_hundredths_against_exact_arithmetic(cents: list[tuple[int, int]]) -> None:
    """The definition in fractions: a deviation of just the threshold is no spike however it is rounded."""
    expected = spikes_in_python([(device, Fraction(reading, 100)) for device, reading in cents], 5, Fraction(3, 100))
    flow = flow_of(moving_average_window=5, spike_detector_threshold=0.03)
    for each in (flow, without_truth(flow)):
        results = answer(each, [(device, reading / 100) for device, reading in cents])
        assert [row["event_id"] for row in results] == expected


@given(
    st.lists(st.tuples(st.integers(1, 3), VALUES, st.integers(0, 3)), min_size=1, max_size=40),
    st.lists(st.integers(0, 130), max_size=5),
)
def test_the_answer_does_not_depend_on_where_batches_end(
    readings: list[tuple[int, float | None, int]], cuts: list[int]
) -> None:
    """Cut between any two times, with a snapshot into a fresh instance at every cut, as engines do."""
    rows = table([reading[:2] for reading in readings], device="int32", value="float64")
    times = list(itertools.accumulate(step for *_, step in readings))
    results_in_batches(flow_of(moving_average_window=4), rows, times, cuts)


def test_planted_spikes_are_found_and_little_else() -> None:
    """Of the default sensors: about as many spikes as were planted, and every one of those far off."""
    assert 850 <= answered(*made("spike_detection", 20_000.0, 5.0, spikes=0.01)).num_rows <= 1150
