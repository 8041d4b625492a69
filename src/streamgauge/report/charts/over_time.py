"""The charts over a run's time: rates, backlog, consumer lag, latencies, resources, and series of the engine's own.

Each function gives a `Figure`, or None if there is nothing to draw.

Axes of amounts start at 0. A note under the chart reports an axis that does not, or values above the axis."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import altair as alt
import numpy as np
import pyarrow as pa

from streamgauge.artifacts.series_files import LATENCIES
from streamgauge.core.arrays import Floats, Int64s
from streamgauge.core.clock import US
from streamgauge.core.formatting import format_rate
from streamgauge.report.charts.svg import (
    COLOURS,
    DASH,
    PARTS,
    PLAIN,
    amounts,
    axis_title,
    draw_line,
    figure,
    floats,
    numbers,
    ticks,
    unit_of_size,
    unit_of_time,
    values,
)
from streamgauge.report.document_blocks import Figure, Key

POINTS_MAX = 300
_MEANS = (
    "planned",
    "offered",
    "handed_out",
    "committed",
    "sut_cpu_percent",
    "driver_cpu_percent",
    "broker_cpu_percent",
    "loopback_bytes_per_s",
)
_SMOOTH_S = 10


@dataclass(frozen=True)
class Band:
    """A phase of the run, in seconds since its start."""

    name: str
    start_s: float
    end_s: float


@dataclass(frozen=True)
class Timeline:
    """`columns` are as long as `second`, NaN where unknown; each point stands for `bin_s` seconds."""

    second: Floats
    bin_s: int
    columns: dict[str, Floats]
    bands: tuple[Band, ...]
    start_us: int
    end_s: float

    def known(self, *names: str) -> bool:
        """Whether any of these columns has a value."""
        return any(bool(np.isfinite(self.columns[name]).any()) for name in names)

    def top(self, *names: str) -> float:
        """The maximum of these columns; 0 without values."""
        return float(max((np.nanmax(c) for n in names if np.isfinite(c := self.columns[n]).any()), default=0.0))

    def rows(self, name: str, factor: float = 1.0, gaps: bool = True, gap_at: str = "") -> list[dict[str, Any]]:
        """Points `t`, `v` of a column. Unknown values are null. Without `gaps` they are left out, so that the line goes
        on across them, except where the column `gap_at` has a value.
        """
        kept = np.isfinite(self.columns[name]) | gaps | (np.isfinite(self.columns[gap_at]) if gap_at else False)
        pairs = zip(self.second[kept].tolist(), (self.columns[name][kept] / factor).tolist(), strict=True)
        return [{"t": t, "v": v if np.isfinite(v) else None} for t, v in pairs]


def from_series(series: pa.Table, batches: pa.Table | None = None) -> Timeline | None:
    """The timeline of a per-second series, and of its `batches` (series_files.py); None if it has no rows."""
    if series.num_rows == 0:
        return None
    time_us = series.column("time_us").to_numpy()
    start_us = int(time_us[0])
    raw = series.drop_columns(["time_us", "phase", "lag_by_partition"]).to_pandas().astype(np.float64)
    handed_out = raw["handed_out"]
    # Over each second and the nine before it, because micro-batches make single seconds jump.
    raw["handed_out_mean"] = handed_out.rolling(_SMOOTH_S, min_periods=1).mean().where(handed_out.notna())
    lags = series.column("lag_by_partition").to_pylist()
    raw["lag_most"] = [max(lag) if lag and len(lag) > 1 else np.nan for lag in lags]
    raw["off_plan"] = (raw["planned"] - raw["offered"]).cumsum().abs()
    raw["scheduling_delay_us"] = _delays(batches, time_us)
    second = (time_us - start_us) / US
    bin_s = max(1, int(np.ceil((second[-1] + 1) / POINTS_MAX)))
    points = raw.groupby(second // bin_s * bin_s).agg({name: "mean" if name in _MEANS else "max" for name in raw})
    columns = {name: values.to_numpy() for name, values in points.items()}
    bands = _phases(second, series.column("phase").to_pylist())
    return Timeline(points.index.to_numpy(), bin_s, columns, bands, start_us, float(second[-1]) + 1)


def _delays(batches: pa.Table | None, time_us: Int64s) -> Floats:
    """The greatest scheduling delay of the batches that started in each second, microseconds; NaN without one."""
    most = np.full(len(time_us), np.nan)
    if batches is not None:
        second = (batches["start_us"].to_numpy() - time_us[0]) // US
        inside = (second >= 0) & (second < len(most))
        np.fmax.at(most, second[inside], floats(batches, "scheduling_delay_us")[inside])
    return most


def _phases(second: Floats, phases: list[str]) -> tuple[Band, ...]:
    starts = [i for i, name in enumerate(phases) if i == 0 or name != phases[i - 1]]
    ends = [*(float(second[i]) for i in starts[1:]), float(second[-1]) + 1]
    return tuple(Band(phases[i], float(second[i]), end) for i, end in zip(starts, ends, strict=True))


_PANEL_PX = 120
_HEADROOM = 2.5
"""Top of the rate panel in multiples of the offered rate: the first batch would flatten everything else."""
_OFF_PLAN_S = 0.2
"""The chart shows the plan if the driver lacks this many seconds of it: more than a chunk and the allowed delay."""


@dataclass(frozen=True)
class _Panel:
    """One chart of a stack: layers over `t`, `v`, on a vertical axis from 0 to `top`; `axis` labels it.

    `keys` explain what the title does not name.
    """

    title: str
    layers: tuple[Any, ...]
    top: float
    height_px: int = _PANEL_PX
    axis: Callable[[int], Any] = numbers
    keys: tuple[Key, ...] = ()


def over_time(timeline: Timeline | None) -> Figure | None:
    """Offered and ingested, backlog, lag, both latencies and the output frontier on one time axis; phases as bands."""
    if timeline is None:
        return None
    panels = _time_panels(timeline)
    return figure(
        "over-time",
        "Offered, ingested, backlog, consumer lag and latency over time",
        "Charts over one time axis: rates, backlog, consumer lag, latencies by second of event time, and how far the "
        "output is behind.",
        lambda width: _stacked(panels, timeline, width),
        [key for panel in panels for key in panel.keys],
        [_bin_note(timeline), _cut_note(timeline)],
    )


def resources(timeline: Timeline | None) -> Figure | None:
    """CPU and memory of the system under test, the driver and a broker, and the network, over time."""
    if timeline is None or not timeline.known("sut_cpu_percent", "driver_cpu_percent", "sut_memory_bytes"):
        return None
    keys = [Key("system under test", "sut"), Key("driver", "driver", "dash")]
    keys += [Key("broker", "broker", "dash")] if timeline.known("broker_cpu_percent") else []
    keys += [Key("network: everything over the loopback", "network")] if timeline.known("loopback_bytes_per_s") else []
    return figure(
        "resources",
        "CPU and memory over time",
        "CPU and memory of the system under test, of the driver and of a broker over the run's time.",
        lambda width: _stacked(_resource_panels(timeline), timeline, width),
        keys,
        [_bin_note(timeline)],
    )


def engine_series(timeline: Timeline | None, table: pa.Table) -> Figure | None:
    """Series of the engine's own (series_files.py): a panel for each, with a line for each operator."""
    if timeline is None or not table.num_rows:
        return None
    at = (table["time_us"].to_numpy() - timeline.start_us) // (timeline.bin_s * US) * timeline.bin_s
    means = table.append_column("t", pa.array(at)).group_by(["name", "unit", "operator", "t"], use_threads=False)
    lines: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for row in means.aggregate([("value", "mean")]).to_pylist():
        lines[f"{row['name']} ({row['unit']})"][row["operator"]].append({"t": row["t"], "v": row["value_mean"]})
    operators = sorted(table["operator"].unique().to_pylist())
    colours = dict(zip(operators, cycle(PARTS), strict=False))
    panels = [
        _Panel(
            title,
            tuple(draw_line(points, colours[operator]) for operator, points in by_operator.items()),
            max(point["v"] for points in by_operator.values() for point in points),
            axis=amounts,
        )
        for title, by_operator in sorted(lines.items())
    ]
    return figure(
        "engine-series",
        "Series of the engine's own over time",
        "What the system under test reports about itself over the run's time, one chart for each series.",
        lambda width: _stacked(panels, timeline, width),
        [Key(operator, colour) for operator, colour in colours.items() if operator],
        [f"Each point is a mean over {timeline.bin_s} s." if timeline.bin_s > 1 else ""],
    )


