"""An anatomy shown: on a page and in the terminal, whole or as far as it went."""

import math
import re
from importlib.resources import files
from itertools import combinations
from typing import Any

import pytest

from streamgauge.report.charts.breakdown import by_window, waterfall
from streamgauge.report.documents.breakdown import document, heading
from streamgauge.report.page import render as page_of
from streamgauge.results.breakdown import BreakdownTrial, LatencyBreakdown
from tests.helpers_study_results import breakdown, stage
from tests.helpers_study_results import breakdown_trial as trial

PAGE_CSS = files("streamgauge.report") / "templates" / "page.css"
WAYS = [
    ("generated", "waiting", "offset fixed", "planned", "scheduled", "read", "processed and written"),
    ("generated", "in Kafka", "waiting", "offset fixed", "planned", "taken by the writer", "scheduled",
     "read, processed and written", "consumed"),
    ("generated", "in Kafka", "read and processed", "consumed"),
    ("generated", "waiting", "queued", "scheduled", "read", "processed and written"),
    ("generated", "received", "in a block", "stored and announced", "in a batch", "queued", "scheduled",
     "read, processed and written"),
]  # fmt: skip
"""The stages of every way in which there is one."""
FAILED = BreakdownTrial(
    rate_per_s=20_000.0, chunk_us=10_000, verdict="invalid", sentence="no port", reason="it did not start"
)


def render(study: LatencyBreakdown) -> str:
    return page_of(document(study))


def test_latency_is_drawn_against_the_interval_where_there_are_several() -> None:
    """A line of means and one of 90th percentiles for each rate; of one interval there is nothing to draw."""
    usual: Any = trial().latency
    latency = usual.model_copy(update={"p90_us": 700_000.0})
    trials = [trial(batch_window_s=s, rate_per_s=r, latency=latency) for s in (0.0, 0.5, 1.0) for r in (1e3, 20e3)]
    figure: Any = by_window(trials)
    assert [key.style for key in figure.keys] == ["line", "dash"] * 2
    assert 'id="windows"' in render(breakdown(*trials))
    assert by_window(trials[:2]) is None
    assert by_window([trial(batch_window_s=None)] * 2) is None


@pytest.mark.parametrize("trials", [[], [FAILED]])
def test_without_a_stage_there_is_no_picture(trials: list[BreakdownTrial]) -> None:
    """As it begins, and where nothing came of it."""
    page = render(breakdown(*trials))
    assert "no trial could be broken down" in page
    assert "<svg role" not in page


@pytest.mark.parametrize(
    ("interval", "expected"), [("500 milliseconds", "500 ms"), ("1 second", "1 s"), ("0 seconds (auto)", "0 s (auto)")]
)
def test_an_interval_is_reported_shortly(interval: str, expected: str) -> None:
    """Above a bar, where a small screen has little room."""
    assert heading(trial(batch_window=interval)) == f"20 k events/s, {expected}"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("names", WAYS, ids=len)
def test_stages_of_one_bar_are_distinguished(names: tuple[str, ...], theme: str) -> None:
    """By colours that differ on light and on dark paper."""
    figure: Any = waterfall([trial(stages=tuple(stage(name) for name in names))])
    light, dark = PAGE_CSS.read_text().split("@media screen and (prefers-color-scheme: dark)")[:2]
    palette = dict(re.findall(r"--([\w-]+): #([0-9a-f]{6})", light if theme == "light" else dark))
    colours = [[int(palette[key.colour][place : place + 2], 16) for place in (0, 2, 4)] for key in figure.keys]
    for one, other in combinations(zip(names, colours, strict=True), 2):
        assert math.dist(one[1], other[1]) > 25, (one[0], other[0])
