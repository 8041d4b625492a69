"""The charts over a run's time, and the series behind them."""

import re
from collections.abc import Sequence
from typing import Any, cast

import altair as alt
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from streamgauge.artifacts import series_files
from streamgauge.core.clock import US
from streamgauge.report.charts import capacity, engine_batches, latency_curve, over_time
from streamgauge.report.charts import svg as svg_module
from streamgauge.report.document_blocks import Key
from streamgauge.results.search import SearchResult, TrialSummary
from tests.unit.report.conftest import made_up_batches, made_up_result, made_up_series


def table(**columns: object) -> pa.Table:
    n = len(next(iter(columns.values())))
    return series_files.conform(
        pa.table({"time_us": 5_000_000 + US * np.arange(n), "phase": ["measured"] * n} | columns)
    )


def timeline(series: pa.Table) -> Any:
    return over_time.from_series(series)


def figure_of(series: pa.Table) -> Any:
    return over_time.over_time(timeline(series))


def labels_of(figure: Any) -> list[str]:
    return [key.label for key in figure.keys]


def test_short_runs_are_not_binned() -> None:
    """Up to the greatest number of points, every second is a point, counted from the run's start; phases are bands that
    touch and cover the whole time.
    """
    line = timeline(made_up_series())
    assert (line.bin_s, line.second[0], line.second[-1], line.end_s) == (1, 0.0, 91.0, 92.0)
    bands = [(band.name, band.start_s, band.end_s) for band in line.bands]
    assert bands == [("warm-up", 0, 20), ("measured", 20, 80), ("tail", 80, 92)]


def test_long_runs_are_binned_by_mean_and_maximum() -> None:
    """A point of many seconds shows the mean rate and the greatest latency, and knows what is not known."""
    n = 2 * over_time.POINTS_MAX
    late = pa.array(np.arange(n, dtype=float), mask=np.arange(n) >= n - 2)
    line = timeline(table(offered=np.arange(n), event_time_us_p99=late))
    assert (line.bin_s, len(line.second)) == (2, over_time.POINTS_MAX)
    assert line.columns["offered"][:2].tolist() == [0.5, 2.5]
    assert line.columns["event_time_us_p99"][:2].tolist() == [1.0, 3.0]
    assert np.isnan(line.columns["event_time_us_p99"][-1])


def test_smoothing_keeps_the_rate_of_a_saw_tooth() -> None:
    """Deliveries of 0 and twice the rate have the rate as their mean."""
    assert timeline(table(handed_out=np.tile([0, 200], 20))).columns["handed_out_mean"][10:].tolist() == [100.0] * 30


def test_unknown_values_break_or_skip() -> None:
    """A null is a gap in a line of rates, and no point at all in a line of sparse latencies."""
    line = timeline(table(backlog_events=pa.array([1, None, 3]), planned=pa.array([None, 5, 6])))
    assert [row["v"] for row in line.rows("backlog_events")] == [1.0, None, 3.0]
    assert [row["v"] for row in line.rows("backlog_events", gaps=False)] == [1.0, 3.0]
    assert [row["v"] for row in line.rows("backlog_events", gaps=False, gap_at="planned")] == [1.0, None, 3.0]
    assert [row["v"] for row in line.rows("planned", gaps=False, gap_at="planned")] == [5.0, 6.0]
    assert not line.known("lag_events")
    assert line.top("lag_events") == 0.0
    assert line.top("lag_events", "backlog_events") == pytest.approx(3.0)


def test_the_most_of_several_partitions_is_known() -> None:
    """Of one partition there is no other; a run of before has no lists."""
    line = timeline(table(lag_by_partition=[[1, 5, 2], None, [7], []]))
    assert np.isnan(line.columns["lag_most"]).tolist() == [False, True, True, True]
    assert line.columns["lag_most"][0] == 5.0