def _time_panels(timeline: Timeline) -> list[_Panel]:
    """Rates and backlog, then what else is known."""
    others = ((_lag_panel, ("lag_events",)), (_latency_panel, LATENCIES), (_frontier_panel, ("frontier_lag_us",)))
    known = (panel(timeline) for panel, columns in others if timeline.known(*columns))
    delay = [_delay_panel(timeline)] if timeline.known("scheduling_delay_us") else []
    return [_rate_panel(timeline), *delay, _backlog_panel(timeline), *known]


def _resource_panels(timeline: Timeline) -> list[_Panel]:
    panels = [_by_role(timeline, "CPU (% of one core)", "cpu_percent", 1.0)]
    if timeline.known("sut_memory_bytes", "driver_memory_bytes"):
        factor, unit = unit_of_size(timeline.top(*(f"{role}_memory_bytes" for role in ("sut", "driver", "broker"))))
        panels.append(_by_role(timeline, f"resident memory ({unit})", "memory_bytes", factor))
    if timeline.known("loopback_bytes_per_s"):
        factor, unit = unit_of_size(timeline.top("loopback_bytes_per_s"))
        line = draw_line(timeline.rows("loopback_bytes_per_s", factor), "network")
        panels.append(_Panel(f"network ({unit}/s)", (line,), timeline.top("loopback_bytes_per_s") / factor))
    return panels


