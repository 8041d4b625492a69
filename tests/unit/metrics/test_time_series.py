"""metrics/time_series.py: the per-second table, the table of batches, the log of latencies; of trials made by rule."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from streamgauge.artifacts.series_files import BATCHES, SCHEMA, batch_steps
from streamgauge.core.clock import US
from streamgauge.core.engine_reports import BatchProgress, SeriesSample
from streamgauge.core.trial import TrialSpans
from streamgauge.metrics.event_latency import LatencyBySecond, LatencyRule, SinkLatencies, sink_latencies
from streamgauge.metrics.histogram import Histogram
from streamgauge.metrics.time_series import (
    batches_table,
    engine_series_table,
    hlog_text,
    scheduling_delay_us_max,
    series_table,
)
from streamgauge.transports.spi import Delivery
from tests.unit.helpers_trials import kinds_in

START = 1_700_000_000 * US
CHUNK = 100
"""Events of the chunk that was due last in a second: it is available in the next one."""


def series(record: Any, latency: LatencyBySecond | None = None) -> dict[str, list[Any]]:
    return dict(series_table(record, latency).to_pydict())


def test_the_series_has_a_row_for_each_second(make: Any) -> None:
    """From the first planned second to the deadline, with the phase of each; every column is one the report knows."""
    rows = series(make.story().record())
    assert rows["time_us"] == [START + second * US for second in range(21)]
    assert rows["phase"] == ["warm-up"] * 5 + ["measured"] * 10 + ["tail"] * 5 + ["drain"]
    assert set(rows) <= set(SCHEMA.names)


def test_the_series_counts_what_happened_in_each_second(make: Any) -> None:
    """Planned by plan; offered, delivered and committed where they happened; every sum is the whole."""
    rows = series(make.story().record())
    assert rows["planned"] == [1000] * 20 + [0]
    assert rows["offered"] == [1000 - CHUNK, *[1000] * 19, CHUNK]
    assert rows["handed_out"] == rows["committed"] == [0] + [1000] * 20
    assert rows["backlog_events"] == rows["lag_events"] == [1000] * 20 + [0]


def test_events_are_offered_in_the_second_in_which_they_became_available(make: Any) -> None:
    """Two seconds' chunks that came at the end of the second of them: nothing, then all of both, none twice."""
    record = make.story().record()
    due = [START + 6 * US, START + 8 * US]
    record.trial_log.chunks = [
        [replace(one, published_us=due[1] - 1) if due[0] <= one.from_us < due[1] else one for one in log]
        for log in record.trial_log.chunks
    ]
    offered = series(record)["offered"]
    assert offered[5:9] == [1000, CHUNK, 2000, 1000 - CHUNK]
    assert sum(offered) == 20_000


def test_the_lag_right_after_a_commit_is_what_became_due_since_the_read(make: Any) -> None:
    """A read at each second, a commit 300 ms later: 300 events of the next second, in two partitions.

    The end of the second is another phase. In a second without a commit it is unknown.
    """
    rows = series(make.story(read_after_us=0, commit_after_us=300_000).record())
    assert rows["lag_at_commit_mean"][:3] == [None, pytest.approx(150, abs=1), pytest.approx(150, abs=1)]
    assert rows["lag_events_mean"][2] == 500
    record = make.story(read_after_us=0, commit_after_us=300_000).record()
    del record.trial_log.commits[10:12]
    assert [second for second, lag in enumerate(series(record)["lag_at_commit_mean"]) if lag is None] == [0, 11, 12]


def test_commits_of_several_queries_have_no_common_phase(make: Any) -> None:
    """The lag is sampled at those of the query that has the fewest."""
    record = make.story(read_after_us=0, commit_after_us=300_000).record()
    log = record.trial_log
    for second in (3, 7):
        log.deliveries[0].append(Delivery("purchases", START, START + US, 0, START + US, second, True, query="other"))
        log.commits.append(make.commit(second, START + second * US + 900_000, query="other"))
    assert [second for second, lag in enumerate(series(record)["lag_at_commit_mean"]) if lag is not None] == [3, 7]


