"""Processes, the background load, and the machine's own speed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from streamgauge.core.clock import US
from streamgauge.metrics.summary import resources
from streamgauge.metrics.summary.time_series import series_table
from streamgauge.verdict.evidence import BACKGROUND_BURST_S

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


def test_what_others_used_is_of_the_measured_span(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its mean, as a share of the machine too, and each second's own; not known is no 0 in the series."""
    record = make.story().record()
    assert (resources.background_percent(record), resources.background_share(record)) == (None, 0.0)
    record.trial_log.background = [(START + US, 400.0), (START + 6 * US, 100.0), (START + 7 * US, 60.0)]
    monkeypatch.setattr(resources, "machine_percent", lambda: 400.0)
    assert (resources.background_percent(record), resources.background_share(record)) == (80.0, 0.2)
    shown = series_table(record, None)["others_cpu_percent"].to_pylist()
    record.trial_log.background = [
        (START + US, 400.0),
        (START + 2 * US, 200.0),
    ]  # the queue was full before the span began
    assert (resources.background_percent(record), resources.background_share(record)) == (None, 0.75)
    assert shown[:8] == [None, 400.0, None, None, None, None, 100.0, 60.0]


def test_the_machines_own_speed_is_of_the_measured_span(make: Any) -> None:
    """Its median there, each second's own, and whether the last third was slower than the first."""
    record = make.story().record()
    assert (resources.reference_work_us(record), resources.slowed_by(record)) == (None, 0.0)
    span = range(record.spans.measured_from_us, record.spans.measured_to_us, US // 2)
    record.trial_log.reference_work = [(START + US, 9000.0)] + [(when, 1000.0) for when in span]
    assert (resources.reference_work_us(record), resources.slowed_by(record)) == (1000.0, 0.0)
    assert series_table(record, None)["reference_work_us"].to_pylist()[1] == 9000.0
    third = len(span) // 3
    record.trial_log.reference_work = [(when, 1000.0 if n < third else 1300.0) for n, when in enumerate(span)]
    assert resources.slowed_by(record) == pytest.approx(0.3)


@pytest.mark.parametrize("apart_s", [1.0, 1.1])
def test_the_worst_seconds_beside_others_are_seen(make: Any, monkeypatch: pytest.MonkeyPatch, apart_s: float) -> None:
    """Both of two cores for some seconds of the span, whichever those are; before the span nobody minds."""
    monkeypatch.setattr(resources, "machine_percent", lambda: 200.0)
    record = make.story().record()
    low, high = record.spans.measured_from_us, record.spans.measured_to_us
    assert resources.background_burst_share(record, BACKGROUND_BURST_S) == 0.0
    times = [low + round(n * apart_s * US) for n in range(-3, round((high - low) / US / apart_s))]

    def burst(first: int, samples: int) -> float:
        busy = times[first : first + samples]
        record.trial_log.background = [(when, 200.0 if when in busy else 0.0) for when in times]
        return resources.background_burst_share(record, BACKGROUND_BURST_S)

    assert burst(3 + 2, 3) == pytest.approx(0.6)
    assert burst(3 + 2, 1) == pytest.approx(0.2)
    assert burst(0, 3) == 0.0
    record.trial_log.background = [(when, 16.0) for when in times]  # denied to a virtual machine, all the time
    assert resources.background_burst_share(record, BACKGROUND_BURST_S) == pytest.approx(0.08)
