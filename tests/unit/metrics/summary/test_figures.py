"""Figures of a trial: tables and sums that can be computed by hand for a trial made by rule."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from streamgauge.artifacts.tables import BATCHES, SCHEMA
from streamgauge.core.batch_progress import BatchProgress
from streamgauge.core.clock import US
from streamgauge.core.trial_spans import TrialSpans
from streamgauge.harness.monitors import Monitors
from streamgauge.metrics.latency.event_latency import LatencyBySecond
from streamgauge.metrics.latency.histogram import Histogram
from streamgauge.metrics.records import RUNNER, Role
from streamgauge.metrics.summary import figures
from streamgauge.transports.spi import Delivery
from streamgauge.verdict.criteria import SCHEDULE_DELAY_US_MAX
from streamgauge.verdict.evidence import BACKGROUND_BURST_S

START = 1_700_000_000 * US
CHUNK = 100
"""Events of the chunk that was due last in a second: it is available in the next one."""


def test_phases_follow_each_other_without_gaps() -> None:
    """Warm-up, measured, tail, drain; each begins where the last ended, and empty ones are left out."""
    spans = TrialSpans(START, START + 5 * US, START + 15 * US, START + 20 * US)
    found = figures.phases(spans, START + 22 * US)
    assert [phase.name for phase in found] == ["warm-up", "measured", "tail", "drain"]
    assert [phase.end_us for phase in found[:-1]] == [phase.start_us for phase in found[1:]]
    bare = figures.phases(TrialSpans(START, START, START + US, START + US), START + US)
    assert [phase.name for phase in bare] == ["measured"]


@pytest.mark.parametrize("why", ["early_stop", "engine_failed", "driver_failed", "interrupted"])
def test_phases_of_a_trial_that_ended_early_are_those_of_what_was_offered(make: Any, why: str) -> None:
    """Offered for 8 of the 15 planned seconds: 3 were measured, there was no tail, the rest was waiting for the end."""
    record = make.story(seconds=8).record(
        **{why: True if why == "interrupted" else "said so"}, deadline_us=START + 9 * US
    )
    found = figures.phases(record.offered_spans, record.deadline_us)
    assert [(phase.name, (phase.end_us - phase.start_us) / US) for phase in found] == [
        ("warm-up", 5), ("measured", 3), ("drain", 1)
    ]  # fmt: skip


def test_rates_are_over_the_measured_span(make: Any) -> None:
    """Planned, offered, ingested and committed of a steady trial are all the rate; the shares are the plan's."""
    rates = figures.rates(make.story(plan=make.plan(streams=2)).record(), 5e6, SCHEDULE_DELAY_US_MAX)
    per_s = (rates.planned_per_s, rates.offered_per_s, rates.ingested_per_s, rates.achieved_per_s)
    assert per_s == pytest.approx((1000, 1000, 1000, 1000))
    assert rates.generator_ceiling_per_s == 5e6
    assert rates.shares == {"purchases": 0.75, "ads": 0.25}


def test_what_comes_too_late_is_not_offered(make: Any) -> None:
    """What a second owes and gives only well after its end counts against the driver."""
    rates = figures.rates(make.story(slip_us=SCHEDULE_DELAY_US_MAX + US).record(), None, SCHEDULE_DELAY_US_MAX)
    assert (rates.planned_per_s, rates.offered_per_s) == (1000, 0)


def test_a_trial_that_ended_early_is_measured_to_its_end(make: Any) -> None:
    """Rates divide by the time there was, not by the time there should have been."""
    rates = figures.rates(make.story().record(deadline_us=START + 10 * US), None, SCHEDULE_DELAY_US_MAX)
    assert (rates.planned_per_s, rates.ingested_per_s) == (1000, 1000)


