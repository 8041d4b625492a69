"""Smart Grid (SM): houses whose plugs draw more than others, and load predictions for plugs and houses.

**Outliers** (DEBS query 2): for each house and window, the share of its plugs whose median load is greater than the
median of all loads of all plugs in that window.

- DEBS asks for an hour and a day: `second_range` adds a second window with its own sink.
- Windows slide by time and close. The thesis slides with every reading and takes readings back one by one.
- Loads are first counted by plug, window and load, which any engine can do in parts. Medians of these counts are exact.
- The loads of a window meet in one place, as in the thesis's global median. So no median is broadcast to all plugs.
  In the thesis's code, a time that one side had not seen blocked the detector forever, and every instance had its own
  shares.

**Predictions** (DEBS query 1): L(s_{i+2}) = (avgL(s_i) + median{avgL(s_j)}) / 2 with j = i + 2 - n·k for every earlier
day k, with n = `slices_per_day`. The avgL of a house is the sum of its plugs' averages.

- Slices are aligned to the epoch. A slice without a reading of a plug is not part of that plug's history.
- Without history, the prediction is the average alone, which DEBS leaves open.
- A prediction comes when its slice closes. The thesis predicts by the machine's clock, on every second tick.
- The thesis's code forgets to divide by two, its median ends the job after a day, and a house's load is the mean of its
  readings.

Work readings are ignored. Malformed: a load that is null, NaN, below 0 or above a megawatt, or without a plug. Loads
are whole milliwatts internally (DEBS has three digits), so that sums and comparisons of medians are exact.

Exercises: a sliding event-time window, windows of windows, an operator over all keys of a window, state by key that
grows with every slice, and three sinks.

Source: Bordin 2017, section 3.3.13; DEBS 2014 Grand Challenge.
"""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from streamgauge.core.arrays import Floats, Int64s
from streamgauge.core.clock import US
from streamgauge.core.errors import require
from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import Stream, flow, hop, source, tumble
from streamgauge.dataflow.nodes import Flow, Window
from streamgauge.dataflow.operators import grouped_arrays
from streamgauge.dataflow.operators.api import ROW, TIME, StateInAttributes
from streamgauge.dataflow.schema import seconds
from streamgauge.loadgen.datasets.plugs import HOUSES_MAX, LOAD, WORK, PlugId, PlugProperty, PlugValue
from streamgauge.loadgen.fields import StreamSpec
from streamgauge.workloads.registry import Feature, Job, Parameters, Seconds, Workload, unless

LOAD_MAX_W = 1_000_000
PLUG = ("house", "household", "plug")
"""A plug's number is unique only within its household, and a household's only within its house."""
TWICE_A_WATT = 2000
"""Doubled medians in milliwatts are whole numbers; this many of them are a watt."""

IS_LOAD = f"property = {LOAD}"
WHOLE = f"value >= 0 AND value <= {LOAD_MAX_W} AND " + " AND ".join(f"{name}_id IS NOT NULL" for name in PLUG)
"""Condition of a well-formed load; work readings are ignored."""


class SmartGridParameters(Parameters):
    """The windows, the slices and the plugs."""

    range: Seconds = Field(10.0, gt=0, le=86_400, description="length of a window of loads (thesis: 1h)")
    second_range: Seconds = Field(
        0.0, ge=0, le=86_400, description="length of a second window with its own sink; 0: none"
    )
    slide: Seconds = Field(2.0, gt=0, le=86_400, description="time between window ends; ranges must be multiples of it")
    slice_length: Seconds = Field(2.0, gt=0, le=86_400, description="length of a slice (thesis: 60s)")
    slices_per_day: int = Field(5, ge=3, le=1_000_000, description="number of slices in a day (thesis: 1440)")
    houses: int = Field(10, ge=1, le=HOUSES_MAX, description="number of houses, with about 75 plugs each")
    heavy: float = Field(0.1, ge=0, le=1, description="share of the houses with plugs that are never off (outliers)")
    malformed: float = Field(0.001, ge=0, le=1, description="share of the readings that are null or negative")
    speed: int = Field(
        600, ge=1, le=1_000_000, description="speed of a plug's clock; n generators run it at an n-th of this speed"
    )