def _rate_panel(timeline: Timeline) -> _Panel:
    # Counts are cumulative: a chunk becomes available after its last event, so single seconds differ from the plan by
    # up to a chunk.
    missed = timeline.top("off_plan") > _OFF_PLAN_S * timeline.top("planned")
    return _Panel(
        "rate (events/s)",
        (
            _area(timeline.rows("handed_out"), "ingested", opacity=0.22),
            draw_line(timeline.rows("handed_out_mean"), "ingested", width=2.6),
            *([draw_line(timeline.rows("planned"), "muted", dash=(2, 2))] if missed else []),
            draw_line(timeline.rows("offered"), "offered", width=1.3, interpolate="step-after"),
        ),
        _rate_top(timeline),
        axis=amounts,
        keys=(
            *([Key("planned", "muted", "dash")] if missed else []),
            Key("offered", "offered"),
            Key("ingested, mean of the last 10 s", "ingested"),
            Key("ingested, per point", "ingested", "area"),
        ),
    )


def _backlog_panel(timeline: Timeline) -> _Panel:
    area = _area(timeline.rows("backlog_events"), "backlog", opacity=0.35, line=True)
    return _Panel("backlog (events)", (area,), timeline.top("backlog_events"), 90, amounts)


def _lag_panel(timeline: Timeline) -> _Panel:
    """The sum over all partitions; of several also the one with most, which a sum may hide."""
    layers = [_area(timeline.rows("lag_events"), "lag", opacity=0.25, line=True)]
    keys: tuple[Key, ...] = ()
    if timeline.known("lag_most"):
        layers.append(draw_line(timeline.rows("lag_most"), "lag", dash=DASH))
        keys = (Key("consumer lag of the partition with most", "lag", "dash"),)
    return _Panel("consumer lag (events)", tuple(layers), timeline.top("lag_events"), 90, amounts, keys)


def _latency_panel(timeline: Timeline) -> _Panel:
    """Event time and processing time, as far as they are known: p99 with dots, p50 thin. Seconds with too few results
    have no p99, and break its line, which would be below the p50 there.
    """
    top = timeline.top(*LATENCIES)
    factor, unit = unit_of_time(top)
    styles: tuple[dict[str, Any], ...] = ({"width": 1}, {"dots": True})
    layers, keys = [], []
    for kind, dash in (("processing_time", DASH), ("event_time", None)):
        names, colour = [f"{kind}_us_{percentile}" for percentile in ("p50", "p99")], kind.replace("_", "-")
        for name, style in zip(names, styles, strict=True):
            rows = timeline.rows(name, factor, gaps=False, gap_at=names[0])
            layers.append(draw_line(rows, colour, dash=dash, **style))
        if timeline.known(*names):
            name = f"{colour.replace('-', ' ')} p99, where it has enough results (thin: p50)"
            keys.append(Key(name, colour, "dash" if dash else "line"))
    return _Panel(f"latency by second of event time ({unit})", tuple(layers), top / factor, keys=tuple(keys[::-1]))


def _frontier_panel(timeline: Timeline) -> _Panel:
    top = timeline.top("frontier_lag_us")
    factor, unit = unit_of_time(top)
    line = draw_line(timeline.rows("frontier_lag_us", factor), "frontier")
    return _Panel(f"output frontier behind the plan ({unit})", (line,), top / factor, 70)


