"""Columns of nodes, and what a flow is refused for."""

from collections.abc import Callable

import pytest

from streamgauge.core.schema import Schema
from streamgauge.dataflow import builder, graph, schema, static_table
from streamgauge.dataflow.builder import hop, tumble
from streamgauge.dataflow.nodes import (
    Flow,
    RunningAggregate,
    Select,
    Sink,
    Source,
    Where,
    Window,
    WindowAggregate,
    WindowJoin,
)
from tests.unit.helpers_refusals import assert_refused, problem_of

PURCHASES = Source("purchases", Schema.from_types(user_id="int", gem_pack_id="int", price="int"))
ADS = Source("ads", Schema.from_types(user_id="int", gem_pack_id="int"))
USERS = Select(ADS, (("user_id", "user_id"),))
SKIPPING = Window(range_us=1_000_000, slide_us=2_000_000)
REVENUE = WindowAggregate(PURCHASES, hop(8, 4), ("gem_pack_id",), (("revenue", "sum(price)"),))
COUNT = RunningAggregate(PURCHASES, ("gem_pack_id",), (("count", "count(*)"),))


@pytest.mark.parametrize("window", [Window(0, 0), Window(-1, -1), Window(5, 0)])
def test_windows_without_length_are_refused(window: Window) -> None:
    """A window and its slide have at least a microsecond, and a slide is no longer than the range."""
    assert_refused("at least 1 us", schema.check_window, window)
    problem = problem_of(schema.check_window, Window(8_000_000, 9_000_000))
    assert (problem.setting, problem.way_out) == ("slide", "--set slide=8s (tumbling), or --set range=9s")


