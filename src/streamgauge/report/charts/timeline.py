"""Prepares a run's series for charts: seconds since its start, few enough points, and the phases as bands.

A long run is binned: rates and CPU become means; backlog, latencies and memory become the maximum of the bin, because
percentiles must not be averaged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streamgauge.core.arrays import Floats
from streamgauge.core.clock import US

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

    @property
    def measured(self) -> bool:
        return self.name == "measured"

    @property
    def label(self) -> str:
        return "warm-up" if self.name == "warmup" else self.name.replace("_", " ")


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

    def rows(self, name: str, factor: float = 1.0, gaps: bool = True) -> list[dict[str, Any]]:
        """Points `t`, `v` of a column; unknown values are null, or left out if the line must continue across them."""
        pairs = zip(self.second.tolist(), (self.columns[name] / factor).tolist(), strict=True)
        points = [{"t": t, "v": v if np.isfinite(v) else None} for t, v in pairs]
        return points if gaps else [point for point in points if point["v"] is not None]


def from_series(series: pa.Table) -> Timeline | None:
    """The timeline of a per-second series (tables.py); None if it has no rows."""
    if series.num_rows == 0:
        return None
    time_us = series.column("time_us").to_numpy()
    start_us = int(time_us[0])
    named = [field.name for field in series.schema if field.name not in ("time_us", "phase", "lag_by_partition")]
    raw = {name: _floats(series, name) for name in named}
    raw["handed_out_mean"] = _smooth(raw["handed_out"])
    raw["lag_most"] = _most(series, "lag_by_partition")
    raw["off_plan"] = abs(np.cumsum(raw["planned"] - raw["offered"]))
    second = (time_us - start_us) / US
    bin_s = max(1, int(np.ceil((second[-1] + 1) / POINTS_MAX)))
    cell = (second // bin_s).astype(np.int64)
    cells, edges = np.unique(cell, return_index=True)
    columns = {name: _reduce(name, values, edges) for name, values in raw.items()}
    bands = _bands(second, series.column("phase").to_pylist())
    return Timeline((cells * bin_s).astype(np.float64), bin_s, columns, bands, start_us, float(second[-1]) + 1)


def _floats(series: pa.Table, name: str) -> Floats:
    column = series.column(name).combine_chunks().cast(pa.float64())
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def _most(series: pa.Table, name: str) -> Floats:
    """The greatest value of each list; NaN for lists of one value, or without values."""
    lists = series.column(name).to_pylist()
    return np.array([max(each) if each and len(each) > 1 else np.nan for each in lists], np.float64)


def _reduce(name: str, values: Floats, edges: NDArray[np.int64]) -> Floats:
    if name not in _MEANS:
        return np.asarray(np.fmax.reduceat(values, edges))
    known = np.isfinite(values)
    total = np.add.reduceat(np.where(known, values, 0.0), edges)
    n = np.add.reduceat(known.astype(np.float64), edges)
    return np.divide(total, n, out=np.full(len(edges), np.nan), where=n > 0)


def _smooth(values: Floats) -> Floats:
    """Mean over each second and the nine before it; micro-batches make single seconds jump."""
    known = np.isfinite(values).astype(np.float64)
    total = np.convolve(np.where(known > 0, values, 0.0), np.ones(_SMOOTH_S))[: len(values)]
    n = np.convolve(known, np.ones(_SMOOTH_S))[: len(values)]
    return np.divide(total, n, out=np.full(len(values), np.nan), where=(n > 0) & (known > 0))


def _bands(second: Floats, phases: list[str]) -> tuple[Band, ...]:
    starts = [i for i, name in enumerate(phases) if i == 0 or name != phases[i - 1]]
    ends = [*(float(second[i]) for i in starts[1:]), float(second[-1]) + 1]
    return tuple(Band(phases[i], float(second[i]), end) for i, end in zip(starts, ends, strict=True))
