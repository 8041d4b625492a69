"""What follows from counts and times: weights, instances, what applies on Spark; and the command around it."""

import io
from typing import Any, get_args

import pytest
from rich.console import Console

from streamgauge.config.experiment import Characterize
from streamgauge.core.schema import Schema
from streamgauge.dataflow import graph, nodes
from streamgauge.dataflow.builder import source, tumble
from streamgauge.dataflow.nodes import Source
from streamgauge.engines.operator_profiler import Slice
from streamgauge.engines.spark.operator_profiler import SparkOperatorProfiler
from streamgauge.report.documents import profile as profile_document
from streamgauge.report.terminal import console
from streamgauge.results.profile import ParallelismPlans
from streamgauge.studies.operator_profile import profile
from streamgauge.studies.operator_profile.operator_io import OperatorIO
from streamgauge.studies.operator_profile.profile import INSTANCES
from streamgauge.workloads.registry import get, names
from tests.helpers_study_results import operator_profile, profiled_operator, tuple_time
from tests.unit.studies.operator_profile.helpers_profile import by_name, column

NUMBERS = source("numbers", Schema.from_types(key="int", value="int"))
FLOW = (
    NUMBERS.where("value > 1", name="dear").select(key="key", name="key").running(keys="key", n="count(*)").sink("out")
)
ROWS = {"numbers": 1000, "dear": 100, "key": 100, "running": 20}


def counted(flow: nodes.Flow, rows: dict[str, int]) -> dict[nodes.Node, OperatorIO]:
    """As if the reference had counted so many rows."""
    return {
        node: OperatorIO(node, node, tuple(rows[each.name] for each in graph.inputs(node)), rows[node.name], 8.0)
        for node in graph.operators(flow)
    }


def timed(**us: float) -> profile.Timings:
    """As if each operator's tuples had taken so long in each of a hundred slices."""
    slices = {name: [Slice(100, 1e-4 * each, 0.0)] * 100 for name, each in us.items()}
    return profile.Timings(slices, dict.fromkeys(slices, "difference"))


def profile_figures(
    timings: profile.Timings, flow: nodes.Flow = FLOW, rows: dict[str, int] = ROWS, **sizes: Any
) -> dict[str, Any]:
    """The figures as they stand in characterization.json."""
    config, profiler = Characterize(**sizes), SparkOperatorProfiler()
    return profile.profile_figures("made", flow, counted(flow, rows), timings, config, profiler).model_dump(mode="json")


STEADY = timed(dear=1.0, key=1.0, running=1.0)


@pytest.mark.parametrize(("weights", "instances"), [("cumulative", (9, 1, 1)), ("immediate", (5, 1, 5))])
def test_both_weights_by_hand(weights: profile.Weights, instances: tuple[int, int, int]) -> None:
    """One row in ten is kept, and each takes 1 us everywhere.

    Cumulative: 1, 0.1, 0.1 of 1.2 -> 8.3, 0.8, 0.8 of ten. Immediate: 1, 0.1 (of the filter), 1 (of the projection)
    of 2.1 -> 4.8, 0.5, 4.8: as if the counter had as much to do as the filter. What others read has flat names: bytes
    of a tuple, its p99, and the instances by the weights that were requested.
    """
    document = profile_figures(STEADY, weights=weights)
    shares = {"cumulative": [[1.0], [0.1], [0.1]], "immediate": [[1.0], [0.1], [1.0]]}[weights]
    names = ["dear", "key", "running"]
    assert [column(document, "weights")[name][weights] for name in names] == shares
    advised = {"numbers": None, **dict(zip(names, instances, strict=True)), "out": None}
    assert column(document, "advised_instances") == advised
    assert column(document, "advised_instances_by_weights", weights) == advised
    assert column(document, "time_per_tuple_us_p99") == {name: advised[name] and pytest.approx(1.0) for name in advised}
    assert set(column(document, "tuple_bytes").values()) == {8.0}


def test_what_was_not_timed_has_a_reason_and_no_share() -> None:
    """A source and a sink never are; one that failed says why; one with too few slices has a median, and no advice."""
    some = {"dear": [Slice(100, 1e-4, 0.0)] * 100, "key": [Slice(100, 1e-4, 0.0)] * 99}
    document = profile_figures(profile.Timings(some, dict.fromkeys(some, "difference"), {"running": "it broke"}))
    assert column(document, "time_reason") == {
        "numbers": profile.SOURCE_REASON,
        "dear": None,
        "key": "p99 needs 100 slices with rows, and there were 99",
        "running": "it could not be run alone: it broke",
        "out": profile.SINK_REASON,
    }
    times = column(document, "time_per_tuple_us")
    assert (times["key"]["median"], times["running"]) == (pytest.approx(1.0), None)
    assert column(document, "advised_instances_by_weights", "cumulative") == {
        "numbers": None, "dear": 10, "key": None, "running": None, "out": None,
    }  # fmt: skip
    assert document["apply"]["line"] is None
    assert document["apply"]["reason"] == "not applicable: no operator after an exchange could be timed"


