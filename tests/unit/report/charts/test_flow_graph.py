"""The picture of a flow: every node once, arrows along the data, figures of its operators."""

from typing import Any
from xml.etree import ElementTree

import pytest

from streamgauge.report.charts import flow_graph
from streamgauge.results.run import Operator
from tests.unit.report.conftest import made_up_result

Flow = list[dict[str, Any]]


def node(name: str, *inputs: str) -> dict[str, Any]:
    return {"name": name, "kind": "select", "label": "a < b & c", "inputs": list(inputs)}


def drawn(svg: str) -> tuple[int, int]:
    """How many boxes and how many arrows."""
    root = ElementTree.fromstring(svg)
    return len(root.findall(".//rect")), len(root.findall("./path"))


def test_own_job_has_no_picture() -> None:
    """Without a description there is nothing to draw."""
    assert flow_graph.picture(None, made_up_result()) is flow_graph.picture([], made_up_result()) is None


def test_figures_of_operators_are_in_their_boxes(flow: Flow) -> None:
    """Rows, selectivity, results and the share of the input stand where they belong; what is not known is left out."""
    figure: Any = flow_graph.picture(flow, made_up_result())
    parts = ("400 k rows in/s", "selectivity 0.00125", "15,000 results", "100 % of the input", "with warm-up and tail")
    assert [part for part in (*parts, "p5") if part not in figure.wide] == ["p5"]


def test_a_source_gives_and_others_take_in() -> None:
    """Throughput is rows in; a source has none, so it is what left it."""
    rates = tuple(Operator(name=name, throughput_per_s=500.0, throughput_per_s_p5=80.0) for name in ("a", "b"))
    figure: Any = flow_graph.picture([node("a"), node("b", "a")], made_up_result(operators=rates))
    for text in ("500 rows/s", "p5 80 rows/s", "500 rows in/s", "p5 80 rows in/s"):
        assert f">{text}<" in figure.wide


@pytest.mark.parametrize(
    ("flow", "arrows"),
    [
        ([node("a")], 0),
        ([node("a"), node("b"), node("join", "a", "b"), node("sink", "join")], 3),
        ([node("n0"), *(node(f"n{i}", f"n{i - 1}") for i in range(1, 9))], 8),
    ],
    ids=["one", "join", "long"],
)
def test_every_node_and_edge_is_drawn_once(flow: Flow, arrows: int) -> None:
    """Both renderings are well-formed and whole, whatever the flow's form."""
    figure: Any = flow_graph.picture(flow, made_up_result())
    assert drawn(figure.wide) == drawn(figure.narrow) == (len(flow), arrows)


def test_inputs_stand_before_their_readers() -> None:
    """A node lies one layer behind the last of its inputs."""
    layers = flow_graph._layers([node("a"), node("c"), node("b", "a"), node("late", "c", "b")])
    assert [[one["name"] for one in layer] for layer in layers] == [["a", "c"], ["b"], ["late"]]
