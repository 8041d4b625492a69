"""What follows from counts and times: weights, instances, what applies on Spark; and the command around it."""

from __future__ import annotations

import io
from typing import Any

import pytest

from streamgauge.config.options_and_settings import Characterize
from streamgauge.core.schema import Schema
from streamgauge.dataflow import graph
from streamgauge.dataflow.builder import source, tumble
from streamgauge.dataflow.nodes import Flow, Node, Source
from streamgauge.engines.operator_profiler import Slice
from streamgauge.engines.spark.operator_profiler import SparkOperatorProfiler
from streamgauge.report.documents import profile as profile_document
from streamgauge.report.terminal import console
from streamgauge.results.profile import ParallelismPlans
from streamgauge.studies.operator_profile import profile
from streamgauge.studies.operator_profile.operator_io import OperatorIO
from streamgauge.studies.operator_profile.profile import Timings
from streamgauge.workloads.registry import get, names
from tests.helpers_study_results import operator_profile, profiled_operator, tuple_time
from tests.unit.studies.operator_profile.helpers_profile import by_name

NUMBERS = source("numbers", Schema.from_types(key="int", value="int"))
FLOW = (
    NUMBERS.where("value > 1", name="dear").select(key="key", name="key").running(keys="key", n="count(*)").sink("out")
)
ROWS = {"numbers": 1000, "dear": 100, "key": 100, "running": 20}


def counted(flow: Flow, rows: dict[str, int]) -> dict[Node, OperatorIO]:
    """As if the reference had counted so many rows."""
    return {
        node: OperatorIO(node, node, tuple(rows[each.name] for each in graph.inputs(node)), rows[node.name], 8.0)
        for node in graph.operators(flow)
    }


def timed(**us: float) -> Timings:
    """As if each operator's tuples had taken so long in each of a hundred slices."""
    slices = {name: [Slice(100, 1e-4 * each, 0.0)] * 100 for name, each in us.items()}
    return Timings(slices, dict.fromkeys(slices, "difference"))


def profile_figures(*given: Any) -> dict[str, Any]:
    """The figures as they stand in characterization.json."""
    arguments: tuple[Any, ...] = (*given, SparkOperatorProfiler())
    return profile.profile_figures(*arguments).model_dump(mode="json")


def test_both_weights_by_hand() -> None:
    """One row in ten is kept, and each takes 1 us everywhere.

    Cumulative: 1, 0.1, 0.1 of 1.2 -> 8.3, 0.8, 0.8 of ten. Immediate: 1, 0.1 (of the filter), 1 (of the projection)
    of 2.1 -> 4.8, 0.5, 4.8: as if the counter had as much to do as the filter.
    """
    rows = by_name(
        profile_figures("made", FLOW, counted(FLOW, ROWS), timed(dear=1.0, key=1.0, running=1.0), Characterize())
    )
    weights = {name: row["weights"] for name, row in rows.items()}
    assert weights["dear"] == {"cumulative": [1.0], "immediate": [1.0]}
    assert weights["key"] == {"cumulative": [0.1], "immediate": [0.1]}
    assert weights["running"] == {"cumulative": [0.1], "immediate": [1.0]}
    instances = {name: row["advised_instances_by_weights"] for name, row in rows.items()}
    assert instances == {
        "numbers": {"cumulative": None, "immediate": None},
        "dear": {"cumulative": 9, "immediate": 5},
        "key": {"cumulative": 1, "immediate": 1},
        "running": {"cumulative": 1, "immediate": 5},
        "out": {"cumulative": None, "immediate": None},
    }


def test_what_was_not_timed_has_a_reason_and_no_share() -> None:
    """A source and a sink never are; one that failed says why; one with too few slices has a median, and no advice."""
    some = {"dear": [Slice(100, 1e-4, 0.0)] * 100, "key": [Slice(100, 1e-4, 0.0)] * 99}
    timings = Timings(some, dict.fromkeys(some, "difference"), {"running": "it broke"})
    found = profile_figures("made", FLOW, counted(FLOW, ROWS), timings, Characterize())
    rows = by_name(found)
    reasons = {name: row["time_reason"] for name, row in rows.items()}
    assert reasons == {
        "numbers": profile.SOURCE_REASON,
        "dear": None,
        "key": "p99 needs 100 slices with rows, and there were 99",
        "running": "it could not be run alone: it broke",
        "out": profile.SINK_REASON,
    }
    assert rows["key"]["time_per_tuple_us"]["median"] == pytest.approx(1.0)
    assert rows["running"]["time_per_tuple_us"] is None
    assert {name: row["advised_instances_by_weights"]["cumulative"] for name, row in rows.items()} == {
        "numbers": None, "dear": 10, "key": None, "running": None, "out": None,
    }  # fmt: skip
    assert found["apply"]["line"] is None
    assert found["apply"]["reason"] == "not applicable: no operator after an exchange could be timed"


