"""Ads Analytics: worked by hand, edges included, and against plain Python."""

from typing import Any

import pytest

from streamgauge.core.clock import US
from tests.unit.workloads.helpers_cuts import answered, flow_of, table

Event = tuple[int, int | None, int | None]
"""(second, query, ad)."""


def rates(clicks: list[Event], impressions: list[Event], **parameters: Any) -> dict[tuple[int, int, int], Any]:
    """(a window's end in seconds, query, ad) to (clicks, impressions, rate)."""
    inputs = {
        name: table([row[1:] for row in rows], [row[0] * US for row in rows], query_id="int32", ad_id="int32")
        for name, rows in (("clicks", clicks), ("impressions", impressions))
    }
    results = answered(flow_of("ads_analytics", **parameters), inputs)
    return {
        (int(row["window_end"].timestamp()), row["query_id"], row["ad_id"]): (
            row["clicks"], row["impressions"], row["ctr"],
        )
        for row in results.to_pylist()
    }  # fmt: skip


def test_worked_by_hand() -> None:
    """Windows of 4 s every 2 s: what was not clicked has no rate, and neither has what was not shown."""
    clicks: list[Event] = [(0, 1, 1), (3, 1, 1), (1, 2, 1)]
    impressions: list[Event] = [(0, 1, 1), (1, 1, 1), (2, 1, 1), (0, 1, 2)]
    assert rates(clicks, impressions, window="4s", frequency="2s") == {
        (2, 1, 1): (1, 2, 0.5), (4, 1, 1): (2, 3, pytest.approx(2 / 3)), (6, 1, 1): (1, 1, 1.0),
    }  # fmt: skip


def test_an_event_without_a_query_or_an_ad_counts_nowhere() -> None:
    """Neither for the others nor as a pair of its own; and one that comes twice counts twice."""
    clicks: list[Event] = [(0, 1, 1), (0, 1, 1), (0, None, 1), (0, 1, None), (0, None, None)]
    impressions: list[Event] = [(0, 1, 1), (1, 1, 1), (1, 1, 1), (0, None, 1), (1, 1, None), (1, None, None)]
    assert rates(clicks, impressions, window="2s", frequency="2s") == {(2, 1, 1): (2, 3, pytest.approx(2 / 3))}
