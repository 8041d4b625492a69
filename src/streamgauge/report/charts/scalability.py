"""Charts of a scalability study: capacity over resources with fitted laws, and demand over loads."""

import math
from collections.abc import Sequence
from typing import Any

import altair as alt

from streamgauge.report.charts.svg import COLOURS, DASH, PLAIN, amounts, axis_title, draw_line, figure, values
from streamgauge.report.document_blocks import Figure, Key
from streamgauge.results.scalability import Fit, ScaleResult

_LAWS = {
    "linear": ("straight line", "processing-time", "dash"),
    "universal": ("Universal Scalability Law", "event-time", "line"),
}
"""Law -> label, colour and style."""
_PUBLISHED = "Ehrenstein 2020, figure 5: Kafka Streams, other hardware"
_BOUND = 1.06
"""Length of the stroke above a lower bound, as a factor on the logarithmic axis."""
_DECADES_LABELLED = 1e4
"""Span of a logarithmic axis up to which 2 and 5 are labelled too, as a factor."""
_MARGIN = 0.87
"""Room beside the outermost levels, as a factor, so that their marks are not cut."""


def capacity(result: ScaleResult) -> Figure | None:
    """Capacity with its bracket for each level, the fitted laws, and the paper's points; None without a capacity."""
    known = [one for one in result.capacities if one.load is not None]
    if not known or result.loads[0] > result.loads[-1]:
        return None
    fits = [fit for fit in result.fits if fit.curve]
    bounds = {one.is_bound for one in known}
    keys = [
        *([Key("capacity, up to the next load that was not sustained", "sustained", "dot")] if False in bounds else []),
        *([Key("at least: no load above was shown to fail", "undecided", "triangle")] if True in bounds else []),
        *(Key(f"{label}, 95 % interval shaded", *style) for label, *style in (_LAWS[fit.law] for fit in fits)),
        *([Key(_PUBLISHED, "muted", "diamond")] if result.published else []),
    ]
    return figure(
        "capacity",
        "Capacity over resources",
        "The highest load that each level of resources sustained, with its bracket, fitted laws and published points.",
        lambda width: _capacity_chart(result, fits, width),
        keys,
        ["Both axes are logarithmic.", "Beyond the greatest level the laws extrapolate." if fits else ""],
    )


def demand(result: ScaleResult) -> Figure | None:
    """The least level of resources that sustains each load; None without one."""
    if all(one.resources is None for one in result.demands):
        return None
    failing = [Key("no level sustains the load", "not-sustained", "cross")] if _sustained_by_none(result) else []
    return figure(
        "demand",
        "Demand over load",
        "The least level of resources that sustained each load.",
        lambda width: _demand_chart(result, width),
        [Key("demand", "sustained"), *failing],
        ["The axis of the load is logarithmic."],
    )


def _capacity_chart(result: ScaleResult, fits: Sequence[Fit], width: int) -> Any:
    fitted = (layer for fit in fits for layer in _fit_layers(fit, result))
    return alt.layer(*fitted, *_published_layers(result), *_bracket_layers(result)).properties(
        width=width, height=280, title=axis_title(f"sustained {_load_title(result)}")
    )


def _x(result: ScaleResult) -> Any:
    ticks = sorted({*result.resources, *(one.resources for one in result.published)})
    reach = max((point.resources for fit in result.fits for point in fit.curve), default=0.0)
    scale = alt.Scale(type="log", domain=[_MARGIN * ticks[0], max(ticks[-1], reach) / _MARGIN], nice=False)
    return alt.X("n:Q", scale=scale, axis=alt.Axis(title=result.resource, values=ticks, grid=False, format="d"))


def _y(name: str, result: ScaleResult) -> Any:
    low, high = _loads_drawn(result)
    axis = alt.Axis(title=None, values=log_ticks(low, high), labelExpr=_labels(low))
    return alt.Y(name, scale=alt.Scale(type="log", domain=[low, high], nice=False), axis=axis)


def _loads_drawn(result: ScaleResult) -> tuple[float, float]:
    """The ends of the axis of loads: every capacity, published point and fitted value fits between them."""
    loads = [
        *(load for one in result.capacities for load in (one.load, one.refused) if load is not None),
        *(one.per_s for one in result.published),
        *(point.value for fit in result.fits for point in fit.curve if point.value > 0),
    ]
    return _MARGIN * min(loads), max(loads) / _MARGIN


