"""Ads Analytics: worked by hand, edges included, and against plain Python."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from streamgauge.core.clock import US
from streamgauge.dataflow.lineage import with_lineage
from streamgauge.engines.duckdb_oracle.engine import Oracle
from streamgauge.workloads import registry
from tests.unit.helpers_duckdb import duckdb_session

WORKLOAD = registry.get("ads_analytics")
Event = tuple[int, int | None, int | None]
"""(second, query, ad)."""


def rates(clicks: list[Event], impressions: list[Event], **parameters: Any) -> dict[tuple[int, int, int], Any]:
    """(a window's end in seconds, query, ad) to (clicks, impressions, rate)."""

    def rows(events: list[Event], first_id: int) -> pa.Table:
        return pa.table({
            "query_id": pa.array([query for _, query, _ in events], pa.int32()),
            "ad_id": pa.array([ad for *_, ad in events], pa.int32()),
            "event_time": pa.array([second * US for second, *_ in events], pa.int64()),
            "event_id": pa.array(range(first_id, first_id + len(events)), pa.int64()),
        })  # fmt: skip

    flow = with_lineage(WORKLOAD.build(WORKLOAD.read(parameters), 1000.0).flow, ingest_time=False)
    inputs = {"clicks": rows(clicks, 0), "impressions": rows(impressions, len(clicks))}
    found: Any = Oracle().answer(flow, inputs, duckdb_session()).to_arrow_table()
    return {
        (int(row["window_end"].timestamp()), row["query_id"], row["ad_id"]): (
            row["clicks"], row["impressions"], row["ctr"],
        )
        for row in found.to_pylist()
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
