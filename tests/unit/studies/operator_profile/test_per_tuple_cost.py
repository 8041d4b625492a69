"""The time of a tuple out of timed slices, and memory as a distribution."""

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from streamgauge.engines.operator_profiler import Slice
from streamgauge.studies.operator_profile.characterize import (
    HIGH_FROM_BYTES,
    MEDIUM_FROM_BYTES,
    behaviour,
    distribution,
    level,
    sampled,
)
from streamgauge.studies.operator_profile.per_tuple_cost import per_tuple_cost, resampled, too_few, unreported


def cost(slices: list[Slice]) -> Any:
    """`Any`, because None without a slice."""
    return per_tuple_cost(slices)


@pytest.mark.parametrize(
    ("slices", "figures"),
    [
        # 3 ms with the operator, 1 ms of only reading, 1000 rows: 2 us each.
        ([Slice(1000, 0.003, 0.001)] * 100, {"median": 2.0, "p99": 2.0, "baseline": 1.0, "distinguishable": True}),
        # 5 ms, 1 ms of reading, and 2 ms without a row in the middle slices of nine: 2 us for each of 1000 rows.
        (
            [Slice(1000, 0.005, 0.001, fixed) for fixed in (0.0, 0.002, 0.1) for _ in range(3)],
            {"median": 2.0, "fixed_per_slice": 2000.0},
        ),
        # Of times 1 to 100 us the 99th, and the median between the two in the middle.
        (
            [Slice(1000, n / 1000, 0.0) for n in range(1, 101)],
            {"median": 50.5, "p99": 99.0, "slices": 100, "rows_per_slice": 1000.0, "negative_slices": 0},
        ),
        # The greatest of 99 under another name would be read as a p99.
        ([Slice(10, 1.0, 0.5)] * 99, {"median": 50_000.0, "p99": None}),
        # Noise goes both ways: cut off it would be a time, and below nothing there is none to print.
        (
            [Slice(10, 0.001, 0.002)] * 100,
            {"median": None, "p99": None, "interval": (-100.0, -100.0), "negative_slices": 100,
             "distinguishable": False},
        ),
        # Only reading is quick in one slice of five: its own noise must not be the operator's.
        (
            [Slice(1000, 0.012, 0.010 if number % 5 else 0.001) for number in range(100)],
            {"median": 2.0, "p99": 2.0},
        ),
        # 12 ms, 5 of only reading, 4 without a row: 3 us for each of 1000 rows.
        ([Slice(1000, 0.012, 0.005, 0.004)] * 100, {"p99": 3.0, "baseline": 9.0}),
        # 61 of 100 happen by chance in less than 5 % of all cases, that or as far on the other side; 60 do not.
        (
            [Slice(10, 0.002, 0.001)] * 60 + [Slice(10, 0.001, 0.002)] * 40,
            {"slower_slices": 60, "distinguishable": False, "median": None},
        ),
        (
            [Slice(10, 0.002, 0.001)] * 61 + [Slice(10, 0.001, 0.002)] * 39,
            {"slower_slices": 61, "distinguishable": True, "median": 100.0},
        ),
        # Five that are all slower happen by chance once in sixteen times; no interval is known of them.
        ([Slice(10, 0.002, 0.001)] * 5, {"median": None, "interval": None}),
        ([Slice(10, 0.002, 0.001)] * 6, {"median": 100.0, "interval": (100.0, 100.0)}),
        # Seven of ten slices are quicker with the operator.
        (
            [Slice(1000, 0.001, 0.009)] * 7 + [Slice(1000, 0.005, 0.001)] * 3,
            {"median": None, "p99": None, "interval": (-8.0, 4.0)},
        ),
    ],
)  # fmt: skip
def test_the_time_of_a_tuple_and_its_spread(slices: list[Slice], figures: dict[str, Any]) -> None:
    time = cost(slices)
    assert {name: getattr(time, name) for name in figures} == {
        name: value if value is None else pytest.approx(value) for name, value in figures.items()
    }


def test_no_slice_has_no_time() -> None:
    assert per_tuple_cost([]) is None
    assert too_few(99) == "p99 needs 100 slices with rows, and there were 99"


