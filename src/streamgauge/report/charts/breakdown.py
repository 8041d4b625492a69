"""Charts of a latency breakdown: the mean stage times of each trial, and the distribution of its latencies."""

import re
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import altair as alt

from streamgauge.core.formatting import format_rate
from streamgauge.report.charts.svg import (
    COLOURS,
    PLAIN,
    axis_title,
    figure,
    numbers,
    stretches,
    ticks,
    unit_of_time,
    values,
)
from streamgauge.report.document_blocks import Figure, Key
from streamgauge.results import labels
from streamgauge.results.breakdown import BreakdownTrial

_COLOURS = {
    "generated": "driver",
    "in Kafka": "sut",
    "received": "sut",
    "in a block": "processing-time",
    "stored and announced": "part-1",
    "in a batch": "rest",
    "waiting": "rest",
    "queued": "part-3",
    "offset fixed": "part-1",
    "planned": "part-3",
    "taken by the writer": "processing-time",
    "scheduled": "part-2",
    "read": "processing-time",
    "consumed": "event-time",
}
_LAST = "part-4"
_LINES = ("event-time", "sustained", "sut", "network", "frontier", "offered")
_BAR_PX = 22


def waterfall(trials: Sequence[BreakdownTrial]) -> Figure | None:
    """One bar for each trial: its mean latency, split into consecutive stages."""
    shown = [trial for trial in trials if trial.stages]
    if not shown:
        return None
    return figure(
        "stages",
        "Mean latency by stage",
        "One bar for each trial: the mean latency of its results, split into consecutive stages.",
        lambda width: _bars(shown, width),
        [
            Key(name, _colour(name), "area")
            for name in dict.fromkeys(one.name for trial in shown for one in trial.stages)
        ],
        ["Means over all results of the span."],
    )


def spread(trials: Sequence[BreakdownTrial]) -> Figure | None:
    """Cumulative distribution of latency: one line for each trial."""
    shown = [trial for trial in trials if trial.cdf_us][: len(_LINES)]
    if not shown:
        return None
    left_out = len([trial for trial in trials if trial.cdf_us]) - len(shown)
    return figure(
        "spread",
        "Share of results within a time",
        "One line for each trial: the share of its results whose latency is at most what the horizontal axis says.",
        lambda width: _lines(shown, width),
        [Key(heading(trial), colour) for trial, colour in zip(shown, _LINES, strict=False)],
        [
            f"The first {len(shown)} trials; anatomy.json has {left_out} more." if left_out else "",
            "The lines end where too few batches support a share.",
        ],
    )


def by_window(trials: Sequence[BreakdownTrial]) -> Figure | None:
    """Latency against the batch interval, one line for each rate and record size; None with a single interval."""
    with_interval = [trial for trial in trials if trial.stages and trial.batch_window_s is not None]
    if len({trial.batch_window_s for trial in with_interval}) < 2:
        return None
    groups: dict[tuple[float, int | None], list[BreakdownTrial]] = {}
    for trial in with_interval:
        groups.setdefault((trial.rate_per_s, trial.record_bytes), []).append(trial)
    shown = list(groups.values())[: len(_LINES)]
    return figure(
        "windows",
        "Latency by interval of batches",
        "For each rate the mean latency and its 90th percentile, against the interval at which batches begin.",
        lambda width: _by_window(shown, width),
        [
            Key(f"{load(of[0])}, {what}", colour, style)
            for of, colour in zip(shown, _LINES, strict=False)
            for what, style in (("mean", "line"), ("p90", "dash"))
        ],
        [
            f"The first {len(shown)} of {len(groups)} rates and sizes." if len(groups) > len(shown) else "",
            "If a batch takes longer than the interval, the next one starts when it ends. Interval 0 means always.",
        ],
    )


