"""Columns of every node, and what a flow is refused for."""

import pytest

from streamgauge.errors import ExpressionError, InputError
from streamgauge.events import Schema
from streamgauge.flow import schema
from streamgauge.flow.nodes import (
    Flow,
    RunningAggregate,
    Select,
    Sink,
    Source,
    Where,
    Window,
    WindowAggregate,
    WindowJoin,
    hop,
    tumble,
)

PURCHASES = Source("purchases", Schema.of(user_id="int", gem_pack_id="int", price="int"))
ADS = Source("ads", Schema.of(user_id="int", gem_pack_id="int"))
REVENUE = WindowAggregate(PURCHASES, hop(8, 4), ("gem_pack_id",), (("revenue", "sum(price)"),))
COUNT = RunningAggregate(PURCHASES, ("gem_pack_id",), (("count", "count(*)"),))


def _problem(node: object) -> str:
    with pytest.raises(InputError) as refused:
        schema.columns(node)  # type: ignore[arg-type]
    return str(refused.value)


def test_columns_of_every_node() -> None:
    """Each node gives its columns in order, with Spark's types."""
    assert schema.columns(PURCHASES) == {"user_id": "int", "gem_pack_id": "int", "price": "int"}
    assert list(schema.columns(REVENUE).items()) == [
        ("gem_pack_id", "int"), ("window_start", "timestamp"), ("window_end", "timestamp"), ("revenue", "bigint"),
    ]  # fmt: skip
    assert schema.columns(COUNT) == {"gem_pack_id": "int", "count": "bigint"}
    assert schema.columns(Where(PURCHASES, "price > 1")) == schema.columns(PURCHASES)
    assert schema.columns(Select(PURCHASES, (("half", "try_divide(price, 2)"),))) == {"half": "double"}
    joined = WindowJoin(PURCHASES, ADS, tumble(1), ("user_id", "gem_pack_id"))
    assert list(schema.columns(joined)) == ["user_id", "gem_pack_id", "price", "window_start", "window_end"]


def test_columns_of_a_source_with_lineage() -> None:
    """Lineage columns follow the fields and are bigint."""
    source = Source("s", Schema.of(a="string"), ("event_time", "event_id"))
    assert schema.columns(source) == {"a": "string", "event_time": "bigint", "event_id": "bigint"}


def test_columns_cannot_be_changed_through_the_answer() -> None:
    """What is given is the caller's own."""
    schema.columns(PURCHASES).clear()
    assert schema.columns(PURCHASES) != {}


def test_slide_longer_than_range_is_refused_with_both_ways_out() -> None:
    """The house's message for events that would be counted nowhere."""
    with pytest.raises(InputError) as refused:
        schema.check_window(Window(8_000_000, 9_000_000))
    problem = refused.value.problems[0]
    assert problem.setting == "slide"
    assert problem.rule == (
        "window slide 9s is longer than its range 8s: events between windows would be counted nowhere"
    )
    assert problem.way_out == "--set slide=8s (tumbling), or --set range=9s"


@pytest.mark.parametrize("window", [Window(0, 0), Window(-1, -1), Window(5, 0)])
def test_windows_without_length_are_refused(window: Window) -> None:
    """A window and its slide have at least a microsecond."""
    with pytest.raises(InputError, match="at least 1 us"):
        schema.check_window(window)


