"""The interval of every difference as a picture: one axis of percent, no change in the middle, the limits of gates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from streamgauge.report.draw import COLOURS, Figure, Key, axis_title, figure, values
from streamgauge.result import Difference, Gate

ROW_PX = 24
SHOWN_MAX = 200.0
"""Percent: what lies beyond is cut off, with an arrow; one interval without an end would hide all the others."""
ROOM = 1.1

_COLOURS = {"better": "sustained", "worse": "not-sustained", "no_difference": "muted", "unknown": "undecided"}
_LABELS = {"better": "B is better", "worse": "B is worse", "no_difference": "no difference shown"}


def differences(figures: Sequence[Difference], gates: Sequence[Gate]) -> Figure | None:
    """Each share that has an interval; None where there is none."""
    shown = [one for one in figures if one.share and one.method != "none"]
    if not shown:
        return None
    keys = [Key(label, _COLOURS[says]) for says, label in _LABELS.items() if any(one.says == says for one in shown)]
    limits = _limits(shown, gates)
    reach = _reach(shown, limits)
    cut = any(_cut(one, reach) for one in shown)
    return figure(
        "differences",
        "B against A, figure by figure",
        "The difference of each figure with its interval, in percent of A; the line in the middle is no difference.",
        lambda width: _chart(shown, limits, reach, width),
        [*keys, *([Key("limit of a --fail-if", "ink", "dash")] if limits else [])],
        ["An arrow stands where an interval goes on, or has no end."] if cut else [],
    )


def _limits(shown: Sequence[Difference], gates: Sequence[Gate]) -> list[dict[str, Any]]:
    labels = {one.name: one.label for one in shown}
    return [{"figure": labels[gate.figure], "v": 100 * gate.limit} for gate in gates if gate.figure in labels]


def _reach(shown: Sequence[Difference], limits: Sequence[dict[str, Any]]) -> float:
    """How far the axis goes to both sides, percent."""
    ends = [abs(100 * end) for one in shown for end in (one.low, one.high, one.difference) if end is not None]
    return min(SHOWN_MAX, ROOM * max([*ends, *(abs(limit["v"]) for limit in limits), 1.0]))


def _cut(one: Difference, reach: float) -> bool:
    return any(end is None or abs(100 * end) > reach for end in (one.low, one.high))


def _row(one: Difference, reach: float) -> dict[str, Any]:
    """One figure in the unit of the axis, cut to what the axis shows."""
    low, high = (_within(end, unknown, reach) for end, unknown in ((one.low, -reach), (one.high, reach)))
    return {"figure": one.label, "low": low, "high": high, "v": _within(one.difference, 0.0, reach), "says": one.says}


def _within(share: float | None, unknown: float, reach: float) -> float:
    return unknown if share is None else max(-reach, min(reach, 100 * share))


def _chart(shown: Sequence[Difference], limits: list[dict[str, Any]], reach: float, width: int) -> Any:
    rows = [_row(one, reach) for one in shown]
    scale = alt.Scale(domain=[-reach, reach], nice=False)
    ticks = alt.Axis(title=None, tickCount=5 if width < 400 else 9, labelExpr="format(datum.value, '+~f') + ' %'")
    x = alt.X("v:Q", scale=scale, axis=ticks)
    names = [row["figure"] for row in rows]
    room = alt.Axis(title=None, labelLimit=170, minExtent=130, maxExtent=170, grid=False)
    y = alt.Y("figure:N", sort=names, scale=alt.Scale(domain=names), axis=room)
    zero = alt.Chart(values([{"v": 0}])).mark_rule(color=COLOURS["ink"], strokeWidth=1).encode(x=x)
    layers = [zero]
    for says, colour in _COLOURS.items():
        layers += _marks([row for row in rows if row["says"] == says], COLOURS[colour], x, y, scale, reach)
    if limits:
        mark = alt.Chart(values(limits)).mark_tick(color=COLOURS["ink"], thickness=2, height=18, strokeDash=[4, 2])
        layers.append(mark.encode(x=x, y=y))
    heading = axis_title("difference (% of A)")
    return alt.layer(*layers).properties(width=width - 130, height=ROW_PX * len(rows), title=heading)


def _marks(rows: list[dict[str, Any]], colour: str, x: Any, y: Any, scale: Any, reach: float) -> list[Any]:
    """Bars with their points, and an arrow at each end that is cut off."""
    if not rows:
        return []
    bar = alt.Chart(values(rows)).mark_rule(color=colour, strokeWidth=4, opacity=0.55)
    point = alt.Chart(values(rows)).mark_point(color=colour, filled=True, opacity=1, size=70, shape="circle")
    drawn = [bar.encode(x=alt.X("low:Q", scale=scale, axis=x.axis), x2="high:Q", y=y), point.encode(x=x, y=y)]
    for end, angle in (("low", -90), ("high", 90)):
        cut = [{"figure": row["figure"], "v": row[end]} for row in rows if abs(row[end]) >= reach]
        if cut:
            arrow = alt.Chart(values(cut)).mark_point(
                color=colour, filled=True, opacity=1, size=70, shape="triangle-up", angle=angle
            )
            drawn.append(arrow.encode(x=x, y=y))
    return drawn
