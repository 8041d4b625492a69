"""Click Analytics: worked by hand, edge clicks included, and against plain Python."""

from collections import Counter
from typing import Any

import pyarrow as pa

from streamgauge.workloads.helpers.places import place_of
from tests.unit.workloads.helpers_cuts import answered, flow_of, made, table

Click = tuple[str | None, str | None, str | None]
"""(address, page, visitor); the n-th has event time and event id n."""
HERE, THERE = "0.64.0.1", "255.255.255.255"


def last_values(rows: pa.Table) -> dict[str, dict[Any, int]]:
    """Sink to the last value of each of its keys."""
    last: dict[str, dict[Any, int]] = {}
    for flow in flow_of("click_analytics").each():
        answer = answered(flow, {"clicks": rows})
        *keys, value = [name for name in answer.column_names if name not in ("event_time", "event_id")]
        updates = answer.sort_by([("event_time", "ascending")]).to_pylist()
        last[flow.sink.name] = {tuple(row[key] for key in keys): row[value] for row in updates}
    return last


def test_worked_by_hand() -> None:
    """A nameless click is its address's, also where its name is empty; who comes back is counted once; malformed clicks
    count nowhere.
    """
    country, city = place_of("", HERE)
    other = place_of("", THERE)
    assert country is not None
    assert (country, city) != other
    clicks = [
        (HERE, "/a", "1"), (HERE, "/a", "1"), (HERE, "/b", "1"),  # the second is no first visit
        (HERE, "/a", None), (THERE, "/a", HERE),  # one without a name, and one who is named as its address
        (THERE, "/a", "1"),  # the same visitor from elsewhere
        (HERE, "", "2"), (HERE, None, "2"), (None, "/a", None), (None, "/a", ""), ("", "/a", ""),  # malformed
        (None, "/c", "3"), ("nowhere", "/c", "4"),  # from no place that is known
        (HERE, "/c", ""), (THERE, "/c", ""), (THERE, "/c", ""),  # two visitors without a name
    ]  # fmt: skip
    results = last_values(table(clicks, ip="string", url="string", client="string"))
    assert results["visits"] == {("all",): 11}
    assert results["uniques"] == {("all",): 7}
    assert results["countries"] == Counter({(country,): 5}) + Counter({other[:1]: 4} if other[0] else {})
    assert results["cities"] == Counter({(country, city): 5}) + Counter({other: 4} if other[0] else {})


def test_the_clicks_that_are_made_have_first_visits_and_others() -> None:
    """Of twenty thousand by default: both kinds, most with a place."""
    results = last_values(made("click_analytics", 20_000.0, 1.0, visitors=100)[1]["clicks"])
    assert 19_900 <= results["visits"]["all",] < 20_000
    assert 0.1 < results["uniques"]["all",] / results["visits"]["all",] < 0.9
    assert sum(results["countries"].values()) == sum(results["cities"].values()) > 10_000
