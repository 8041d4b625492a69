"""Word Count and Click Analytics by window: worked by hand and against plain Python."""

from typing import Any

import pyarrow as pa
import pytest

from streamgauge.core.clock import US
from streamgauge.dataflow.reach import reach_us
from tests.unit.workloads.helpers_cuts import answered, flow_of, table

Click = tuple[int, str | None, str | None, str | None]
"""(second, address, page, visitor)."""
HERE, THERE = "1.2.3.4", "203.0.113.9"
"""Towns 22-4 and 22-3, both in Country 22."""


def answers(name: str, stream: str, rows: pa.Table) -> dict[str, dict[Any, int]]:
    """Of each sink: (a window's end in seconds, keys but `site`) to the count, with windows of 2 s."""
    last: dict[str, dict[Any, int]] = {}
    for flow in flow_of(name, window="2s").each():
        results = answered(flow, {stream: rows}).to_pylist()
        counted = last[flow.sink.name] = {}
        for row in results:
            end = int(row.pop("window_end").timestamp())
            count = next(row.pop(column) for column in ("count", "visits", "uniques") if column in row)
            keys = [value for key, value in row.items() if key not in ("site", "window_start", "event_time")]
            counted[end, *keys] = count
        assert len(counted) == len(results)
    return last


def test_words_of_windows_by_hand() -> None:
    """Each window begins at nothing; an empty line gives nothing."""
    lines: list[tuple[int, str | None]] = [(0, "a b a"), (1, "A"), (1, ""), (2, "a"), (3, None), (5, "b")]
    rows = table([line[1:] for line in lines], [second * US for second, _ in lines], text="string")
    assert answers("word_count", "sentences", rows)["counts"] == {(2, "a"): 3, (2, "b"): 1, (4, "a"): 1, (6, "b"): 1}


def test_clicks_of_windows_by_hand() -> None:
    """Who comes back in another window is new there; what is malformed counts nowhere."""
    clicks: list[Click] = [
        (0, HERE, "/a", "1"), (1, THERE, "/a", "1"), (1, HERE, "/b", "1"), (1, HERE, "", "1"),
        (2, HERE, "/a", "1"), (3, None, "/a", "2"),
    ]  # fmt: skip
    times = [second * US for second, *_ in clicks]
    rows = table([click[1:] for click in clicks], times, ip="string", url="string", client="string")
    assert answers("click_analytics", "clicks", rows) == {
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
    assert reach_us(flow_of(name)) is None
    assert 0 <= (reach_us(flow_of(name, window="2s")) or -1) < 10 * US