def _by_window(groups: Sequence[Sequence[BreakdownTrial]], width: int) -> Any:
    latencies = [trial.latency for of in groups for trial in of if trial.latency]
    factor, unit = unit_of_time(max(latency.p90_us or latency.mean_us for latency in latencies))
    x = alt.X("w:Q", scale=alt.Scale(zero=True), axis=_across("interval of batches (ms)", width))
    y = alt.Y("v:Q", scale=alt.Scale(zero=True), axis=numbers(5))
    layers = []
    for of, colour in zip(groups, _LINES, strict=False):
        for key, style in (
            ("mean_us", {"point": {"color": COLOURS[colour], "size": 40}}),
            ("p90_us", {"strokeDash": [5, 3]}),
        ):
            rows = [
                {"w": 1000 * trial.batch_window_s, "v": us / factor}
                for trial in of
                if trial.batch_window_s is not None and (us := getattr(trial.latency, key, None)) is not None
            ]
            line = alt.Chart(values(rows)).mark_line(color=COLOURS[colour], strokeWidth=2, **style)
            layers.append(line.encode(x=x, y=y))
    return alt.layer(*layers).properties(width=width, height=200, title=axis_title(f"latency ({unit})"))


def _across(title: str, width: int) -> Any:
    """A horizontal axis with as many labels as fit."""
    return alt.Axis(title=title, labelExpr=PLAIN, tickCount=ticks(width))


def _colour(stage: str) -> str:
    return _COLOURS.get(stage, _LAST)


def _bars(trials: Sequence[BreakdownTrial], width: int) -> Any:
    factor, unit = unit_of_time(max(trial.latency.mean_us for trial in trials if trial.latency))
    parts: dict[str, list[dict[str, Any]]] = {}
    for number, trial in enumerate(trials):
        ends = accumulate(stage.mean_us / factor for stage in trial.stages)
        for stage, (begin, end) in zip(trial.stages, pairwise((0.0, *ends)), strict=True):
            parts.setdefault(_colour(stage.name), []).append({"n": number, "v": begin, "to": end})
    x = alt.X("v:Q", axis=numbers(6, f"time since the event ({unit})"))
    y = alt.Y("n:O", axis=None)
    layers = stretches(parts.items(), x, y, _BAR_PX - 8)
    names = [{"n": number, "t": heading(trial), "v": 0} for number, trial in enumerate(trials)]
    label = alt.Chart(values(names)).mark_text(align="left", dy=-_BAR_PX + 6, color=COLOURS["ink"])
    layers.append(label.encode(x="v:Q", y=y, text="t:N"))
    return alt.layer(*layers).properties(
        width=width, height=2 * _BAR_PX * len(trials), title=axis_title("mean of each trial", 10)
    )


def _lines(trials: Sequence[BreakdownTrial], width: int) -> Any:
    factor, unit = unit_of_time(max(us for trial in trials for us in trial.cdf_us if us is not None))
    x = alt.X("v:Q", scale=alt.Scale(zero=True), axis=_across(f"latency ({unit})", width))
    y = alt.Y("q:Q", axis=numbers(5))
    layers = []
    for trial, colour in zip(trials, _LINES, strict=False):
        points = len(trial.cdf_us) - 1
        rows = [
            {"q": 100 * place / points, "v": us / factor} for place, us in enumerate(trial.cdf_us) if us is not None
        ]
        layers.append(alt.Chart(values(rows)).mark_line(color=COLOURS[colour]).encode(x=x, y=y))
    return alt.layer(*layers).properties(width=width, height=200, title=axis_title("results (%)"))


def heading(trial: BreakdownTrial) -> str:
    """`20 k events/s, 0 s, undecided`: rate, interval of batches, the size of a record where the workload has
    one, and the verdict where the rate is not sustained.
    """
    verdict = f", {labels.VERDICTS[trial.verdict]}" if trial.verdict != "sustained" else ""
    # With a short unit, the interval fits above a bar on a small screen.
    window = re.sub(r" (m?)(illi)?seconds?", r" \1s", f", {trial.batch_window}") if trial.batch_window else ""
    return f"{load(trial, window)}{verdict}"


def load(trial: BreakdownTrial, window: str = "") -> str:
    """`20 k events/s, 25 bytes`: what was offered."""
    size = f", {trial.record_bytes} bytes" if trial.record_bytes is not None else ""
    return f"{format_rate(trial.rate_per_s, 'events/s')}{window}{size}"
