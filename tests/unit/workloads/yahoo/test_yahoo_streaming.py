"""The Yahoo Streaming Benchmark: worked by hand, and against plain Python."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from streamgauge.core.clock import US
from streamgauge.dataflow.lineage import with_lineage
from streamgauge.engines.duckdb_oracle.engine import Oracle
from streamgauge.loadgen.random import PhiloxBits
from streamgauge.workloads import registry
from tests.unit.helpers_duckdb import duckdb_session

WORKLOAD = registry.get("yahoo_streaming")
Event = tuple[int | None, str | None, int]
"""(ad, event type, second)."""


def views(events: list[Event], **parameters: Any) -> dict[tuple[int, int], int]:
    """(campaign, the window's first second) to how often its ads were seen."""
    rows = pa.table({
        "ad_id": pa.array([ad for ad, _, _ in events], pa.int32()),
        "event_type": pa.array([type_ for _, type_, _ in events], pa.string()),
        "event_time": pa.array([second * US for _, _, second in events], pa.int64()),
        "event_id": pa.array(range(len(events)), pa.int64()),
    })  # fmt: skip
    flow = with_lineage(WORKLOAD.build(WORKLOAD.read(parameters), 1000.0).flow, ingest_time=False)
    found: Any = Oracle().answer(flow, {"events": rows}, duckdb_session()).to_arrow_table()
    return {
        (row["campaign_id"], int(row["window_start"].timestamp())): row["views"] for row in found.to_pylist()
    }  # fmt: skip


def test_worked_by_hand() -> None:
    """Two campaigns of two ads: 0 and 2, 1 and 3. A window ends before its end; nobody counts clicks, or ads that are
    unknown or not there.
    """
    events: list[Event] = [
        (0, "view", 0), (2, "view", 9), (2, "view", 10), (1, "view", 3), (3, "click", 3), (3, None, 3), (3, "View", 3),
        (4, "view", 3), (-1, "view", 3), (None, "view", 3), (None, None, 3),
    ]  # fmt: skip
    assert views(events, campaigns=2, ads=2) == {(0, 0): 2, (0, 10): 1, (1, 0): 1}


def test_some_events_are_of_ads_that_no_campaign_knows() -> None:
    """A lookup that never misses would not be tried."""
    (stream,) = WORKLOAD.build(WORKLOAD.read({"malformed": 0}), 1000.0).streams
    place = next(place for place, field in enumerate(stream.fields) if field.name == "ad_id")
    ads = stream.fields[place].column(PhiloxBits(1, 0, 0, place), 0, 20_000)
    assert 0.005 < (ads >= 1000).mean() < 0.02