def test_a_trial_that_ended_in_its_warm_up_has_no_rates(make: Any) -> None:
    """No division by nothing, and no made-up figure."""
    rates = figures.rates(make.story(seconds=2).record(deadline_us=START + 3 * US), None, SCHEDULE_DELAY_US_MAX)
    assert (rates.ingested_per_s, rates.achieved_per_s) == (0, 0)


def test_the_backlog_of_a_steady_trial(make: Any) -> None:
    """Peaks of a second of the rate, no slope; at the span's end what came since the last read."""
    backlog = figures.backlog(make.story(read_after_us=5000).record())
    assert (backlog.max, backlog.max_s) == (1005, pytest.approx(1.005))
    assert backlog.slope_per_s == pytest.approx(0, abs=1e-6)
    assert backlog.end == 1000


def test_a_growing_backlog_has_a_slope(make: Any) -> None:
    """5 % slower than the plan: a sample each 1.05 s, higher by 50 events."""
    backlog = figures.backlog(make.story(growth_us=50_000).record())
    assert backlog.slope_per_s == pytest.approx(50 / 1.05, rel=1e-3)


def test_an_engine_that_never_read_has_everything_as_backlog(make: Any) -> None:
    """No hand-out, no sample; what was due is the backlog."""
    record = make.story().record()
    record.trial_log.hand_outs = [[], []]
    backlog = figures.backlog(record)
    assert (backlog.max, backlog.end, backlog.slope_per_s) == (15_000, 15_000, 0.0)


def test_the_backlog_of_an_engine_that_stopped_is_largest_at_the_end(make: Any) -> None:
    """Peaks are sampled at hand-outs, and the last of those came long before: what waits at the end is more."""
    record = make.story().record()
    record.trial_log.hand_outs = [
        [part for part in log if part.to_us <= START + 8 * US] for log in record.trial_log.hand_outs
    ]
    backlog = figures.backlog(record)
    assert (backlog.max, backlog.end) == (backlog.end, 7000)


WAITED = [("handing_out", "hand_out_share"), ("receiving", "receive_share"), ("writing", "disk_share")]


@pytest.mark.parametrize(("log", "name"), WAITED)
@pytest.mark.parametrize(
    ("spent_s", "share"),
    [
        ([], 0.0),
        ([(4.0, 5.0), (15.0, 16.0)], 0.0),
        ([(4.0, 6.0), (14.0, 16.0)], 0.2),
        ([(6.0, 7.0), (9.0, 9.5)], 0.15),
        ([(6.0, 8.0), (6.5, 7.0), (7.0, 9.0), (8.5, 9.0)], 0.3),
        (3 * [(0.0, 20.0)], 1.0),
    ],
)
def test_what_the_driver_took_counts_once_and_within_the_span(
    make: Any, log: str, name: str, spent_s: list[tuple[float, float]], share: float
) -> None:
    """Ten seconds from the fifth on. Before, an engine is starting; after, it sends what is owed for no figure of ours;
    a moment in which several generators handed out, or several senders waited, is one moment.
    """
    record = make.story().record()
    spent = [(START + round(since * US), START + round(until * US)) for since, until in spent_s]
    setattr(record.trial_log, log, spent)
    assert getattr(figures.driver(record), name) == pytest.approx(share)


def test_what_the_driver_took_of_a_warm_up_that_a_trial_ended_in(make: Any) -> None:
    """A queue may be full before the span begins because nothing could be handed out in time."""
    record = make.story(seconds=4).record(early_stop="said so", deadline_us=START + 4 * US)
    record.trial_log.handing_out = [(START + US, START + 4 * US)]
    assert figures.share_of_span(record, record.trial_log.handing_out) == pytest.approx(0.75)
    at_once = make.story(seconds=0).record(early_stop="said so", deadline_us=START)
    assert figures.share_of_span(at_once, at_once.trial_log.handing_out) == 0.0