NOISE = [Slice(100, 1e-3, 1.1e-3), Slice(100, 1.2e-3, 1e-3)] * 50
"""An operator of nothing: as often quicker as slower than only reading."""


def test_an_operator_that_costs_no_more_than_reading_gets_one() -> None:
    """It has the reason instead of a time, counts as no work, and leaves all ten to the other."""
    slices = {"dear": NOISE, "key": [Slice(100, 1e-3, 0.0)] * 100, "running": [Slice(100, 1e-3, 0.0)] * 100}
    document = profile_figures(profile.Timings(slices))
    dear = by_name(document)["dear"]
    assert (dear["time_per_tuple_us"]["median"], dear["time_per_tuple_us_p99"]) == (None, None)
    assert dear["time_reason"].startswith("below what can be told from only reading")
    assert dear["s_op_us"] == {"cumulative": 0.0, "immediate": 0.0}
    advised = column(document, "advised_instances_by_weights", "cumulative")
    assert [advised[name] for name in slices] == [1, 5, 5]


def test_advised_instances_have_their_spread() -> None:
    """Slices that are all the same leave none; a p99 that hangs on two slow slices is not always in a resampling."""
    assert column(profile_figures(STEADY), "advised_instances_interval", "cumulative") == {
        "numbers": None, "dear": [9, 9], "key": [1, 1], "running": [1, 1], "out": None,
    }  # fmt: skip
    slow_twice = [Slice(100, 1e-4, 0.0)] * 98 + [Slice(100, 1e-2, 0.0)] * 2
    times = profile.Timings({"dear": [Slice(100, 1e-4, 0.0)] * 100, "key": slow_twice})
    document = profile_figures(times)
    assert column(document, "advised_instances_by_weights", "cumulative")["key"] == 10  # 100 us of a tenth, of 11 us
    assert column(document, "advised_instances_interval", "cumulative")["key"] == [1, 10]
    assert profile_figures(times) == document


def test_few_slices_advise_nothing() -> None:
    """Both operators were timed: what is missing is a p99, and with it what would be multiplied."""
    few = {name: [Slice(100, 1e-4, 0.0)] * 4 for name in ("dear", "key", "running")}
    document = profile_figures(profile.Timings(few), multipliers=(1, 2))
    assert document["apply"]["reason"] == (
        "not applicable: no operator after an exchange has a p99 (100 slices with rows carry one)"
    )
    assert document["ways"] == {
        "formula": None,
        "one_each": [{"times": 1, "instances": [1] * 5}, {"times": 2, "instances": [2] * 5}],
        "source_only": None,
    }
    ways = ParallelismPlans.model_validate(document["ways"])
    assert [profile_document._plan(plans or ()) for _, plans in ways] == [
        "- (nothing is advised)", "x1 1_1_1_1_1, x2 2_2_2_2_2", "- (nothing is advised)",
    ]  # fmt: skip
    assert by_name(document)["running"]["advised_instances_interval"] == {"cumulative": None, "immediate": None}


def test_an_operator_of_two_inputs_works_for_both() -> None:
    """0.2 and 0.8 of the events come in, each tuple takes 2 us: 2 us an event; of sources the immediate weight is 1."""
    other = source("others", Schema.from_types(key="int"))
    flow = NUMBERS.join(other, window=tumble(1), on="key", name="join").sink("out")
    join = by_name(profile_figures(timed(join=2.0), flow, {"numbers": 200, "others": 800, "join": 50}))["join"]
    assert join["weights"] == {"cumulative": [0.2, 0.8], "immediate": [1.0, 1.0]}
    assert join["s_op_us"] == {"cumulative": pytest.approx(2.0), "immediate": pytest.approx(4.0)}
    assert join["selectivity"] == 0.05


def test_spark_has_one_number_for_what_follows_an_exchange() -> None:
    """The filter's nine instances cannot be chosen; the most of those after an exchange is what is set."""
    document = profile_figures(timed(dear=1.0, key=1.0, running=20.0))
    assert document["apply"]["line"] == "--option spark.sql.shuffle.partitions=7"  # 2 of 3.1, of ten
    acts = column(document, "engine_instances", "acts")
    assert acts == {"numbers": False, "dear": False, "key": False, "running": True, "out": False}
    assert all(column(document, "engine_instances", "reason").values())
    alone = profile_figures(timed(dear=1.0), NUMBERS.where("value > 1", name="dear").sink("out"))
    assert document["s_app_us"] == {"cumulative": pytest.approx(3.1), "immediate": pytest.approx(21.1)}
    assert alone["apply"] == {
        "setting": "spark.sql.shuffle.partitions", "value": None, "line": None,
        "reason": "not applicable: no operator follows an exchange",
    }  # fmt: skip


