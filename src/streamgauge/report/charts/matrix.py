"""Charts of a matrix: what each combination reached and what it used, one mark a repetition."""

from collections.abc import Callable, Sequence
from typing import Any

import altair as alt

from streamgauge.core.formatting import format_value
from streamgauge.report.charts.svg import (
    AXIS_PX,
    COLOURS,
    WIDE_PX,
    amounts,
    axis_title,
    figure,
    named_rows,
    numbers,
    unit_of_size,
    unit_of_time,
    values,
)
from streamgauge.report.document_blocks import Figure, Key
from streamgauge.results import labels
from streamgauge.results.matrix import MatrixCell, MatrixResult

ROW_PX, LABELS_PX, ROWS_MAX = 26, 130, 40
GAP_PX = 24
"""Between two panels side by side."""
_COLOURS = {"sustained": "sustained", "not_sustained": "not-sustained", "invalid": "invalid"}
_OTHER = "undecided"
_USED: dict[str, tuple[str, Callable[[float], tuple[float, str]]]] = {
    "event_time_p95_us": ("event time p95", unit_of_time),
    "sut_cpu_percent": ("SUT CPU", lambda _: (1.0, "% of a core")),
    "sut_memory_bytes": ("SUT memory", unit_of_size),
    "loopback_bytes_per_s": ("network", unit_of_size),
}
"""Figure to its heading, and to the function from its greatest value to divisor and unit."""


def combinations(result: MatrixResult) -> Figure | None:
    """What each combination reached; None without a rate, or with so many that a table reads better."""
    rates = "sustained_per_s" if any(one.sustained_per_s for one in result.cells) else "ingested_per_s"
    cells = [one for one in result.cells if getattr(one, rates) is not None]
    names = list(dict.fromkeys(map(_name, cells)))
    if not cells or len(names) > ROWS_MAX:
        return None
    return figure(
        "combinations",
        "Each combination",
        f"The {'sustained' if rates == 'sustained_per_s' else 'ingested'} rate of each combination, and its event-time "
        "latency from the median over the 95th to the 99th percentile.",
        lambda width: _chart(cells, names, rates, width),
        [
            *_verdict_keys(cells),
            Key("event-time latency: p50, p95 (thin) and up to p99, as far as known", "event-time"),
        ],
    )


def usage(result: MatrixResult) -> Figure | None:
    """The p95 latency of each combination, its CPU, memory and traffic; None with none of them, or too many rows."""
    cells = [one for one in result.cells if any(getattr(one, field) is not None for field in _USED)]
    names = list(dict.fromkeys(map(_name, cells)))
    if not cells or len(names) > ROWS_MAX:
        return None
    return figure(
        "usage",
        "Latency and resources of each combination",
        "The 95th percentile of event-time latency of each combination, and the CPU, memory and network that it used.",
        lambda width: _usage_chart(cells, names, width),
        _verdict_keys(cells),
        ["A row without a bar has no such figure. The network is all traffic over the loopback."],
    )


def _name(cell: MatrixCell) -> str:
    return ", ".join(format_value(value) for value in cell.settings.values()) or str(cell.number)


def _verdict_keys(cells: Sequence[MatrixCell]) -> list[Key]:
    """What the colour of a bar means."""
    verdicts = dict.fromkeys(one.verdict or "sustained" for one in cells)
    return [Key(labels.VERDICTS[verdict], _COLOURS.get(verdict, _OTHER), "dot") for verdict in verdicts]


def _bars(cells: Sequence[MatrixCell], field: str, divisor: float, axis: Any, y: Any) -> Any:
    """A bar for each cell that has the figure, in the colour of its verdict."""
    rows = [
        {"name": _name(one), "v": value / divisor, "colour": COLOURS[_COLOURS.get(one.verdict or "", _OTHER)]}
        for one in cells
        if (value := getattr(one, field)) is not None
    ]
    x = alt.X("v:Q", axis=axis, scale=alt.Scale(zero=True), stack=None)
    colour = alt.Color("colour:N", scale=None, legend=None)
    return alt.Chart(values(rows)).mark_bar(height=8, opacity=0.75).encode(x=x, y=y, color=colour)


def _chart(cells: Sequence[MatrixCell], names: list[str], rates: str, width: int) -> Any:
    y = named_rows("name", names, LABELS_PX, grid=True)
    size = {"width": width - LABELS_PX + AXIS_PX, "height": ROW_PX * len(names)}
    ticks = 4 if width < 400 else 8
    bars = _bars(cells, rates, 1.0, amounts(ticks), y)
    panels = [bars.properties(**size, title=axis_title("events per second"))]
    timed = [one for one in cells if one.event_time_p50_us is not None]
    if timed:
        divisor, unit = unit_of_time(max(one.event_time_p99_us or one.event_time_p50_us or 0.0 for one in timed))
        spans = [
            {"name": _name(one), "v": (one.event_time_p50_us or 0.0) / divisor,
             "to": (one.event_time_p99_us or one.event_time_p50_us or 0.0) / divisor}
            for one in timed
        ]  # fmt: skip
        x = alt.X("v:Q", axis=numbers(ticks), scale=alt.Scale(zero=True))
        rules = alt.Chart(values(spans)).mark_rule(color=COLOURS["event-time"], strokeWidth=5, opacity=0.7)
        medians = alt.Chart(values(spans)).mark_tick(color=COLOURS["event-time"], thickness=3, height=16)
        p95 = alt.Chart(values([
            {"name": _name(one), "v": one.event_time_p95_us / divisor} for one in timed if one.event_time_p95_us
        ])).mark_tick(color=COLOURS["event-time"], thickness=1, height=16)  # fmt: skip
        latencies = alt.layer(rules.encode(x=x, x2="to:Q", y=y), *(each.encode(x=x, y=y) for each in (medians, p95)))
        panels.append(latencies.properties(**size, title=axis_title(f"event time ({unit})")))
    return alt.vconcat(*panels, spacing=18)


def _usage_chart(cells: Sequence[MatrixCell], names: list[str], width: int) -> Any:
    """A panel for each figure that some cell has: two side by side where there is room, the left one with the names."""
    columns = 2 if width >= WIDE_PX else 1
    panel_px = (width - LABELS_PX + AXIS_PX - (columns - 1) * GAP_PX) // columns
    panels: list[Any] = []
    for field, (heading, unit_of) in _USED.items():
        if known := [value for one in cells if (value := getattr(one, field)) is not None]:
            divisor, unit = unit_of(max(known))
            unit += "/s" * field.endswith("_per_s")
            y = named_rows("name", names, 0 if len(panels) % columns else LABELS_PX, grid=True)
            bars = _bars(cells, field, divisor, numbers(4), y)
            size = {"width": panel_px, "height": ROW_PX * len(names)}
            panels.append(bars.properties(**size, title=axis_title(f"{heading} ({unit})")))
    return alt.concat(*panels, columns=columns, spacing={"row": 18, "column": GAP_PX})
