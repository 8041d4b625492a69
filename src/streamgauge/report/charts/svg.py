"""From an Altair chart to an inline SVG that takes its colours from the page, so one drawing serves light and dark.

Each quantity has one colour in all charts, as a CSS variable (`COLOURS`). page.css gives each variable its two values.
Every chart is drawn twice, for wide and for narrow screens, because text in a scaled SVG would become unreadable.
"""

import json
import re
from collections.abc import Callable, Iterable
from html import escape
from typing import Any

import altair as alt
import numpy as np
import pyarrow as pa
import vl_convert
from altair.utils.schemapi import debug_mode

from streamgauge.core.arrays import Floats
from streamgauge.report.document_blocks import Figure, Key

PARTS = tuple(f"part-{number}" for number in range(1, 6))
"""Colours of parts that the chart itself names: steps, stages, operators."""
COLOURS = {
    name: f"var(--{name})"
    for name in (
        *("offered", "ingested", "backlog", "lag", "frontier", "event-time", "processing-time"),
        *("sut", "driver", "broker", "network"),
        *PARTS,
        "rest",
        *("sustained", "not-sustained", "undecided", "invalid", "ink", "muted", "grid", "shade"),
    )
}

FONT = "system-ui, sans-serif"
WIDE_PX, NARROW_PX = 830, 300
AXIS_PX = 46
"""Width of every vertical axis's labels: the same, so that stacked panels share one time axis exactly."""
DASH = (6, 3)
_FEW_POINTS = 90


def figure(
    name: str,
    title: str,
    words: str,
    build: Callable[[int], Any],
    keys: Iterable[Key] = (),
    notes: Iterable[str] = (),
) -> Figure:
    """Draws `build(width_px)` for both widths."""
    # Altair validates every part of a chart, which takes longer than drawing it.
    with debug_mode(False):
        wide = svg(build(WIDE_PX), words, f"{name}-wide")
        narrow = svg(build(NARROW_PX), words, f"{name}-narrow")
    return Figure(name, title, wide, narrow, words, tuple(keys), tuple(note for note in notes if note))


def svg(chart: Any, words: str, prefix: str) -> str:
    """A chart as an inline SVG with an accessible name; `prefix` keeps its ids apart from those of other charts."""
    text: str = vl_convert.vegalite_to_svg({**chart.to_dict(validate=False), "config": _style()})
    text = re.sub(r"<[^>]+>", lambda tag: _embed_tag(tag.group(), prefix), text)
    return re.sub(r"<svg\b", f'<svg role="img" aria-label="{escape(words)}"', text, count=1)


def floats(table: pa.Table, name: str) -> Floats:
    """A column as numbers, NaN where it is null."""
    return np.asarray(table.column(name).cast(pa.float64()).to_numpy(), dtype=np.float64)


def named_rows(column: str, names: list[str], labels_px: int, grid: bool = False) -> Any:
    """A vertical axis of names in their order, without labels if there is no room for them."""
    room = {"labels": labels_px > 0, "labelLimit": labels_px - 8, "minExtent": labels_px, "maxExtent": labels_px}
    axis = alt.Axis(title=None, grid=grid, **room)
    return alt.Y(f"{column}:N", sort=names, scale=alt.Scale(domain=names), axis=axis)


def values(rows: list[dict[str, Any]]) -> Any:
    """Rows as inline data of a chart; as text, because Altair copies nested data dozens of times."""
    return alt.InlineData(values=json.dumps(rows), format=alt.JsonDataFormat(type="json"))


def stretches(parts: Iterable[tuple[str, list[dict[str, Any]]]], x: Any, y: Any, height_px: int) -> list[Any]:
    """Bars from `v` to `to` of each row: one layer for each (colour, rows) that has rows."""
    return [
        alt.Chart(values(rows)).mark_bar(color=COLOURS[colour], height=height_px).encode(x=x, y=y, x2="to:Q")
        for colour, rows in parts
        if rows
    ]


def axis_title(text: str, offset_px: int = 6) -> Any:
    """A panel's heading, the quantity and unit of its vertical axis; horizontal, so that it reads at any width."""
    return alt.TitleParams(text, anchor="start", frame="group", offset=offset_px)


PLAIN = "format(datum.value, ',~r')"
_AMOUNT = f"abs(datum.value) < 1000 ? {PLAIN} : replace(format(datum.value, '~s'), /(?=[a-zA-Z])/, ' ')"
"""Vega's formats as expressions: with an axis format, Vega would change the precision and print 120 as 1.2e+2."""


def amounts(ticks: int) -> Any:
    """A vertical axis of counts, labelled 0, 0.5, 120, 100 k, 1.5 M; never 500m, which few readers know as 0.5."""
    return alt.Axis(title=None, tickCount=ticks, labelExpr=_AMOUNT)


def numbers(ticks: int, title: str | None = None) -> Any:
    """An axis of measured values, labelled in full: 0.5, 120, 1 600."""
    return alt.Axis(title=title, tickCount=ticks, labelExpr=PLAIN)


def ticks(width_px: int) -> int:
    """Number of time labels that fit side by side."""
    return max(4, min(10, width_px // 70))


def unit_of_time(greatest_us: float) -> tuple[float, str]:
    """The divisor and name of the unit that suit times up to `greatest_us`."""
    if greatest_us >= 1e6:
        return 1e6, "s"
    return (1e3, "ms") if greatest_us >= 1e3 else (1.0, "us")


def unit_of_size(greatest_bytes: float) -> tuple[float, str]:
    """The divisor and name of the unit that suit sizes up to the greatest."""
    if greatest_bytes >= 2**30:
        return 2.0**30, "GiB"
    return (2.0**20, "MiB") if greatest_bytes >= 2**20 else (2.0**10, "KiB")


def _style() -> dict[str, Any]:
    """Vega-Lite configuration of every chart."""
    ink, muted, grid = COLOURS["ink"], COLOURS["muted"], COLOURS["grid"]
    return {
        "aria": False,
        "background": "transparent",
        "font": FONT,
        "padding": 4,
        "axis": {
            "labelColor": muted,
            "titleColor": muted,
            "domainColor": grid,
            "tickColor": grid,
            "gridColor": grid,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "tickSize": 4,
            "labelPadding": 4,
        },
        "axisY": {"domain": False, "ticks": False, "minExtent": AXIS_PX, "maxExtent": AXIS_PX},
        "view": {"stroke": None},
        "title": {"color": ink, "fontSize": 12.5, "fontWeight": 600},
        "text": {"color": ink, "fontSize": 12},
    }


def _embed_tag(tag: str, prefix: str) -> str:
    """Makes the ids of one tag unique and drops what inline SVG does not need (half of its size)."""
    tag = re.sub(r'\bid="', f'id="{prefix}-', tag).replace("url(#", f"url(#{prefix}-")
    tag = re.sub(r'\s(xmlns(:xlink)?|class|version|aria-[a-z]+|role|pointer-events)="[^"]*"', "", tag)
    return re.sub(r"(\.\d{2})\d+", r"\1", tag)


def draw_line(
    rows: list[dict[str, Any]],
    colour: str,
    width: float = 1.8,
    dash: tuple[int, int] | None = None,
    dots: bool = False,
    interpolate: str = "linear",
) -> Any:
    point = {"size": 16, "color": COLOURS[colour], "filled": True} if dots and len(rows) <= _FEW_POINTS else False
    style: dict[str, Any] = {"strokeDash": list(dash)} if dash else {}
    return alt.Chart(values(rows)).mark_line(
        color=COLOURS[colour], strokeWidth=width, point=point, interpolate=interpolate, clip=True, **style
    )
