"""An anatomy shown: on a page and in the terminal, whole or as far as it went."""

from __future__ import annotations

import io
import json
import math
import re
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from streamgauge.artifacts.run_folder import ANATOMY
from streamgauge.core.errors import InputError
from streamgauge.report.charts.breakdown import by_window, waterfall
from streamgauge.report.documents.breakdown import document, heading
from streamgauge.report.html import render as html
from streamgauge.report.studies import rerender_study, show_anatomy

PAGE_CSS = files("streamgauge.report.html") / "templates" / "page.css"
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
STAGES = {"generated": "until it was offered", "waiting": "until a batch began"}


def trial(**more: Any) -> dict[str, Any]:
    return {
        "rate_per_s": 20_000.0, "record_bytes": None, "batch_window": "1 second", "batch_window_s": 1.0,
        "run": "runs/one",
        "verdict": "sustained", "sentence": "", "reason": "",
        "latency": {"mean_us": 600_000.0, "p50_us": 590_000.0, "p90_us": None, "p99_us": None, "results": 1234,
                    "contradicted_share": 0.001},
        "first_of_batch": {"mean_us": 900_000.0, "p50_us": 890_000.0},
        "stages": [
            {"name": "generated", "share": 0.1, "mean_us": 60_000.0, "p50_us": 1.0},
            {"name": "waiting", "share": 0.9, "mean_us": 540_000.0, "p50_us": 1.0},
        ],
        "remainder_share": 0.0004, "cdf_us": [*(100_000.0 + 10_000 * n for n in range(91)), *[None] * 10],
        "batches": 30, "left_out": 0, "contradicting_batches": 0, "contradiction_us_max": 0, "doubts": [],
        "chunk_us": 10_000, "clock_moved_us": 3, "commit_after_us": 12_000.0, "tasks_share": 0.41, "sampled": 1234,
        "contradicting_results": None, **more,
    }  # fmt: skip


FOUND: dict[str, Any] = {
    "schema_version": 1, "workload": "stamped_text", "engine": "spark", "transport": "flight", "parameters": {},
    "options": {}, "environment": {"python": "3.11"}, "start_time": "2026-01-01T00:00:00+00:00", "folder": "runs/a",
    "stages": STAGES, "published": ["one receiver took at most about 30 MB/s"], "published_work_share": 0.11,
    "trials": [trial()], "finished": True,
}  # fmt: skip
NOTHING: dict[str, Any] = {"latency": {}, "first_of_batch": {}, "stages": [], "cdf_us": []}
FAILED = trial(reason="it did not start", verdict="invalid", run="", batch_window="", sentence="no port", **NOTHING)


def render(found: dict[str, Any]) -> str:
    return html.render(document(found))


def shown(found: dict[str, Any]) -> str:
    told = io.StringIO()
    show_anatomy(found, Console(file=told, width=160))
    return told.getvalue()


def test_each_stage_is_shown_with_its_share() -> None:
    """In the terminal and on the page; what the stages are stands below."""
    text = shown(FOUND)
    assert "waiting" in text
    assert "540 ms (90 %)" in text
    assert "30 batches" in text
    page = render(FOUND)
    assert "540 ms (90 %)" in page
    assert "until a batch began" in page
    assert page.count("<svg role") == 4


def test_useful_work_is_shown_beside_what_was_published() -> None:
    """Wherever a batch's tasks are known of; else there is no such line."""
    for text in (shown(FOUND), render(FOUND)):
        told = text
        assert "published: useful work at most 0.11 of the time" in told
        assert "0.41" in told
    nothing: dict[str, Any] = dict.fromkeys(("tasks_share", "batches", "commit_after_us", "contradicting_batches"))
    by_broker = {"contradicting_results": 7, "contradiction_us_max": 900, "sampled": 1000}
    real_time = trial(first_of_batch={}, batch_window="", **nothing, **by_broker)
    told = shown({**FOUND, "trials": [real_time]})
    assert "useful work" not in told
    assert "first record" not in told
    assert "stages of 1,000 of them, by chance and evenly" in told
    assert "the broker's moments contradict the driver's in 7 results, by 900 us at most" in told