def noisy(us: float, spread_us: float, seed: int) -> list[Slice]:
    """100 slices of an operator of so many microseconds a tuple; both timings of 10 us, with noise of their own."""
    noise = np.random.default_rng(seed).exponential(spread_us, size=(100, 2))
    return [Slice(1000, (10 + us + with_) / 1000, (10 + without) / 1000) for with_, without in noise]


@pytest.mark.parametrize("seed", range(5))
def test_an_operator_that_costs_nothing_has_no_time(seed: int) -> None:
    """What it would have is noise of microseconds; one that costs 5 us is reported, in every resampling too."""
    nothing, something = cost(noisy(0.0, 2.0, seed)), cost(noisy(5.0, 2.0, seed))
    assert (nothing.median, nothing.p99) == (None, None)
    assert nothing.interval[0] <= 0.0 < nothing.interval[1]
    assert (nothing.distinguishable, something.distinguishable) == (False, True)
    drawn = resampled(noisy(5.0, 2.0, seed), 50, np.random.default_rng(seed))
    assert 5.0 < min(drawn) < max(drawn) < 30.0
    assert resampled(noisy(-1.0, 2.0, seed), 50, np.random.default_rng(seed)) == [0.0] * 50


@pytest.mark.parametrize(
    ("slices", "reason"),
    [
        ([Slice(10, 0.001, 0.002)] * 100, "takes less than only reading: slower with it in 0 of 100 slices"),
        (noisy(0.0, 2.0, 1), "the sign test wants 61; counts as no work; more or larger slices"),
        (
            [Slice(10, 0.002, 0.001)] * 5,
            "below what can be told from only reading: slower with it in 5 of 5 slices",
        ),
        (
            [Slice(1000, 0.001, 0.009)] * 7 + [Slice(1000, 0.005, 0.001)] * 3,
            "below what can be told from only reading (+/- 6 us): slower with it in 3 of 10 slices, the sign test "
            "wants 9; more or larger slices (--slices, --slice-events) tell more",
        ),
    ],
)
def test_an_operator_without_a_time_has_a_reason(slices: list[Slice], reason: str) -> None:
    assert reason in unreported(cost(slices))


def test_memory_is_a_distribution_with_a_class() -> None:
    """Of 1 to 100 MiB: the 50th and the 95th; twice the median is variable, and below a GiB low."""
    memory: Any = distribution([n * 2**20 for n in range(1, 101)], "a process")
    assert (memory.min, memory.p50, memory.p95, memory.max) == (2**20, 50 * 2**20, 95 * 2**20, 100 * 2**20)
    assert (memory.behaviour, memory.level, memory.samples) == ("variable", "low", 100)
    assert distribution([], "a process") is None


@pytest.mark.parametrize(
    ("least", "p50", "p95", "kind"),
    [(100, 100, 124, "fixed"), (100, 100, 125, "variable"), (80, 100, 100, "variable"), (81, 100, 100, "fixed")],
)
def test_memory_is_variable_from_a_quarter_on(least: int, p50: int, p95: int, kind: str) -> None:
    """Up from the median, or up to it."""
    assert behaviour(least, p50, p95) == kind


def test_levels_begin_at_their_borders() -> None:
    """One below is another level."""
    borders = MEDIUM_FROM_BYTES - 1, MEDIUM_FROM_BYTES, HIGH_FROM_BYTES - 1, HIGH_FROM_BYTES
    assert [level(p95) for p95 in borders] == ["low", "medium", "medium", "high"]


def test_memory_is_sampled_at_once_and_until_the_end() -> None:
    """A process that has ended gives nothing, and ends no sampling."""
    readings: Iterator[int | None] = iter([1, None, 3, 4])
    ended = threading.Event()

    def read() -> int | None:
        reading = next(readings, 5)
        if reading == 5:  # the fourth is recorded
            ended.set()
        return reading

    with sampled(read, interval_s=0.001) as samples:
        assert ended.wait(60)
    assert samples[:3] == [1, 3, 4]