def test_schedule_delay_and_output_lag_by_second(make: Any) -> None:
    """The worst slip of a second's chunks; the output's lag at its commits, unknown where there was none."""
    rows = series(make.story(schedule_delay_us=7000, read_after_us=0, commit_after_us=300_000).record())
    assert rows["slip_us_max"] == [make.chunk_us + 7000.0] * 20 + [None]
    assert rows["frontier_lag_us"] == [None] + [pytest.approx(300_000.0)] * 20


def test_use_by_second_is_null_where_it_was_not_read(make: Any) -> None:
    """Not known is not zero."""
    record = make.story().record()
    record.trial_log.usages = [make.usage(2.5, "sut 1", "sut", 150, 77), make.usage(2.5, "sut 2", "sut", 50, 23)]
    rows = series(record)
    assert rows["sut_cpu_percent"][:4] == [None, None, 200, None]
    assert rows["sut_memory_bytes"][2] == 100
    assert rows["driver_cpu_percent"] == [None] * 21


def test_the_loopbacks_bytes_by_second(make: Any) -> None:
    """The counter's growth between two readings, in the second of the later one; null where it was not read."""
    record = make.story().record()
    record.trial_log.loopback = [(START, 1000), (START + US, 4000), (START + 3 * US, 5000)]
    assert series_table(record, None)["loopback_bytes_per_s"].to_pylist()[:5] == [None, 3000.0, None, 500.0, None]


def test_latency_by_second_lands_in_its_second(make: Any) -> None:
    """Seconds without results have no latency; nor has one a percentile that its results cannot carry."""
    many, few = Histogram(), Histogram()
    many.add(range(1, 101))
    few.add(10 * [60])
    second = START // US
    rows = series(make.story().record(), LatencyBySecond({second + 6: many, second + 8: few}, {second + 8: many}))
    assert rows["results"][5:10] == [None, 100, None, 10, None]
    assert rows["event_time_us_p50"][5:10] == [None, 50, None, 60, None]
    assert rows["event_time_us_p99"][5:10] == [None, 99, None, None, None]
    assert rows["processing_time_us_p50"][5:10] == [None, None, None, 50, None]


def test_a_trial_that_never_began_has_one_row(make: Any) -> None:
    """A start that failed leaves a table that can be read."""
    record = make.story(seconds=1).record(deadline_us=START)
    record.trial_log.chunks = record.trial_log.deliveries = [[], []]
    record.trial_log.commits = []
    assert len(series(record)["time_us"]) == 1


STEPS = {"wal_commit": "writing the plan", "add_batch": "doing the work"}


def progress(batch: int, second: int, **took_us: int) -> BatchProgress:
    start_us = START + second * US + 250_000
    return BatchProgress("", batch, start_us, start_us + 800_000, {"add_batch": 600_000, **took_us})


def test_batches_are_read_from_the_engines_progress(make: Any) -> None:
    """One row a batch, in order, with a column for each declared step; steps that it does not give are null."""
    reports = [replace(progress(1, 2), waited_us=7000), progress(0, 1, wal_commit=30_000)]
    table = batches_table(reports, START, make.story().trial_log(), STEPS)
    assert table.schema.names == [*BATCHES.names[:4], "wal_commit_ms", "add_batch_ms", *BATCHES.names[4:]]
    assert batch_steps(table) == {"wal_commit_ms": "writing the plan", "add_batch_ms": "doing the work"}
    rows = table.to_pylist()
    assert [row["batch_id"] for row in rows] == [0, 1]
    assert rows[0]["start_us"] == START + US + 250_000
    assert rows[0]["end_us"] == rows[0]["start_us"] + 800_000
    assert (rows[0]["add_batch_ms"], rows[0]["wal_commit_ms"], rows[1]["wal_commit_ms"]) == (600, 30, None)
    assert [row["trigger_ms"] for row in rows] == [800, 800]
    assert [row["scheduling_delay_us"] for row in rows] == [None, 7000]


def test_the_longest_wait_is_of_the_measured_span(make: Any) -> None:
    """A batch of the warm-up waited longer; an engine that reports no wait has none."""
    spans = make.story().record().spans
    waits = [replace(progress(n, second), waited_us=us) for n, (second, us) in enumerate([(1, 9000), (6, 40), (7, 70)])]
    assert scheduling_delay_us_max([*waits, progress(9, 8)], spans) == 70
    assert scheduling_delay_us_max([progress(9, 8)], spans) is None


