"""Chart of a matrix: rate and latency of each combination, one mark a repetition."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from streamgauge.core.formatting import format_value
from streamgauge.report.charts.svg import (
    AXIS_PX,
    COLOURS,
    amounts,
    axis_title,
    figure,
    named_rows,
    numbers,
    unit_of_time,
    values,
)
from streamgauge.report.document_blocks import Figure, Key
from streamgauge.results import labels
from streamgauge.results.matrix import MatrixCell, MatrixResult

ROW_PX, LABELS_PX, ROWS_MAX = 26, 130, 40
_COLOURS = {"sustained": "sustained", "not_sustained": "not-sustained", "invalid": "invalid"}
_OTHER = "undecided"


def combinations(result: MatrixResult) -> Figure | None:
    """What each combination reached; None without a rate, or with so many that a table reads better."""
    rates = "sustained_per_s" if any(one.sustained_per_s for one in result.cells) else "ingested_per_s"
    cells = [one for one in result.cells if getattr(one, rates) is not None]
    names = list(dict.fromkeys(map(_name, cells)))
    if not cells or len(names) > ROWS_MAX:
        return None
    verdicts = dict.fromkeys(one.verdict or "sustained" for one in cells)
    return figure(
        "combinations",
        "Each combination",
        f"The {'sustained' if rates == 'sustained_per_s' else 'ingested'} rate of each combination, and its event-time "
        "latency from the median over the 95th to the 99th percentile.",
        lambda width: _chart(cells, names, rates, width),
        [
            *(Key(labels.VERDICTS[verdict], _COLOURS.get(verdict, _OTHER), "dot") for verdict in verdicts),
            Key("event-time latency: p50, p95 (thin) and up to p99, as far as known", "event-time"),
        ],
    )


def _name(cell: MatrixCell) -> str:
    return ", ".join(format_value(value) for value in cell.settings.values()) or str(cell.number)


def _chart(cells: Sequence[MatrixCell], names: list[str], rates: str, width: int) -> Any:
    y = named_rows("name", names, LABELS_PX, grid=True)
    size = {"width": width - LABELS_PX + AXIS_PX, "height": ROW_PX * len(names)}
    marks = [
        {"name": _name(one), "v": getattr(one, rates), "colour": COLOURS[_COLOURS.get(one.verdict or "", _OTHER)]}
        for one in cells
    ]
    ticks = 4 if width < 400 else 8
    colour = alt.Color("colour:N", scale=None, legend=None)
    x = alt.X("v:Q", axis=amounts(ticks), scale=alt.Scale(zero=True), stack=None)
    bars = alt.Chart(values(marks)).mark_bar(height=8, opacity=0.75).encode(x=x, y=y, color=colour)
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
