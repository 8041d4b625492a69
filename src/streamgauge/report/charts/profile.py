"""Charts of an operator profile: the time per tuple of each operator, and the engine's memory."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from streamgauge.core.formatting import format_digits, format_us
from streamgauge.report.charts.svg import (
    AXIS_PX,
    COLOURS,
    axis_title,
    figure,
    named_rows,
    numbers,
    unit_of_size,
    unit_of_time,
    values,
)
from streamgauge.report.document_blocks import Figure, Key
from streamgauge.results.profile import MemoryDistribution, ProfiledOperator, TupleTime

ROW_PX, LABELS_PX = 26, 130
MEMORY = {"min": "least", "p50": "p50", "p95": "p95", "max": "most"}
"""Memory figures in ascending order."""


def times(operators: Sequence[ProfiledOperator]) -> Figure | None:
    """A bar for the median of each timed operator and a mark for its p99; None without a timed operator."""
    rows = [{"name": row.name, "v": time.median, "p99": time.p99} for row in operators if (time := time_text(row))]
    if not rows:
        return None
    return figure(
        "tuple-time",
        "Time of a tuple at each operator",
        "One bar per operator: the median time of a tuple at one instance, with its p99 as a mark.",
        lambda width: _time_chart(rows, width),
        [
            Key("median", "part-4", "area"),
            *([Key("p99", "ink")] if any(row["p99"] is not None for row in rows) else []),
        ],
    )


def _time_chart(rows: list[dict[str, Any]], width: int) -> Any:
    greatest_us = max(value for row in rows for value in (row["v"], row["p99"]) if value is not None)
    divisor, unit = (1e-3, "ns") if greatest_us < 1 else unit_of_time(greatest_us)
    scaled = [{**row, "v": row["v"] / divisor, "p99": (row["p99"] or 0.0) / divisor} for row in rows]
    layers = [_bars(scaled, "part-4")]
    marks = [row for row, whole in zip(scaled, rows, strict=True) if whole["p99"] is not None]
    if marks:
        tick = alt.Chart(values(marks)).mark_tick(color=COLOURS["ink"], thickness=3, height=18)
        layers.append(tick.encode(x=alt.X("p99:Q", axis=numbers(5)), y=_names(rows)))
    return _together(layers, len(rows), width, f"time of a tuple ({unit})")


def memory(of: MemoryDistribution) -> Figure:
    """A bar for each figure of the distribution."""
    return figure(
        "memory",
        "Memory of the engine's processes while operators were timed",
        "Four bars: minimum, median, 95th percentile and maximum of the sampled memory.",
        lambda width: _memory_chart(of, width),
    )


def _memory_chart(of: MemoryDistribution, width: int) -> Any:
    divisor, unit = unit_of_size(of.max)
    rows = [{"name": label, "v": getattr(of, name) / divisor} for name, label in MEMORY.items()]
    return _together([_bars(rows, "sut")], len(rows), width, f"resident memory ({unit})")


def _bars(rows: list[dict[str, Any]], colour: str) -> Any:
    bar = alt.Chart(values(rows)).mark_bar(color=COLOURS[colour], height=14)
    return bar.encode(x=alt.X("v:Q", axis=numbers(5)), y=_names(rows))


def _names(rows: list[dict[str, Any]]) -> Any:
    return named_rows("name", [row["name"] for row in rows], LABELS_PX)


def _together(layers: list[Any], rows: int, width: int, heading: str) -> Any:
    return alt.layer(*layers).properties(
        width=width - LABELS_PX + AXIS_PX, height=ROW_PX * rows, title=axis_title(heading)
    )


def time_text(row: ProfiledOperator) -> TupleTime | None:
    """An operator's time; None if it was not timed, or not distinguishable from reading alone."""
    time = row.time_per_tuple_us
    return time if time is not None and time.distinguishable else None


def tuple_time(us: float | None) -> str:
    """A tuple's time, in nanoseconds below a microsecond."""
    return f"{format_digits(1000 * us)} ns" if us is not None and us < 1 else format_us(us)
