"""A scalability study shown: its page, its charts, and its lines in the terminal."""

import json
import re
from typing import Any

import pytest

from streamgauge.report.charts import scalability as charts
from streamgauge.report.documents.scalability import (
    capacity_of,
    cell_line,
    document,
    headline,
)
from streamgauge.report.page import render
from streamgauge.results.scalability import Capacity, ScaleCell, ScaleResult
from streamgauge.studies.scalability.answer import answered
from streamgauge.studies.scalability.monotone_search import Grid
from streamgauge.studies.scalability.scale import ehrenstein

pytestmark = pytest.mark.usefixtures("quick_fits")


def cell(number: int, resources: int, load: float, outcome: Any = "sustained", **more: Any) -> ScaleCell:
    report = f"cells/{number:03d}/run/report.html"
    values = {"verdict": outcome, "report": report, "seconds": 95.0, "sentence": "why <1 %"}
    return ScaleCell(number=number, resources=resources, load=load, repetition=1, outcome=outcome, **{**values, **more})


def study(*cells: ScaleCell, **changes: Any) -> ScaleResult:
    values: dict[str, Any] = {
        "workload": "identity", "engine": "spark", "transport": "memory", "parameters": {}, "options": {},
        "resource": "parallelism", "resources": (1, 2, 4), "dimension": "load.rate", "load_unit": "events/s",
        "loads": (1e4, 2e4, 4e4, 8e4), "criterion": "slope", "repeat": 1, "environment": {"cpus": 2},
        "start_time": "2026-01-01T00:00:00+00:00", "folder": "runs/s", "published": ehrenstein(),
    }  # fmt: skip
    result = ScaleResult(**{**values, **changes, "cells": cells})
    return answered(result, Grid(result.loads, tuple(map(float, result.resources))))


LINEAR = (
    cell(1, 2, 2e4), cell(2, 2, 4e4, "not_sustained"), cell(3, 1, 1e4), cell(4, 1, 2e4, "not_sustained"),
    cell(5, 4, 4e4), cell(6, 4, 8e4, "not_sustained"),
)  # fmt: skip


def words(page: str) -> str:
    return " ".join(page.split())


@pytest.mark.parametrize("bound", [True, False])
def test_the_legend_has_the_marks_of_the_chart(bound: bool) -> None:
    """A triangle is a lower bound, a circle a capacity that a load exceeded; none that is not drawn."""
    refused = None if bound else 2e4
    capacities = tuple(
        Capacity(resources=level, load=1e4, refused=refused, measured=True, decided=True) for level in (1, 2, 4)
    )
    result = study(*LINEAR).model_copy(update={"capacities": capacities, "fits": (), "published": ()})
    drawn: Any = charts.capacity(result)
    assert [key.style for key in drawn.keys] == (["triangle"] if bound else ["dot"])
    triangle = '<path d="M12 1l6 10H6z" fill="var(--undecided)"/>'
    assert (triangle in render(document(study(*LINEAR[:5], cell(6, 4, 8e4) if bound else LINEAR[5])))) is bound


def test_smaller_periods_have_a_demand_and_no_law() -> None:
    """The words are those of the dimension."""
    result = study(
        cell(1, 2, 1.0), cell(2, 2, 0.1, "not_sustained"), cell(3, 1, 1.0), cell(4, 4, 0.1), cell(5, 4, 0.01),
        resources=(1, 2, 4), dimension="parameters.period", load_unit="s", loads=(1.0, 0.1, 0.01), published=(),
        metric="smallest period", parameters={"range": 60.0},
    )  # fmt: skip
    assert headline(result) == "smallest period for a range of 60 s by parallelism: 1: 1 s, 2: 1 s, 4: <= 10 ms"
    assert charts.capacity(result) is None
    assert charts.demand(result) is not None
    assert "Ehrenstein" not in render(document(result))


@pytest.mark.parametrize("metric", ["greatest height", "greatest number of children"])
def test_the_structure_of_a_hierarchy_is_named(metric: str) -> None:
    """In the headline, the page and the result's JSON."""
    result = study(
        cell(1, 2, 2), cell(2, 2, 3, "not_sustained"), cell(3, 1, 1), cell(4, 1, 2, "not_sustained"), cell(5, 4, 3),
        dimension="parameters.height", load_unit="", loads=(1.0, 2.0, 3.0), rates=(10.0, 100.0, 1000.0), metric=metric,
        published=(),
    )  # fmt: skip
    assert headline(result) == f"{metric} by parallelism: 1: 1, 2: 2, 4: >= 3"
    assert f">{metric}<" in render(document(result))
    assert json.loads(result.to_json())["metric"] == metric


@pytest.mark.parametrize(("load", "refused", "decided", "text"), [
    (1e4, None, True, ">= 10 k/s"), (1e4, 2e4, False, ">= 10 k/s"), (1e4, 2e4, True, "10 k/s"),
    (None, 1e4, True, "none"),
])  # fmt: skip
def test_a_lower_bound_is_shown_as_one(load: float | None, refused: float | None, decided: bool, text: str) -> None:
    """Also where the load above is undecided."""
    bound = Capacity(resources=1, load=load, refused=refused, measured=load is not None, decided=decided)
    assert capacity_of(study(), bound) == text


def test_a_demand_that_no_trial_bounds_is_shown_as_one() -> None:
    """Where the only trials of a cell were invalid, no page says that the load is not sustained."""
    twice = {load: [cell(n, level, load, "invalid") for n in (1, 2)] for level, load in ((1, 2e4), (4, 8e4))}
    result = study(LINEAR[0], LINEAR[2], LINEAR[4], LINEAR[1], *twice[2e4], *twice[8e4])
    assert [(one.resources, one.decided) for one in result.demands] == [(1, True), (2, False), (4, True), (None, False)]
    page = words(re.sub("<[^>]*>", " ", render(document(result))))
    assert "10 k/s 1 20 k/s &lt;= 2 40 k/s 4 80 k/s unknown" in page
    assert "none of them" not in page
    assert "no level sustains the load" not in page


def test_a_trial_is_a_line() -> None:
    """The reason only where it is not sustained, or another criterion decided."""
    result = study()
    assert cell_line(result, cell(3, 2, 2e4, ingested_per_s=2e4)) == (
        "trial 3   parallelism 2, rate 20 k/s   sustained   ingested 20 k/s   1 min 35 s"
    )
    assert cell_line(result, cell(3, 2, 2e4, "undecided")).endswith("undecided   1 min 35 s   why <1 %")
    assert cell_line(result, cell(3, 2, 2e4, lag_growth=3.0)).endswith("why <1 %")


def test_a_logarithmic_axis_has_few_labels() -> None:
    """1, 2 and 5 in each decade, or only 1 where there are many."""
    assert charts.log_ticks(900, 6000) == [1000, 2000, 5000]
    assert charts.log_ticks(0.009, 0.3) == [0.01, 0.02, 0.05, 0.1, 0.2]
    assert charts.log_ticks(1, 1e6) == [10.0**n for n in range(7)]