def test_latency_is_drawn_against_the_interval_where_there_are_several() -> None:
    """A line of means and one of 90th percentiles for each rate; of one interval there is nothing to draw."""
    latency = {**trial()["latency"], "p90_us": 700_000.0}
    trials = [trial(batch_window_s=s, rate_per_s=r, latency=latency) for s in (0.0, 0.5, 1.0) for r in (1e3, 20e3)]
    figure = by_window(trials)
    assert figure is not None
    assert [key.style for key in figure.keys] == ["line", "dash"] * 2
    assert 'id="windows"' in render({**FOUND, "trials": trials})
    assert by_window(trials[:2]) is None
    assert by_window([trial(batch_window_s=None)] * 2) is None


def test_a_doubt_is_shown_first() -> None:
    """In so many words; and a rate that is not sustained has its verdict above its column."""
    found = {**FOUND, "trials": [trial(doubts=["what Spark says contradicts"], verdict="undecided")]}
    for text in (shown(found), render(found)):
        assert "DOUBTFUL: what Spark says contradicts" in text
        assert "1 s, undecided" in text


def test_a_trial_that_was_not_taken_apart_says_why() -> None:
    """Beside those that were."""
    found = {**FOUND, "trials": [trial(), FAILED], "finished": False}
    assert "not taken apart: it did not start: no port" in shown(found)
    assert "20 k events/s, invalid" in shown(found)
    assert "not finished" in render(found)


@pytest.mark.parametrize("trials", [[], [FAILED]])
def test_without_a_stage_there_is_no_picture(trials: list[dict[str, Any]]) -> None:
    """As it begins, and where nothing came of it."""
    page = render({**FOUND, "trials": trials})
    assert "no trial could be taken apart" in page
    assert "<svg role" not in page


def test_a_page_is_made_again(tmp_path: Path) -> None:
    """Of what the folder holds; of another folder nothing is, and another version is refused."""
    assert rerender_study(tmp_path) is None
    (tmp_path / ANATOMY).write_text(json.dumps(FOUND))
    assert rerender_study(tmp_path) == tmp_path / "report.html"
    assert rerender_study(tmp_path / ANATOMY) == tmp_path / "report.html"
    (tmp_path / ANATOMY).write_text("{}")
    with pytest.raises(InputError, match="of this version"):
        rerender_study(tmp_path)


@pytest.mark.parametrize(
    ("interval", "expected"), [("500 milliseconds", "500 ms"), ("1 second", "1 s"), ("0 seconds (auto)", "0 s (auto)")]
)
def test_an_interval_is_told_shortly(interval: str, expected: str) -> None:
    """Above a bar, where a small screen has little room."""
    assert heading(trial(batch_window=interval)) == f"20 k events/s, {expected}"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("names", WAYS, ids=len)
def test_stages_of_one_bar_are_told_apart(names: tuple[str, ...], theme: str) -> None:
    """By colours that differ on light and on dark paper."""
    stages = [{"name": name, "share": 0.1, "mean_us": 1.0} for name in names]
    figure = waterfall([trial(stages=stages)])
    assert figure is not None
    css = PAGE_CSS.read_text()
    light, dark = css.split("@media screen and (prefers-color-scheme: dark)")[:2]
    found = dict(re.findall(r"--([\w-]+): #([0-9a-f]{6})", light if theme == "light" else dark))
    colours = [[int(found[key.colour][place : place + 2], 16) for place in (0, 2, 4)] for key in figure.keys]
    for one, other in combinations(zip(names, colours, strict=True), 2):
        assert math.dist(one[1], other[1]) > 25, (one[0], other[0])