def _labels(least: float) -> str:
    """How loads are labelled: parts of one in full, such as 0.05."""
    return str(amounts(6).labelExpr) if least >= 1 else PLAIN


def log_ticks(low: float, high: float) -> list[float]:
    """Labels of a logarithmic axis: 1, 2 and 5 in each decade, or only 1 over many decades."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if high / low < _DECADES_LABELLED else (1,)
    return [step * 10.0**decade for decade in decades for step in steps if low <= step * 10.0**decade <= high]


def _fit_layers(fit: Fit, result: ScaleResult) -> list[Any]:
    _, colour, style = _LAWS[fit.law]
    drawn = [point for point in fit.curve if point.value > 0 and point.low > 0 and point.high is not None]
    if not drawn:
        return []
    rows = [{"n": p.resources, "v": p.value, "low": p.low, "high": p.high} for p in drawn]
    band = alt.Chart(values(rows)).mark_area(color=COLOURS[colour], opacity=0.14, clip=True)
    line = draw_line(rows, colour, dash=DASH if style == "dash" else None)
    x = _x(result)
    return [band.encode(x=x, y=_y("low:Q", result), y2="high:Q"), line.encode(x=x, y=_y("v:Q", result))]


def _published_layers(result: ScaleResult) -> list[Any]:
    if not result.published:
        return []
    rows = [{"n": one.resources, "v": one.per_s} for one in result.published]
    mark = alt.Chart(values(rows)).mark_point(shape="diamond", color=COLOURS["muted"], filled=False, size=70, opacity=1)
    return [mark.encode(x=_x(result), y=_y("v:Q", result))]


def _bracket_layers(result: ScaleResult) -> list[Any]:
    layers = []
    for colour, bound in (("sustained", False), ("undecided", True)):
        rows = [
            {"n": one.resources, "v": one.load, "to": one.refused if not bound else (one.load or 0) * _BOUND}
            for one in result.capacities
            if one.load is not None and one.is_bound is bound
        ]
        if rows:
            span = alt.Chart(values(rows)).mark_rule(color=COLOURS[colour], strokeWidth=3)
            layers.append(span.encode(x=_x(result), y=_y("v:Q", result), y2="to:Q"))
            dot = alt.Chart(values(rows)).mark_point(
                shape="triangle-up" if bound else "circle", color=COLOURS[colour], filled=True, opacity=1, size=80
            )
            layers.append(dot.encode(x=_x(result), y=_y("v:Q", result)))
    return layers


def _demand_chart(result: ScaleResult, width: int) -> Any:
    hardest = result.resources[-1]
    rows = [{"v": one.load, "n": one.resources} for one in result.demands if one.resources is not None]
    missing = [{"v": load, "n": hardest} for load in _sustained_by_none(result)]
    ends = sorted((result.loads[0], result.loads[-1]))
    domain = [_MARGIN * ends[0], ends[1] / _MARGIN]
    scale = alt.Scale(type="log", domain=domain, nice=False, reverse=result.loads[0] > result.loads[-1])
    axis = alt.Axis(title=_load_title(result), values=log_ticks(*domain), labelExpr=_labels(ends[0]))
    x = alt.X("v:Q", scale=scale, axis=axis)
    y = alt.Y(
        "n:Q", scale=alt.Scale(zero=True, domain=[0, hardest * 1.15]),
        axis=alt.Axis(title=None, values=list(result.resources), format="d"),
    )  # fmt: skip
    layers = [draw_line(rows, "sustained", dots=True, interpolate="step-before").encode(x=x, y=y)]
    if missing:
        mark = alt.Chart(values(missing)).mark_point(
            shape="cross", angle=45, color=COLOURS["not-sustained"], filled=True, opacity=1, size=60
        )
        layers.append(mark.encode(x=x, y=y))
    return alt.layer(*layers).properties(width=width, height=200, title=axis_title(result.resource))


def _sustained_by_none(result: ScaleResult) -> list[float]:
    """The loads that no level sustains, as a trial showed."""
    return [one.load for one in result.demands if one.resources is None and one.decided]


def _load_title(result: ScaleResult) -> str:
    name = "load" if result.load_unit == "events/s" else result.dimension.rpartition(".")[2]
    return f"{name} ({result.load_unit})" if result.load_unit else name