REFUSED = {
    "unknown key": (WindowAggregate(PURCHASES, tumble(1), ("pack",), (("n", "count(*)"),)), "key 'pack'", "user_id"),
    "no key": (RunningAggregate(PURCHASES, (), (("n", "count(*)"),)), "needs at least one key", "keys="),
    "no aggregate": (RunningAggregate(PURCHASES, ("price",), ()), "at least one aggregate", "count(*)"),
    "not aggregating": (RunningAggregate(PURCHASES, ("price",), (("n", "price"),)), "must aggregate", "must"),
    "bad window": (WindowAggregate(PURCHASES, hop(1, 2), ("price",), (("n", "count(*)"),)), "longer than its", "2s"),
    "bad join window": (WindowJoin(PURCHASES, ADS, hop(1, 2), ("user_id",)), "longer than its", "2s"),
    "duplicate names": (Select(PURCHASES, (("a", "price"), ("A", "price"))), "two columns of one name", "another name"),
    "key and aggregate": (RunningAggregate(PURCHASES, ("price",), (("price", "count(*)"),)), "two columns", "another"),
    "window name": (WindowAggregate(PURCHASES, tumble(1), ("price",), (("window_end", "count(*)"),)), "two", "another"),
    "empty select": (Select(PURCHASES, ()), "at least one column", "name="),
    "aggregate in select": (Select(PURCHASES, (("n", "sum(price)"),)), "aggregates rows", "running"),
    "aggregate in where": (Where(PURCHASES, "sum(price) > 1"), "aggregates rows", "running"),
    "predicate no boolean": (Where(PURCHASES, "price + 1"), "true or false, and is int", "x > 0"),
    "reserved output": (Select(PURCHASES, (("event_time", "price"),)), "instrument's own", "event_time_2"),
    "underscore": (Select(PURCHASES, (("__w", "price"),)), "instrument's own", "w_2"),
    "reserved field": (Source("s", Schema.of(Ingest_Time="int")), "instrument's own", "_2"),
    "type": (Source("s", Schema.of(a="decimal")), "no type of a flow", "bigint"),
    "join names": (WindowJoin(PURCHASES, ADS, tumble(1), ("user_id",)), "neither a key nor", "select it under"),
    "join window columns": (WindowJoin(REVENUE, ADS, tumble(1), ("gem_pack_id",)), "neither a key nor", "select it"),
    "join key one side": (WindowJoin(PURCHASES, ADS, tumble(1), ("price",)), "key 'price'", "user_id"),
    "join key types": (
        WindowJoin(PURCHASES, Source("o", Schema.of(price="string")), tumble(1), ("price",)), "one type", "try_cast",
    ),
    "where after running": (Where(COUNT, "count > 1"), "cannot follow a running aggregate", "before"),
    "select after running": (Select(COUNT, (("n", "count"),)), "cannot follow a running aggregate", "before"),
    "window after running": (
        WindowAggregate(COUNT, tumble(1), ("count",), (("n", "count(*)"),)), "cannot follow", "before",
    ),
    "running after running": (RunningAggregate(COUNT, ("count",), (("n", "count(*)"),)), "rows of a source", "window"),
    "running after window": (RunningAggregate(REVENUE, ("revenue",), (("n", "count(*)"),)), "rows of a source", "here"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_nodes_are_refused(case: str) -> None:
    """Each rule is refused by name, with what to do instead."""
    node, rule, way_out = REFUSED[case]
    message = _problem(node)
    assert rule in message
    assert way_out in message


def test_expression_errors_name_operator_and_column() -> None:
    """The setting of a wrong expression is the operator's name and the column's."""
    with pytest.raises(ExpressionError) as refused:
        schema.columns(Select(PURCHASES, (("x", "prise"),), "cheap"))
    assert refused.value.problems[0].setting == "select 'cheap', column x"


def test_errors_deep_in_a_flow_are_found() -> None:
    """The last node's columns ask for all before it."""
    assert "prise" in _problem(Where(Where(PURCHASES, "prise > 1"), "price > 1"))


def test_two_operators_of_one_name_are_refused() -> None:
    """Results are by operator name, so names differ; one node met twice is one operator."""
    twice = Where(Where(PURCHASES, "price > 1"), "price > 2")
    with pytest.raises(InputError, match="two operators have one name"):
        schema.check(Flow((Sink(twice, "out", "append"),)))
    cheap = Where(PURCHASES, "price < 9", "cheap")
    other = Select(cheap, (("user_id", "user_id"), ("p", "price")))
    schema.check(Flow((Sink(WindowJoin(cheap, other, tumble(1), ("user_id",)), "out", "append"),)))


def test_one_stream_with_two_schemas_is_refused() -> None:
    """A stream has one schema, wherever it is read."""
    other = Source("purchases", Schema.of(user_id="int"))
    flow = Flow((Sink(WindowJoin(PURCHASES, other, tumble(1), ("user_id",)), "out", "append"),))
    with pytest.raises(InputError, match="two schemas"):
        schema.check(flow)


def test_sink_mode_fits_what_comes() -> None:
    """Updates come from a running aggregate, and only from there."""
    with pytest.raises(InputError, match="takes mode update"):
        schema.check(Flow((Sink(COUNT, "out", "append"),)))
    with pytest.raises(InputError, match="takes mode append"):
        schema.check(Flow((Sink(REVENUE, "out", "update"),)))


def test_walk_gives_inputs_first_and_each_once() -> None:
    """A diamond's shared node is met once, before what reads it."""
    cheap = Where(PURCHASES, "price < 9")
    other = Select(cheap, (("user_id", "user_id"), ("p", "price")))
    join = WindowJoin(cheap, other, tumble(1), ("user_id",))
    assert [node.name for node in schema.walk(join)] == ["purchases", "where", "select", "join"]


@pytest.mark.parametrize(("us", "text"), [(8_000_000, "8s"), (250_000, "0.25s"), (1, "0.000001s"), (-500_000, "-0.5s")])
def test_seconds_are_exact(us: int, text: str) -> None:
    """Times in messages are exact to the microsecond."""
    assert schema.seconds(us) == text
