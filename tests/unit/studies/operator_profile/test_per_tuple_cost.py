"""The time of a tuple out of timed slices, and memory as a distribution."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

from streamgauge.engines.operator_profiler import Slice
from streamgauge.studies.operator_profile.memory import (
    HIGH_FROM_BYTES,
    MEDIUM_FROM_BYTES,
    MemorySampler,
    behaviour,
    distribution,
    level,
)
from streamgauge.studies.operator_profile.per_tuple_cost import per_tuple_cost, resampled, too_few, unreported


def test_the_difference_is_divided_by_the_rows() -> None:
    """3 ms with the operator, 1 ms of only reading, 1000 rows: 2 us each."""
    found = per_tuple_cost([Slice(1000, 0.003, 0.001)] * 100)
    assert found is not None
    assert (found.median, found.p99) == (pytest.approx(2.0), pytest.approx(2.0))
    assert found.baseline == pytest.approx(1.0)
    assert found.distinguishable is True


def test_what_a_job_costs_anyhow_is_taken_off() -> None:
    """5 ms, 1 ms of reading, and 2 ms without a row in the middle slices of nine: 2 us for each of 1000 rows."""
    found = per_tuple_cost([Slice(1000, 0.005, 0.001, fixed) for fixed in (0.0, 0.002, 0.1) for _ in range(3)])
    assert found is not None
    assert found.median == pytest.approx(2.0)
    assert found.fixed_per_slice == pytest.approx(2000.0)


def test_p99_is_one_of_the_slices() -> None:
    """Of times 1 to 100 us the 99th, and the median between the two in the middle."""
    found = per_tuple_cost([Slice(1000, n / 1000, 0.0) for n in range(1, 101)])
    assert found is not None
    assert found.p99 == pytest.approx(99.0)
    assert found.median == pytest.approx(50.5)
    assert (found.slices, found.rows_per_slice, found.negative_slices) == (100, 1000.0, 0)


def test_fewer_slices_carry_no_p99() -> None:
    """The greatest of 99 under another name would be read as a p99."""
    found = per_tuple_cost([Slice(10, 1.0, 0.5)] * 99)
    assert found is not None
    assert found.p99 is None
    assert found.median == pytest.approx(50_000.0)
    assert too_few(99) == "p99 needs 100 slices with rows, and there were 99"
    assert per_tuple_cost([]) is None


def test_negative_differences_stay_and_are_reported() -> None:
    """Noise goes both ways: cut off it would be a time, and below nothing there is none to print."""
    found = per_tuple_cost([Slice(10, 0.001, 0.002)] * 100)
    assert found is not None
    assert (found.median, found.p99) == (None, None)
    assert found.interval == pytest.approx((-100.0, -100.0))
    assert (found.negative_slices, found.distinguishable) == (100, False)
    assert unreported(found).startswith("takes less than only reading: slower with it in 0 of 100 slices")


def noisy(us: float, spread_us: float, seed: int) -> list[Slice]:
    """100 slices of an operator of so many microseconds a tuple; both timings of 10 us, with noise of their own."""
    random = np.random.default_rng(seed)
    noise = random.exponential(spread_us, size=(100, 2))
    return [Slice(1000, (10 + us + with_) / 1000, (10 + without) / 1000) for with_, without in noise]


def test_p99_is_not_that_of_the_baseline() -> None:
    """Only reading is quick in one slice of five: its own noise must not be the operator's."""
    slices = [Slice(1000, 0.012, 0.010 if number % 5 else 0.001) for number in range(100)]
    found = per_tuple_cost(slices)
    assert found is not None
    assert found.p99 == pytest.approx(2.0)
    assert found.median == pytest.approx(2.0)


def test_what_a_job_costs_anyhow_is_in_the_baseline() -> None:
    """12 ms, 5 of only reading, 4 without a row: 3 us for each of 1000 rows."""
    found = per_tuple_cost([Slice(1000, 0.012, 0.005, 0.004)] * 100)
    assert found is not None
    assert (found.p99, found.baseline) == (pytest.approx(3.0), pytest.approx(9.0))


