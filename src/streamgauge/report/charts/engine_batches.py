"""Charts of the engine's batches: how long each took, and the steps of the longest ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streamgauge.artifacts.series_files import batch_steps
from streamgauge.core.clock import US
from streamgauge.report.charts.svg import (
    COLOURS,
    PARTS,
    PLAIN,
    axis_title,
    figure,
    floats,
    numbers,
    stretches,
    ticks,
    unit_of_time,
    values,
)
from streamgauge.report.document_blocks import Figure, Key

BARS_MAX, WATERFALL_MAX = 140, 10


@dataclass(frozen=True)
class Batches:
    """Batches as arrays: `start_s` since the run's start, `steps_us` of shape (batches, steps and rest).

    `labels`: those of the steps and of the rest.
    """

    batch_id: NDArray[np.int64]
    start_s: NDArray[np.float64]
    steps_us: NDArray[np.float64]
    labels: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.batch_id)

    @property
    def total_us(self) -> NDArray[np.float64]:
        return self.steps_us.sum(axis=1)

    @property
    def colours(self) -> list[str]:
        return [PARTS[step % len(PARTS)] for step in range(len(self.labels) - 1)] + ["rest"]

    def take(self, index: NDArray[np.int64]) -> Batches:
        return Batches(self.batch_id[index], self.start_s[index], self.steps_us[index], self.labels)


def batches_of(table: pa.Table, start_us: int | None) -> Batches:
    """The batches of a run that began at `start_us` (None: at its first batch), without those that have no duration.

    With several queries, only the one that was busy longest is shown, because the batches of others overlap it.
    Time that no step accounts for is "everything else", including steps that the engine did not report.
    """
    table = _busiest(table)
    steps = batch_steps(table)
    steps_ms = [np.nan_to_num(floats(table, name)) for name in steps]
    start = table.column("start_us").to_numpy()
    whole_ms = floats(table, "trigger_ms")
    whole_ms = np.where(np.isnan(whole_ms), (floats(table, "end_us") - start) / 1000, whole_ms)
    rest_ms = np.maximum(whole_ms - sum(steps_ms), 0.0)
    known = np.isfinite(whole_ms)
    first = int(start[0]) if start_us is None and len(start) else start_us or 0
    steps_us, labels = 1000 * np.column_stack([*steps_ms, rest_ms]), (*steps.values(), "everything else")
    return Batches(table.column("batch_id").to_numpy()[known], ((start - first) / US)[known], steps_us[known], labels)


def _busiest(table: pa.Table) -> pa.Table:
    """The batches of the busiest query. Tables of older runs have no query column."""
    if "query" not in table.column_names or not table.num_rows:
        return table
    names = np.array(table["query"].to_pylist(), dtype=object)
    busy_ms = {name: np.nansum(floats(table, "trigger_ms")[names == name]) for name in sorted(set(names), key=str)}
    return table.filter(pa.array(names == max(busy_ms, key=lambda name: busy_ms[name])))


def durations(batches: Batches) -> Figure | None:
    """The duration of each batch, split into steps. With many batches, each bar is the longest of several."""
    if len(batches) == 0:
        return None
    shown, every = _longest_of_every_few(batches)
    return figure(
        "batch-durations",
        "Duration of the engine's batches",
        "One bar per batch over the run's time; its height is how long the batch took, split into steps.",
        lambda width: _duration_chart(shown, width),
        _keys(shown),
        [f"Each bar is the longest of {every} batches." if every > 1 else ""],
    )


def waterfall(batches: Batches) -> Figure | None:
    """Evenly chosen batches and the longest one, each a bar of consecutive steps."""
    if len(batches) == 0 or not batches.steps_us[:, :-1].any():
        return None
    evenly = np.linspace(0, len(batches) - 1, WATERFALL_MAX - 1).round().astype(np.int64)
    longest = int(batches.total_us.argmax())
    shown = batches.take(np.union1d(evenly, [longest]))
    return figure(
        "batch-waterfall",
        "Where the time of a batch goes",
        "For some batches, one row each: the steps one after the other, from the batch's start.",
        lambda width: _waterfall_chart(shown, width),
        _keys(shown),
        [
            f"{len(shown)} of {len(batches)} batches, evenly chosen; the longest, batch {batches.batch_id[longest]}, "
            "is among them."
        ],
    )


def _longest_of_every_few(batches: Batches) -> tuple[Batches, int]:
    every = -(-len(batches) // BARS_MAX)
    groups = np.arange(len(batches)) // every
    order = np.lexsort((-batches.total_us, groups))
    _, first = np.unique(groups[order], return_index=True)
    return batches.take(order[first]), every


def _keys(batches: Batches) -> list[Key]:
    parts = zip(batches.labels, batches.colours, batches.steps_us.max(axis=0), strict=True)
    return [Key(label, colour, "area") for label, colour, most_us in parts if most_us > 0]


def _rows(batches: Batches, factor: float) -> list[list[dict[str, Any]]]:
    """For each step, the bars of all batches: `b` batch, `t` its start in the run, `v` to `to` the step's extent."""
    ends = np.cumsum(batches.steps_us, axis=1) / factor
    begins = ends - batches.steps_us / factor
    return [
        [
            {
                "b": int(batches.batch_id[i]),
                "t": float(batches.start_s[i]),
                "v": float(begins[i, k]),
                "to": float(ends[i, k]),
            }
            for i in range(len(batches))
            if batches.steps_us[i, k] > 0
        ]
        for k in range(len(batches.labels))
    ]


def _duration_chart(batches: Batches, width: int) -> Any:
    factor, unit = unit_of_time(float(batches.total_us.max()))
    bar_px = max(1.0, 0.72 * width / max(len(batches), 12))
    title = "start of the batch, seconds since the run's start"
    scale = alt.Scale(zero=True, padding=bar_px / 2, nice=False)
    x = alt.X("t:Q", scale=scale, axis=alt.Axis(title=title, grid=False, tickCount=ticks(width), labelExpr=PLAIN))
    y = alt.Y("v:Q", axis=numbers(5))
    layers = [
        alt.Chart(values(rows)).mark_bar(color=COLOURS[colour], size=bar_px).encode(x=x, y=y, y2="to:Q")
        for rows, colour in zip(_rows(batches, factor), batches.colours, strict=True)
        if rows
    ]
    return alt.layer(*layers).properties(width=width, height=150, title=axis_title(f"duration of a batch ({unit})"))


def _waterfall_chart(batches: Batches, width: int) -> Any:
    factor, unit = unit_of_time(float(batches.total_us.max()))
    x = alt.X("v:Q", axis=numbers(6, f"time since the batch's start ({unit})"))
    y = alt.Y("b:O", sort="ascending", axis=alt.Axis(title=None))
    layers = stretches(zip(batches.colours, _rows(batches, factor), strict=True), x, y, 12)
    return alt.layer(*layers).properties(width=width, height=18 * len(batches), title=axis_title("batch number"))
