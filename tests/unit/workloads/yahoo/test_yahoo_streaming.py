"""The Yahoo Streaming Benchmark: worked by hand, and against plain Python."""

from typing import Any

from streamgauge.core.clock import US
from streamgauge.loadgen.random import PhiloxBits
from tests.unit.workloads.helpers_cuts import answered, flow_of, job_of, table

Event = tuple[int | None, str | None, int]
"""(ad, event type, second)."""


def views(events: list[Event], **parameters: Any) -> dict[tuple[int, int], int]:
    """(campaign, the window's first second) to how often its ads were seen."""
    times = [second * US for *_, second in events]
    rows = table([event[:2] for event in events], times, ad_id="int32", event_type="string")
    results = answered(flow_of("yahoo_streaming", **parameters), {"events": rows}).to_pylist()
    return {(row["campaign_id"], int(row["window_start"].timestamp())): row["views"] for row in results}


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
    (stream,) = job_of("yahoo_streaming", 1000.0, malformed=0).streams
    place = next(place for place, field in enumerate(stream.fields) if field.name == "ad_id")
    ads = stream.fields[place].column(PhiloxBits(1, 0, 0, place), 0, 20_000)
    assert 0.005 < (ads >= 1000).mean() < 0.02
