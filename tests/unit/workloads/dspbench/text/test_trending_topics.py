"""Trending Topics: worked by hand, ties and edges included, and against plain Python."""

from typing import Any

from streamgauge.core.clock import US
from tests.unit.workloads.helpers_cuts import answered, flow_of, table

Tweet = tuple[int, str | None]
"""(second, text)."""


def rankings(tweets: list[Tweet], **parameters: Any) -> dict[int, list[tuple[str, int]]]:
    """A window's end, in seconds, to its topics and their counts, first one first."""
    rows = table([(text,) for _, text in tweets], [second * US for second, _ in tweets], text="string")
    results = answered(flow_of("trending_topics", **parameters), {"tweets": rows})
    ranked: dict[int, list[tuple[str, int]]] = {}
    for row in results.sort_by([("count", "descending"), ("topic", "ascending")]).to_pylist():
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
