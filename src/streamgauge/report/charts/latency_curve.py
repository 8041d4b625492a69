"""Latency curves: against percentile, computed from the histograms of latency.hlog, and against load."""

from dataclasses import dataclass
from itertools import product
from typing import Any

import altair as alt
import numpy as np

from streamgauge.artifacts import hlog
from streamgauge.core.formatting import format_percent, format_rate
from streamgauge.report.charts.capacity import MARKS
from streamgauge.report.charts.scalability import log_ticks
from streamgauge.report.charts.svg import (
    COLOURS,
    DASH,
    PLAIN,
    axis_title,
    draw_line,
    figure,
    numbers,
    unit_of_time,
    values,
)
from streamgauge.report.document_blocks import Figure, Key
from streamgauge.results import labels
from streamgauge.results.latency import PERCENTILES, Latency
from streamgauge.results.matrix import MatrixResult

_ENOUGH = 10
"""The curve goes past the last printed percentile while this many independent results lie beyond it."""


@dataclass(frozen=True)
class Point:
    """`percentile` (0 to 100) of the results have at most `latency_us`."""

    percentile: float
    latency_us: float

    @property
    def tail(self) -> float:
        """1 for the median's 50 %, 10 for 90 %, 1000 for 99.9 %: one over the share that is slower."""
        return 100.0 / (100.0 - self.percentile)


def histograms(log: str, sink: str = "") -> dict[str, hlog.Counts]:
    """The summed histogram of each kind in a log's text, from the lines tagged with `sink`, or untagged ones."""
    found: dict[str, hlog.Counts] = {}
    for interval in hlog.read(log):
        kind, _, of = (interval.tag or "event_time").partition("/")
        if of == sink:
            found[kind] = found.get(kind, 0) + interval.counts()
    return found


def points(latency: Latency, counts: hlog.Counts | None) -> list[Point]:
    """The curve of one latency, from 0 % to the last percentile that its evidence supports.

    Without a histogram, the points are the percentiles of the result.
    """
    if counts is None or not counts.any():
        return [Point(percentile, getattr(latency, name)) for name, percentile in _carried(latency).items()]
    percentiles = _grid(_last_percentile(latency))
    return [Point(p, us) for p, us in zip(percentiles, _values_at(counts, percentiles), strict=True)]


def _values_at(counts: hlog.Counts, percentiles: list[float]) -> list[float]:
    """The end of each percentile's slot, as HdrHistogram reports it, in one pass over the slots."""
    total_up_to = np.cumsum(counts)
    ranks = np.maximum(1, np.floor(np.array(percentiles) / 100 * total_up_to[-1] + 0.5))
    return [float(us) for us in hlog.HIGHEST_OF_SLOT[np.searchsorted(total_up_to, ranks)]]


def _carried(latency: Latency) -> dict[str, float]:
    """The percentiles (0 to 100) that the result prints, by name."""
    return {name: 100 * share for name, share in PERCENTILES.items() if getattr(latency, name) is not None}


def _last_percentile(latency: Latency) -> float:
    last = max(_carried(latency).values(), default=0.0)
    if latency.p99_9 is not None and latency.effective_count > 0:
        last = max(last, 100.0 * (1.0 - _ENOUGH / latency.effective_count))
    return last


def _grid(last: float) -> list[float]:
    """Percentiles from 0 to `last`, evenly spaced on the logarithmic tail axis, ending exactly at `last`."""
    if last <= 0:
        return []
    tails = np.geomspace(1.0, 100.0 / (100.0 - last), 160)
    return [*(100.0 * (1.0 - 1.0 / tails[:-1])).tolist(), last]


CURVES = {"event_time": "line", "processing_time": "dash"}
"""The drawn latencies and their colours."""


def percentiles(curves: dict[str, list[Point]], bounds: str = "") -> Figure | None:
    """The percentile curve of each kind of latency, with the tail on a logarithmic axis; `bounds`: an added remark."""
    curves = {kind: points for kind, points in curves.items() if len(points) > 1}  # one point makes no curve
    if not curves:
        return None
    return figure(
        "percentiles",
        "Latency by percentile",
        "Latency against the share of results with at most that latency. The axis of the tail is logarithmic.",
        lambda width: _percentile_chart(curves, width),
        [Key(labels.LATENCIES[kind], kind.replace("_", "-"), CURVES[kind]) for kind in curves],
        ["The curve ends where too few independent results support a percentile.", bounds],
    )


