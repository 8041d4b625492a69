"""Trending Topics: worked by hand, ties and edges included, and against plain Python."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from streamgauge.core.clock import US
from streamgauge.dataflow.lineage import with_lineage
from streamgauge.engines.duckdb_oracle.engine import Oracle
from streamgauge.workloads import registry
from tests.unit.helpers_duckdb import duckdb_session

WORKLOAD = registry.get("trending_topics")
Tweet = tuple[int, str | None]
"""(second, text)."""


def rankings(tweets: list[Tweet], **parameters: Any) -> dict[int, list[tuple[str, int]]]:
    """A window's end, in seconds, to its topics and their counts, first one first."""
    rows = pa.table({
        "text": pa.array([text for _, text in tweets], pa.string()),
        "event_time": pa.array([second * US for second, _ in tweets], pa.int64()),
        "event_id": pa.array(range(len(tweets)), pa.int64()),
    })  # fmt: skip
    flow = with_lineage(WORKLOAD.build(WORKLOAD.read(parameters), 1000.0).flow, ingest_time=False)
    found: Any = Oracle().answer(flow, {"tweets": rows}, duckdb_session()).to_arrow_table()
    ranked: dict[int, list[tuple[str, int]]] = {}
    for row in found.sort_by([("count", "descending"), ("topic", "ascending")]).to_pylist():
        ranked.setdefault(int(row["window_end"].timestamp()), []).append((row["topic"], row["count"]))
    return ranked


def test_worked_by_hand() -> None:
    """Windows of 4 s every 2 s, two topics each: case and signs stay, a lone # is none, and ties go by topic."""
    tweets: list[Tweet] = [
        (0, "#b go #a go#no #a"), (1, "#c #b"), (1, None), (1, ""), (1, "# ##"), (2, "#A #c! #c!"),
    ]  # fmt: skip
    assert rankings(tweets, window="4s", frequency="2s", topk=2) == {
        2: [("#a", 2), ("#b", 2)],
        4: [("#a", 2), ("#b", 2)],  # #c! has as many, and comes after them
        6: [("#c!", 2), ("#A", 1)],
    }


def test_any_white_space_parts_topics_by_hand() -> None:
    """A line's end, a tab, several of them; a space that is none of ASCII's is of the topic."""
    tweets: list[Tweet] = [(0, "#a\n#b\t#a\r\n#c \n #a\x0b#b\f#a"), (0, "\n#a\n"), (1, "#b\u00a0c"), (1, "a\n#")]
    assert rankings(tweets, window="2s", frequency="2s") == {2: [("#a", 5), ("#b", 2), ("#b\u00a0c", 1), ("#c", 1)]}
