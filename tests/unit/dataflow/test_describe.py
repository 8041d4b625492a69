"""A flow in words: nodes in order, edges by name, labels that say what is computed."""

from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import hop, session, source, table, tumble, union
from streamgauge.dataflow.describe import describe

PURCHASES = source("purchases", Schema.from_types(user_id="int", price="int"))
ADS = source("ads", Schema.from_types(user_id="int"))


def test_every_node_in_order_with_its_label() -> None:
    """Inputs come before what reads them, the sink comes last, and each line is readable."""
    rows = describe(PURCHASES.where("price > 5").join(ADS, window=hop("8s", "4s"), on="user_id").sink("matches"))
    assert [(row["name"], row["kind"], row["label"], row["inputs"]) for row in rows] == [
        ("purchases", "source", "purchases(user_id int, price int)", []),
        ("where", "where", "where price > 5", ["purchases"]),
        ("ads", "source", "ads(user_id int)", []),
        ("join", "window_join", "where with ads on user_id over 8s every 4s", ["where", "ads"]),
        ("matches", "sink", "append to matches", ["join"]),
    ]
    assert list(rows[-1]["columns"]) == ["user_id", "price", "window_start", "window_end"]


def test_labels_of_aggregates_and_select() -> None:
    """Aggregates name their keys and window; a column under its own name is not said twice."""
    windowed = PURCHASES.select(user_id="user_id", p="price").window(tumble(1), keys="user_id").aggregate(n="count(*)")
    labels = [row["label"] for row in describe(windowed.sink("out"))]
    assert labels[1:3] == ["user_id, price as p", "count(*) as n by user_id over 1s"]
    running = describe(PURCHASES.running(keys="user_id", n="count(*)").sink("out"))
    assert running[1]["label"] == "count(*) as n by user_id so far"
    assert running[2]["label"] == "update to out"


def test_labels_of_the_other_nodes() -> None:
    """Each says what it does in a line."""
    names = table("names", {"user_id": [1], "title": ["x"]}, Schema.from_types(user_id="int", title="string"))
    stream = PURCHASES.explode(bit="array(price, 1)").lookup(names, on="user_id", how="left").select(user_id="user_id")
    flow = (
        union(stream, ADS).distinct(keys="user_id").interval_join(ADS.select(user_id="user_id"), on="user_id", latest=5)
    )
    labels = {row["name"]: row["label"] for row in describe(flow.sink("out"))}
    paused = PURCHASES.window(session("30s"), keys="user_id").aggregate(n="count(*)").top(3, by="n", keys="user_id")
    labels |= {row["name"]: row["label"] for row in describe(paused.sink("out"))}
    expected = {
        "explode": "each of array(price, 1) as bit", "lookup": "user_id in table names or null",
        "union": "all of select, ads", "distinct": "first by user_id so far",
        "interval_join": "distinct with select_2 on user_id, 0s to 5s later",
        "session": "count(*) as n by user_id until a pause of 30s",
        "top": "greatest 3 by n of each user_id in each window",
    }  # fmt: skip
    assert {name: labels[name] for name in expected} == expected
    windowed = describe(PURCHASES.distinct(keys="price", window=hop(8, 4)).sink("out"))
    assert windowed[1]["label"] == "first by price over 8s every 4s"


def test_a_long_expression_is_cut() -> None:
    """A list of words in a pattern is no line."""
    long = "price IN (" + ", ".join(map(str, range(500))) + ")"
    rows = describe(PURCHASES.where(long).select(price=f"if({long}, 1, 0)").sink("out"))
    assert [len(row["label"]) < 200 and "…" in row["label"] for row in rows[1:3]] == [True, True]
