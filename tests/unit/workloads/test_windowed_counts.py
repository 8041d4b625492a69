"""Word Count and Click Analytics by window: worked by hand and against plain Python."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from streamgauge.core.clock import US
from streamgauge.dataflow.lineage import with_lineage
from streamgauge.dataflow.reach import reach_us
from streamgauge.engines.duckdb_oracle.engine import Oracle
from streamgauge.workloads import registry
from tests.unit.helpers_duckdb import duckdb_session

Click = tuple[int, str | None, str | None, str | None]
"""(second, address, page, visitor)."""
HERE, THERE = "1.2.3.4", "203.0.113.9"
"""Towns 22-4 and 22-3, both in Country 22."""


def answers(name: str, stream: str, seconds: list[int], columns: dict[str, Any]) -> dict[str, dict[Any, int]]:
    """Of each sink: (a window's end in seconds, keys but `site`) to the count, with windows of 2 s."""
    rows = pa.table({key: pa.array(values, pa.string()) for key, values in columns.items()} | {
        "event_time": pa.array([second * US for second in seconds], pa.int64()),
        "event_id": pa.array(range(len(seconds)), pa.int64()),
    })  # fmt: skip
    workload = registry.get(name)
    found: dict[str, dict[Any, int]] = {}
    for one in workload.build(workload.read({"window": "2s"}), 1000.0).flow.each():
        answer = Oracle().answer(with_lineage(one, ingest_time=False), {stream: rows}, duckdb_session())
        results = answer.to_arrow_table().to_pylist()
        counted = {}
        for row in results:
            end = int(row.pop("window_end").timestamp())
            count = next(row.pop(column) for column in ("count", "visits", "uniques") if column in row)
            keys = [value for key, value in row.items() if key not in ("site", "window_start", "event_time")]
            counted[end, *keys] = count
        assert len(counted) == len(results)
        found[one.sink.name] = counted
    return found


def words_of(lines: list[tuple[int, str | None]]) -> dict[Any, int]:
    seconds, texts = [second for second, _ in lines], [text for _, text in lines]
    return answers("word_count", "sentences", seconds, {"text": texts})["counts"]


def clicks_of(clicks: list[Click]) -> dict[str, dict[Any, int]]:
    _, ips, urls, clients = zip(*clicks, strict=True) if clicks else ((), (), (), ())
    columns = {"ip": ips, "url": urls, "client": clients}
    return answers("click_analytics", "clicks", [second for second, *_ in clicks], columns)


def test_words_of_windows_by_hand() -> None:
    """Each window begins at nothing; an empty line gives nothing."""
    lines: list[tuple[int, str | None]] = [(0, "a b a"), (1, "A"), (1, ""), (2, "a"), (3, None), (5, "b")]
    assert words_of(lines) == {(2, "a"): 3, (2, "b"): 1, (4, "a"): 1, (6, "b"): 1}


def test_clicks_of_windows_by_hand() -> None:
    """Who comes back in another window is new there; what is malformed counts nowhere."""
    clicks: list[Click] = [
        (0, HERE, "/a", "1"), (1, THERE, "/a", "1"), (1, HERE, "/b", "1"), (1, HERE, "", "1"),
        (2, HERE, "/a", "1"), (3, None, "/a", "2"),
    ]  # fmt: skip
    assert clicks_of(clicks) == {
        "visits": {(2,): 3, (4,): 2},
        "uniques": {(2,): 2, (4,): 2},
        "countries": {(2, "Country 22"): 3, (4, "Country 22"): 1},
        "cities": {
            (2, "Country 22", "Town 22-4"): 2, (2, "Country 22", "Town 22-3"): 1, (4, "Country 22", "Town 22-4"): 1,
        },
    }  # fmt: skip


@pytest.mark.parametrize("name", ["word_count", "click_analytics"])
def test_the_state_has_an_end_with_a_window_alone(name: str) -> None:
    """How far an event can reach says so."""
    workload = registry.get(name)
    reaches = [reach_us(workload.build(workload.read(values), 1000.0).flow) for values in ({}, {"window": "2s"})]
    assert reaches[0] is None
    assert reaches[1] is not None
    assert reaches[1] < 10 * US