@pytest.mark.parametrize(("weights", "instances"), [("cumulative", (9, 1, 1)), ("immediate", (5, 1, 5))])
def test_what_others_read_has_flat_names(weights: profile.Weights, instances: tuple[int, int, int]) -> None:
    """[design 7]: bytes of a tuple, its p99, and the instances by the weights that were requested, a number each."""
    times = timed(dear=1.0, key=1.0, running=1.0)
    rows = by_name(profile_figures("made", FLOW, counted(FLOW, ROWS), times, Characterize(weights=weights)))
    worked = [rows[name] for name in ("dear", "key", "running")]
    assert tuple(row["advised_instances"] for row in worked) == instances
    assert [row["time_per_tuple_us_p99"] for row in worked] == [pytest.approx(1.0)] * 3
    assert {row["tuple_bytes"] for row in rows.values()} == {8.0}
    for name in ("numbers", "out"):
        assert (rows[name]["time_per_tuple_us_p99"], rows[name]["advised_instances"]) == (None, None)


NOISE = [Slice(100, 1e-3, 1.1e-3), Slice(100, 1.2e-3, 1e-3)] * 50
"""An operator of nothing: as often quicker as slower than only reading."""


def test_an_operator_that_cannot_be_told_from_reading_gets_one() -> None:
    """It has the reason in place of a time, counts as no work, and leaves all ten to the other."""
    slices = {"dear": NOISE, "key": [Slice(100, 1e-3, 0.0)] * 100, "running": [Slice(100, 1e-3, 0.0)] * 100}
    found = profile_figures("made", FLOW, counted(FLOW, ROWS), Timings(slices), Characterize())
    rows = by_name(found)
    assert (rows["dear"]["time_per_tuple_us"]["median"], rows["dear"]["time_per_tuple_us_p99"]) == (None, None)
    assert rows["dear"]["time_reason"].startswith("below what can be told from only reading")
    assert rows["dear"]["s_op_us"] == {"cumulative": 0.0, "immediate": 0.0}
    advised = {name: rows[name]["advised_instances_by_weights"]["cumulative"] for name in slices}
    assert advised == {"dear": 1, "key": 5, "running": 5}


def test_advised_instances_have_their_spread() -> None:
    """Slices that are all the same leave none; a p99 that hangs on two slow slices is not always in a resampling."""
    steady = profile_figures("made", FLOW, counted(FLOW, ROWS), timed(dear=1.0, key=1.0, running=1.0), Characterize())
    assert {name: row["advised_instances_interval"]["cumulative"] for name, row in by_name(steady).items()} == {
        "numbers": None, "dear": [9, 9], "key": [1, 1], "running": [1, 1], "out": None,
    }  # fmt: skip
    slow_twice = [Slice(100, 1e-4, 0.0)] * 98 + [Slice(100, 1e-2, 0.0)] * 2
    times = Timings({"dear": [Slice(100, 1e-4, 0.0)] * 100, "key": slow_twice})
    found = profile_figures("made", FLOW, counted(FLOW, ROWS), times, Characterize())
    key = by_name(found)["key"]
    assert key["advised_instances_by_weights"]["cumulative"] == 10  # 100 us of a tenth, of 11 us in all
    assert key["advised_instances_interval"]["cumulative"] == [1, 10]
    again = profile_figures("made", FLOW, counted(FLOW, ROWS), times, Characterize())
    assert again == found


def test_few_slices_advise_nothing() -> None:
    """Both operators were timed: what is missing is a p99, and with it what would be multiplied."""
    few = {name: [Slice(100, 1e-4, 0.0)] * 4 for name in ("dear", "key", "running")}
    found = profile_figures("made", FLOW, counted(FLOW, ROWS), Timings(few), Characterize(multipliers=(1, 2)))
    assert found["apply"]["reason"] == (
        "not applicable: no operator after an exchange has a p99 (100 slices with rows carry one)"
    )
    assert found["ways"] == {
        "formula": None,
        "one_each": [{"times": 1, "instances": [1] * 5}, {"times": 2, "instances": [2] * 5}],
        "source_only": None,
    }
    assert profile_document._plans(ParallelismPlans.model_validate(found["ways"])) == [
        ("by the formula, all multiplied", "- (nothing is advised)"),
        ("one each, all multiplied", "x1 1_1_1_1_1, x2 2_2_2_2_2"),
        ("by the formula, sources multiplied", "- (nothing is advised)"),
    ]
    assert by_name(found)["running"]["advised_instances_interval"] == {"cumulative": None, "immediate": None}


def test_an_operator_of_two_inputs_works_for_both() -> None:
    """0.2 and 0.8 of the events come in, each tuple takes 2 us: 2 us an event; of sources the immediate weight is 1."""
    other = source("others", Schema.from_types(key="int"))
    flow = NUMBERS.join(other, window=tumble(1), on="key", name="join").sink("out")
    rows = by_name(
        profile_figures(
            "made", flow, counted(flow, {"numbers": 200, "others": 800, "join": 50}), timed(join=2.0), Characterize()
        )
    )
    assert rows["join"]["weights"] == {"cumulative": [0.2, 0.8], "immediate": [1.0, 1.0]}
    assert rows["join"]["s_op_us"]["cumulative"] == pytest.approx(2.0)
    assert rows["join"]["s_op_us"]["immediate"] == pytest.approx(4.0)
    assert rows["join"]["selectivity"] == 0.05