def texts(svg: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


@pytest.mark.parametrize(
    ("panel", "breaks"),
    [("rate", True), ("backlog", True), ("frontier", True), ("latency", False), ("delay", False)],
)
def test_only_lines_of_rare_values_go_on_where_one_is_unknown(panel: str, breaks: bool) -> None:
    """Results and starts of batches lie seconds apart; a rate or a backlog that is unknown is a gap."""
    some = pa.array([5.0 if second % 4 == 3 else None for second in range(12)])
    names = ("offered", "handed_out", "backlog_events", "frontier_lag_us", *series_files.LATENCIES)
    batches = pa.table({"start_us": [5 * US, 9 * US], "scheduling_delay_us": [5000, 7000]})
    line = over_time.from_series(table(**dict.fromkeys(names, some)), batches)
    layers = getattr(over_time, f"_{panel}_panel")(line).layers
    assert {"null" in layer.data.values for layer in layers} == {breaks}


def replaced(table: pa.Table, name: str, values: object) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, pa.array(values, table.schema.field(name).type))


def test_nothing_measured_nothing_drawn() -> None:
    """Without data there is no chart, rather than an empty one."""
    none = engine_batches.batches_of(series_files.BATCHES.empty_table(), None)
    figures = (
        over_time.from_series(series_files.SCHEMA.empty_table()), over_time.over_time(None), over_time.resources(None),
        latency_curve.percentiles({"event_time": []}), engine_batches.durations(none), engine_batches.waterfall(none),
    )  # fmt: skip
    assert figures == (None,) * 6


def test_time_chart_has_units_and_phases() -> None:
    """Every panel names its unit, the time axis its origin, and the phases their names."""
    figure = figure_of(made_up_series())
    shown = texts(figure.wide)
    panels = ("rate (events/s)", "backlog (events)", "consumer lag (events)", "latency by second of event time (s)")
    for text in (*panels, "warm-up", "measured"):
        assert text in shown
    assert shown.count("seconds since the run's start") == 1
    assert any("axis is cut" in note and "1.4" in note for note in figure.notes)  # a start that swallows the scale


def test_the_delay_of_batches_is_drawn_below_the_rates() -> None:
    """By the second in which a batch started, the greatest; without a known one there is no such panel."""
    series, first = table(offered=[10] * 4), 5 * US
    starts = [first + US, first + US + 1, first + 3 * US, first + 9 * US]
    known = pa.table({"start_us": starts, "scheduling_delay_us": [5000, 7000, None, 9000]})
    line: Any = over_time.from_series(series, known)
    assert line.columns["scheduling_delay_us"].tolist() == pytest.approx([np.nan, 7000, np.nan, np.nan], nan_ok=True)
    shown = texts(cast(Any, over_time.over_time(line)).wide)
    title = "scheduling delay of batches (ms)"
    assert shown.index("rate (events/s)") < shown.index(title) < shown.index("backlog (events)")
    assert title not in texts(figure_of(series).wide)


def test_a_broker_is_drawn_beside_both_sides() -> None:
    """Only where there is one."""
    series = made_up_series()
    brokered = replaced(series, "broker_cpu_percent", [40.0] * len(series))
    alone, figure = (cast(Any, over_time.resources(timeline(one))) for one in (series, brokered))
    assert [key.label for key in figure.keys if key not in alone.keys] == ["broker"]
    assert ["var(--broker)" in one.wide for one in (figure, alone)] == [True, False]