def _percentile_chart(curves: dict[str, list[Point]], width: int) -> Any:
    factor, unit = unit_of_time(max(point.latency_us for points in curves.values() for point in points))
    layers = [_percentile_line(kind, points, factor) for kind, points in reversed(curves.items())]
    return alt.layer(*layers).properties(width=width, height=230, title=axis_title(f"latency ({unit})"))


_TICKS = {1: "0", 2: "50", 4: "75", 10: "90", 20: "95", 100: "99", 1000: "99.9", 10_000: "99.99", 100_000: "99.999"}


def _percentile_line(kind: str, points: list[Point], factor: float) -> Any:
    rows = [{"x": point.tail, "v": point.latency_us / factor} for point in points]
    labels = " : ".join(f"datum.value == {tick} ? '{text}'" for tick, text in _TICKS.items()) + " : ''"
    axis = alt.Axis(
        values=list(_TICKS), labelExpr=labels, title="percentile (% of results at most this late)", labelOverlap=True
    )
    x = alt.X("x:Q", scale=alt.Scale(type="log", nice=False), axis=axis)
    y = alt.Y("v:Q", scale=alt.Scale(zero=True), axis=numbers(5))
    return draw_line(rows, kind.replace("_", "-"), dash=DASH if CURVES[kind] == "dash" else None).encode(x=x, y=y)


_BY_LOAD = {"p50": "part-4", "p90": "part-1", "p95": "part-3", "p99": "event-time"}
"""Percentile -> colour of its curve."""


def by_load(result: MatrixResult) -> Figure | None:
    """Each known percentile of the event time against the load of a sweep, with the knee; None without one."""
    sweep = result.sweep
    assert sweep is not None
    rows: list[dict[str, Any]] = [
        {"x": 100 * sweep.load_of(cell), "us": us, "name": name, "verdict": cell.verdict}
        for cell in result.cells
        for name in _BY_LOAD
        if (us := getattr(cell, f"event_time_{name}_us"))
    ]
    if not rows:
        return None
    names, verdicts = ({row[key] for row in rows} for key in ("name", "verdict"))
    knee = [] if sweep.knee is None else [100 * sweep.knee]
    return figure(
        "latency-by-load",
        "Latency against load",
        "Percentiles of event-time latency against the load as a share of one rate. The vertical axis is logarithmic.",
        lambda width: _load_chart(rows, knee, f"load (% of {format_rate(sweep.full_per_s)})", width),
        [
            *(Key(name, colour) for name, colour in _BY_LOAD.items() if name in names),
            *(Key(labels.VERDICTS[one], "muted", MARKS[one][2]) for one in MARKS if one in verdicts - {"sustained"}),
            *(Key(f"knee: {format_percent(load)}", "ink", "dash") for load in knee),
        ],
        [
            "The vertical axis is logarithmic. Lines join loads that are sustained.",
            "Where a load is not sustained, latency depends on the length of the trial.",
            "A percentile for which a trial has too few results is left out.",
        ],
    )


def _load_chart(rows: list[dict[str, Any]], knee: list[float], title: str, width: int) -> Any:
    factor, unit = unit_of_time(max(row["us"] for row in rows))
    times = [row["us"] / factor for row in rows]
    domain, loads = [0.87 * min(times), max(times) / 0.87], [0, 1.04 * max(row["x"] for row in rows)]
    x = alt.X("x:Q", scale=alt.Scale(domain=loads, nice=False), axis=numbers(6, title))
    axis = alt.Axis(title=None, values=log_ticks(*domain), labelExpr=PLAIN)
    y = alt.Y("v:Q", scale=alt.Scale(type="log", domain=domain, nice=False), axis=axis)
    rule = alt.Chart(values([{"x": load} for load in knee])).mark_rule(color=COLOURS["ink"], strokeDash=list(DASH))
    layers = [rule.encode(x=x)] if knee else []
    for (name, colour), (verdict, (shape, *_)) in product(_BY_LOAD.items(), MARKS.items()):
        of_mark = (row for row in rows if (row["name"], row["verdict"]) == (name, verdict))
        drawn = [{"x": row["x"], "v": row["us"] / factor} for row in of_mark]
        turned = {"shape": shape, "angle": 45 if shape == "cross" else 0}
        point = alt.Chart(values(drawn)).mark_point(color=COLOURS[colour], filled=False, size=70, **turned)
        mark = draw_line(drawn, colour, dots=True) if verdict == "sustained" else point
        layers += [mark.encode(x=x, y=y)] if drawn else []
    return alt.layer(*layers).properties(width=width, height=260, title=axis_title(f"event-time latency ({unit})"))
