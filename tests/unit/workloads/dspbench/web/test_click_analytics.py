"""Click Analytics: worked by hand, edge clicks included, and against plain Python."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

from streamgauge.dataflow.lineage import with_lineage
from streamgauge.engines.duckdb_oracle.engine import Oracle
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.rate_profile import parse_profile
from streamgauge.workloads import registry
from streamgauge.workloads.helpers.places import place_of
from tests.unit.helpers_duckdb import duckdb_session

WORKLOAD = registry.get("click_analytics")
Click = tuple[str | None, str | None, str | None]
"""(address, page, visitor); the n-th has event time and event id n."""
HERE, THERE = "0.64.0.1", "255.255.255.255"


def last_values(clicks: list[Click]) -> dict[str, dict[Any, int]]:
    """Sink to the last value of each of its keys."""
    ips, urls, clients = zip(*clicks, strict=True) if clicks else ((), (), ())
    numbers = pa.array(range(len(clicks)), pa.int64())
    texts = {"ip": ips, "url": urls, "client": clients}
    rows = pa.table({name: pa.array(values, pa.string()) for name, values in texts.items()}
                    | {"event_time": numbers, "event_id": numbers})  # fmt: skip
    flow = WORKLOAD.build(WORKLOAD.read({}), 1000.0).flow
    found: dict[str, dict[Any, int]] = {}
    for one in flow.each():
        lineage = with_lineage(one, ingest_time=False)
        answer = Oracle().answer(lineage, {"clicks": rows}, duckdb_session()).to_arrow_table()
        *keys, value = [name for name in answer.column_names if name not in ("event_time", "event_id")]
        updates = answer.sort_by([("event_time", "ascending")]).to_pylist()
        found[one.sink.name] = {tuple(row[key] for key in keys): row[value] for row in updates}
    return found


def test_worked_by_hand() -> None:
    """A nameless click is its address's, also where its name is empty; who comes back is counted once; malformed clicks
    count nowhere.
    """
    country, city = place_of("", HERE)
    other = place_of("", THERE)
    assert country is not None
    assert (country, city) != other
    found = last_values([
        (HERE, "/a", "1"), (HERE, "/a", "1"), (HERE, "/b", "1"),  # the second is no first visit
        (HERE, "/a", None), (THERE, "/a", HERE),  # one without a name, and one who is named as its address
        (THERE, "/a", "1"),  # the same visitor from elsewhere
        (HERE, "", "2"), (HERE, None, "2"), (None, "/a", None), (None, "/a", ""), ("", "/a", ""),  # malformed
        (None, "/c", "3"), ("nowhere", "/c", "4"),  # from no place that is known
        (HERE, "/c", ""), (THERE, "/c", ""), (THERE, "/c", ""),  # two visitors without a name
    ])  # fmt: skip
    assert found["visits"] == {("all",): 11}
    assert found["uniques"] == {("all",): 7}
    assert found["countries"] == Counter({(country,): 5}) + Counter({other[:1]: 4} if other[0] else {})
    assert found["cities"] == Counter({(country, city): 5}) + Counter({other: 4} if other[0] else {})


def test_the_clicks_that_are_made_have_first_visits_and_others() -> None:
    """Of twenty thousand by default: both kinds, most with a place."""
    streams = WORKLOAD.build(WORKLOAD.read({"visitors": 100}), 20_000.0).streams
    plan = Plan(streams, parse_profile("constant", 20_000.0, 1.0), 0, 1.0, 2, 1)
    columns = ["ip", "url", "client"]
    rows = pa.Table.from_batches([plan.batch(0, p, 0, plan.count_before(0, p, plan.end_us), columns) for p in range(2)])
    found = last_values(list(zip(*(rows[name].to_pylist() for name in columns), strict=True)))
    assert 19_900 <= found["visits"]["all",] < 20_000
    assert 0.1 < found["uniques"]["all",] / found["visits"]["all",] < 0.9
    assert sum(found["countries"].values()) == sum(found["cities"].values()) > 10_000