def test_slip_has_its_percentiles(make: Any) -> None:
    """Half a chunk in the middle; the largest nearly a whole one; both plus the lateness."""
    slip = figures.slip(make.story(slip_us=1000).record())
    assert slip.p50 == pytest.approx(1000 + make.chunk_us / 2)
    assert slip.p50 < slip.p99 <= slip.max < 1000 + make.chunk_us
    record = make.story().record()
    record.trial_log.chunks = [[], []]
    assert figures.slip(record).max == 0


@pytest.mark.parametrize(
    ("ended_s", "late_s", "found_s"),
    [(4.0, 2.0, 0.0), (6.0, 2.0, 1.0), (10.0, 2.1, 2.0), (20.5, 0.6, 0.5), (21.5, 1.1, 0.5), (10.0, 0.1, 0.0)],
)
def test_the_recorder_stood_still_while_results_of_the_span_may_have_come(
    make: Any, ended_s: float, late_s: float, found_s: float
) -> None:
    """From 5 s, where the span begins, to the deadline at 21 s; a tenth of a second is allowed each time."""
    record = make.story().record()
    record.trial_log.stood_still = [(START + round(ended_s * US), round(late_s * US))]
    assert figures.stood_still_us(record) == figures.driver(record).recorder_stood_still_us == round(found_s * US)
    twice = replace(record, deadline_us=0)
    twice.trial_log.stood_still = 2 * record.trial_log.stood_still
    assert figures.stood_still_us(twice) >= 2 * round(found_s * US)  # while it runs there is no deadline


def test_the_drivers_own_counts(make: Any) -> None:
    """All events of the plan, and what its processes used together."""
    record = make.story().record()
    record.trial_log.usages = [
        make.usage(6.0, "generator 0", "driver", 40, 100),
        make.usage(6.0, "recorder", "driver", 20, 50),
        make.usage(7.0, "generator 0", "driver", 80, 300),
        make.usage(7.0, "sut 1", "sut", 400, 9000),
    ]
    driver = figures.driver(record)
    events = (driver.events_planned, driver.events_offered, driver.events_handed_out, driver.events_committed)
    assert events == (20_000,) * 4
    assert driver.events_reread == 0
    assert (driver.cpu_percent, driver.memory_bytes_max) == (70.0, 300)
    assert figures.driver(make.story().record()).cpu_percent is None


def test_the_suts_processes_are_summed(make: Any) -> None:
    """Workers come and go: the system under test is one line, ours are one each; only the measured span counts."""
    record = make.story().record()
    record.trial_log.usages = [
        make.usage(1.0, "sut 1", "sut", 999, 999),
        make.usage(6.0, "sut 1", "sut", 100, 10),
        make.usage(6.0, "sut 2", "sut", 50, 20),
        make.usage(7.0, "sut 1", "sut", 200, 5),
        make.usage(6.0, "recorder", "driver", 10, 7),
        make.usage(16.0, "recorder", "driver", 999, 999),
    ]
    recorder, sut = figures.processes(record)
    assert (recorder.name, recorder.role, recorder.cpu_percent_mean, recorder.memory_bytes_max) == (
        "recorder",
        "driver",
        10,
        7,
    )
    assert (sut.name, sut.cpu_percent_mean, sut.cpu_percent_max, sut.memory_bytes_max) == ("sut", 175, 200, 30)


def test_the_suts_kinds_of_processes_are_parts_of_it(make: Any) -> None:
    """JVM and Python workers each have a row that adds up to the whole; a second without a worker counts."""
    record = make.story().record()
    jvm = [replace(make.usage(second, "sut 1", "sut", 100, 10), kind="jvm") for second in (6.0, 7.0)]
    workers = [replace(make.usage(6.0, f"sut {pid}", "sut", 30, 4), kind="python workers") for pid in (2, 3)]
    record.trial_log.usages = [*jvm, *workers]
    sut, java, python = figures.processes(record)
    assert [(one.name, one.role) for one in (sut, java, python)] == [
        ("sut", "sut"), ("sut: jvm", "sut_part"), ("sut: python workers", "sut_part"),
    ]  # fmt: skip
    assert (sut.cpu_percent_mean, java.cpu_percent_mean, python.cpu_percent_mean) == (130, 100, 30)
    assert (python.cpu_percent_max, python.memory_bytes_max, java.memory_bytes_max) == (60, 8, 10)
    record.trial_log.usages = jvm
    assert [one.role for one in figures.processes(record)] == ["sut"]


