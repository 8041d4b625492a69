"""The growth of the lag over a span: of steady engines, of engines that fall behind, and where it cannot be known."""

from __future__ import annotations

from typing import Any

import pytest

from streamgauge.studies.scalability.criteria import LAG_GROWTH_MAX, Growth, end_s, lag_growth
from tests.unit.studies.scalability.helpers_lag import SPAN_S, micro_batches, series

SEEDS = 100
FAILED_SHARE_MAX = 0.05
"""By the interval a steady engine exceeds the limit in 2.5 % of trials."""
AT_ONCE = {"interval_s": 0.0, "busy": 0.5}
"""Triggers as soon as the batch before has ended, so that a long batch makes the next one long."""


def growth_of(table: Any, span_s: float = SPAN_S, end: int = 5) -> Growth:
    found = lag_growth(table, span_s, end)
    assert isinstance(found, Growth)
    return found


def is_failed(growth: Growth) -> bool:
    return growth.low >= LAG_GROWTH_MAX


@pytest.mark.parametrize(
    "engine",
    [{}, {"interval_s": 4.0}, {"interval_s": 0.7, "noise": 0.3}, pytest.param(AT_ONCE, marks=pytest.mark.long)],
)
def test_a_steady_engine_is_rarely_failed(engine: dict[str, float]) -> None:
    """At the paper's greatest rate, at any phase of its batches: chance alone is never taken for growth."""
    grown = [growth_of(micro_batches(131_072, seed, **engine)) for seed in range(SEEDS)]
    assert sum(map(is_failed, grown)) <= FAILED_SHARE_MAX * SEEDS
    assert sum(growth.low <= 0 <= growth.high for growth in grown) >= (1 - 2 * FAILED_SHARE_MAX) * SEEDS


def test_a_steady_engine_of_a_low_rate_holds() -> None:
    """Whose lag scatters by less than the limit."""
    grown = [growth_of(micro_batches(1000, seed)) for seed in range(SEEDS)]
    assert all(growth.high < LAG_GROWTH_MAX for growth in grown)


@pytest.mark.parametrize("rate_per_s", [1000, 131_072])
@pytest.mark.parametrize("engine", [{"busy": 1.02}, {"busy": 1.1}, {"busy": 1.05, "noise": 0.05}])
def test_an_engine_that_falls_behind_is_failed(rate_per_s: float, engine: dict[str, float]) -> None:
    """It needs longer for the events than they took to come, at any phase of its batches."""
    assert all(is_failed(growth_of(micro_batches(rate_per_s, seed, **engine))) for seed in range(20))


@pytest.mark.parametrize(("records", "failed"), [(99, False), (101, True), (5000, True)])
def test_a_steady_growth_is_known_without_scatter(records: float, failed: bool) -> None:
    """The windows of both ends are shorter than the span, and the growth is that of the whole span."""
    lags = [1000 + records * second / SPAN_S for second in range(SPAN_S)]
    growth = growth_of(series(lags, lags))
    assert growth.records == pytest.approx(records)
    assert growth.high - growth.low == pytest.approx(0, abs=1e-6)
    assert is_failed(growth) is failed


def test_scatter_above_the_limit_leaves_it_open() -> None:
    """And is said."""
    lags: list[float | None] = [5000.0 if second % 2 else 15_000.0 for second in range(SPAN_S)]
    growth = growth_of(series(lags, lags))
    assert growth.low < LAG_GROWTH_MAX <= growth.high
    assert growth.scatter == pytest.approx(5000, rel=0.05)


def test_the_ends_of_seconds_do_not_matter_where_there_are_commits() -> None:
    """They are another phase at each second."""
    saw_tooth = [1e6 * (second * 0.37 % 1) for second in range(SPAN_S)]
    assert growth_of(series(saw_tooth, [50.0] * SPAN_S)) == (0.0, 0.0, 0.0, 0.0)


def test_without_commits_the_least_lag_of_each_end_counts() -> None:
    """Within one batch interval; a second sampled alone would show a difference that is none."""
    tooth = [10.0, 40.0, 20.0, 30.0]
    assert growth_of(series(tooth * 5), 20, 4).records == 0
    assert growth_of(series([10.0, *tooth * 5]), 20, 4).records == 0
    assert growth_of(series([n * 30 + one for n, one in enumerate(tooth * 5)]), 20, 4).records == 16 * 30
    assert growth_of(series([30.0] * 4 + [10.0] * 12 + [30.0] * 4), 20, 4).records == 0
    assert growth_of(series([*tooth * 5]), 20, 1).records == 20


def test_an_extension_of_the_span_does_not_count() -> None:
    """The span is the planned one."""
    assert growth_of(series([5.0] * 10 + [500.0] * 5), 10, 1).records == 0
    assert growth_of(series([5.0] * 15, [5.0] * 10 + [500.0] * 5), 10, 1).records == 0


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (series([5.0] * 9), "its span was not complete"),
        (series([5.0] * 9 + [None]), "its span was not complete"),
        (series([5.0] * 10, [None] * 8 + [1.0, 2.0]), "each end of its span needs 3 commits, and the span has 2"),
    ],
)
def test_a_growth_that_cannot_be_known_has_a_reason(table: Any, reason: str) -> None:
    """A span that was cut short, an unknown lag, and batches that are too few."""
    found = lag_growth(table, 10, 1)
    assert isinstance(found, str)
    assert found.startswith(reason)


def test_an_end_grows_until_it_has_enough_commits() -> None:
    """At most to half of the span: long batches need longer ends."""
    rare: list[float | None] = [7.0 if second % 20 == 0 else None for second in range(SPAN_S)]
    assert growth_of(series([0.0] * SPAN_S, rare)).records == 0
    rarer: list[float | None] = [7.0 if second % 90 == 0 else None for second in range(SPAN_S)]
    assert isinstance(lag_growth(series([0.0] * SPAN_S, rarer), SPAN_S, 5), str)


def test_an_end_has_room_for_three_batches() -> None:
    """And at least five seconds."""
    assert (end_s(0.0), end_s(1.0), end_s(4.0), end_s(7.5)) == (5, 5, 12, 23)


def test_a_run_of_an_older_version_has_no_lag_at_commits() -> None:
    """Its series lacks the column."""
    assert growth_of(series([5.0] * 10).drop_columns("lag_at_commit_mean"), 10, 1).records == 0
