"""Chart of a comparison: the interval of every difference in percent, with the limits of gates."""

from collections.abc import Callable, Sequence
from typing import Any

import altair as alt

from streamgauge.report.charts.svg import AXIS_PX, COLOURS, axis_title, figure, named_rows, values
from streamgauge.report.document_blocks import Figure, Key
from streamgauge.results.comparison import Difference, Gate
from streamgauge.results.labels import short_label

ROW_PX, LABELS_PX = 24, 150
SHOWN_MAX = 200.0
"""Percent: the chart cuts intervals here and draws an arrow, because an open interval would hide all others."""
MARGIN = 1.1

_COLOURS = {"better": "sustained", "worse": "not-sustained", "no_difference": "muted", "unknown": "undecided"}
_LABELS = {
    "better": "B is better",
    "worse": "B is worse",
    "no_difference": "no difference shown",
    "unknown": "neither end is known",
}


def differences(figures: Sequence[Difference], gates: Sequence[Gate]) -> Figure | None:
    """Every relative difference with an interval; None if there are none."""
    shown = [one for one in figures if one.share and one.method != "none"]
    if not shown:
        return None
    names = {one.name: short_label(one) for one in shown}
    limits = [{"figure": names[gate.figure], "v": 100 * gate.limit} for gate in gates if gate.figure in names]
    reach = _reach(shown, limits)
    cut = any(end is None or abs(100 * end) > reach for one in shown for end in (one.low, one.high))
    return figure(
        "differences",
        "B against A, figure by figure",
        "The difference of each figure with its interval, in percent of A; the line in the middle is no difference.",
        lambda width: _chart(shown, limits, reach, width),
        [
            *(Key(label, _COLOURS[says]) for says, label in _LABELS.items() if any(one.says == says for one in shown)),
            *([Key("limit of a --fail-if", "ink", "dash")] if limits else []),
        ],
        ["An arrow marks an interval that is cut or has no end."] if cut else [],
    )


def _reach(shown: Sequence[Difference], limits: Sequence[dict[str, Any]]) -> float:
    """Length of the axis on each side of 0, in percent."""
    ends = [abs(100 * end) for one in shown for end in (one.low, one.high, one.difference) if end is not None]
    return min(SHOWN_MAX, MARGIN * max([*ends, *(abs(limit["v"]) for limit in limits), 1.0]))


def _row(one: Difference, reach: float) -> dict[str, Any]:
    """One figure in percent, cut to the length of the axis."""
    return {
        "figure": short_label(one),
        "low": _within(one.low, -reach, reach),
        "high": _within(one.high, reach, reach),
        "v": _within(one.difference, 0.0, reach),
        "says": one.says,
    }


def _within(share: float | None, unknown: float, reach: float) -> float:
    return unknown if share is None else max(-reach, min(reach, 100 * share))


def _chart(shown: Sequence[Difference], limits: list[dict[str, Any]], reach: float, width: int) -> Any:
    rows = [_row(one, reach) for one in shown]
    x = _across(reach, width)
    y = named_rows("figure", [row["figure"] for row in rows], LABELS_PX)
    zero = alt.Chart(values([{"v": 0}])).mark_rule(color=COLOURS["ink"], strokeWidth=1)
    layers = [zero.encode(x=x("v"))]
    for says, colour in _COLOURS.items():
        marks = _marks([row for row in rows if row["says"] == says], COLOURS[colour], reach)
        layers += [mark.encode(y=y, x=x(start), **({"x2": end} if end else {})) for mark, start, end in marks]
    if limits:
        mark = alt.Chart(values(limits)).mark_tick(color=COLOURS["ink"], thickness=2, height=18, strokeDash=[4, 2])
        layers.append(mark.encode(x=x("v"), y=y))
    return alt.layer(*layers).properties(
        width=width - LABELS_PX + AXIS_PX, height=ROW_PX * len(rows), title=axis_title("difference (% of A)")
    )


def _across(reach: float, width: int) -> Callable[[str], Any]:
    """The horizontal axis, symmetric around 0."""
    scale = alt.Scale(domain=[-reach, reach], nice=False)
    label = "datum.value == 0 ? '0 %' : format(datum.value, '+~r') + ' %'"
    ticks = alt.Axis(title=None, tickCount=4 if width < 400 else 9, labelExpr=label)
    return lambda column: alt.X(f"{column}:Q", scale=scale, axis=ticks)


def _marks(rows: list[dict[str, Any]], colour: str, reach: float) -> list[tuple[Any, str, str]]:
    """(mark, start column, end column): bars with points, and an arrow at each end that is cut."""
    if not rows:
        return []
    point = {"color": colour, "filled": True, "opacity": 1, "size": 70}
    drawn = [
        (alt.Chart(values(rows)).mark_rule(color=colour, strokeWidth=4, opacity=0.55), "low", "high"),
        (alt.Chart(values(rows)).mark_point(**point, shape="circle"), "v", ""),
    ]
    for end, angle in (("low", -90), ("high", 90)):
        cut = [row for row in rows if abs(row[end]) >= reach]
        if cut:
            drawn.append((alt.Chart(values(cut)).mark_point(**point, shape="triangle-up", angle=angle), end, ""))
    return drawn