def test_series_of_the_engine_are_those_of_the_trial() -> None:
    """By time; without what an earlier trial left, and without values that no chart can show."""
    at = [SeriesSample(START + second * US, "rows", "1/s", float(second), "half") for second in (2, -1, 1)]
    table = engine_series_table([*at, SeriesSample(START, "rows", "1/s", float("nan"))], START)
    assert [(row["time_us"], row["operator"], row["value"]) for row in table.to_pylist()] == [
        (START + US, "half", 1.0), (START + 2 * US, "half", 2.0),
    ]  # fmt: skip


@pytest.mark.parametrize(("reports", "columns"), [
    ([BatchProgress("q", 1, START + 3 * US)], {"query": ["q"], "end_us": [None], "trigger_ms": [None]}),
    ([progress(0, 0), progress(1, 5)], {"batch_id": [1]}),  # a warm engine's reports go back further than the trial
    ([progress(3, 5, add_batch=9000), progress(3, 6)], {"add_batch_ms": [600]}),  # a number repeated while it idles
    ([progress(2, 5), progress(99, 6)], {"rows": [1000, 0]}),  # the driver's count, whatever an input row is
], ids=["no end", "earlier trials", "repeated", "rows"])  # fmt: skip
def test_batches_with_a_gap_or_twice(make: Any, reports: list[BatchProgress], columns: dict[str, list[Any]]) -> None:
    """A batch without an end has no duration, so that reports leave it out; the last report of a batch counts."""
    table = batches_table(reports, START + 3 * US, make.story().trial_log(), STEPS)
    assert table.select(list(columns)).to_pydict() == columns


def windowed(rule: LatencyRule, spans: TrialSpans, emission_us: list[int]) -> SinkLatencies:
    """Two results whose window ends 4 s after the start of the span, their events in its first and third second."""
    first, end = spans.measured_from_us, spans.measured_from_us + 4 * US
    times = {
        "event_time": [first, first + 2 * US], "ingest_time": [first + 1, first + 2 * US + 1],
        "emission_time": [first + after for after in emission_us], "window_end": [end, end],
    }  # fmt: skip
    rows = pa.record_batch({name: pa.array(values, pa.int64()) for name, values in times.items()})
    return sink_latencies([rows], rule, (spans.measured_from_us, spans.measured_to_us))


def test_the_log_has_every_kind_of_latency_that_is_reported(make: Any) -> None:
    """By the second where that is known, else one interval of the span; of several sinks each has its own."""
    spans = make.story().record().spans
    second = spans.measured_from_us // US
    late = windowed(LatencyRule("window"), spans, [5 * US, 5 * US])
    by_second = [(second, 1), (second + 2, 1)]
    whole = [(second, 2)]
    log = hlog_text({"one": late}, spans)
    assert kinds_in(log) == {"event_time": by_second, "processing_time": by_second, "closing_delay": by_second}
    handed_over = LatencyRule("window", handed_over=lambda times: times + 1)
    other = hlog_text({"one": windowed(handed_over, spans, [5 * US, 5 * US])}, spans)
    assert kinds_in(other)["uncorrected"] == whole
    (line,) = [line for line in other.splitlines() if line.startswith("Tag=uncorrected")]
    assert [float(each) for each in line.split(",")[1:3]] == [second, 10.0]
    both = hlog_text({"one": late, "two": late}, spans)
    assert set(kinds_in(both)) == {f"{kind}/{sink}" for kind in kinds_in(log) for sink in ("one", "two")}


def test_the_log_has_no_kind_without_figures(make: Any) -> None:
    """Matches that come before their window is complete have no closing delay, but a time of their own."""
    spans = make.story().record().spans
    early = windowed(LatencyRule("join", lambda end: end - 1), spans, [3 * US, 5 * US])
    assert kinds_in(hlog_text({"one": early}, spans)) == {"match_time": [(spans.measured_from_us // US, 2)]}