@pytest.mark.parametrize("seed", range(5))
def test_an_operator_that_costs_nothing_is_not_told_from_reading(seed: int) -> None:
    """What it would have is noise of microseconds; one that costs 5 us is reported, in every resampling too."""
    nothing, something = per_tuple_cost(noisy(0.0, 2.0, seed)), per_tuple_cost(noisy(5.0, 2.0, seed))
    assert nothing is not None
    assert something is not None
    assert (nothing.median, nothing.p99) == (None, None)
    assert nothing.interval is not None
    assert nothing.interval[0] <= 0.0 < nothing.interval[1]
    assert (nothing.distinguishable, something.distinguishable) == (False, True)
    assert unreported(nothing).startswith("below what can be told from only reading (+/- 0.")
    assert "the sign test wants 61; counts as no work; more or larger slices" in unreported(nothing)
    drawn = resampled(noisy(5.0, 2.0, seed), 50, np.random.default_rng(seed))
    assert all(5.0 < us < 30.0 for us in drawn)
    assert len(set(drawn)) > 1
    nought = resampled(noisy(-1.0, 2.0, seed), 50, np.random.default_rng(seed))
    assert nought == [0.0] * 50


@pytest.mark.parametrize(("slower", "decided"), [(60, False), (61, True)])
def test_the_sign_test_has_its_border(slower: int, decided: bool) -> None:
    """61 of 100 happen by chance in less than 5 % of all cases, that or as far on the other side; 60 do not."""
    found = per_tuple_cost([Slice(10, 0.002, 0.001)] * slower + [Slice(10, 0.001, 0.002)] * (100 - slower))
    assert found is not None
    assert found.slower_slices == slower
    assert found.distinguishable is decided
    assert (found.median is not None) is decided


@pytest.mark.parametrize(("slices", "decided"), [(5, False), (6, True)])
def test_too_few_slices_tell_nothing(slices: int, decided: bool) -> None:
    """Five that are all slower happen by chance once in sixteen times; no give or take is known of them."""
    found = per_tuple_cost([Slice(10, 0.002, 0.001)] * slices)
    assert found is not None
    assert (found.median is not None, found.interval is not None) == (decided, decided)
    if not decided:
        assert unreported(found).startswith("below what can be told from only reading: slower with it in 5 of 5 slices")


def test_a_handful_of_noisy_slices_gives_no_negative_time() -> None:
    """Ten slices, seven of them quicker with the operator: no time, and how much lies within the noise."""
    found = per_tuple_cost([Slice(1000, 0.001, 0.009)] * 7 + [Slice(1000, 0.005, 0.001)] * 3)
    assert found is not None
    assert (found.median, found.p99, found.interval) == (None, None, pytest.approx((-8.0, 4.0)))
    assert unreported(found) == (
        "below what can be told from only reading (+/- 6 us): slower with it in 3 of 10 slices, the sign test wants 9; "
        "more or larger slices (--slices, --slice-events) tell more"
    )


def test_memory_is_a_distribution_with_a_class() -> None:
    """Of 1 to 100 MiB: the 50th and the 95th; twice the median is variable, and below a GiB low."""
    found = distribution([n * 2**20 for n in range(1, 101)], "a process")
    assert found is not None
    assert (found.min, found.p50, found.p95, found.max) == (2**20, 50 * 2**20, 95 * 2**20, 100 * 2**20)
    assert (found.behaviour, found.level, found.samples) == ("variable", "low", 100)
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
    found = [level(p95) for p95 in (MEDIUM_FROM_BYTES - 1, MEDIUM_FROM_BYTES, HIGH_FROM_BYTES - 1, HIGH_FROM_BYTES)]
    assert found == ["low", "medium", "medium", "high"]


def test_memory_is_sampled_at_once_and_until_the_end() -> None:
    """A process that has ended gives nothing, and ends no sampling."""
    readings: Iterator[int | None] = iter([1, None, 3, 4])
    requested_often = threading.Event()

    def read() -> int | None:
        found = next(readings, 5)
        if found == 5:  # the fourth has been taken down
            requested_often.set()
        return found

    with MemorySampler(read, interval_s=0.001) as sampler:
        assert requested_often.wait(60)
    assert sampler.samples[:3] == [1, 3, 4]