def test_the_wait_for_a_core_is_of_the_worst_driver_process(make: Any) -> None:
    """The mean over the span of the process that waited most; the system under test may wait as it likes."""
    record = make.story().record()
    record.trial_log.usages = [
        make.usage(6, "generator 0", "driver", waiting=100),
        make.usage(7, "generator 0", "driver", waiting=300),
        make.usage(6, "recorder", "driver", waiting=50),
        make.usage(6, "sut 1", "sut", waiting=5000),
        make.usage(2, "recorder", "driver", waiting=1000),
        make.usage(6, RUNNER, "driver", waiting=5000),
    ]
    assert figures.core_wait_us(record) == pytest.approx(200)
    record.trial_log.usages.append(make.usage(8, "recorder", "driver", waiting=math.nan))
    assert figures.core_wait_us(record) == pytest.approx(200)
    record.trial_log.usages = [make.usage(6, "recorder", "driver", waiting=math.nan)]
    assert math.isnan(figures.core_wait_us(record))


# --- the per-second table ---


def series(record: Any, latency: LatencyBySecond | None = None) -> dict[str, list[Any]]:
    return dict(figures.series(record, latency).to_pydict())


def test_the_series_has_a_row_for_each_second(make: Any) -> None:
    """From the first planned second to the deadline, with the phase of each; every column is one the report knows."""
    rows = series(make.story().record())
    assert rows["time_us"] == [START + second * US for second in range(21)]
    assert rows["phase"] == ["warm-up"] * 5 + ["measured"] * 10 + ["tail"] * 5 + ["drain"]
    assert set(rows) <= set(SCHEMA.names)


def test_the_series_counts_what_happened_in_each_second(make: Any) -> None:
    """Planned by plan; offered, handed out and committed where they happened; every sum is the whole."""
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


def test_lag_counts_until_the_commit(make: Any) -> None:
    """A commit a second after the read: the lag is a second longer than the backlog."""
    rows = series(make.story(commit_after_us=US).record(deadline_us=START + 22 * US))
    assert rows["backlog_events"][10] == 1000
    assert rows["lag_events"][10] == 2000
    assert rows["lag_events"][-1] == 0


def test_rereads_are_not_handed_out_again(make: Any) -> None:
    """A batch read twice moves neither the backlog nor the lag."""
    record = make.story().record()
    record.trial_log.hand_outs[0].append(Delivery("purchases", START, START + US, 500, START + US, 1, True))
    assert series(record) == series(make.story().record())


def test_slip_and_output_lag_by_second(make: Any) -> None:
    """The worst slip of a second's chunks; the output's lag at its commits, unknown where there was none."""
    rows = series(make.story(slip_us=7000, read_after_us=0, commit_after_us=300_000).record())
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


def test_a_sample_that_crosses_a_seconds_border_is_of_one_second(make: Any) -> None:
    """Two processes, the second one read in the next second: no second shows a part of them as all there was."""
    clock = iter([0.0, 0.0, 0.0, 0.0, 6.9, 6.95, 7.05, 7.1])
    record = make.story().record()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as waiting:
        processes: list[tuple[str, Role, int]] = [("sut 1", "sut", os.getpid()), ("sut 2", "sut", waiting.pid)]
        watched = Monitors(lambda: processes, lambda: make.start + round(next(clock) * US))
        for _ in range(2):
            record.trial_log.usages.extend(watched.sample())
        waiting.kill()
    memory = [usage.memory_bytes for usage in record.trial_log.usages]
    assert len(memory) == 2
    assert series(record)["sut_memory_bytes"][5:8] == [None, sum(memory), None]
    (sut,) = figures.processes(record)
    assert sut.memory_bytes_max == sum(memory)
    assert sut.cpu_percent_mean == sut.cpu_percent_max == sum(usage.cpu_percent for usage in record.trial_log.usages)