def test_the_lag_of_the_worst_partition_is_drawn_beside_the_sum() -> None:
    """Only of several partitions; and a series without lag has no such panel."""
    series = made_up_series()
    shares = [[lag // 4, lag - lag // 4] for lag in series.column("lag_events").to_pylist()]
    several = replaced(series, "lag_by_partition", shares)
    single = replaced(series, "lag_by_partition", [[sum(each)] for each in shares])
    figures = [figure_of(each) for each in (several, single, replaced(series, "lag_events", [None] * len(series)))]
    labels = [[label for label in labels_of(figure) if "lag" in label] for figure in figures]
    assert labels == [["consumer lag of the partition with most"], [], []]
    assert ["consumer lag (events)" in texts(one.wide) for one in figures] == [True, True, False]


def test_the_legend_names_only_the_latencies_that_are_drawn() -> None:
    """A user job may leave out the time of delivery; then there is no processing time."""
    without = made_up_series()
    for name in ("processing_time_us_p50", "processing_time_us_p99"):
        without = replaced(without, name, [None] * without.num_rows)
    labels = [labels_of(figure_of(each)) for each in (made_up_series(), without)]
    assert [[label.partition(" p99")[0] for label in each if " time p99" in label] for each in labels] == [
        ["event time", "processing time"], ["event time"],
    ]  # fmt: skip


@pytest.mark.parametrize("seconds", [90, 3600])
def test_a_chunk_that_comes_in_the_next_second_is_no_missed_plan(seconds: int) -> None:
    """Each is available after its last event, so the first second has one less; and a second's standstill is seen."""
    series = made_up_series(seconds)
    planned = series.column("planned").to_numpy().copy()
    planned[-1], chunk = 0, planned[0] // 20
    offered = planned.copy()
    offered[0], offered[-1] = planned[0] - chunk, chunk
    stalled = offered.copy()
    stalled[seconds // 2 : seconds // 2 + 2] = 0, 2 * planned[0]
    due = replaced(series, "planned", planned.tolist())
    figures = [figure_of(replaced(due, "offered", each)) for each in (offered, stalled)]
    assert ["planned" in labels_of(figure) for figure in figures] == [False, True]


def test_axes_are_labelled_as_numbers_are_written_elsewhere() -> None:
    """Thousands apart, and a gap before a unit's prefix: no 1000, and no 200k."""
    long = made_up_series(3000)
    late = pc.multiply(long.column("event_time_us_p99"), 2000).to_pylist()
    shown = texts(figure_of(replaced(long, "event_time_us_p99", late)).wide)
    assert {"200 k", "1,000", "10,000"} <= set(shown)
    assert not [text for text in shown if re.fullmatch(r"[\d.]+[kMG]|\d{4,}", text)]


def test_same_colour_for_the_same_thing() -> None:
    """Event time has one colour in every chart, and no chart has a colour of its own making."""
    line = over_time.from_series(made_up_series())
    points = latency_curve.points(made_up_result().latency.event_time_us, None)
    drawn = [one for one in (over_time.over_time(line), latency_curve.percentiles({"event_time": points})) if one]
    assert len(drawn) == 2
    for figure in drawn:
        assert 'stroke="var(--event-time)"' in figure.wide
        assert not re.search(r'(?:fill|stroke)="(?!none|transparent|var\()', figure.wide)


def scaled(table: pa.Table, factor: float) -> pa.Table:
    """Every measured number of a table times a factor."""
    for field in table.schema:
        if pa.types.is_floating(field.type):
            table = replaced(table, field.name, pc.multiply(table.column(field.name), factor).to_pylist())
        elif field.name in ("planned", "offered", "handed_out", "backlog_events"):
            numbers = pc.multiply(table.column(field.name).cast(pa.float64()), factor)
            table = replaced(table, field.name, pc.round(numbers).cast(pa.int64()).to_pylist())
    return table


@pytest.mark.parametrize(
    "factor", [1e-6, 1e3, *(pytest.param(one, marks=pytest.mark.long) for one in (1e-5, 1e-3, 0.05, 0.2, 1, 7))]
)
def test_axis_labels_are_those_that_people_write(factor: float) -> None:
    """Whatever the scale: no milli (500m), no powers of ten (1.2e+2), and times never in thousands (1.6k s)."""
    line = over_time.from_series(scaled(made_up_series(), factor))
    batches = engine_batches.batches_of(scaled(made_up_batches(), factor), None)
    points = [latency_curve.Point(p, (p + 1) * 1e4 * factor) for p in (0.0, 50.0, 90.0, 99.0)]
    drawn = [
        over_time.over_time(line), over_time.resources(line), latency_curve.percentiles({"event_time": points}),
        engine_batches.durations(batches), engine_batches.waterfall(batches),
    ]  # fmt: skip
    labels = [text for one in drawn if one for svg in (one.wide, one.narrow) for text in texts(svg)]
    numbers = [text for text in labels if re.match(r"[-\d.]", text)]
    assert len(numbers) > 40
    assert not [text for text in numbers if not re.fullmatch(r"-?\d[\d,]*(\.\d+)?( [kMG])?", text)]
    measured = [one for one in drawn[1:] if one]
    assert not [text for one in measured for text in texts(one.wide) if re.fullmatch(r"[\d.]+[kMG]", text)]


@pytest.mark.parametrize("seconds", [1, 20_000])
def test_size_does_not_grow_with_the_run(seconds: int) -> None:
    """A run of hours makes a chart as small as one of minutes; one of a second is drawn too."""
    assert len(figure_of(made_up_series(seconds)).wide) < 120_000


def test_labels_keep_their_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Coordinates are shortened in tags only; a label's digits are data."""
    drawn = '<svg xmlns="http://www.w3.org/2000/svg"><text x="1.23456">0.00123</text></svg>'
    monkeypatch.setattr("vl_convert.vegalite_to_svg", lambda _: drawn)
    embedded = svg_module.svg(alt.Chart(), "words", "p")
    assert embedded == '<svg role="img" aria-label="words"><text x="1.23">0.00123</text></svg>'


def test_steps_and_rest_make_the_whole_batch() -> None:
    """What the steps do not account for is shown as everything else."""
    table = made_up_batches()
    batches = engine_batches.batches_of(table, None)
    assert np.allclose(batches.total_us, 1000 * table.column("trigger_ms").to_numpy())
    assert np.allclose(batches.steps_us[:, -1], 1000 * (240 - 12 - 55 - 38 - 61))


UNKNOWN = pa.nulls(44, pa.float64())


def test_steps_have_the_names_that_the_engine_gives_them() -> None:
    """Its labels, or the names of columns without one; more steps than colours are drawn too."""
    bare = made_up_batches().select(["batch_id", "start_us", "end_us", "trigger_ms"])
    assert [key.label for key in keys_of(made_up_batches())][-2:] == ["commit offsets", "everything else"]
    table = bare.append_column(
        series_files.batches_schema({"merge": "merging runs"}).field("merge_ms"), pa.array([5.0] * 44)
    )
    for number in range(6):
        table = table.append_column(f"step_{number}_ms", pa.array([1.0] * 44))
    keys = keys_of(table)
    assert [key.label for key in keys][:2] == ["merging runs", "step 0"]
    assert [key.colour for key in keys][:2] == ["part-1", "part-2"]
    assert len(keys) == 8


def keys_of(table: pa.Table) -> Sequence[Key]:
    drawn = engine_batches.durations(engine_batches.batches_of(table, None))
    assert drawn is not None
    return drawn.keys


def test_series_of_the_engine_have_a_panel_each_and_a_line_for_each_operator() -> None:
    """In the engine's words; without an operator there is no legend, and without samples no chart."""
    timeline = over_time.from_series(made_up_series(20_000))
    assert timeline is not None
    at = [timeline.start_us + second * US for second in range(6)]
    shared = pa.table(
        {
            "time_us": at, "name": ["rows", "rows", "rows", "rows", "busy share", "busy share"],
            "unit": ["1/s"] * 4 + ["%"] * 2, "operator": ["a", "b", "a", "b", "a", "a"], "value": [1.0] * 6,
        }
    )  # fmt: skip
    drawn = over_time.engine_series(timeline, shared)
    assert drawn is not None
    assert {"rows (1/s)", "busy share (%)"} <= set(texts(drawn.wide))
    assert [key.label for key in drawn.keys] == ["a", "b"]
    assert drawn.notes == (f"Each point is a mean over {timeline.bin_s} s.",)
    alone = over_time.engine_series(timeline, shared.set_column(3, "operator", pa.array([""] * 6)))
    assert alone is not None
    assert not alone.keys
    assert over_time.engine_series(timeline, series_files.ENGINE_SERIES.empty_table()) is None


def test_batches_without_steps_still_have_a_duration() -> None:
    """An engine that reports only begin and end gets durations and no waterfall."""
    table = made_up_batches().select(["batch_id", "start_us", "end_us"]).append_column("trigger_ms", UNKNOWN)
    batches = engine_batches.batches_of(table, None)
    assert len(batches) == 44
    assert engine_batches.durations(batches) is not None
    assert engine_batches.waterfall(batches) is None


def test_unfinished_batch_is_left_out() -> None:
    """A batch that never ended has no duration and is not drawn as one of zero."""
    table = made_up_batches().select(["batch_id", "start_us"])
    table = table.append_column("end_us", UNKNOWN.cast(pa.int64())).append_column("trigger_ms", UNKNOWN)
    assert len(engine_batches.batches_of(table, None)) == 0


def test_many_batches_show_the_longest() -> None:
    """Down-sampling keeps the longest of each few, and says how many one bar stands for."""
    batches = engine_batches.batches_of(made_up_batches(3000), None)
    shown, every = engine_batches._longest_of_every_few(batches)
    assert len(shown) <= engine_batches.BARS_MAX
    assert shown.total_us.max() == batches.total_us.max()
    assert every == 22
    waterfall: Any = engine_batches.waterfall(batches)
    assert "the longest, batch 0," in waterfall.notes[0]


def trial(number: int, rate: float | None, verdict: str) -> TrialSummary:
    return TrialSummary(number=number, purpose="", offered_per_s=rate, verdict=verdict)


@pytest.mark.parametrize(("rates", "brackets"), [
    ([(1.0, "sustained"), (4.0, "not_sustained"), (2.0, "sustained")],
     [(1.0, None, False), (1.0, 4.0, True), (2.0, 4.0, True)]),
    ([(1.0, "sustained"), (2.0, "sustained"), (2.0, "not_sustained")], [(1.0, 2.0, True)]),
])  # fmt: skip
def test_bracket_closes(rates: list[tuple[float, str]], brackets: list[tuple[float, float | None, bool]]) -> None:
    """The bracket after each trial lies between what holds and what does not. A rate that held once and failed on a
    fresh engine does not hold.
    """
    trials = [trial(number, *each) for number, each in enumerate(rates, 1)]
    assert capacity.brackets(trials)[-len(brackets) :] == brackets


def test_an_upper_end_that_is_unproven_is_drawn_as_such() -> None:
    """Its band has another colour and its own word in the legend; a tested one has neither. `invalid` is none, unless
    the engine starved the driver.
    """
    none = SearchResult(sustained_per_s=None, low=None, high=None, relative_width=None, confirmed=False)
    for verdict, tested in (("undecided", False), ("not_sustained", True)):
        trials = (trial(1, 1.0, "sustained"), trial(2, 2.0, verdict))
        assert capacity.brackets(trials)[-1] == (1.0, 2.0, tested)
        figure: Any = capacity.closing(none.model_copy(update={"trials": trials}))
        areas = [(key.colour, "undecided" in key.label) for key in figure.keys if key.style == "area"]
        assert areas == [("shade", False) if tested else ("undecided", True)]
        assert ("not shown" in figure.words) is not tested
    failed, invalid = trial(2, 3.0, "not_sustained"), trial(3, 2.0, "invalid")
    assert capacity.brackets([trials[0], failed, invalid])[-1] == (1.0, 3.0, True)
    assert capacity.brackets([trials[0], failed, invalid.model_copy(update={"starved": True})])[-1] == (1.0, 2.0, False)


def test_what_was_undecided_at_the_answer_or_below_bounds_nothing() -> None:
    """Without the answer the band would end at a trial at 90 % that was undecided and then held."""
    rates = ((10.5, "sustained"), (11.0, "undecided"), (9.5, "undecided"), (9.5, "sustained"))
    trials = tuple(trial(number, rate, verdict) for number, (rate, verdict) in enumerate(rates, 1))
    open_end = (10.5, 11.0, False)
    assert capacity.brackets(trials, 10.5)[1:] == [open_end] * 3
    assert capacity.brackets(trials)[-1] != open_end
    assert capacity.brackets((*trials, trial(5, 10.5, "not_sustained")), 10.5)[-1] == (9.5, 10.5, True)


def test_search_without_rates_is_not_drawn() -> None:
    """An overload trial alone makes no picture; a single rate does."""
    none = SearchResult(sustained_per_s=None, low=None, high=None, relative_width=None, confirmed=False)
    assert capacity.closing(none.model_copy(update={"trials": (trial(1, None, "undecided"),)})) is None
    assert capacity.closing(none.model_copy(update={"trials": (trial(1, 5.0, "sustained"),)})) is not None