def test_spark_has_one_number_for_what_follows_an_exchange() -> None:
    """The filter's nine instances cannot be chosen; the most of those after an exchange is what is set."""
    times = timed(dear=1.0, key=1.0, running=20.0)
    found = profile_figures("made", FLOW, counted(FLOW, ROWS), times, Characterize())
    assert found["apply"]["line"] == "--option spark.sql.shuffle.partitions=7"  # 2 of 3.1, of ten
    acts = {row["name"]: row["instances_on_spark"]["acts"] for row in found["operators"]}
    assert acts == {"numbers": False, "dear": False, "key": False, "running": True, "out": False}
    assert all(row["instances_on_spark"]["reason"] for row in found["operators"])
    rows_alone = NUMBERS.where("value > 1", name="dear").sink("out")
    alone = profile_figures("made", rows_alone, counted(rows_alone, ROWS), timed(dear=1.0), Characterize())
    assert found["s_app_us"] == {"cumulative": pytest.approx(3.1), "immediate": pytest.approx(21.1)}
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
    some = counted(flow, {"numbers": 1000, "dear": 100, "first": 100, "running": 20})
    times = timed(dear=1.0, first=10.0, running=8.0)
    found = {
        weights: profile_figures("made", flow, some, times, Characterize(weights=weights))["apply"]
        for weights in profile.WEIGHTS
    }
    assert {weights: requested["value"] for weights, requested in found.items()} == {"cumulative": 4, "immediate": 8}
    assert found["cumulative"]["reason"] == "one number for all exchanges: the most of first, running"


def test_every_kind_of_operator_has_a_type() -> None:
    """A new kind of node would else end a characterization with a KeyError."""
    from typing import get_args

    from streamgauge.dataflow import nodes

    kinds = set(get_args(nodes.Node)) - {nodes.OpaqueNode} | {nodes.UserJobNode}
    assert kinds == set(profile._TYPES)


def test_ways_and_target_follow_what_was_requested() -> None:
    """The weights that were requested are those that are multiplied."""
    advice = Characterize(target=20, weights="immediate", multipliers=(1, 3))
    found = profile_figures("made", FLOW, counted(FLOW, ROWS), timed(dear=1.0, key=1.0, running=1.0), advice)
    # numbers, dear, key, running, out: 20 of 2.1, 2 of 2.1 and 20 of 2.1, rounded up.
    assert found["ways"]["formula"][0] == {"times": 1, "instances": [1, 10, 1, 10, 1]}
    assert found["ways"]["source_only"][1] == {"times": 3, "instances": [3, 10, 1, 10, 1]}
    assert found["ways"]["one_each"][1] == {"times": 3, "instances": [3] * 5}


def test_a_stream_and_its_results_may_have_one_name() -> None:
    """As in the workload `filter`: the source is the source, and the sink the sink."""
    flow = NUMBERS.where("value > 1", name="dear").sink("numbers")
    rows = profile_figures("made", flow, counted(flow, ROWS), timed(dear=1.0), Characterize(multipliers=(2,)))
    assert [(row["name"], row["kind"]) for row in rows["operators"]] == [
        ("numbers", "source"), ("dear", "where"), ("numbers", "sink"),
    ]  # fmt: skip
    assert rows["ways"]["source_only"] == [{"times": 2, "instances": [2, 10, 1]}]


@pytest.mark.parametrize("workload", names())
def test_the_table_fits_a_narrow_terminal(workload: str) -> None:
    """80 columns: every heading and figure is whole, with the longest that stand there; a name may be folded."""
    from rich.console import Console

    longest = {"type": "", "selectivity": 0.00123, "counted_as": "updates", "tuple_bytes": 12.3}
    rows = tuple(
        profiled_operator(node.name, "", tuple_time(0.123, 0.123), "", 10, **longest)
        for node in graph.operators(get(workload).build(get(workload).parameters(), 1000.0).flow)
    )
    to = Console(width=80, record=True, file=io.StringIO())
    made = profile_document._operators(operator_profile(operators=rows, methods={"updates": "counted"}))
    console._show_table(to, made)
    text = to.export_text()
    assert "…" not in text
    for whole in ("time/tuple", "p50", "p99", "instances", "thesis", "0.00123*", "12.3", "10 (10-11)"):
        assert whole in text, text


def test_times_are_readable() -> None:
    """Far below a microsecond in nanoseconds."""
    reported = [profile_document.tuple_time(us) for us in (0.0123, 0.5, 3.0, 2500.0)]
    assert reported == ["12.3 ns", "500 ns", "3 us", "2.5 ms"]
    assert profile_document.tuple_time(None) == "-"


def test_the_source_stands_where_it_should() -> None:
    """Only sources are multiplied alone, and only they have no input."""
    rows = profile_figures("made", FLOW, counted(FLOW, ROWS), Timings(), Characterize())["operators"]
    assert [row["name"] for row in rows if row["kind"] == "source"] == ["numbers"]
    assert [node.name for node in graph.operators(FLOW) if isinstance(node, Source)] == ["numbers"]
