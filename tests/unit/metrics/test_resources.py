"""Processes; the driver's lateness, counts, and what it waited for."""

import math
from dataclasses import replace
from typing import Any

import pytest

from streamgauge.core.clock import US
from streamgauge.metrics import resources
from streamgauge.metrics.records import RUNNER
from streamgauge.metrics.resources import (
    core_wait_us,
    driver_result,
    schedule_delay,
    share_of_span,
    stood_still_us,
)
from streamgauge.metrics.time_series import series_table

START = 1_700_000_000 * US


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
    recorder, sut = resources.processes(record)
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
    sut, java, python = resources.processes(record)
    assert [(one.name, one.role) for one in (sut, java, python)] == [
        ("sut", "sut"), ("sut: jvm", "sut_part"), ("sut: python workers", "sut_part"),
    ]  # fmt: skip
    assert (sut.cpu_percent_mean, java.cpu_percent_mean, python.cpu_percent_mean) == (130, 100, 30)
    assert (python.cpu_percent_max, python.memory_bytes_max, java.memory_bytes_max) == (60, 8, 10)
    record.trial_log.usages = jvm
    assert [one.role for one in resources.processes(record)] == ["sut"]


@pytest.mark.parametrize(
    ("log", "name"), [("delivering", "hand_out_share"), ("receiving", "receive_share"), ("writing", "disk_share")]
)
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
    a moment in which several generators delivered, or several senders waited, is one moment.
    """
    record = make.story().record()
    spent = [(START + round(since * US), START + round(until * US)) for since, until in spent_s]
    setattr(record.trial_log, log, spent)
    assert getattr(driver_result(record), name) == pytest.approx(share)


def test_what_the_driver_took_of_a_warm_up_that_a_trial_ended_in(make: Any) -> None:
    """A queue may be full before the span begins because nothing could be delivered in time."""
    record = make.story(seconds=4).record(early_stop="said so", deadline_us=START + 4 * US)
    record.trial_log.delivering = [(START + US, START + 4 * US)]
    assert share_of_span(record, record.trial_log.delivering) == pytest.approx(0.75)
    at_once = make.story(seconds=0).record(early_stop="said so", deadline_us=START)
    assert share_of_span(at_once, at_once.trial_log.delivering) == 0.0


def test_schedule_delay_has_its_percentiles(make: Any) -> None:
    """Half a chunk in the middle; the largest nearly a whole one; both plus the lateness."""
    delay = schedule_delay(make.story(schedule_delay_us=1000).record())
    assert delay.p50 == pytest.approx(1000 + make.chunk_us / 2)
    assert delay.p50 < delay.p99 <= delay.max < 1000 + make.chunk_us
    record = make.story().record()
    record.trial_log.chunks = [[], []]
    assert schedule_delay(record).max == 0


@pytest.mark.parametrize(
    ("ended_s", "late_s", "stall_s"),
    [(4.0, 2.0, 0.0), (6.0, 2.0, 1.0), (10.0, 2.1, 2.0), (20.5, 0.6, 0.5), (21.5, 1.1, 0.5), (10.0, 0.1, 0.0)],
)
def test_the_recorder_stood_still_while_results_of_the_span_may_have_come(
    make: Any, ended_s: float, late_s: float, stall_s: float
) -> None:
    """From 5 s, where the span begins, to the deadline at 21 s; a tenth of a second is allowed each time."""
    record = make.story().record()
    record.trial_log.stood_still = [(START + round(ended_s * US), round(late_s * US))]
    assert stood_still_us(record) == driver_result(record).recorder_stood_still_us == round(stall_s * US)
    twice = replace(record, deadline_us=0)
    twice.trial_log.stood_still = 2 * record.trial_log.stood_still
    assert stood_still_us(twice) >= 2 * round(stall_s * US)  # while it runs there is no deadline


def test_the_drivers_own_counts(make: Any) -> None:
    """All events of the plan, and what its processes used together: CPU over the span, without warm-up and tail."""
    record = make.story().record()
    record.trial_log.usages = [
        make.usage(2.0, "generator 0", "driver", 190, 400),
        make.usage(6.0, "generator 0", "driver", 40, 100),
        make.usage(6.0, "recorder", "driver", 20, 50),
        make.usage(7.0, "generator 0", "driver", 80, 300),
        make.usage(7.0, "sut 1", "sut", 400, 9000),
        make.usage(16.0, "generator 0", "driver", 190, 100),
    ]
    driver = driver_result(record)
    events = (driver.events_planned, driver.events_offered, driver.events_handed_out, driver.events_committed)
    assert events == (20_000,) * 4
    assert driver.events_reread == 0
    assert (driver.cpu_percent, driver.memory_bytes_max) == (70.0, 400)
    assert driver_result(make.story().record()).cpu_percent is None


def test_a_broker_is_neither_driver_nor_system(make: Any) -> None:
    """It has a row of its own, and neither its use nor its wait for a core is the driver's."""
    record = make.story().record()
    record.trial_log.usages = [
        make.usage(6, "recorder", "driver", 20, 50, waiting=100),
        make.usage(6, "broker", "broker", 170, 900, waiting=90_000),
        make.usage(6, "sut 1", "sut", 10, 7),
    ]
    assert [(use.name, use.role, use.cpu_percent_mean) for use in resources.processes(record)] == [
        ("broker", "broker", 170), ("recorder", "driver", 20), ("sut", "sut", 10),
    ]  # fmt: skip
    driver = driver_result(record)
    assert (driver.cpu_percent, driver.memory_bytes_max, core_wait_us(record)) == (20, 50, 100)
    row = series_table(record, None).to_pylist()[6]
    assert (row["driver_cpu_percent"], row["broker_cpu_percent"], row["broker_memory_bytes"]) == (20, 170, 900)


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
    assert core_wait_us(record) == pytest.approx(200)
    record.trial_log.usages.append(make.usage(8, "recorder", "driver", waiting=math.nan))
    assert core_wait_us(record) == pytest.approx(200)
    record.trial_log.usages = [make.usage(6, "recorder", "driver", waiting=math.nan)]
    assert math.isnan(core_wait_us(record))


def test_the_loopbacks_traffic_is_that_of_the_span(make: Any) -> None:
    """From its first reading in the span to the last; one reading is no rate."""
    record = make.story().record()
    record.trial_log.loopback = [(START + second * US, 1000 * second**2) for second in (0, 6, 9, 14, 16)]
    assert resources.loopback_bytes_per_s(record) == (196_000 - 36_000) / 8
    record.trial_log.loopback = record.trial_log.loopback[:2]
    assert resources.loopback_bytes_per_s(record) is None