class Medians(StateInAttributes):
    """For each row of a window's counted loads, the median load of its plug and of all plugs, in watts.

    A row is (plug, load, number of readings). All rows of a window have one time, so they arrive in one batch and no
    state is needed.
    """

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        window, house, household, plug, load, readings = (
            batch.column(name).to_numpy() for name in (TIME, *PLUG, "load_mw", "readings")
        )
        windows, plugs = group_numbers(window), group_numbers(window, house, household, plug)
        lowest = np.zeros(batch.num_rows, np.int32)
        order = np.lexsort((load, plugs))
        lowest[order[grouped_arrays.group_starts(plugs[order])]] = 1
        return pa.RecordBatch.from_pydict(
            {
                "house": batch.column("house"),
                "lowest": lowest,
                "plug_median": twice_the_medians(plugs, load, readings)[plugs] / TWICE_A_WATT,
                "global_median": twice_the_medians(windows, load, readings)[windows] / TWICE_A_WATT,
                ROW: np.arange(batch.num_rows),
            }
        )


class LoadPrediction(StateInAttributes):
    """Predicts the load of the slice after the next for each key `by`. A row is a key's average load in a slice."""

    def __init__(self, by: tuple[str, ...], slice_us: int, slices_per_day: int) -> None:
        self._by, self._slice_us, self._per_day = by, slice_us, slices_per_day
        ints = dict.fromkeys((*by, "slice"), np.empty(0, np.int64))
        self._past: dict[str, NDArray[Any]] = {**ints, "avg_load": np.empty(0)}

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        new = {name: batch.column(name).to_numpy() for name in (*self._by, "avg_load")}
        new["slice"] = batch.column("window_start").cast(pa.int64()).to_numpy() // self._slice_us
        self._past = {name: np.concatenate((past, new[name])) for name, past in self._past.items()}
        usual = medians_between(*self._history_of_last(batch.num_rows))
        load = new["avg_load"]
        predicted = np.where(np.isnan(usual), load, (load + usual) / 2)
        columns = {name: batch.column(name) for name in (*self._by, "window_start", "window_end", "avg_load")}
        return pa.RecordBatch.from_pydict(columns | {"predicted_load": predicted, ROW: np.arange(batch.num_rows)})

    def _history_of_last(self, count: int) -> tuple[Floats, Int64s, Int64s]:
        """Average loads, and the range [low, high) of each of the last `count` rows' history among them.

        Rows are ordered by key, time of day and day. So a history is contiguous, and ends before the predicted slice's
        day. That day's rows are in the past, because a day has at least three slices.
        """
        past, new = self._past, slice(len(self._past["slice"]) - count, None)
        keys = group_numbers(*(past[name] for name in self._by))
        days, times = np.divmod(past["slice"], self._per_day)
        ahead_days, ahead_times = np.divmod(past["slice"][new] + 2, self._per_day)
        first, last = (days.min(), days.max()) if len(days) else (0, 0)
        span = last - first + 1
        places = (keys * self._per_day + times) * span + days - first
        order = np.argsort(places, kind="stable")
        begins = (keys[new] * self._per_day + ahead_times) * span
        low = np.searchsorted(places[order], begins)
        high = np.searchsorted(places[order], begins + ahead_days - first)
        return past["avg_load"][order], low, high


def group_numbers(*columns: NDArray[Any]) -> Int64s:
    """Consecutive numbers from 0; rows equal in all columns share one. Shape (rows,)."""
    numbers = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values, place = np.unique(column, return_inverse=True)
        _, numbers = np.unique(numbers * len(values) + place, return_inverse=True)
    return numbers


