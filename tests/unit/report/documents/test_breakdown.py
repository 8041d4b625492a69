"""An anatomy shown: on a page and in the terminal, whole or as far as it went."""

from __future__ import annotations

import io
import math
import re
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from streamgauge.artifacts.run_folder import ANATOMY, write_study
from streamgauge.core.errors import InputError
from streamgauge.report.charts.breakdown import by_window, waterfall
from streamgauge.report.documents.breakdown import document, heading
from streamgauge.report.documents.study_pages import rerender_study
from streamgauge.report.page import render as page_of
from streamgauge.report.terminal.studies import show_anatomy
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
WHOLE = breakdown(trial())
FAILED = BreakdownTrial(
    rate_per_s=20_000.0, chunk_us=10_000, verdict="invalid", sentence="no port", reason="it did not start"
)


def render(study: LatencyBreakdown) -> str:
    return page_of(document(study))


def shown(study: LatencyBreakdown) -> str:
    output = io.StringIO()
    show_anatomy(study, Console(file=output, width=160))
    return output.getvalue()


def test_each_stage_is_shown_with_its_share() -> None:
    """In the terminal and on the page; what the stages are stands below."""
    text, page = shown(WHOLE), render(WHOLE)
    assert [part for part in ("waiting", "540 ms (90 %)", "30 batches") if part not in text] == []
    assert [part for part in ("540 ms (90 %)", "until a batch began") if part not in page] == []
    assert page.count("<svg role") == 4


def test_useful_work_is_shown_beside_what_was_published() -> None:
    """Wherever a batch's tasks are known of; else there is no such line."""
    for text in (shown(WHOLE), render(WHOLE)):
        assert "published: useful work at most 0.11 of the time" in text
        assert "0.41" in text
    nothing = dict.fromkeys(("tasks_share", "batches", "commit_after_us", "contradicting_batches", "first_of_batch"))
    by_broker = {"contradicting_results": 7, "contradiction_us_max": 900, "sampled": 1000}
    text = shown(breakdown(trial(batch_window="", **nothing, **by_broker)))
    assert not re.search("useful work|first record", text)
    assert "stages of 1,000 of them, sampled at random" in text
    assert "the broker's timestamps contradict the driver's in 7 results, by 900 us at most" in text


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


def test_a_doubt_is_shown_first() -> None:
    """In so many words; and a rate that is not sustained has its verdict above its column."""
    study = breakdown(trial(doubts=("what Spark says contradicts",), verdict="undecided"))
    for text in (shown(study), render(study)):
        assert "DOUBTFUL: what Spark says contradicts" in text
        assert "1 s, undecided" in text


def test_a_trial_that_was_not_taken_apart_says_why() -> None:
    """Beside those that were."""
    study = breakdown(trial(), FAILED, finished=False)
    assert "not broken down: it did not start: no port" in shown(study)
    assert "20 k events/s, invalid" in shown(study)
    assert "not finished" in render(study)


@pytest.mark.parametrize("trials", [[], [FAILED]])
def test_without_a_stage_there_is_no_picture(trials: list[BreakdownTrial]) -> None:
    """As it begins, and where nothing came of it."""
    page = render(breakdown(*trials))
    assert "no trial could be broken down" in page
    assert "<svg role" not in page


def test_a_page_is_made_again(tmp_path: Path) -> None:
    """Of what the folder holds; of another folder nothing is, and another version is refused."""
    assert rerender_study(tmp_path) is None
    write_study(tmp_path, ANATOMY, breakdown(trial(), FAILED))
    assert rerender_study(tmp_path) == tmp_path / "report.html"
    assert (tmp_path / "report.html").read_text() == render(breakdown(trial(), FAILED))
    assert rerender_study(tmp_path / ANATOMY) == tmp_path / "report.html"
    (tmp_path / ANATOMY).write_text("{}")
    with pytest.raises(InputError, match="of this version"):
        rerender_study(tmp_path)


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
    css = PAGE_CSS.read_text()
    light, dark = css.split("@media screen and (prefers-color-scheme: dark)")[:2]
    palette = dict(re.findall(r"--([\w-]+): #([0-9a-f]{6})", light if theme == "light" else dark))
    colours = [[int(palette[key.colour][place : place + 2], 16) for place in (0, 2, 4)] for key in figure.keys]
    for one, other in combinations(zip(names, colours, strict=True), 2):
        assert math.dist(one[1], other[1]) > 25, (one[0], other[0])
