"""The figures for Prometheus, of trials made by rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from streamgauge.core.clock import US
from streamgauge.metrics.log.trial_log import TrialLog
from streamgauge.results.latency import Latencies, Latency
from streamgauge.studies.run.prometheus import latency_figures, load_figures
from streamgauge.transports.spi import Delivery

RATE = 1000


def test_events_are_counted_as_in_the_series(make: Any) -> None:
    """20 s at 1000/s, read second by second; the last batch is not committed."""
    story = make.story(seconds=20)
    record = story.record()
    record.trial_log.commits.pop()
    figures = load_figures(record, make.start + 20 * US + 200_000)
    assert (figures.due, figures.offered, figures.ingested) == (20 * RATE, 20 * RATE, 20 * RATE)
    assert (figures.committed, figures.backlog) == (19 * RATE, 0)
    assert figures.lag == {("purchases", "0"): RATE / 2, ("purchases", "1"): RATE / 2}


def test_events_due_and_not_read_are_the_backlog(make: Any) -> None:
    """The last read took the events of 10 s, and 2 more seconds are due."""
    record = make.story(seconds=10).record()
    figures = load_figures(record, make.start + 12 * US)
    assert (figures.due, figures.backlog) == (12 * RATE, 2 * RATE)


def test_nothing_is_due_after_the_end_of_the_plan(make: Any) -> None:
    """What is committed later still lowers the lag."""
    figures = load_figures(make.story(seconds=20, commit_after_us=9 * US).record(), make.start + 55 * US)
    assert (figures.due, set(figures.lag.values())) == (20 * RATE, {0})


def test_a_partition_that_was_not_read_lags_by_all_its_events(make: Any) -> None:
    """Of the other one, 10 s are committed when 12 s are due."""
    trial_log = TrialLog(make.plan())
    end_us = make.start + 10 * US
    delivery = Delivery("purchases", make.start, end_us, 10 * RATE // 2, end_us, 0, False)
    trial_log.add(make.tick([[], []], [[delivery], []], [make.commit(0, make.start + 11 * US)]))
    record = replace(make.story().record(), trial_log=trial_log)
    assert load_figures(record, make.start + 12 * US).lag == {("purchases", "0"): 1000, ("purchases", "1"): 6000}


def test_the_last_batch_of_each_sink_has_its_latencies(make: Any) -> None:
    record = make.story(seconds=10).record()
    record.trial_log.sinks = ("", "alerts")
    known = {"latency_us_p50": 250_000.0, "latency_us_p90": 500_000.0, "latency_us_p99": 2e6}
    record.trial_log.commits += [make.commit(10, make.start + 11 * US, **known), make.commit(11, make.start + 12 * US)]
    assert load_figures(record, make.start + 12 * US).batch_latency_s == {
        ("", "0.5"): 0.25, ("", "0.9"): 0.5, ("", "0.99"): 2.0,
    }  # fmt: skip


def test_processor_and_memory_are_summed_by_role_over_the_last_sample(make: Any) -> None:
    record = make.story(seconds=10).record()
    assert load_figures(record, make.start + 10 * US).cpu_cores == {}
    record.trial_log.usages = [
        make.usage(8, "sut 1", "sut", 99.0, 10_000), make.usage(9, "sut 1", "sut", 150.0, 1000),
        make.usage(9, "sut 2", "sut", 30.0, 500), make.usage(9, "runner", "driver", 5.0, 70),
    ]  # fmt: skip
    figures = load_figures(record, make.start + 10 * US)
    assert figures.cpu_cores == {("sut",): 1.8, ("driver",): 0.05}
    assert figures.memory_bytes == {("sut",): 1500, ("driver",): 70}


def test_latencies_are_those_that_are_known() -> None:
    event_time = Latency(p50=500_000.0, p99_9=3e6, count=9)
    assert latency_figures(Latencies(event_time_us=event_time, processing_time_us=Latency())) == {
        ("event_time", "0.5"): 0.5, ("event_time", "0.999"): 3.0,
    }  # fmt: skip
    assert latency_figures(Latencies()) == {}