def twice_the_medians(groups: Int64s, values: Int64s, counts: Int64s) -> Int64s:
    """For each group 0, 1, ..., the sum of its two middle values, weighted by `counts`. Shape (groups,)."""
    order = np.lexsort((values, groups))
    upto = np.cumsum(counts[order])
    ends = upto[np.flatnonzero(np.diff(groups[order], append=-1))]
    before = np.concatenate(([0], ends))[:-1]
    total = ends - before
    lower, upper = np.searchsorted(upto, before + (total + 1) // 2), np.searchsorted(upto, before + total // 2 + 1)
    return np.asarray(values[order][lower] + values[order][upper])


def medians_between(values: Floats, low: Int64s, high: Int64s) -> Floats:
    """The median of each slice `values[low:high]`; NaN if empty. Shape (slices,)."""
    lengths = high - low
    begins = np.cumsum(lengths) - lengths
    piece = np.repeat(np.arange(len(lengths)), lengths)
    within = values[np.arange(len(piece)) - begins[piece] + low[piece]]
    within = within[np.lexsort((within, piece))]
    medians = np.full(len(lengths), np.nan)
    some = np.flatnonzero(lengths)
    first, length = begins[some], lengths[some]
    medians[some] = (within[first + (length - 1) // 2] + within[first + length // 2]) / 2
    return medians


def truth_of_medians() -> str:
    """The medians, as DuckDB SQL: the values at which the running count passes the middle."""
    plug = ", ".join(("window_start", *PLUG))
    twice = "min(load_mw) FILTER (2 * upto >= total) + min(load_mw) FILTER (2 * upto > total) AS twice"

    def running(by: str) -> str:
        return (
            f"sum(readings) OVER (PARTITION BY {by} ORDER BY load_mw) AS upto,"
            f" sum(readings) OVER (PARTITION BY {by}) AS total"
        )

    return (
        f"WITH by_plug AS (SELECT *, {running(plug)} FROM input),"
        f" plugs AS (SELECT {plug}, min(load_mw) AS smallest, {twice} FROM by_plug GROUP BY {plug}),"
        " loads AS (SELECT window_start, load_mw, sum(readings) AS readings FROM input GROUP BY window_start, load_mw),"
        f" by_window AS (SELECT *, {running('window_start')} FROM loads),"
        f" grid AS (SELECT window_start, {twice} FROM by_window GROUP BY window_start)"
        " SELECT house, CASE WHEN load_mw = smallest THEN 1 ELSE 0 END AS lowest,"
        f" plugs.twice / {TWICE_A_WATT}::DOUBLE AS plug_median, grid.twice / {TWICE_A_WATT}::DOUBLE AS global_median,"
        f" _row FROM input JOIN plugs USING ({plug}) JOIN grid USING (window_start)"
    )


def truth_of_predictions(by: tuple[str, ...], slice_us: int, slices_per_day: int) -> str:
    """The predictions, as DuckDB SQL: joins each slice with those whole days before the predicted one."""
    same = " AND ".join(f"now_.{name} = then_.{name}" for name in by)
    whole_days = f"(now_.slice + 2 - then_.slice) % {slices_per_day} = 0"
    keys, of_now = ", ".join((*by, "slice")), ", ".join(f"now_.{name}" for name in (*by, "slice"))
    return (
        f"WITH slices AS (SELECT *, epoch_us(window_start) // {slice_us} AS slice FROM input),"
        f" history AS (SELECT {of_now}, median(then_.avg_load) AS usual FROM slices AS now_ JOIN slices AS then_"
        f" ON {same} AND then_.slice <= now_.slice + 2 - {slices_per_day} AND {whole_days} GROUP BY {of_now})"
        f" SELECT {', '.join(by)}, window_start, window_end, avg_load,"
        " coalesce((avg_load + usual) / 2, avg_load) AS predicted_load, _row"
        f" FROM slices LEFT JOIN history USING ({keys})"
    )


def build(parameters: SmartGridParameters, rate_per_s: float) -> Job:
    window, slices = hop(parameters.range, parameters.slide), tumble(parameters.slice_length)
    second = hop(parameters.second_range, parameters.slide) if parameters.second_range else None
    _check(window, slices, second)
    plugs = _plugs(parameters, rate_per_s)
    loads = (
        source("plugs", plugs.schema)
        .where(f"{IS_LOAD} AND {WHOLE}", name="load_readings")
        .select(
            {name: f"{name}_id" for name in PLUG}, name="loads",
            load_mw="try_cast(value * 1e3 + 0.5e0 AS bigint)",  # milliwatts, rounded
        )
    )  # fmt: skip
    averages = (
        loads.window(slices, keys=PLUG)
        .aggregate(total_mw="sum(load_mw)", readings="count(*)", name="plug_slices")
        .select(
            {name: name for name in (*PLUG, "window_start", "window_end")},
            avg_load="try_divide(total_mw, readings * 1000)", name="plug_averages",
        )
    )  # fmt: skip
    of_houses = averages.window(slices, keys="house").aggregate(avg_load="sum(avg_load)", name="house_slices")
    of_plug, of_house = (
        _predicted(found, by, slices.range_us, parameters.slices_per_day, f"{by[-1]}_load")
        for found, by in ((averages, PLUG), (of_houses, ("house",)))
    )
    outliers = [_outliers(loads, window)] + ([_outliers(loads, second, "second_")] if second else [])
    whole = flow(*outliers, of_house.sink("house_predictions"), of_plug.sink("plug_predictions"))
    return Job(whole, (plugs,), {"plugs": unless(f"property = {WORK} OR ({IS_LOAD} AND {WHOLE})")})


def _check(window: Window, slices: Window, second: Window | None) -> None:
    """Raises InputError if a range is not a multiple of the slide, or if slices stay open when a trial ends."""
    range_, slide, length = seconds(window.range_us), seconds(window.slide_us), seconds(slices.range_us)
    if second:
        rule, way_out = f"must be a multiple of the slide {slide}", f"--set second_range={seconds(2 * window.range_us)}"
        require(second.range_us % second.slide_us == 0, "second_range", rule, seconds(second.range_us), way_out)
    divides = window.range_us % window.slide_us == 0
    require(divides, "slide", f"must divide the range {range_}", slide, "--set slide=2s")
    rule = f"must be at most the range {range_}: a trial's input ends before longer slices close"
    require(slices.range_us <= window.range_us, "slice_length", rule, length, f"--set range={length}, or more")


def _plugs(parameters: SmartGridParameters, rate_per_s: float) -> StreamSpec:
    # A clock driven by events alone would run faster at a higher rate, which would change the question.
    clock = max(1, round(rate_per_s))
    houses = parameters.houses
    fields = (
        PlugValue("value", houses, parameters.heavy, parameters.malformed, parameters.speed, clock),
        PlugProperty("property"),
        PlugId("plug_id", houses, "plug"),
        PlugId("household_id", houses, "household"),
        PlugId("house_id", houses, "house"),
    )
    return StreamSpec("plugs", fields, key="house_id")


def _outliers(loads: Stream, window: Window, prefix: str = "") -> Flow:
    """The sink `house_outliers` and its operators, named with `prefix`."""
    medians = (
        loads.window(window, keys=(*PLUG, "load_mw"))
        .aggregate(readings="count(*)", name=f"{prefix}load_counts")
        .process(
            Medians,
            keys="window_start",
            reads=(*PLUG, "load_mw", "readings"),
            gives=Schema.from_types(house="int", lowest="int", plug_median="double", global_median="double"),
            reach="0s",
            truth=truth_of_medians(),
            name=f"{prefix}medians",
        )
    )
    # Results of a window have the time of its last microsecond, so each of these groups is one window.
    houses = medians.window(tumble(window.slide_us / US), keys="house").aggregate(
        outliers="sum(CASE WHEN plug_median > global_median THEN lowest ELSE 0 END)",
        plugs="sum(lowest)",
        name=f"{prefix}outlier_detector",
    )
    begins = f"timestamp_micros(unix_micros(window_end) - {window.range_us})"
    return houses.select(
        house="house", window_start=begins, window_end="window_end", share="try_divide(outliers, plugs)",
        outliers="outliers", plugs="plugs", name=f"{prefix}outlier_shares",
    ).sink(f"{prefix}house_outliers")  # fmt: skip


def _predicted(averages: Stream, by: tuple[str, ...], slice_us: int, slices_per_day: int, name: str) -> Stream:
    """For each key and slice, the average load and the prediction for the slice at `predicted_for`."""
    return averages.process(
        LoadPrediction,
        keys=by,
        gives=Schema.from_types(
            **dict.fromkeys(by, "int"),
            window_start="timestamp",
            window_end="timestamp",
            avg_load="double",
            predicted_load="double",
        ),
        parameters={"by": by, "slice_us": slice_us, "slices_per_day": slices_per_day},
        truth=truth_of_predictions(by, slice_us, slices_per_day),
        name=name,
    ).select(
        {name: name for name in (*by, "window_start", "window_end")},
        predicted_for=f"timestamp_micros(unix_micros(window_end) + {slice_us})",
        avg_load="avg_load", predicted_load="predicted_load", name=f"{name}_prediction",
    )  # fmt: skip


WORKLOAD = Workload(
    name="smart_grid",
    title="smart grid",
    summary="houses whose plugs draw more than others, and load predictions for plugs and houses",
    source="Bordin 2017, section 3.3.13",
    parameters=SmartGridParameters,
    build=build,
    features=(Feature.FILTER, Feature.WINDOW, Feature.GLOBAL, Feature.SINKS, Feature.PYTHON),
    prefix="sg",
)