def _delay_panel(timeline: Timeline) -> _Panel:
    """What batches waited for, right below the rates that they read."""
    top = timeline.top("scheduling_delay_us")
    factor, unit = unit_of_time(top)
    line = draw_line(timeline.rows("scheduling_delay_us", factor, gaps=False), "frontier", dots=True)
    return _Panel(f"scheduling delay of batches ({unit})", (line,), top / factor, 70)


def _by_role(timeline: Timeline, title: str, what: str, factor: float) -> _Panel:
    """The same quantity of the system under test, of the driver, and of a broker if there is one."""
    shown = [role for role in ("sut", "driver", "broker") if role != "broker" or timeline.known(f"broker_{what}")]
    layers = [
        draw_line(timeline.rows(f"{role}_{what}", factor), role, dash=None if role == "sut" else DASH) for role in shown
    ]
    return _Panel(title, tuple(layers), timeline.top(*(f"{role}_{what}" for role in shown)) / factor)


def _stacked(panels: list[_Panel], timeline: Timeline, width: int) -> Any:
    """Panels over one time axis: the lowest panel has its labels, the highest names the phases."""
    drawn = [_draw(panel, timeline, width, panel is panels[0], panel is panels[-1]) for panel in panels]
    return alt.vconcat(*drawn, spacing=14).resolve_scale(x="shared")


def _draw(panel: _Panel, timeline: Timeline, width: int, highest: bool, lowest: bool) -> Any:
    title = "seconds since the run's start" if lowest else None
    axis = alt.Axis(title=title, labels=lowest, ticks=lowest, grid=False, tickCount=ticks(width), labelExpr=PLAIN)
    x = alt.X("t:Q", scale=alt.Scale(domain=[0, timeline.end_s], nice=False), axis=axis)
    y = alt.Y("v:Q", scale=alt.Scale(domain=[0, panel.top or 1], nice=True), axis=panel.axis(4))
    layers = [*_bands(timeline, width, x, highest), *(layer.encode(x=x, y=y) for layer in panel.layers)]
    return alt.layer(*layers).properties(
        width=width, height=panel.height_px, title=axis_title(panel.title, 18 if highest else 6)
    )


def _bands(timeline: Timeline, width: int, x: Any, labelled: bool) -> list[Any]:
    """Shades all phases except the measured one, draws their borders, and names them where the name fits."""
    bands = timeline.bands
    shades = [
        {"t": band.start_s, "to": band.end_s, "fill": COLOURS["shade"]} for band in bands if band.name != "measured"
    ]
    shaded = alt.Chart(values(shades)).mark_rect(opacity=0.75, clip=True)
    layers = [shaded.encode(x=x, x2="to:Q", color=alt.Color("fill:N", scale=None))]
    if len(bands) > 1:
        borders = alt.Chart(values([{"t": band.start_s} for band in bands[1:]]))
        layers.append(borders.mark_rule(color=COLOURS["muted"], strokeDash=[2, 3], opacity=0.8).encode(x=x))
    if labelled:
        names = values([{"t": band.start_s, "label": _fitting(band, timeline.end_s, width)} for band in bands])
        text = alt.Chart(names).mark_text(
            align="left", baseline="bottom", dx=3, dy=-4, color=COLOURS["muted"], fontSize=11.5
        )
        layers.append(text.encode(x=x, y=alt.value(0), text="label:N"))
    return layers


def _fitting(band: Band, end_s: float, width: int) -> str:
    room_px = (band.end_s - band.start_s) / end_s * width
    return band.name if room_px > 7 * len(band.name) + 6 else ""


def _area(rows: list[dict[str, Any]], colour: str, opacity: float, line: bool = False) -> Any:
    edge: Any = {"color": COLOURS[colour], "strokeWidth": 1.4} if line else False
    return alt.Chart(values(rows)).mark_area(
        color=COLOURS[colour], opacity=opacity, line=edge, interpolate="step-after", clip=True
    )


def _rate_top(timeline: Timeline) -> float:
    offered = timeline.top("offered", "planned")
    top = timeline.top("offered", "planned", "handed_out")
    return min(top, _HEADROOM * offered) if offered else top


def _bin_note(timeline: Timeline) -> str:
    if timeline.bin_s == 1:
        return ""
    return f"Each point stands for {timeline.bin_s} s: the mean of rates and CPU, the maximum of everything else."


def _cut_note(timeline: Timeline) -> str:
    top = timeline.top("handed_out")
    if top <= _rate_top(timeline):
        return ""
    return f"The rate axis is cut: the most delivered in one point is {format_rate(top, 'events/s')}."