def test_the_most_of_several_exchanges_is_set() -> None:
    """By the weights that were requested: 1, 1 and 0.8 of 2.8, or 1, 1 and 8 of ten."""
    flow = (
        NUMBERS.where("value > 1", name="dear")
        .distinct(keys="value", name="first")
        .running(keys="key", n="count(*)", name="running")
        .sink("out")
    )
    rows, times = ROWS | {"first": 100}, timed(dear=1.0, first=10.0, running=8.0)
    cumulative, immediate = (profile_figures(times, flow, rows, weights=one)["apply"] for one in profile.WEIGHTS)
    assert (cumulative["value"], immediate["value"]) == (4, 8)
    assert cumulative["reason"] == "one number for all exchanges: the most of first, running"


def test_every_kind_of_operator_has_a_type() -> None:
    """A new kind of node would else end a characterization with a KeyError."""
    assert (set(get_args(nodes.Node)) - {nodes.OpaqueNode} | {nodes.UserJobNode}) == set(profile._TYPES)


def test_ways_and_target_follow_what_was_requested() -> None:
    """The weights that were requested are those that are multiplied."""
    document = profile_figures(STEADY, target=20, weights="immediate", multipliers=(1, 3))
    # numbers, dear, key, running, out: 20 of 2.1, 2 of 2.1 and 20 of 2.1, rounded up.
    assert document["ways"]["formula"][0] == {"times": 1, "instances": [1, 10, 1, 10, 1]}
    assert document["ways"]["source_only"][1] == {"times": 3, "instances": [3, 10, 1, 10, 1]}
    assert document["ways"]["one_each"][1] == {"times": 3, "instances": [3] * 5}


def test_a_stream_and_its_results_may_have_one_name() -> None:
    """As in the workload `filter`: the source is the source, and the sink the sink."""
    flow = NUMBERS.where("value > 1", name="dear").sink("numbers")
    document = profile_figures(timed(dear=1.0), flow, multipliers=(2,))
    assert [(row["name"], row["kind"]) for row in document["operators"]] == [
        ("numbers", "source"), ("dear", "where"), ("numbers", "sink"),
    ]  # fmt: skip
    assert document["ways"]["source_only"] == [{"times": 2, "instances": [2, 10, 1]}]


@pytest.mark.parametrize("workload", names())
def test_the_table_fits_a_narrow_terminal(workload: str) -> None:
    """80 columns: every heading and figure is whole, with the longest that stand there; a name may be folded."""

    longest = {"type": "", "selectivity": 0.00123, "counted_as": "updates", "tuple_bytes": 12.3}
    rows = tuple(
        profiled_operator(node.name, "", tuple_time(0.123, 0.123), "", 10, **longest)
        for node in graph.operators(get(workload).build(get(workload).parameters(), 1000.0).flow)
    )
    to = Console(width=80, record=True, file=io.StringIO())
    table = profile_document._operators(operator_profile(operators=rows, methods={"updates": "counted"}))
    console._show_table(to, table)
    text = to.export_text()
    whole = ("time/tuple", "p50", "p99", "instances", "thesis", "0.00123*", "12.3", "10 (10-11)")
    assert ("…" in text, [one for one in whole if one not in text]) == (False, []), text


@pytest.mark.parametrize("name", INSTANCES)
def test_every_operator_of_the_thesis_is_one_here(name: str) -> None:
    """A renamed operator, or workload, would lose its figure without a word."""
    workload = get(name)
    flow = workload.build(workload.parameters(), 10_000.0).flow
    there = {node.name for node in graph.operators(flow) if not isinstance(node, Source)}
    assert {here for each in INSTANCES[name] for here in each.here} <= there


@pytest.mark.parametrize(
    ("workload", "kind", "name", "found"),
    [
        ("word_count", "source", "sentences", ["source"]),
        ("word_count", "sink", "counts", ["sink"]),
        ("trending_topics", "process", "ranker", ["intermediate_ranker", "total_ranker"]),
        ("word_count", "select", "sentences", []),
    ],
)
def test_operators_are_found_by_what_they_are(workload: str, kind: str, name: str, found: list[str]) -> None:
    """Sources and sinks by their kind, two operators of the thesis that are one here both, others not at all."""
    assert [each.operator for each in INSTANCES[workload] if each.is_done_by(kind, name)] == found