def test_what_others_used_is_of_the_measured_span(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its mean, as a share of the machine too, and each second's own; not known is no 0 in the series."""
    record = make.story().record()
    assert (figures.background_percent(record), figures.background_share(record)) == (None, 0.0)
    record.trial_log.background = [(START + US, 400.0), (START + 6 * US, 100.0), (START + 7 * US, 60.0)]
    monkeypatch.setattr(figures, "machine_percent", lambda: 400.0)
    assert (figures.background_percent(record), figures.background_share(record)) == (80.0, 0.2)
    shown = figures.series(record, None)["others_cpu_percent"].to_pylist()
    record.trial_log.background = [
        (START + US, 400.0),
        (START + 2 * US, 200.0),
    ]  # the queue was full before the span began
    assert (figures.background_percent(record), figures.background_share(record)) == (None, 0.75)
    assert shown[:8] == [None, 400.0, None, None, None, None, 100.0, 60.0]


def test_how_much_of_the_time_batches_filled(make: Any) -> None:
    """By the event time that each took; nothing where no batch was committed."""
    record = make.story(commit_after_us=250_000).record()
    assert figures.busy_share(record) == pytest.approx(0.25)
    record.trial_log.commits = []
    assert figures.busy_share(record) is None


def test_rare_long_batches_fill_time_too(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every third one closes windows: the median would not see it."""
    record = make.story(commit_after_us=250_000).record()
    times, shares = record.trial_log.by_query()[0].work_shares()
    monkeypatch.setattr(type(record.trial_log), "work_shares", lambda log: (times, np.full(shares.size, 0.3)))
    flat = figures.busy_share(record)
    third = np.resize([0.3, 0.3, 1.5], shares.size)
    monkeypatch.setattr(type(record.trial_log), "work_shares", lambda log: (times, third))
    assert flat == pytest.approx(0.3)
    assert figures.busy_share(record) == pytest.approx(0.7, abs=0.15)


def test_the_machines_own_speed_is_of_the_measured_span(make: Any) -> None:
    """Its median there, each second's own, and whether the last third was slower than the first."""
    record = make.story().record()
    assert (figures.reference_work_us(record), figures.slowed_by(record)) == (None, 0.0)
    span = range(record.spans.measured_from_us, record.spans.measured_to_us, US // 2)
    record.trial_log.reference_work = [(START + US, 9000.0)] + [(when, 1000.0) for when in span]
    assert (figures.reference_work_us(record), figures.slowed_by(record)) == (1000.0, 0.0)
    assert figures.series(record, None)["reference_work_us"].to_pylist()[1] == 9000.0
    third = len(span) // 3
    record.trial_log.reference_work = [(when, 1000.0 if n < third else 1300.0) for n, when in enumerate(span)]
    assert figures.slowed_by(record) == pytest.approx(0.3)


@pytest.mark.parametrize("apart_s", [1.0, 1.1])
def test_the_worst_seconds_beside_others_are_seen(make: Any, monkeypatch: pytest.MonkeyPatch, apart_s: float) -> None:
    """Both of two cores for some seconds of the span, whichever those are; before the span nobody minds."""
    monkeypatch.setattr(figures, "machine_percent", lambda: 200.0)
    record = make.story().record()
    low, high = record.spans.measured_from_us, record.spans.measured_to_us
    assert figures.background_burst_share(record, BACKGROUND_BURST_S) == 0.0
    times = [low + round(n * apart_s * US) for n in range(-3, round((high - low) / US / apart_s))]

    def burst(first: int, samples: int) -> float:
        busy = times[first : first + samples]
        record.trial_log.background = [(when, 200.0 if when in busy else 0.0) for when in times]
        return figures.background_burst_share(record, BACKGROUND_BURST_S)

    assert burst(3 + 2, 3) == pytest.approx(0.6)
    assert burst(3 + 2, 1) == pytest.approx(0.2)
    assert burst(0, 3) == 0.0
    record.trial_log.background = [(when, 16.0) for when in times]  # denied to a virtual machine, all the time
    assert figures.background_burst_share(record, BACKGROUND_BURST_S) == pytest.approx(0.08)


def test_the_loopbacks_bytes_by_second(make: Any) -> None:
    """The counter's growth between two readings, in the second of the later one; null where it was not read."""
    record = make.story().record()
    record.trial_log.loopback = [(START, 1000), (START + US, 4000), (START + 3 * US, 5000)]
    found = figures.series(record, None)["loopback_bytes_per_s"].to_pylist()
    assert found[:5] == [None, 3000.0, None, 500.0, None]


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
    record.trial_log.chunks = record.trial_log.hand_outs = [[], []]
    record.trial_log.commits = []
    assert len(series(record)["time_us"]) == 1


# --- the engine's batches ---


def progress(batch: int, second: int, **took_us: int) -> BatchProgress:
    start_us = START + second * US + 250_000
    return BatchProgress("", batch, start_us, start_us + 800_000, {"add_batch": 600_000, **took_us})


def test_batches_are_read_from_the_engines_progress(make: Any) -> None:
    """One row a batch, in order, its steps as the engine says; steps that it does not give are null."""
    table = figures.batches([progress(1, 2), progress(0, 1, wal_commit=30_000)], START, make.story().trial_log())
    assert table.schema == BATCHES
    rows = table.to_pylist()
    assert [row["batch_id"] for row in rows] == [0, 1]
    assert rows[0]["start_us"] == START + US + 250_000
    assert rows[0]["end_us"] == rows[0]["start_us"] + 800_000
    assert (rows[0]["add_batch_ms"], rows[0]["wal_commit_ms"], rows[1]["wal_commit_ms"]) == (600, 30, None)
    assert [row["trigger_ms"] for row in rows] == [800, 800]


def test_a_batch_without_an_end_has_no_duration(make: Any) -> None:
    """Both are null, so that reports leave it out."""
    (row,) = figures.batches([BatchProgress("q", 1, START)], START, make.story().trial_log()).to_pylist()
    assert (row["query"], row["end_us"], row["trigger_ms"]) == ("q", None, None)


def test_batches_of_earlier_trials_are_left_out(make: Any) -> None:
    """A warm engine's progress goes back further than this trial."""
    table = figures.batches([progress(0, 0), progress(1, 5)], START + 3 * US, make.story().trial_log())
    assert table.column("batch_id").to_pylist() == [1]


def test_a_batch_told_twice_is_one(make: Any) -> None:
    """An engine may repeat a batch's number while it idles; the last report counts."""
    table = figures.batches([progress(3, 1, add_batch=9000), progress(3, 2)], START, make.story().trial_log())
    assert table.column("add_batch_ms").to_pylist() == [600]


def test_a_batchs_events_are_the_drivers_count(make: Any) -> None:
    """Whatever the engine calls an input row; a batch that nothing was handed out for has none."""
    table = figures.batches([progress(2, 1), progress(99, 2)], START, make.story().trial_log())
    assert table.column("rows").to_pylist() == [1000, 0]


def test_the_way_to_a_broker_is_the_drivers() -> None:
    """Of the events that were looked at; nothing where none was."""
    assert figures.append_latency([]) is None
    found = figures.append_latency([1000, 2000, 3000])
    assert found is not None
    assert (found.p50, found.max) == (2000, 3000)