REFUSED = {
    "unknown key": (WindowAggregate(PURCHASES, tumble(1), ("pack",), (("n", "count(*)"),)), "key 'pack'", "user_id"),
    "no key": (RunningAggregate(PURCHASES, (), (("n", "count(*)"),)), "needs at least one key", "keys="),
    "no aggregate": (RunningAggregate(PURCHASES, ("price",), ()), "at least one aggregate", "count(*)"),
    "not aggregating": (RunningAggregate(PURCHASES, ("price",), (("n", "price"),)), "must aggregate", "must"),
    "bad window": (WindowAggregate(PURCHASES, SKIPPING, ("price",), (("n", "count(*)"),)), "longer than its", "2s"),
    "bad join window": (WindowJoin(PURCHASES, ADS, SKIPPING, ("user_id",)), "longer than its", "2s"),
    "duplicate names": (Select(PURCHASES, (("a", "price"), ("A", "price"))), "two columns of one name", "another name"),
    "key and aggregate": (RunningAggregate(PURCHASES, ("price",), (("price", "count(*)"),)), "two columns", "another"),
    "window name": (WindowAggregate(PURCHASES, tumble(1), ("price",), (("window_end", "count(*)"),)), "two", "another"),
    "unknown column": (Select(PURCHASES, (("x", "prise"),), "cheap"), "select 'cheap', column x", "price?"),
    "empty select": (Select(PURCHASES, ()), "at least one column", "name="),
    "aggregate in select": (Select(PURCHASES, (("n", "sum(price)"),)), "must not aggregate", "running"),
    "aggregate in where": (Where(PURCHASES, "sum(price) > 1"), "must not aggregate", "running"),
    "predicate no boolean": (Where(PURCHASES, "price + 1"), "true or false, and is int", "x > 0"),
    "reserved output": (Select(PURCHASES, (("event_time", "price"),)), "that streamgauge reserves", "event_time_2"),
    "underscore": (Select(PURCHASES, (("__w", "price"),)), "that streamgauge reserves", "w_2"),
    "reserved field": (Source("s", Schema.from_types(Ingest_Time="int")), "that streamgauge reserves", "_2"),
    "type": (Source("s", Schema.from_types(a="decimal")), "no type of a flow", "bigint"),
    "join names": (WindowJoin(PURCHASES, ADS, tumble(1), ("user_id",)), "in both inputs", "select it under"),
    "join window columns": (WindowJoin(REVENUE, ADS, tumble(1), ("gem_pack_id",)), "in both inputs", "select it"),
    "join key one side": (WindowJoin(PURCHASES, ADS, tumble(1), ("price",)), "key 'price'", "user_id"),
    "join key types": (
        WindowJoin(PURCHASES, Source("o", Schema.from_types(price="string")), tumble(1), ("price",)),
        "one type", "try_cast",
    ),
    "where after running": (Where(COUNT, "count > 1"), "cannot follow a running aggregate", "before"),
    "select after running": (Select(COUNT, (("n", "count"),)), "cannot follow a running aggregate", "before"),
    "window after running": (
        WindowAggregate(COUNT, tumble(1), ("count",), (("n", "count(*)"),)), "cannot follow", "before",
    ),
    "running after running": (RunningAggregate(COUNT, ("count",), (("n", "count(*)"),)), "rows of a source", "window"),
    "running after window": (RunningAggregate(REVENUE, ("revenue",), (("n", "count(*)"),)), "rows of a source", "here"),
    "running after join": (
        RunningAggregate(WindowJoin(PURCHASES, USERS, tumble(1), ("user_id",)), ("user_id",), (("n", "count(*)"),)),
        "rows of a source", "here",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_nodes_are_refused(case: str) -> None:
    """Each rule is refused by name, with what to do instead; the setting of a wrong expression is the operator's name
    and the column's.
    """
    node, rule, way_out = REFUSED[case]
    problem = str(problem_of(schema.columns, node))
    assert [part for part in (rule, way_out) if part not in problem] == []


def test_two_operators_of_one_name_are_refused() -> None:
    """Results are by operator name, so names differ; one node met twice is one operator, before what reads it. A stream
    has one schema, wherever it is read.
    """
    twice = Where(Where(PURCHASES, "price > 1"), "price > 2")
    assert_refused("two operators have one name", builder.check, Flow((Sink(twice, "out", "append"),)))
    cheap = Where(PURCHASES, "price < 9", "cheap")
    join = WindowJoin(cheap, Select(cheap, (("user_id", "user_id"), ("p", "price"))), tumble(1), ("user_id",))
    builder.check(Flow((Sink(join, "out", "append"),)))
    assert [node.name for node in graph.walk(join)] == ["purchases", "cheap", "select", "join"]
    unlike = WindowJoin(PURCHASES, Source("purchases", Schema.from_types(user_id="int")), tumble(1), ("user_id",))
    assert_refused("two schemas", builder.check, Flow((Sink(unlike, "out", "append"),)))


def test_sink_mode_fits_what_comes() -> None:
    """Updates come from a running aggregate, and only from there."""
    assert_refused("takes mode update", builder.check, Flow((Sink(COUNT, "out", "append"),)))
    assert_refused("takes mode append", builder.check, Flow((Sink(REVENUE, "out", "update"),)))


@pytest.mark.parametrize(("us", "text"), [(8_000_000, "8s"), (250_000, "0.25s"), (1, "0.000001s"), (-500_000, "-0.5s")])
def test_seconds_are_exact(us: int, text: str) -> None:
    """Times in messages are exact to the microsecond."""
    assert schema.seconds(us) == text


ROWS = builder.source("purchases", Schema.from_types(user_id="int", price="int", text="string", half="double"))
SPENT = ROWS.window(tumble(8), keys="user_id").aggregate(spent="sum(price)")
NAMES = builder.table(
    "names", {"user_id": [1, 2], "title": ["a", "b"]}, Schema.from_types(user_id="int", title="string")
)


def _names(**columns: list[object]) -> static_table.Table:
    return builder.table("names", columns)


REFUSED_TOO: dict[str, tuple[Callable[[], object], str]] = {
    "explode of no array": (lambda: ROWS.explode(word="text"), "must be an array, and is string"),
    "explode of two": (lambda: ROWS.explode(a="array(1)", b="array(2)"), "exactly one array"),
    "explode of none": (lambda: ROWS.explode(), "exactly one array"),
    "explode under a name there is": (lambda: ROWS.explode(text="split(text, ' ')"), "two columns of one name"),
    "explode under our name": (lambda: ROWS.explode(event_ordinal="array(1)"), "that streamgauge reserves"),
    "explode of an aggregate": (lambda: ROWS.explode(x="array(max(price))"), "must not aggregate"),
    "array at a sink": (lambda: ROWS.select(words="split(text, ' ')").sink("out"), "column words is an array"),
    "array as a key": (
        lambda: ROWS.select(words="split(text, ' ')").running(keys="words", n="count(*)"), "key 'words' is an array",
    ),
    "lookup without the key": (lambda: ROWS.lookup(NAMES, on="price"), "must be a column of table names"),
    "lookup on what is not there": (lambda: ROWS.lookup(NAMES, on="title"), "must be a column of its input"),
    "lookup of another type": (lambda: ROWS.lookup(_names(user_id=[1], x=[1]), on="user_id"), "one type on both sides"),
    "lookup on a double": (lambda: ROWS.lookup(_names(half=[1.5]), on="half"), "not be a double"),
    "lookup of a key twice": (lambda: ROWS.lookup(_names(text=["a", "a"]), on="text"), "must be unique"),
    "lookup of a null key": (lambda: ROWS.lookup(_names(text=["a", None]), on="text"), "has a null key"),
    "lookup of a column there is": (
        lambda: ROWS.lookup(_names(text=["a"], price=[1]), on="text"), "two columns of one name",
    ),
    "union of one": (lambda: builder.union(ROWS), "at least two"),
    "union of unlike": (lambda: ROWS.union(ROWS.select(user_id="user_id")), "same columns on all sides"),
    "session without a gap": (lambda: builder.session(0), "at least 1 us"),
    "distinct on what is not there": (lambda: ROWS.distinct(keys="x"), "must be a column of its input"),
    "distinct on doubles": (
        lambda: ROWS.select(share="try_divide(user_id, 2)").distinct(keys="share"), "key 'share' must be no double",
    ),
    "distinct of a wrong window": (
        lambda: ROWS.distinct(keys="user_id", window=Window(1, 2)), "longer than its range",
    ),
    "interval turned round": (
        lambda: ROWS.interval_join(ROWS.select(user_id="user_id"), on="user_id", earliest="1s", latest="-1s"),
        "earliest time that is not after the latest",
    ),
    "interval of clashing columns": (lambda: ROWS.interval_join(ROWS, on="user_id"), "in both inputs"),
    "top of no window": (lambda: ROWS.top(3, by="price"), "ranks the rows of a window"),
    "top of none": (lambda: SPENT.top(0, by="spent"), "at least one row"),
    "top by a string": (
        lambda: SPENT.select(t="'x'", window_start="window_start", window_end="window_end").top(1, by="t"),
        "rank by a number",
    ),
    "top by an aggregate": (lambda: SPENT.top(1, by="max(spent)"), "must not aggregate"),
    "top with ties that are not there": (lambda: SPENT.top(1, by="spent", ties="x"), "must be a column of its input"),
    "top under its own name": (
        lambda: ROWS.window(tumble(8), keys="user_id").aggregate(rank="max(price)").top(1, by="rank"),
        "two columns of one name",
    ),
    "running after distinct": (
        lambda: ROWS.distinct(keys="user_id", window=tumble(1)).running(keys="user_id", n="count(*)"),
        "must read rows of a source",
    ),
    "explode after running": (
        lambda: ROWS.running(keys="user_id", n="count(*)").explode(x="array(n)"), "cannot follow a running aggregate",
    ),
    "union after running": (
        lambda: ROWS.running(keys="user_id", n="count(*)").union(ROWS), "cannot follow a running aggregate",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED_TOO)
def test_what_the_other_nodes_are_refused_for(case: str) -> None:
    """One problem when the flow is built, with the rule that it breaks."""
    build, rule = REFUSED_TOO[case]
    assert_refused(rule, build)


def test_columns_of_the_other_nodes() -> None:
    """In order, with Spark's types."""
    assert list(ROWS.explode(word="split(text, ' ')").columns.items())[-1] == ("word", "string")
    assert ROWS.lookup(NAMES, on="user_id").columns["title"] == "string"
    assert ROWS.union(ROWS).columns == ROWS.columns
    assert list(ROWS.window(builder.session("5s"), keys="user_id").aggregate(n="count(*)").columns) == [
        "user_id", "window_start", "window_end", "n",
    ]  # fmt: skip
    assert ROWS.distinct(keys="user_id").columns == ROWS.columns
    assert list(ROWS.distinct(keys="user_id", window=tumble(1)).columns)[-2:] == ["window_start", "window_end"]
    assert list(SPENT.top(3, by="spent").columns.items()) == [
        ("window_start", "timestamp"), ("window_end", "timestamp"), ("rank", "int"), ("user_id", "int"),
        ("spent", "bigint"),
    ]  # fmt: skip
    pairs = ROWS.interval_join(ROWS.select(user_id="user_id", other="price"), on="user_id", earliest="-1s")
    assert list(pairs.columns) == ["user_id", "price", "text", "half", "other"]
